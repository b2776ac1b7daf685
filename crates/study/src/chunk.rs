//! Rows of a study by columns.

use lasthop_experiment::Value;
use lasthop_experiment::report::ended_key;

use crate::cells::Cells;
use crate::pool::Row;

/// The most runs of a chunk. A query in SQL reads the cells of a metric in a chunk as a whole for each run that
/// it cuts out of them, so that longer chunks are slower to read.
const MOST: usize = 256;

/// Consecutive runs of one batch, by columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// The key of the batch.
    pub key: i64,
    /// The number of the first run.
    pub first: u64,
    /// How many runs there are, at least one.
    pub runs: usize,
    /// Why each ended.
    pub ended: Cells,
    /// The metrics, in the order of their [names](lasthop_experiment::Metrics::names), and the further ones that the pool
    /// was asked for.
    pub metrics: Vec<Cells>,
}

impl Chunk {
    /// Packs rows in any order into chunks, ordered by key and number.
    pub fn pack(rows: &[Row]) -> Vec<Chunk> {
        let mut ordered: Vec<&Row> = rows.iter().collect();
        // Rows arrive in stretches, which this sort detects.
        ordered.sort_by_key(|row| (row.key, row.run));
        let mut chunks = Vec::new();
        for stretch in ordered.chunk_by(|a, b| (a.key, a.run + 1) == (b.key, b.run)) {
            chunks.extend(stretch.chunks(MOST).map(Chunk::of));
        }
        chunks
    }

    /// A chunk of consecutive rows, at least one.
    fn of(rows: &[&Row]) -> Chunk {
        let mut columns: Vec<Vec<Value>> = rows[0].values().map(|_| Vec::with_capacity(rows.len())).collect();
        for row in rows {
            columns.iter_mut().zip(row.values()).for_each(|(column, value)| column.push(value));
        }
        let ended: Vec<&str> = rows.iter().map(|row| ended_key(row.ended)).collect();
        Chunk {
            key: rows[0].key,
            first: rows[0].run,
            runs: rows.len(),
            ended: Cells::of_words(&ended),
            metrics: columns.iter().map(|column| Cells::of(column)).collect(),
        }
    }
}
