//! The values of a metric over consecutive runs, as the store of a study keeps them.

use std::fmt;

use lasthop_experiment::Value;

/// The digits of the largest `u64`.
const DIGITS: usize = 20;

/// A metric, or why the runs ended, over the runs of a chunk.
///
/// Most metrics are equal in all runs of a chunk, such as counters of what a scenario lacks. The others are
/// decimal numbers of equal width in ASCII, since SQL can cut them out of a blob, and cannot decode binary ones.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// The same value in every run.
    Same(Value),
    /// The same word in every run.
    SameWord(&'static str),
    /// A cell for each run, in order: all of the same width, padded with spaces. Blank where a metric does not
    /// apply to the run.
    Each(Vec<u8>),
}

/// Decoded cells.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Integers.
    Counts(Vec<i64>),
    /// Numbers; NaN where the metric does not apply.
    Reals(Vec<f64>),
}

/// An error: cells that are neither numbers nor blank, or not as many as there are runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected as many numbers of equal width as there are runs")
    }
}

impl std::error::Error for Malformed {}

impl Cells {
    /// The cells of some values of one metric, at least one.
    pub(crate) fn of(values: &[Value]) -> Cells {
        let first = values[0];
        if values.iter().all(|value| same(*value, first)) {
            return Cells::Same(first);
        }
        let mut cells = Padded::new(values.len());
        values.iter().for_each(|value| cells.push(*value));
        Cells::Each(cells.finish())
    }

    /// The cells of some words, at least one.
    pub(crate) fn of_words(words: &[&'static str]) -> Cells {
        if words.iter().all(|word| *word == words[0]) {
            return Cells::SameWord(words[0]);
        }
        let mut cells = Padded::new(words.len());
        words.iter().for_each(|word| cells.text(word.as_bytes()));
        Cells::Each(cells.finish())
    }

    /// Decodes the numbers of [`Cells::Each`] of `runs` runs.
    ///
    /// # Errors
    /// If `cells` are malformed.
    pub fn decode(cells: &[u8], runs: usize) -> Result<Column, Malformed> {
        let width = cells.len().checked_div(runs).filter(|width| *width > 0).ok_or(Malformed)?;
        if width * runs != cells.len() || !cells.is_ascii() {
            return Err(Malformed);
        }
        let texts = cells.chunks_exact(width).map(|cell| {
            let text = str::from_utf8(cell).map_err(|_| Malformed)?;
            Ok(text.trim_ascii())
        });
        if cells.iter().all(|byte| byte.is_ascii_digit() || *byte == b' ')
            && let Ok(counts) = texts.clone().map(|text| text?.parse().map_err(|_| Malformed)).collect()
        {
            return Ok(Column::Counts(counts));
        }
        let real = |text: Result<&str, Malformed>| match text? {
            "" => Ok(f64::NAN),
            number => number.parse().map_err(|_| Malformed),
        };
        texts.map(real).collect::<Result<_, _>>().map(Column::Reals)
    }
}

/// Whether two values are stored alike.
fn same(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::Real(Some(a)), Value::Real(Some(b))) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// The longest cell: a real number such as `-2.2250738585072014e-308`.
const WIDEST: usize = 24;

/// Cells padded to the widest.
struct Padded {
    cells: Vec<[u8; WIDEST]>,
    width: usize,
}

impl Padded {
    /// Room for `expected` cells.
    fn new(expected: usize) -> Padded {
        Padded { cells: Vec::with_capacity(expected), width: 1 }
    }

    fn push(&mut self, value: Value) {
        match value {
            Value::Count(count) => self.count(count),
            Value::Truth(truth) => self.text(if truth { b"1" } else { b"0" }),
            Value::Real(Some(f64::INFINITY)) => self.text(b"9e999"),
            Value::Real(Some(f64::NEG_INFINITY)) => self.text(b"-9e999"),
            // SQLite has no NaN: it is null.
            Value::Real(Some(real)) if !real.is_nan() => {
                self.text(zmij::Buffer::new().format_finite(real).as_bytes());
            }
            Value::Real(_) => self.text(b""),
        }
    }

    fn count(&mut self, count: u64) {
        let (mut digits, mut start, mut rest) = ([0; DIGITS], DIGITS, count);
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(&digits[start..]);
    }

    fn text(&mut self, text: &[u8]) {
        let mut cell = [b' '; WIDEST];
        cell[..text.len()].copy_from_slice(text);
        self.cells.push(cell);
        self.width = self.width.max(text.len());
    }

    fn finish(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.cells.len() * self.width);
        self.cells.iter().for_each(|cell| bytes.extend_from_slice(&cell[..self.width]));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(values: &[Value]) -> Vec<u8> {
        match Cells::of(values) {
            Cells::Each(cells) => cells,
            same => panic!("{same:?}"),
        }
    }

    fn decoded(values: &[Value]) -> Column {
        Cells::decode(&each(values), values.len()).expect("they were just encoded")
    }

    #[test]
    fn equal_values_are_stored_once_and_others_with_equal_width() {
        assert_eq!(Cells::of(&[Value::Count(7); 3]), Cells::Same(Value::Count(7)));
        assert_eq!(Cells::of_words(&["idle", "idle"]), Cells::SameWord("idle"));
        assert_eq!(Cells::of_words(&["idle", "finished"]), Cells::Each(b"idle    finished".to_vec()));
        assert_eq!(each(&[9, 10, 123].map(Value::Count)), b"9  10 123");
        assert_eq!(each(&[true, false].map(Value::Truth)), b"10");
        // Values that compare equal and are not the same.
        assert_eq!(each(&[Value::from(0.0), Value::from(-0.0)]), b"0.0 -0.0");
    }

    #[test]
    fn numbers_survive_to_the_bit() {
        let counts = [0, 1, u64::from(u32::MAX), i64::MAX as u64];
        assert_eq!(
            decoded(&counts.map(Value::Count)),
            Column::Counts(counts.map(|each| each as i64).to_vec())
        );
        let mut random = 1_u64;
        for _ in 0..2_000 {
            let reals: Vec<f64> = (0..5)
                .map(|_| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    f64::from_bits(random)
                })
                .filter(|real| !real.is_nan())
                .chain([1.0, -0.0, 0.1, 1e300, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY])
                .collect();
            let values: Vec<Value> = reals.iter().copied().map(Value::from).collect();
            let Column::Reals(found) = decoded(&values) else { panic!("they are real") };
            assert!(found.iter().map(|real| real.to_bits()).eq(reals.iter().map(|real| real.to_bits())));
        }
    }

    #[test]
    fn a_metric_that_does_not_apply_is_blank() {
        let values = [None, Some(2.5), None].map(Value::Real);
        assert_eq!(each(&values), b"   2.5   ");
        let Column::Reals(found) = decoded(&values) else { panic!("they are real") };
        assert!(found[0].is_nan() && found[1] == 2.5 && found[2].is_nan());
        assert_eq!(Cells::of(&[Value::Real(None); 2]), Cells::Same(Value::Real(None)));
    }

    #[test]
    fn malformed_cells_are_refused() {
        for (cells, runs) in
            [(&b"123"[..], 2), (b"", 0), (b"", 3), (b"12", 0), (b"1x", 2), ("é".as_bytes(), 1)]
        {
            assert_eq!(Cells::decode(cells, runs), Err(Malformed), "{cells:?} of {runs} runs");
        }
    }
}
