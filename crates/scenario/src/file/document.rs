//! A scenario file as a TOML tree with overrides applied, in which every key keeps the location where it was
//! written.

use std::collections::BTreeSet;
use std::ops::Range;

use lasthop_proto::scheme::ExternalSchemes;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, ValueDeserializer};

use super::data::DataFiles;
use crate::diagnostics;
use crate::error::{ErrorKind, Fault, Location, ScenarioError};
use crate::presets::keys_of_preset;
use crate::schema::is_choice;

/// A TOML document with applied overrides and sweep values.
///
/// Spans below the length of the text are locations in the text. Keys and values from overrides have marks:
/// distinct empty spans beyond the end of the text.
#[derive(Clone, Debug)]
pub(crate) struct Document<'a> {
    name: &'a str,
    text: &'a str,
    overrides: Vec<&'a str>,
    marks: Marks,
    root: DeTable<'a>,
    files: DataFiles,
    external: ExternalSchemes,
}

pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// Where a marked key or value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In the text of the file.
    Text(Range<usize>),
    /// In the override with this index.
    Override(usize),
}

/// The origin of each mark. The first mark is one beyond the length of the text, because an empty span may
/// occur at the end of the text.
#[derive(Clone, Debug)]
struct Marks {
    base: usize,
    origins: Vec<Origin>,
}

impl Marks {
    /// A new mark for a key or value written at `origin`.
    fn mark(&mut self, origin: Origin) -> Range<usize> {
        let place = self.base + self.origins.len();
        self.origins.push(origin);
        place..place
    }

    /// Where the key or value with this span was written.
    fn origin(&self, span: &Range<usize>) -> Origin {
        let mark = span.start.checked_sub(self.base);
        mark.map_or_else(|| Origin::Text(span.clone()), |mark| self.origins[mark].clone())
    }
}

impl<'a> Document<'a> {
    /// Parses the TOML in `text`; `name` is used in messages.
    pub(crate) fn parse(text: &'a str, name: &'a str) -> Result<Document<'a>, ScenarioError> {
        match DeTable::parse(text) {
            Ok(root) => {
                let marks = Marks { base: text.len() + 1, origins: Vec::new() };
                let (root, files) = (root.into_inner(), DataFiles::default());
                let external = ExternalSchemes::default();
                Ok(Document { name, text, overrides: Vec::new(), marks, root, files, external })
            }
            Err(error) => {
                let span = error.span().unwrap_or_default();
                let message = diagnostics::syntax(error.message(), text, &span);
                let location = Location::File { name, text, span: Some(span) };
                Err(ScenarioError::new(ErrorKind::Syntax, message, location))
            }
        }
    }

    /// Lets the document name these schemes besides the registered ones.
    pub(crate) fn with_schemes(self, external: &ExternalSchemes) -> Document<'a> {
        Document { external: external.clone(), ..self }
    }

    /// The schemes that the document may name besides the registered ones.
    pub(crate) fn external(&self) -> &ExternalSchemes {
        &self.external
    }

    /// Applies the override `assignment`, `a.b.c=VALUE`. The value is parsed as TOML, or else taken as a
    /// string, so quotes may be omitted.
    pub(crate) fn set(&mut self, assignment: &'a str) -> Result<(), ScenarioError> {
        let refuse = |message: &str| {
            Err(ScenarioError::new(ErrorKind::Syntax, message.to_owned(), Location::Override(assignment)))
        };
        let Some((path, text)) = assignment.split_once('=') else {
            return refuse("expected KEY=VALUE, such as radio.rate=2Mbps");
        };
        let keys: Vec<&str> = keys_of(path).collect();
        if keys.iter().any(|key| key.is_empty()) {
            return refuse("expected a key such as radio.rate before the \"=\"");
        }
        let origin = Origin::Override(self.overrides.len());
        let mut mark = || self.marks.mark(origin.clone());
        let text = text.trim();
        let value = match DeValue::parse(text) {
            Ok(value) => marked(value.into_inner(), &mut mark),
            Err(_) => Spanned::new(mark(), DeValue::String(text.into())),
        };
        if let Err(depth) = insert(&mut self.root, &keys, value, &mut |_| mark()) {
            return refuse(&format!("{}: found a value, expected a table", keys[..=depth].join(".")));
        }
        self.overrides.push(assignment);
        Ok(())
    }

    /// Sets the key path `keys` to `value`. Each key and the value carry the location where they were
    /// written.
    pub(crate) fn lay(
        &mut self,
        keys: &[(String, Origin)],
        (value, value_at): (DeValue<'a>, &Origin),
    ) -> Result<(), ScenarioError> {
        let (names, places): (Vec<&str>, Vec<&Origin>) =
            keys.iter().map(|(name, place)| (name.as_str(), place)).unzip();
        let value = marked(value, &mut || self.marks.mark(value_at.clone()));
        let mut mark = |depth: usize| self.marks.mark(places[depth].clone());
        insert(&mut self.root, &names, value, &mut mark).map_err(|depth| {
            let path = names[..=depth].join(".");
            self.error(format!("{path}: found a value, expected a table"), places[depth + 1])
        })
    }

    /// The document with the keys of the presets that links name.
    ///
    /// # Errors
    /// If there is no such preset.
    pub(super) fn with_presets(&self) -> Result<Document<'a>, ScenarioError> {
        let mut expanded = self.clone();
        for table in self.tables_of_links() {
            let path = borrowed(&table);
            let uplink = [&path[..], &["uplink", "preset"]].concat();
            if let Some((_, value)) = self.find(&uplink) {
                let problem = "found it for one direction, expected it for both directions only";
                return Err(self.error(diagnostics::at(&uplink, problem), &self.origin(&value.span())));
            }
            let Some((name, origin)) = self.preset_of(&path) else { continue };
            let preset = keys_of_preset(&name).map_err(|problem| {
                self.error(diagnostics::at(&[&path[..], &["preset"]].concat(), &problem), &origin)
            })?;
            let Document { marks, root, .. } = &mut expanded;
            let link = table_at(root, &path).expect("it has a preset");
            take_over(link, preset, &mut || marks.mark(origin.clone()));
        }
        Ok(expanded)
    }

    /// The name of the preset that the table at `path` states, and where.
    pub(super) fn preset_of(&self, path: &[&str]) -> Option<(String, Origin)> {
        let (_, value) = self.find(&[path, &["preset"]].concat())?;
        let name = value.get_ref().as_str()?.to_owned();
        Some((name, self.origin(&value.span())))
    }

    /// The tables of wireless links: `radio`, and those of `link`.
    fn tables_of_links(&self) -> Vec<Vec<String>> {
        let own = self.keys_of("link").map(|name| vec![String::from("link"), name.to_owned()]);
        [vec![String::from("radio")]].into_iter().chain(own).collect()
    }

    /// The keys of the table at `path`; none if there is none.
    pub(super) fn keys_at(&self, path: &[&str]) -> BTreeSet<String> {
        match self.find(path).map(|(_, value)| value.get_ref()) {
            Some(DeValue::Table(table)) => table.keys().map(|key| key.get_ref().to_string()).collect(),
            _ => BTreeSet::new(),
        }
    }

    /// Removes the top-level key `key` and returns its value.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Value<'a>> {
        self.root.remove(key)
    }

    /// A document with a single key, `name`, and its value, which is part of this document.
    pub(crate) fn part(&self, name: &str, value: &Value<'a>) -> Document<'a> {
        let root = DeTable::from_iter([(named(name, value.span()), value.clone())]);
        Document { root, ..self.clone() }
    }

    /// The paths of the overrides, in order.
    pub(crate) fn overridden(&self) -> impl Iterator<Item = String> {
        let path = |assignment: &&str| assignment.split('=').next().map(bare);
        self.overrides.iter().filter_map(path)
    }

    /// Deserializes the document as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        deserialize(&self.root).map_err(|error| {
            // A missing top-level key has no location.
            let span = error.span().filter(|span| *span != (0..0));
            let path = span.as_ref().and_then(|span| path_in(&self.root, span)).unwrap_or_default();
            let culprit = self.find(&borrowed(&path)).map(|(_, value)| value.get_ref());
            let expected = |key: &str| self.expected_at::<T>(&path, key);
            let message = diagnostics::complaint(error.message(), &path, culprit, &expected);
            ScenarioError::new(ErrorKind::Key, message, self.location(span))
        })
    }

    /// The error for the first key or string that would break tables or reports, if any.
    pub(crate) fn unprintable(&self) -> Option<ScenarioError> {
        let (path, span, letter) = unprintable_in(&self.root)?;
        let path: Vec<String> = path.iter().map(|key| escaped(key)).collect();
        let code = u32::from(letter);
        let problem = format!(
            "found the control character U+{code:04X}, expected a single line of text; remove the character"
        );
        Some(ScenarioError::of(&Fault { path, problem }, self.location(Some(span))))
    }

    /// The error for `fault`, located at its key, or at the nearest parent that exists in the document.
    pub(crate) fn fault(&self, fault: &Fault) -> ScenarioError {
        let path = borrowed(&fault.path);
        let span = (1..=path.len()).rev().find_map(|depth| self.span_of(&path[..depth]));
        ScenarioError::of(fault, self.location(span))
    }

    /// The data files that have been read for this document and those derived from it.
    pub(super) fn data_files(&self) -> DataFiles {
        self.files.clone()
    }

    /// The name used in messages.
    pub(crate) fn name(&self) -> &str {
        self.name
    }

    /// The keys of the top-level table `table`.
    pub(crate) fn keys_of(&self, table: &str) -> impl Iterator<Item = &str> {
        let table = self.root.get(table).and_then(|value| value.get_ref().as_table());
        table.into_iter().flat_map(|table| table.keys().map(|key| key.get_ref().as_ref()))
    }

    /// The top-level table `table` of the text, without overrides; `None` if there is none, or an invalid one.
    pub(super) fn read_text<T: DeserializeOwned>(&self, table: &str) -> Option<T> {
        let mut text = DeTable::parse(self.text).ok()?.into_inner();
        T::deserialize(ValueDeserializer::from(text.remove(table)?)).ok()
    }

    /// The keys of the top-level table `table` that overrides or the sweep set.
    pub(crate) fn keys_set_in(&self, table: &str) -> impl Iterator<Item = &str> {
        let table = self.root.get(table).and_then(|value| value.get_ref().as_table());
        let set = |key: &&Spanned<DeString<'a>>| key.span().start >= self.marks.base;
        table.into_iter().flat_map(|table| table.keys()).filter(set).map(|key| key.get_ref().as_ref())
    }

    /// The error for what was written at `origin`.
    pub(crate) fn error(&self, message: String, origin: &Origin) -> ScenarioError {
        ScenarioError::new(ErrorKind::Value, message, self.location_of(Some(origin.clone())))
    }

    /// Where the key or value with this span was written.
    pub(crate) fn origin(&self, span: &Range<usize>) -> Origin {
        self.marks.origin(span)
    }

    fn location(&self, span: Option<Range<usize>>) -> Location<'_> {
        self.location_of(span.map(|span| self.origin(&span)))
    }

    fn location_of(&self, origin: Option<Origin>) -> Location<'_> {
        match origin {
            Some(Origin::Override(index)) => Location::Override(self.overrides[index]),
            Some(Origin::Text(span)) => Location::File { name: self.name, text: self.text, span: Some(span) },
            None => Location::File { name: self.name, text: self.text, span: None },
        }
    }

    /// The type that serde expects at the missing key `key` of the table at `path`, found by deserializing a boolean
    /// there.
    fn expected_at<T: DeserializeOwned>(&self, path: &[String], key: &str) -> Option<String> {
        let mut root = self.root.clone();
        let keys = [&borrowed(path)[..], &[key]].concat();
        insert(&mut root, &keys, Spanned::new(0..0, DeValue::Boolean(false)), &mut |_| 0..0).ok()?;
        let error = deserialize::<T>(&root).err()?;
        diagnostics::expectation(error.message())
    }

    fn span_of(&self, path: &[&str]) -> Option<Range<usize>> {
        self.find(path).map(|(key, value)| match value.get_ref() {
            DeValue::Table(_) => key,
            _ => value.span(),
        })
    }

    /// The value at `path`, in which numbers index lists, and the span of its key.
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

/// The table at `path`.
fn table_at<'t, 'a>(root: &'t mut DeTable<'a>, path: &[&str]) -> Option<&'t mut DeTable<'a>> {
    path.iter().try_fold(root, |table, key| match table.get_mut(*key)?.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    })
}

/// Adds the keys of `preset` that `link` does not state, those of its uplink each by itself.
fn take_over(link: &mut DeTable<'_>, preset: &DeTable<'static>, mark: &mut dyn FnMut() -> Range<usize>) {
    for (key, value) in preset {
        match (link.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value.get_ref()) {
            (None, value) => {
                let key = named(key.get_ref(), mark());
                link.insert(key, marked(value.clone(), mark));
            }
            (Some(DeValue::Table(own)), DeValue::Table(uplink)) if key.get_ref() == "uplink" => {
                take_over(own, uplink, mark);
            }
            (Some(_), _) => {}
        }
    }
}

/// A dotted path without quotes and spaces.
pub(crate) fn bare(path: &str) -> String {
    keys_of(path).collect::<Vec<_>>().join(".")
}

/// The keys of a dotted path. Keys contain no dots, so quotes are ignored.
fn keys_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').map(|key| key.trim().trim_matches(['"', '\'']))
}

fn borrowed(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn deserialize<T: DeserializeOwned>(root: &DeTable<'_>) -> Result<T, toml::de::Error> {
    T::deserialize(toml::Deserializer::from(Spanned::new(0..0, root.clone())))
}

/// The path of the key or list element whose name or value has the given span.
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

/// The first key or string with an unprintable character: its path, its span, and the character.
fn unprintable_in(table: &DeTable<'_>) -> Option<(Vec<String>, Range<usize>, char)> {
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref().to_string();
        let below = match name.chars().find(is_unprintable) {
            Some(letter) => (Vec::new(), key.span(), letter),
            None => unprintable_value(value)?,
        };
        Some(([vec![name], below.0].concat(), below.1, below.2))
    })
}

fn unprintable_value(value: &Value<'_>) -> Option<(Vec<String>, Range<usize>, char)> {
    match value.get_ref() {
        DeValue::String(text) => {
            text.chars().find(is_unprintable).map(|letter| (Vec::new(), value.span(), letter))
        }
        DeValue::Table(table) => unprintable_in(table),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let (path, span, letter) = unprintable_value(item)?;
            Some(([vec![index.to_string()], path].concat(), span, letter))
        }),
        _ => None,
    }
}

/// Whether a character ends a line, moves the cursor or changes the text direction. TOML allows literal tabs,
/// and so do names.
fn is_unprintable(letter: &char) -> bool {
    letter.is_control() && *letter != '\t'
        || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(key: &str) -> String {
    let escape = |letter: char| match is_unprintable(&letter) {
        true => letter.escape_default().to_string(),
        false => letter.to_string(),
    };
    key.chars().map(escape).collect()
}

/// Inserts `value` at the path `keys`, creating tables as needed; `mark` returns a span for the key with a
/// given index. On error, returns the index of the key whose value is not a table.
fn insert<'a>(
    root: &mut DeTable<'a>,
    keys: &[&str],
    value: Value<'a>,
    mark: &mut dyn FnMut(usize) -> Range<usize>,
) -> Result<(), usize> {
    let (last, parents) = keys.split_last().expect("a path has at least one key");
    let mut table = root;
    for (depth, key) in parents.iter().enumerate() {
        let entry = table
            .entry(named(key, mark(depth)))
            .or_insert_with(|| Spanned::new(mark(depth), DeValue::Table(DeTable::new())));
        if is_choice(&keys[..=depth]) && entry.get_ref().get(keys[depth + 1]).is_none() {
            *entry = Spanned::new(mark(depth), DeValue::Table(DeTable::new()));
        }
        table = match entry.get_mut() {
            DeValue::Table(table) => table,
            _ => return Err(depth),
        };
    }
    table.remove(*last);
    table.insert(named(last, mark(parents.len())), value);
    Ok(())
}

fn named<'a>(key: &str, span: Range<usize>) -> Spanned<DeString<'a>> {
    Spanned::new(span, DeString::Owned(key.to_owned()))
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
