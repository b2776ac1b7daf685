//! Data files that a scenario names: traces, series and lists. The crate reads no files: whoever has the text hands it
//! over.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::hash::Hasher;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::hash::Fnv;
use crate::{inline_schema, schema};

/// The contents of a data file.
pub trait Contents: Any + fmt::Debug + Send + Sync + Sized {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// What was found, what was expected, and the line.
    fn parse(text: &str) -> Result<Self, LineError>;
}

/// An error in a data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The number of the line, from 1; `None` for the file as a whole.
    pub line: Option<usize>,
    /// What was found, what was expected, and how to fix it.
    pub problem: String,
}

impl LineError {
    /// An error in line number `line`, from 1.
    pub fn at(line: usize, problem: impl Into<String>) -> LineError {
        LineError { line: Some(line), problem: problem.into() }
    }

    /// An error of the file as a whole.
    pub fn whole(problem: impl Into<String>) -> LineError {
        LineError { line: None, problem: problem.into() }
    }
}

/// A data file by its path, with its contents once they have been read. In a scenario it is the path, a string. Two
/// are equal if their paths and their contents are.
#[derive(Debug)]
pub struct DataFile<T> {
    path: String,
    read: Option<Read<T>>,
}

#[derive(Debug)]
struct Read<T> {
    contents: Arc<T>,
    /// FNV-1a hash of the text.
    digest: u64,
}

/// Copies share the contents.
impl<T> Clone for DataFile<T> {
    fn clone(&self) -> DataFile<T> {
        DataFile { path: self.path.clone(), read: self.read.clone() }
    }
}

impl<T> Clone for Read<T> {
    fn clone(&self) -> Read<T> {
        Read { contents: Arc::clone(&self.contents), digest: self.digest }
    }
}

impl<T> PartialEq for DataFile<T> {
    fn eq(&self, other: &DataFile<T>) -> bool {
        let digest = |file: &DataFile<T>| file.read.as_ref().map(|read| read.digest);
        self.path == other.path && digest(self) == digest(other)
    }
}

impl<T: Contents> DataFile<T> {
    /// A file whose `text` has been read.
    ///
    /// # Errors
    /// As [`Contents::parse`].
    pub fn of(path: &str, text: &str) -> Result<DataFile<T>, LineError> {
        let mut file = DataFile { path: path.to_owned(), read: None };
        file.read(text)?;
        Ok(file)
    }

    /// The contents; `None` until they have been read.
    pub fn contents(&self) -> Option<&Arc<T>> {
        self.read.as_ref().map(|read| &read.contents)
    }
}

/// A [`DataFile`] of any contents, for the one who reads the files.
pub trait Unread {
    /// The path, as stated.
    fn path(&self) -> &str;

    /// Hands over the text of the file.
    ///
    /// # Errors
    /// As [`Contents::parse`].
    fn read(&mut self, text: &str) -> Result<(), LineError>;

    /// Takes the contents from another copy of the same file; returns false if it has others.
    fn take_from(&mut self, other: &dyn Any) -> bool;

    /// A copy that [`take_from`](Unread::take_from) accepts.
    fn copy(&self) -> Box<dyn Any + Send + Sync>;

    /// A hash of the contents; `None` until they have been read.
    fn digest(&self) -> Option<u64>;
}

impl<T: Contents> Unread for DataFile<T> {
    fn path(&self) -> &str {
        &self.path
    }

    fn read(&mut self, text: &str) -> Result<(), LineError> {
        let contents = Arc::new(T::parse(text)?);
        let mut digest = Fnv::default();
        digest.write(text.as_bytes());
        self.read = Some(Read { contents, digest: digest.finish() });
        Ok(())
    }

    fn take_from(&mut self, other: &dyn Any) -> bool {
        let Some(other) = other.downcast_ref::<DataFile<T>>() else { return false };
        self.read.clone_from(&other.read);
        self.read.is_some()
    }

    fn copy(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(self.clone())
    }

    fn digest(&self) -> Option<u64> {
        self.read.as_ref().map(|read| read.digest)
    }
}

inline_schema!(DataFile<T>, <T>, |_generator| schema::text("path", ".*\\S.*", &["drive.csv"]));

impl<T> Serialize for DataFile<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.path)
    }
}

impl<'de, T> Deserialize<'de> for DataFile<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DataFile<T>, D::Error> {
        struct Path;
        impl Visitor<'_> for Path {
            type Value = String;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a file, relative to that of the scenario")
            }
            fn visit_str<E: de::Error>(self, path: &str) -> Result<String, E> {
                match path.trim() {
                    "" => {
                        Err(E::custom("found an empty path, expected that of a file, such as \"drive.csv\""))
                    }
                    _ => Ok(path.to_owned()),
                }
            }
        }
        Ok(DataFile { path: deserializer.deserialize_any(Path)?, read: None })
    }
}

/// Columns of numbers, with their names in the first line: a CSV file.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    names: Vec<String>,
    /// Row by row; NaN for other text than a finite number.
    values: Vec<f64>,
    /// For each column, the first cell that is not a finite number, and the index of its row.
    odd: Vec<Option<(usize, String)>>,
    /// The line of each row.
    lines: Vec<u32>,
}

impl Columns {
    /// Parses comma-separated columns. Lines that are empty or begin with `#` are skipped.
    ///
    /// # Errors
    /// The first line that is not as expected.
    pub fn parse(text: &str, example: &str) -> Result<Columns, LineError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let Some((first, names)) = lines.next() else {
            return Err(LineError::whole(format!(
                "found nothing, expected a line with the names of the columns, such as \"{example}\", and rows of \
                 numbers"
            )));
        };
        let names: Vec<String> = names.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err(LineError::at(
                first,
                format!(
                    "found numbers, expected the names of the columns with their units; add a first line such as \
                     \"{example}\""
                ),
            ));
        }
        if let [name] = &names[..]
            && let Some(separator) = name.chars().find(|letter| matches!(letter, ';' | '\t'))
        {
            let problem =
                format!("found columns separated by {separator:?}, expected commas, and decimal points");
            return Err(LineError::at(first, problem));
        }
        let (mut values, mut rows) = (Vec::new(), Vec::new());
        let mut odd = vec![None; names.len()];
        for (number, line) in lines {
            let before = values.len();
            for (place, cell) in line.split(',').enumerate() {
                let value = cell.trim().parse::<f64>().ok().filter(|value| value.is_finite());
                if value.is_none()
                    && let Some(first @ None) = odd.get_mut(place)
                {
                    *first = Some((rows.len(), shortened(cell.trim())));
                }
                values.push(value.unwrap_or(f64::NAN));
            }
            let cells = values.len() - before;
            if cells != names.len() {
                let problem = format!("found {cells} cells, expected {}, as in the first line", names.len());
                return Err(LineError::at(number, problem));
            }
            rows.push(number as u32);
        }
        if values.is_empty() {
            return Err(LineError::whole("found no row of numbers, expected at least one"));
        }
        Ok(Columns { names, values, odd, lines: rows })
    }

    /// The column that has one of these names, each with the factor by which its values are multiplied.
    ///
    /// # Errors
    /// If there is none, or more than one, or if one of its cells is not a finite number.
    pub fn column(&self, names: &[(&str, f64)]) -> Result<Vec<f64>, LineError> {
        let mut found = names.iter().filter_map(|&(name, factor)| {
            let place = self.names.iter().position(|column| column == name)?;
            Some((place, factor))
        });
        let Some((place, factor)) = found.next() else {
            let wanted: Vec<String> = names.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            let there: Vec<String> =
                self.names.iter().map(|name| format!("\"{}\"", shortened(name))).collect();
            return Err(LineError::whole(format!(
                "found the columns {}, expected one of {}",
                there.join(", "),
                wanted.join(", ")
            )));
        };
        if let Some((other, _)) = found.next() {
            return Err(LineError::whole(format!(
                "found both \"{}\" and \"{}\", expected one of them; rename or remove the other",
                self.names[place], self.names[other]
            )));
        }
        if let Some((row, found)) = &self.odd[place] {
            let remedy = if found.is_empty() { "; leave the row out" } else { "" };
            return Err(self.wrong(*row, &format!("found \"{found}\", expected a number{remedy}")));
        }
        Ok(self.values.chunks(self.names.len()).map(|row| row[place] * factor).collect())
    }

    /// The column `time_s` or `time_ms`, in seconds.
    ///
    /// # Errors
    /// If there is none, if it begins below zero, or if a time is not above the one before.
    pub fn times_s(&self) -> Result<Vec<f64>, LineError> {
        let times = self.column(&[("time_s", 1.0), ("time_ms", 1e-3)])?;
        let problem = |row: usize, what: &str| {
            Err(self.wrong(row, &format!("found the time {} s, {what}", times[row])))
        };
        if times[0] < 0.0 {
            return problem(0, "expected none below zero; count from the beginning of the series");
        }
        match times.windows(2).position(|pair| pair[1] <= pair[0]) {
            Some(row) => problem(row + 1, "expected times that increase from row to row; sort the file"),
            None => Ok(times),
        }
    }
}

impl Columns {
    /// An error in the row with this index.
    pub fn wrong(&self, row: usize, problem: &str) -> LineError {
        LineError::at(self.lines[row] as usize, problem)
    }
}

/// A cell, shortened for messages, without characters that would break a line.
pub fn shortened(cell: &str) -> String {
    const MOST: usize = 30;
    let clean = |letter: char| if letter.is_control() { '\u{fffd}' } else { letter };
    let mut short: String = cell.chars().take(MOST).map(clean).collect();
    if cell.chars().count() > MOST {
        short.push_str("...");
    }
    short
}
