//! A scenario file as a tree of values with changes applied, in which every key keeps the location where it was
//! written.

mod choice;
mod data;
mod source;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use lasthop_proto::scheme::ExternalSchemes;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use self::choice::is_choice;
pub(crate) use self::data::DataFiles;
pub(crate) use self::source::{Draft, Source, Written};
use crate::diagnostics;
use crate::error::{ErrorKind, Fault, Location, ScenarioError};
use crate::presets::{PresetTable, keys_of_preset};
use crate::tree::{Change, Kind, Mark, Node, Problem, ReadError, Table, Value, deserialize, table_of};

/// A document with changes and sweep values applied.
///
/// Marks below the length of the text are spans of it. Keys and values from changes have distinct empty spans beyond the
/// end of the text.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    name: Arc<str>,
    text: Arc<str>,
    /// The tree of the text, without changes.
    unchanged: Arc<Table>,
    changes: Vec<Arc<Applied>>,
    marks: Marks,
    root: Table,
    files: DataFiles,
    external: ExternalSchemes,
}

/// An applied change.
#[derive(Clone, Debug)]
struct Applied {
    /// The dotted path of its key.
    path: String,
    /// The assignment, if it was written as one.
    assignment: Option<String>,
}

/// Where a marked key or value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In the text of the file.
    Text(Range<usize>),
    /// In the change with this index.
    Change(usize),
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
    fn mark(&mut self, origin: Origin) -> Mark {
        let place = self.base + self.origins.len();
        self.origins.push(origin);
        place..place
    }

    /// Where the key or value with this mark was written.
    fn origin(&self, mark: &Mark) -> Origin {
        let index = mark.start.checked_sub(self.base);
        index.map_or_else(|| Origin::Text(mark.clone()), |index| self.origins[index].clone())
    }
}

impl Document {
    /// Parses the TOML in `text`; `name` is used in messages.
    pub(crate) fn parse(text: &str, name: &str) -> Result<Document, ScenarioError> {
        match DeTable::parse(text) {
            Ok(root) => Ok(Document::new(name, text, table_of(root.into_inner()), text.len())),
            Err(error) => {
                let span = error.span().unwrap_or_default();
                let message = diagnostics::syntax(error.message(), text, &span);
                let location = Location::File { name, text, span: Some(span) };
                Err(ScenarioError::new(ErrorKind::Syntax, message, location))
            }
        }
    }

    /// The document of a table that code states; `name` is used in messages.
    pub(crate) fn of(table: Value, name: &str) -> Document {
        // Marks as if each key and value were a letter of a text.
        let mut end = 0;
        let mut mark = || {
            end += 1;
            end..end
        };
        let root = match Kind::of(table, &mut mark) {
            Kind::Table(root) => root,
            _ => Table::new(),
        };
        Document::new(name, "", root, end)
    }

    /// A document whose marks end at `end`.
    fn new(name: &str, text: &str, root: Table, end: usize) -> Document {
        Document {
            name: name.into(),
            text: text.into(),
            unchanged: Arc::new(root.clone()),
            changes: Vec::new(),
            marks: Marks { base: end + 1, origins: Vec::new() },
            root,
            files: DataFiles::default(),
            external: ExternalSchemes::default(),
        }
    }

    /// Lets the document name these schemes besides the registered ones.
    pub(crate) fn with_schemes(self, external: &ExternalSchemes) -> Document {
        Document { external: external.clone(), ..self }
    }

    /// The schemes that the document may name besides the registered ones.
    pub(crate) fn external(&self) -> &ExternalSchemes {
        &self.external
    }

    /// Applies a change; the document is then still one of a `T`.
    pub(crate) fn change<T: DeserializeOwned>(&mut self, change: Change) -> Result<(), ScenarioError> {
        match change {
            Change::Assignment(assignment) => self.set(&assignment),
            Change::Key(path, Some(value)) => self.set_key(&path, value),
            Change::Key(path, None) => self.remove::<T>(&path),
        }
    }

    /// Applies the override `assignment`, `a.b.c=VALUE`. The value is parsed as TOML, or else taken as a
    /// string, so quotes may be omitted.
    pub(crate) fn set(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        let refuse = |message: &str| {
            let location = Location::Override(assignment);
            Err(ScenarioError::new(ErrorKind::Syntax, message.to_owned(), location).with_remedy(&[]))
        };
        let Some((path, text)) = assignment.split_once('=') else {
            return refuse("expected KEY=VALUE, such as radio.rate=2Mbps");
        };
        let keys: Vec<&str> = keys_of(path).collect();
        if keys.iter().any(|key| key.is_empty()) {
            return refuse("expected a key such as radio.rate before the \"=\"");
        }
        let text = text.trim();
        let value = DeValue::parse(text)
            .map_or_else(|_| Node { mark: 0..0, kind: Kind::Text(text.to_owned()) }, Node::from);
        let applied = Applied { path: keys.join("."), assignment: Some(assignment.to_owned()) };
        self.apply(&keys, &value, applied)
    }

    /// Sets the key at the dotted path `path` to `value`.
    pub(crate) fn set_key(&mut self, path: &str, value: Value) -> Result<(), ScenarioError> {
        let keys = checked_keys(path)?;
        let applied = Applied { path: keys.join("."), assignment: None };
        self.apply(&keys, &Node::of(value, &mut || 0..0), applied)
    }

    /// Removes the key at the dotted path `path`, which need not be stated.
    fn remove<T: DeserializeOwned>(&mut self, path: &str) -> Result<(), ScenarioError> {
        let keys = checked_keys(path)?;
        let (last, parents) = keys.split_last().expect("a path has at least one key");
        let removed = table_at(&mut self.root, parents).and_then(|table| table.shift_remove(*last));
        if removed.is_none() {
            self.check_key::<T>(&keys, path)?;
        }
        self.changes.push(Arc::new(Applied { path: keys.join("."), assignment: None }));
        Ok(())
    }

    fn apply(&mut self, keys: &[&str], value: &Node, applied: Applied) -> Result<(), ScenarioError> {
        let origin = Origin::Change(self.changes.len());
        self.changes.push(Arc::new(applied));
        let mut mark = || self.marks.mark(origin.clone());
        let value = value.marked(&mut mark);
        insert(&mut self.root, keys, value, &mut |_| mark()).map_err(|depth| {
            let problem = format!("{}: found a value, expected a table", keys[..=depth].join("."));
            ScenarioError::new(ErrorKind::Syntax, problem, self.location_of(Some(origin)))
        })
    }

    /// Checks that the key of `path`, which is not stated and shall be removed, could be stated.
    fn check_key<T: DeserializeOwned>(&self, keys: &[&str], path: &str) -> Result<(), ScenarioError> {
        let key: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let refuse = |problem: String| {
            let error = ScenarioError::new(ErrorKind::Key, problem, Location::Change(path)).of_key(&key);
            Err(self.with_remedy(error))
        };
        if keys[0] == "sweep" && keys.len() > 1 {
            return refuse(format!(
                "{path}: found no such axis; a value of the parameter itself removes its axis"
            ));
        }
        let mut tried = self.clone();
        let value = Node { mark: 0..0, kind: Kind::Bool(false) };
        if insert(&mut tried.root, keys, value, &mut |_| 0..0).is_err() {
            return Ok(());
        }
        match deserialize::<T>(&tried.root) {
            Err(ReadError { problem: problem @ Problem::UnknownKey { .. }, .. }) => {
                refuse(diagnostics::complaint(&problem, &key, None, &|_| None))
            }
            _ => Ok(()),
        }
    }

    /// Sets the key path `keys` to `value`. Each key and the value carry the location where they were
    /// written.
    pub(crate) fn lay(
        &mut self,
        keys: &[(String, Origin)],
        (value, value_at): (&Node, &Origin),
    ) -> Result<(), ScenarioError> {
        let (names, places): (Vec<&str>, Vec<&Origin>) =
            keys.iter().map(|(name, place)| (name.as_str(), place)).unzip();
        let value = value.marked(&mut || self.marks.mark(value_at.clone()));
        let mut mark = |depth: usize| self.marks.mark(places[depth].clone());
        insert(&mut self.root, &names, value, &mut mark).map_err(|depth| {
            let path = names[..=depth].join(".");
            self.error(&path, "found a value, expected a table", places[depth + 1])
        })
    }

    /// The document with the keys of the presets that links name.
    ///
    /// # Errors
    /// If there is no such preset.
    pub(crate) fn with_presets(&self) -> Result<Cow<'_, Document>, ScenarioError> {
        let mut expanded = Cow::Borrowed(self);
        for table in self.tables_with_presets() {
            let path = borrowed(&table);
            let uplink = [&path[..], &["uplink", "preset"]].concat();
            if let Some((_, value)) = self.find(&uplink) {
                let problem = "found it for one direction, expected it for both directions only";
                return Err(self.error(&uplink.join("."), problem, &self.origin(&value.mark)));
            }
            let Some((name, origin)) = self.preset_of(&path) else { continue };
            let preset = keys_of_preset(&name, PresetTable::at(&path)).map_err(|problem| {
                self.error(&[&path[..], &["preset"]].concat().join("."), &problem, &origin)
            })?;
            let Document { marks, root, .. } = expanded.to_mut();
            let link = table_at(root, &path).expect("it has a preset");
            take_over(link, preset, &mut || marks.mark(origin.clone()));
        }
        Ok(expanded)
    }

    /// The name of the preset that the table at `path` states, and where.
    pub(crate) fn preset_of(&self, path: &[&str]) -> Option<(String, Origin)> {
        let (_, value) = self.find(&[path, &["preset"]].concat())?;
        let name = value.kind.as_text()?.to_owned();
        Some((name, self.origin(&value.mark)))
    }

    /// The tables that may name a preset: `radio`, `wifi`, and those of `link`.
    fn tables_with_presets(&self) -> Vec<Vec<String>> {
        let own = self.keys_of("link").map(|name| vec![String::from("link"), name.to_owned()]);
        ["radio", "wifi"].map(|table| vec![String::from(table)]).into_iter().chain(own).collect()
    }

    /// The keys of the table at `path`; none if there is none.
    pub(crate) fn keys_at(&self, path: &[&str]) -> BTreeSet<String> {
        let table = self.find(path).and_then(|(_, value)| value.kind.as_table());
        table.into_iter().flat_map(Table::keys).cloned().collect()
    }

    /// The value of the top-level key `key`, and the document without it; `None` if there is no such key.
    pub(crate) fn without(&self, key: &str) -> Option<(Node, Document)> {
        self.root.get(key)?;
        let mut rest = self.clone();
        let (_, value) = rest.root.shift_remove(key)?;
        Some((value, rest))
    }

    /// A document with a single key, `name`, and its value, which is part of this document.
    pub(crate) fn part(&self, name: &str, value: &Node) -> Document {
        let root = Table::from([(name.to_owned(), (value.mark.clone(), value.clone()))]);
        Document { root, ..self.clone() }
    }

    /// The paths of the changes, in order.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().map(|applied| applied.path.as_str())
    }

    /// The paths of the changes that were written as assignments, as those of `--set`.
    pub(crate) fn assigned(&self) -> impl Iterator<Item = &str> {
        let assignments = self.changes.iter().filter(|applied| applied.assignment.is_some());
        assignments.map(|applied| applied.path.as_str())
    }

    /// Deserializes the document as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        deserialize(&self.root).map_err(|ReadError { problem, mark }| {
            let path = mark.as_ref().and_then(|mark| path_in(&self.root, mark)).unwrap_or_default();
            let culprit = self.find(&borrowed(&path)).map(|(_, value)| &value.kind);
            let expected = |key: &str| self.expected_at::<T>(&path, key);
            let message = diagnostics::complaint(&problem, &path, culprit, &expected);
            let key = diagnostics::key_of(&problem, &path, culprit);
            let error =
                ScenarioError::new(ErrorKind::Key, message, self.location(mark.as_ref())).of_key(&key);
            self.with_remedy(error)
        })
    }

    /// The error for the first key or string that would break tables or reports, if any.
    pub(crate) fn unprintable(&self) -> Option<ScenarioError> {
        let (path, mark, letter) = unprintable_in(&self.root)?;
        let path: Vec<String> = path.iter().map(|key| escaped(key)).collect();
        let code = u32::from(letter);
        let problem = format!(
            "found the control character U+{code:04X}, expected a single line of text; remove the character"
        );
        Some(self.with_remedy(ScenarioError::of(&Fault { path, problem }, self.location(Some(&mark)))))
    }

    /// The error for `fault`, located at its key, or at the nearest parent that exists in the document.
    pub(crate) fn fault(&self, fault: &Fault) -> ScenarioError {
        let path = borrowed(&fault.path);
        let mark = (1..=path.len()).rev().find_map(|depth| self.mark_of(&path[..depth]));
        self.with_remedy(ScenarioError::of(fault, self.location(mark.as_ref())))
    }

    /// The same error with the remedy that its message states.
    fn with_remedy(&self, error: ScenarioError) -> ScenarioError {
        let mut texts = Vec::new();
        texts_in(&self.root, &mut texts);
        error.with_remedy(&texts)
    }

    /// The data files that have been read for this document and those derived from it.
    pub(crate) fn data_files(&self) -> DataFiles {
        self.files.clone()
    }

    /// The name used in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The keys of the top-level table `table`.
    pub(crate) fn keys_of(&self, table: &str) -> impl Iterator<Item = &str> {
        keys_in(&self.root, table).map(|(key, _)| key)
    }

    /// The value of the top-level `key` without changes; `None` if there is none, or an invalid one.
    pub(crate) fn read_unchanged<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        T::deserialize(&self.unchanged.get(key)?.1).ok()
    }

    /// The keys of the top-level table `table` that changes or the sweep set.
    pub(crate) fn keys_set_in(&self, table: &str) -> impl Iterator<Item = &str> {
        let base = self.marks.base;
        keys_in(&self.root, table).filter_map(move |(key, mark)| (mark.start >= base).then_some(key))
    }

    /// Whether the top-level `key` has the value that the document states.
    pub(crate) fn is_unchanged(&self, key: &str) -> bool {
        self.root.get(key).is_some_and(|(mark, _)| mark.start < self.marks.base)
    }

    /// The error for a problem of `key` that was written at `origin`.
    pub(crate) fn error(&self, key: &str, problem: &str, origin: &Origin) -> ScenarioError {
        let location = self.location_of(Some(origin.clone()));
        let error = ScenarioError::new(ErrorKind::Value, format!("{key}: {problem}"), location);
        self.with_remedy(error.of_key(&[key.to_owned()]))
    }

    /// Where the key or value with this mark was written.
    pub(crate) fn origin(&self, mark: &Mark) -> Origin {
        self.marks.origin(mark)
    }

    fn location(&self, mark: Option<&Mark>) -> Location<'_> {
        self.location_of(mark.map(|mark| self.origin(mark)))
    }

    fn location_of(&self, origin: Option<Origin>) -> Location<'_> {
        let (name, text) = (&self.name, &self.text);
        match origin {
            Some(Origin::Change(index)) => match &*self.changes[index] {
                Applied { assignment: Some(assignment), .. } => Location::Override(assignment),
                Applied { path, .. } => Location::Change(path),
            },
            // A document that code states has no text.
            Some(Origin::Text(span)) if !text.is_empty() => Location::File { name, text, span: Some(span) },
            _ => Location::File { name, text, span: None },
        }
    }

    /// The type that serde expects at the missing key `key` of the table at `path`, found by deserializing a boolean
    /// there.
    fn expected_at<T: DeserializeOwned>(&self, path: &[String], key: &str) -> Option<String> {
        let mut root = self.root.clone();
        let keys = [&borrowed(path)[..], &[key]].concat();
        let value = Node { mark: 0..0, kind: Kind::Bool(false) };
        insert(&mut root, &keys, value, &mut |_| 0..0).ok()?;
        diagnostics::expectation(&deserialize::<T>(&root).err()?.problem)
    }

    fn mark_of(&self, path: &[&str]) -> Option<Mark> {
        self.find(path).map(|(key, value)| match value.kind {
            Kind::Table(_) => key.clone(),
            _ => value.mark.clone(),
        })
    }

    /// The value at `path`, in which numbers index lists, and the mark of its key.
    fn find(&self, path: &[&str]) -> Option<(&Mark, &Node)> {
        let (first, rest) = path.split_first()?;
        let (key, value) = self.root.get(*first)?;
        rest.iter().try_fold((key, value), |(_, value), key| match &value.kind {
            Kind::Table(table) => table.get(*key).map(|(key, value)| (key, value)),
            Kind::List(items) => items.get(key.parse::<usize>().ok()?).map(|item| (&item.mark, item)),
            _ => None,
        })
    }
}

/// The keys of the top-level table `table`, each with its mark.
fn keys_in<'r>(root: &'r Table, table: &str) -> impl Iterator<Item = (&'r str, &'r Mark)> {
    let table = root.get(table).and_then(|(_, value)| value.kind.as_table());
    table.into_iter().flatten().map(|(key, (mark, _))| (key.as_str(), mark))
}

/// The table at `path`.
fn table_at<'t>(root: &'t mut Table, path: &[&str]) -> Option<&'t mut Table> {
    path.iter().try_fold(root, |table, key| match &mut table.get_mut(*key)?.1.kind {
        Kind::Table(table) => Some(table),
        _ => None,
    })
}

/// Adds the keys of `preset` that `link` does not state, those of its uplink each by itself.
fn take_over(link: &mut Table, preset: &Table, mark: &mut dyn FnMut() -> Mark) {
    for (key, (_, value)) in preset {
        match (link.get_mut(key).map(|(_, own)| &mut own.kind), &value.kind) {
            (None, _) => {
                link.insert(key.clone(), (mark(), value.marked(mark)));
            }
            (Some(Kind::Table(own)), Kind::Table(uplink)) if key == "uplink" => take_over(own, uplink, mark),
            (Some(_), _) => {}
        }
    }
}

/// The keys of a dotted path. Keys contain no dots, so quotes are ignored.
fn keys_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').map(|key| key.trim().trim_matches(['"', '\'']))
}

/// As [`keys_of`], of a path that code states.
///
/// # Errors
/// If a key is empty.
fn checked_keys(path: &str) -> Result<Vec<&str>, ScenarioError> {
    let keys: Vec<&str> = keys_of(path).collect();
    if keys.iter().any(|key| key.is_empty()) {
        let problem = format!("found the key \"{path}\", expected one such as radio.rate");
        return Err(ScenarioError::new(ErrorKind::Syntax, problem, Location::Change(path)));
    }
    Ok(keys)
}

fn borrowed(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// The path of the key or list element whose name or value has the given mark.
fn path_in(table: &Table, mark: &Mark) -> Option<Vec<String>> {
    table.iter().find_map(|(key, (key_mark, value))| {
        let rest = if key_mark == mark { Some(Vec::new()) } else { path_to(value, mark) };
        rest.map(|rest| iter::once(key.clone()).chain(rest).collect())
    })
}

/// The path from `value` to what has the given mark; empty for the value itself.
fn path_to(value: &Node, mark: &Mark) -> Option<Vec<String>> {
    match &value.kind {
        _ if value.mark == *mark => Some(Vec::new()),
        Kind::Table(table) => path_in(table, mark),
        Kind::List(items) => items.iter().enumerate().find_map(|(index, item)| {
            path_to(item, mark).map(|rest| iter::once(index.to_string()).chain(rest).collect())
        }),
        _ => None,
    }
}

/// Adds the keys and strings of `table`, at any depth.
fn texts_in<'t>(table: &'t Table, texts: &mut Vec<&'t str>) {
    for (key, (_, value)) in table {
        texts.push(key);
        texts_of(value, texts);
    }
}

fn texts_of<'t>(value: &'t Node, texts: &mut Vec<&'t str>) {
    match &value.kind {
        Kind::Text(text) => texts.push(text),
        Kind::Table(table) => texts_in(table, texts),
        Kind::List(items) => items.iter().for_each(|item| texts_of(item, texts)),
        _ => {}
    }
}

/// The first key or string with an unprintable character: its path, its mark, and the character.
fn unprintable_in(table: &Table) -> Option<(Vec<String>, Mark, char)> {
    table.iter().find_map(|(name, (mark, value))| {
        let below = match name.chars().find(is_unprintable) {
            Some(letter) => (Vec::new(), mark.clone(), letter),
            None => unprintable_value(value)?,
        };
        Some(([vec![name.clone()], below.0].concat(), below.1, below.2))
    })
}

fn unprintable_value(value: &Node) -> Option<(Vec<String>, Mark, char)> {
    match &value.kind {
        Kind::Text(text) => {
            text.chars().find(is_unprintable).map(|letter| (Vec::new(), value.mark.clone(), letter))
        }
        Kind::Table(table) => unprintable_in(table),
        Kind::List(items) => items.iter().enumerate().find_map(|(index, item)| {
            let (path, mark, letter) = unprintable_value(item)?;
            Some(([vec![index.to_string()], path].concat(), mark, letter))
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

/// Inserts `value` at the path `keys`, creating tables as needed; `mark` returns a mark for the key with a
/// given index. On error, returns the index of the key whose value is not a table.
fn insert(
    root: &mut Table,
    keys: &[&str],
    value: Node,
    mark: &mut dyn FnMut(usize) -> Mark,
) -> Result<(), usize> {
    let (last, parents) = keys.split_last().expect("a path has at least one key");
    let mut table = root;
    for (depth, key) in parents.iter().enumerate() {
        let mut empty = || Node { mark: mark(depth), kind: Kind::Table(Table::new()) };
        let new = empty();
        let (key_mark, entry) = table.entry((*key).to_owned()).or_insert_with(|| (new.mark.clone(), new));
        let has_next = entry.kind.as_table().is_some_and(|table| table.contains_key(keys[depth + 1]));
        if is_choice(&keys[..=depth]) && !has_next {
            *entry = empty();
            *key_mark = entry.mark.clone();
        }
        table = match &mut entry.kind {
            Kind::Table(table) => table,
            _ => return Err(depth),
        };
    }
    table.shift_remove(*last);
    table.insert((*last).to_owned(), (mark(parents.len()), value));
    Ok(())
}
