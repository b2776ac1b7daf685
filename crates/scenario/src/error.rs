//! Faults of scenarios, and errors with their locations.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::diagnostics;

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Path of the value: keys, and indices of list elements.
    pub path: Vec<String>,
    /// What was found, what was expected, and how to fix it.
    pub problem: String,
}

impl Fault {
    /// The fault of the value at the dotted `path`.
    pub fn new(path: &str, problem: impl Into<String>) -> Fault {
        Fault { path: path.split('.').map(str::to_owned).collect(), problem: problem.into() }
    }

    /// The same fault in the table `table`.
    pub(crate) fn below(&self, table: &str) -> Fault {
        Fault { path: [&[table.to_owned()], &self.path[..]].concat(), problem: self.problem.clone() }
    }
}

/// What is wrong, for code that decides by it. People read the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file cannot be read: that of the scenario, or one that it names.
    Unreadable,
    /// The text is not TOML, or an override is not `KEY=VALUE`.
    Syntax,
    /// A key is unknown or missing, or its value has another type or form.
    Key,
    /// A value is out of range, or does not go with others.
    Value,
    /// A scheme is unknown, or does not support the scenario.
    Scheme,
    /// The scenario is valid, and lacks what was asked for: a link, a closed form, a connection.
    Request,
    /// A run or its recordings take too much memory or disk space.
    Limit,
}

impl ErrorKind {
    /// Its name: one lower-case word.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::Unreadable => "unreadable",
            ErrorKind::Syntax => "syntax",
            ErrorKind::Key => "key",
            ErrorKind::Value => "value",
            ErrorKind::Scheme => "scheme",
            ErrorKind::Request => "request",
            ErrorKind::Limit => "limit",
        }
    }
}

/// An error in a scenario. It displays as several lines: what was found and expected, the location, and the
/// source line with the offending text underlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    kind: ErrorKind,
    message: String,
    /// The key that has the problem, if it is in a single value.
    key: Option<Box<str>>,
    /// Where the problem begins in the message, after the key.
    problem: u32,
    /// The number, from 1, of the byte of the message at which the remedy begins; zero if there is none.
    remedy: u32,
    origin: Box<str>,
    /// The change that has the problem: an assignment, or a key.
    change: Option<Box<str>>,
    /// Line and column, from 1.
    position: Option<(u32, u32)>,
    rendered: String,
}

/// Location of an error.
pub(crate) enum Location<'a> {
    /// In a file; without a span, the file as a whole.
    File { name: &'a str, text: &'a str, span: Option<Range<usize>> },
    /// In an override on the command line.
    Override(&'a str),
    /// In a change of the key at this path.
    Change(&'a str),
}

impl ScenarioError {
    pub(crate) fn new(kind: ErrorKind, message: String, location: Location<'_>) -> ScenarioError {
        match location {
            Location::File { name, text, span } => ScenarioError::in_file(kind, message, name, text, span),
            Location::Override(assignment) => {
                ScenarioError::at(kind, message, format!("--set {assignment}")).of_change(assignment)
            }
            Location::Change(path) => {
                ScenarioError::at(kind, message, format!("the change of {path}")).of_change(path)
            }
        }
    }

    /// The error for `fault`, of the kind [`Scheme`](ErrorKind::Scheme) if it is in the list of schemes.
    pub(crate) fn of(fault: &Fault, location: Location<'_>) -> ScenarioError {
        let kind = match fault.path.first().map(String::as_str) {
            Some("schemes") => ErrorKind::Scheme,
            _ => ErrorKind::Value,
        };
        let message = diagnostics::at(&fault.path, &fault.problem);
        ScenarioError::new(kind, message, location).of_key(&fault.path)
    }

    /// The same error, of the key at `path`.
    pub(crate) fn of_key(self, path: &[String]) -> ScenarioError {
        let key = Some(diagnostics::dotted(path)).filter(|key| !key.is_empty());
        let begins = key.as_ref().is_some_and(|key| self.message.starts_with(&format!("{key}: ")));
        let problem = key.as_ref().filter(|_| begins).map_or(0, |key| key.len() as u32 + 2);
        ScenarioError { key: key.map(String::into_boxed_str), problem, ..self }
    }

    /// The same error with the remedy that its message states, outside of `texts` of the user that it quotes.
    pub(crate) fn with_remedy(self, texts: &[&str]) -> ScenarioError {
        let begins = match self.problem {
            // A message that does not begin with its key may have it further on.
            0 => self.key.as_ref().and_then(|key| Some(self.message.find(&**key)? + key.len())).unwrap_or(0),
            problem => problem as usize,
        };
        let remedy =
            diagnostics::remedy(&self.message[begins..], texts).map_or(0, |remedy| begins + remedy + 1);
        ScenarioError { remedy: remedy as u32, ..self }
    }

    fn at(kind: ErrorKind, message: String, origin: String) -> ScenarioError {
        let rendered = format!("{message}\n --> {origin}");
        let origin = origin.into_boxed_str();
        ScenarioError {
            kind,
            message,
            key: None,
            problem: 0,
            remedy: 0,
            origin,
            change: None,
            position: None,
            rendered,
        }
    }

    fn of_change(self, change: &str) -> ScenarioError {
        ScenarioError { change: Some(change.into()), ..self }
    }

    fn in_file(
        kind: ErrorKind,
        message: String,
        name: &str,
        text: &str,
        span: Option<Range<usize>>,
    ) -> ScenarioError {
        let Some(span) = span else { return ScenarioError::at(kind, message, name.to_owned()) };
        let span = one_line(text, span);
        let before = &text[..span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = text[line_start..span.start].chars().count();
        let position = (before.matches('\n').count() as u32 + 1, column as u32 + 1);
        let snippet = Snippet::source(text).path(name).annotation(AnnotationKind::Primary.span(span));
        let report = [Level::ERROR.no_name().primary_title(message.as_str()).element(snippet)];
        let rendered = Renderer::plain().render(&report);
        ScenarioError {
            position: Some(position),
            rendered,
            ..ScenarioError::at(kind, message, name.to_owned())
        }
    }

    /// Whether both errors have the same location.
    pub(crate) fn same_location(&self, other: &ScenarioError) -> bool {
        (&self.origin, self.position) == (&other.origin, other.position)
    }

    /// Names the point of a sweep that has the error, by its parameters.
    pub(crate) fn at_point(mut self, parameters: &[(String, String)]) -> ScenarioError {
        let parameters: Vec<_> = parameters.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        let note = format!("; at the point {}", parameters.join(", "));
        self.rendered.insert_str(self.message.len(), &note);
        self.message.push_str(&note);
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The same error of another kind.
    pub(crate) fn with_kind(self, kind: ErrorKind) -> ScenarioError {
        ScenarioError { kind, ..self }
    }

    /// The key that has the problem, and what was found and expected.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The key that has the problem, such as `radio.rate` or `schemes[1]`; `None` if it is in no single value.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The message without the key.
    pub fn problem(&self) -> &str {
        &self.message[self.problem as usize..]
    }

    /// The part of the message that states what would be right, if it has one: a suggestion, or else what was expected.
    pub fn remedy(&self) -> Option<&str> {
        (self.remedy > 0).then(|| &self.message[self.remedy as usize - 1..])
    }

    /// The file name, or the `--set` option, or `the change of` a key.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The change that has the problem: its assignment, such as `radio.rate=fast`, or its key.
    pub fn change(&self) -> Option<&str> {
        self.change.as_deref()
    }

    /// The line in the file, from 1.
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line as usize)
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column as usize)
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rendered)
    }
}

impl std::error::Error for ScenarioError {}

/// The part of `span` on its first line, at character boundaries of `text`.
fn one_line(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start);
    let end = text.ceil_char_boundary(span.end.max(start));
    let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    start..end.min(line_end)
}
