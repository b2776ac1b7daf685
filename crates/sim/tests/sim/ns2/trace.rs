//! Parsing of ns-2 traces, and their comparison with recorded runs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

/// One row of a trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Seconds.
    pub(crate) t: f64,
    pub(crate) event: String,
    /// Segment or acknowledgement number.
    pub(crate) seq: Option<i64>,
    /// Number of its transmissions so far, or its index.
    pub(crate) k: Option<i64>,
    /// Bytes on the wire.
    pub(crate) size: Option<i64>,
    /// cwnd in segments.
    pub(crate) cwnd: Option<f64>,
    /// ssthresh, dupacks, rtt, srtt, rttvar, backoff.
    pub(crate) state: Option<[i64; 6]>,
}

impl Row {
    /// A row about a packet.
    pub(crate) fn packet(t: f64, event: &str, seq: i64, k: Option<i64>, size: i64) -> Row {
        Row { t, event: event.into(), seq: Some(seq), k, size: Some(size), cwnd: None, state: None }
    }

    /// A row with an event only.
    pub(crate) fn bare(t: f64, event: &str) -> Row {
        Row { t, event: event.into(), seq: None, k: None, size: None, cwnd: None, state: None }
    }

    /// A row with the sender's state.
    pub(crate) fn state(t: f64, cwnd: f64, state: [i64; 6]) -> Row {
        Row { cwnd: Some(cwnd), state: Some(state), ..Row::bare(t, "st") }
    }

    /// Times agree within a microsecond, cwnd to the six digits that ns-2 prints, all else exactly.
    fn agrees(&self, other: &Row) -> bool {
        let cwnd = match (self.cwnd, other.cwnd) {
            (Some(a), Some(b)) => (a - b).abs() <= 5.1e-6 * a.abs().max(1.0),
            (None, None) => true,
            _ => false,
        };
        let exact = (&self.event, self.seq, self.k, self.size, self.state)
            == (&other.event, other.seq, other.k, other.size, other.state);
        (self.t - other.t).abs() <= 1e-6 && cwnd && exact
    }
}

/// Reads a gzipped trace.
pub(crate) fn read(path: &Path) -> Result<Vec<Row>, String> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).map_err(|error| format!("{}: {error}", path.display()))?;
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|line| row(line).ok_or_else(|| format!("unreadable row: {line}"))).collect()
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[t, event, seq, k, size, cwnd, .., backoff] = fields.as_slice() else { return None };
    let integer = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    let mut state = None;
    if !backoff.is_empty() {
        let numbers: Vec<i64> = fields[6..12].iter().map(|text| text.parse().ok()).collect::<Option<_>>()?;
        state = Some(numbers.try_into().ok()?);
    }
    Some(Row {
        t: t.parse().ok()?,
        event: event.into(),
        seq: integer(seq)?,
        k: integer(k)?,
        size: integer(size)?,
        cwnd: if cwnd.is_empty() { None } else { Some(cwnd.parse().ok()?) },
        state,
    })
}

/// The first row in which two traces differ, if they do.
pub(crate) fn compare(expected: &[Row], found: &[Row]) -> Result<(), String> {
    let longest = expected.len().max(found.len());
    for index in 0..longest {
        let (want, have) = (expected.get(index), found.get(index));
        if !want.zip(have).is_some_and(|(want, have)| want.agrees(have)) {
            return Err(format!("row {}: ns-2 has {}, we have {}", index + 1, show(want), show(have)));
        }
    }
    Ok(())
}

fn show(row: Option<&Row>) -> String {
    let Some(row) = row else { return "nothing more".into() };
    let mut text = format!("[{:.9} {}", row.t, row.event);
    for (name, value) in [("seq", row.seq), ("k", row.k), ("size", row.size)] {
        value.into_iter().for_each(|value| text += &format!(" {name}={value}"));
    }
    if let (Some(cwnd), Some(state)) = (row.cwnd, row.state) {
        text += &format!(" cwnd={cwnd:.6}");
        let names = ["ssthresh", "dupacks", "rtt", "srtt", "rttvar", "backoff"];
        names.iter().zip(state).for_each(|(name, value)| text += &format!(" {name}={value}"));
    }
    text + "]"
}
