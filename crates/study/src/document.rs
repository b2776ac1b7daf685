//! A scenario file as TOML, with overrides laid over it: the tree from which a scenario is read,
//! in which every key still knows where it was written.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Place, ScenarioError};
use crate::faults::Fault;
use crate::rephrase;
use crate::scenario::CHOICES;

/// A TOML document and the overrides laid over it.
///
/// Spans below the length of the text are places in it. Every key and value of an override has an
/// empty span of its own beyond: the length, plus 1, plus its index in `marks`.
#[derive(Clone, Debug)]
pub(crate) struct Document<'a> {
    name: &'a str,
    text: &'a str,
    overrides: Vec<&'a str>,
    /// Which override a key or value stands in.
    marks: Vec<usize>,
    root: DeTable<'a>,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl<'a> Document<'a> {
    /// Reads the TOML in `text`; `name` is what messages call it.
    pub(crate) fn parse(text: &'a str, name: &'a str) -> Result<Document<'a>, ScenarioError> {
        match DeTable::parse(text) {
            Ok(root) => {
                let root = root.into_inner();
                Ok(Document { name, text, overrides: Vec::new(), marks: Vec::new(), root })
            }
            Err(error) => {
                let span = error.span().unwrap_or_default();
                let message = rephrase::syntax(error.message(), text, &span);
                Err(ScenarioError::new(message, Place::File { name, text, span: Some(span) }))
            }
        }
    }

    /// Lays `assignment`, `a.b.c=VALUE`, over the document. The value is TOML if it reads as such,
    /// and otherwise a string, so that quotes may be left out.
    pub(crate) fn set(&mut self, assignment: &'a str) -> Result<(), ScenarioError> {
        let refuse = |message: &str| Err(ScenarioError::new(message.to_owned(), Place::Override(assignment)));
        let Some((path, text)) = assignment.split_once('=') else {
            return refuse("expected KEY=VALUE, such as radio.rate=2Mbps");
        };
        let keys: Vec<&str> = path.split('.').map(str::trim).collect();
        if keys.iter().any(|key| key.is_empty()) {
            return refuse("expected a key such as radio.rate before the \"=\"");
        }
        let (base, index, marks) = (self.text.len() + 1, self.overrides.len(), &mut self.marks);
        let mut mark = || {
            marks.push(index);
            let place = base + marks.len() - 1;
            place..place
        };
        let text = text.trim();
        let value = match DeValue::parse(text) {
            Ok(value) => marked(value.into_inner(), &mut mark),
            Err(_) => Spanned::new(mark(), DeValue::String(text.into())),
        };
        if let Err(obstacle) = insert(&mut self.root, &keys, value, &mut mark) {
            return refuse(&format!("{obstacle}: found a value, expected a table"));
        }
        self.overrides.push(assignment);
        Ok(())
    }

    /// Reads the document as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        deserialize(&self.root).map_err(|error| {
            // What is missing at the top level has no place.
            let span = error.span().filter(|span| *span != (0..0));
            let path = span.as_ref().and_then(|span| path_in(&self.root, span)).unwrap_or_default();
            let culprit = self.find(&borrowed(&path)).map(|(_, value)| value.get_ref());
            let expected = |key: &str| self.expected_at::<T>(&path, key);
            let message = rephrase::complaint(error.message(), &path, culprit, &expected);
            ScenarioError::new(message, self.place(span))
        })
    }

    /// The error about `fault`, at the place of its key, or of the nearest one above that the
    /// document has.
    pub(crate) fn fault(&self, fault: &Fault) -> ScenarioError {
        let path = borrowed(&fault.path);
        let span = (1..=path.len()).rev().find_map(|depth| self.span_of(&path[..depth]));
        ScenarioError::new(rephrase::at(&path, &fault.problem), self.place(span))
    }

    /// The keys that the table at the top-level key `table` has.
    pub(crate) fn keys_of(&self, table: &str) -> impl Iterator<Item = &str> {
        let table = self.root.get(table).and_then(|value| value.get_ref().as_table());
        table.into_iter().flat_map(|table| table.keys().map(|key| key.get_ref().as_ref()))
    }

    fn place(&self, span: Option<Range<usize>>) -> Place<'_> {
        match span {
            Some(span) if span.start > self.text.len() => {
                Place::Override(self.overrides[self.marks[span.start - self.text.len() - 1]])
            }
            span => Place::File { name: self.name, text: self.text, span },
        }
    }

    /// What serde expects at `key` of the table at `path`, where nothing stands: it says so when it
    /// finds a boolean there.
    fn expected_at<T: DeserializeOwned>(&self, path: &[String], key: &str) -> Option<String> {
        let mut root = self.root.clone();
        let keys = [&borrowed(path)[..], &[key]].concat();
        insert(&mut root, &keys, Spanned::new(0..0, DeValue::Boolean(false)), &mut || 0..0).ok()?;
        let error = deserialize::<T>(&root).err()?;
        rephrase::expectation(error.message())
    }

    fn span_of(&self, path: &[&str]) -> Option<Range<usize>> {
        self.find(path).map(|(key, value)| match value.get_ref() {
            DeValue::Table(_) => key,
            _ => value.span(),
        })
    }

    /// The value at `path`, in which a number picks an element of a list, and the span of its key.
    fn find(&self, path: &[&str]) -> Option<(Range<usize>, &Value<'a>)> {
        let (first, rest) = path.split_first()?;
        let (key, value) = self.root.get_key_value(*first)?;
        rest.iter().try_fold((key.span(), value), |(_, value), key| match value.get_ref() {
            DeValue::Table(table) => table.get_key_value(*key).map(|(key, value)| (key.span(), value)),
            DeValue::Array(items) => items.get(key.parse::<usize>().ok()?).map(|item| (item.span(), item)),
            _ => None,
        })
    }
}

fn borrowed(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn deserialize<T: DeserializeOwned>(root: &DeTable<'_>) -> Result<T, toml::de::Error> {
    T::deserialize(toml::Deserializer::from(Spanned::new(0..0, root.clone())))
}

/// The path of the key, or of the element of a list, whose name or value is at `span`.
fn path_in(table: &DeTable<'_>, span: &Range<usize>) -> Option<Vec<String>> {
    table.iter().find_map(|(key, value)| {
        let rest = match value.get_ref() {
            _ if key.span() == *span || value.span() == *span => Some(Vec::new()),
            DeValue::Table(table) => path_in(table, span),
            DeValue::Array(items) => {
                items.iter().position(|item| item.span() == *span).map(|index| vec![index.to_string()])
            }
            _ => None,
        };
        rest.map(|rest| [vec![key.get_ref().to_string()], rest].concat())
    })
}

/// Puts `value` where `keys` lead, making tables on the way; the error is the path of the key that
/// is in the way because it has a value that is no table.
fn insert<'a>(
    root: &mut DeTable<'a>,
    keys: &[&'a str],
    value: Value<'a>,
    mark: &mut dyn FnMut() -> Range<usize>,
) -> Result<(), String> {
    let (last, parents) = keys.split_last().expect("a path has at least one key");
    let mut table = root;
    for (depth, key) in parents.iter().enumerate() {
        let entry = table
            .entry(Spanned::new(mark(), (*key).into()))
            .or_insert_with(|| Spanned::new(mark(), DeValue::Table(DeTable::new())));
        let path = keys[..=depth].join(".");
        if CHOICES.contains(&path.as_str()) && entry.get_ref().get(keys[depth + 1]).is_none() {
            *entry = Spanned::new(mark(), DeValue::Table(DeTable::new()));
        }
        table = match entry.get_mut() {
            DeValue::Table(table) => table,
            _ => return Err(path),
        };
    }
    table.remove(*last);
    table.insert(Spanned::new(mark(), (*last).into()), value);
    Ok(())
}

/// The value with a mark for every span in it.
fn marked<'a>(value: DeValue<'a>, mark: &mut dyn FnMut() -> Range<usize>) -> Value<'a> {
    let value = match value {
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| marked(item.into_inner(), mark)).collect())
        }
        DeValue::Table(table) => {
            let entries = table.into_iter().map(|(key, value)| {
                let key = Spanned::new(mark(), key.into_inner());
                (key, marked(value.into_inner(), mark))
            });
            DeValue::Table(entries.collect())
        }
        plain => plain,
    };
    Spanned::new(mark(), value)
}
