//! Faults of scenarios, and errors with their locations.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Path of the value: keys, and indices of list elements.
    pub path: Vec<String>,
    /// What was found, what was expected, and how to fix it.
    pub problem: String,
}

impl Fault {
    pub(crate) fn new(path: &str, problem: impl Into<String>) -> Fault {
        Fault { path: path.split('.').map(str::to_owned).collect(), problem: problem.into() }
    }

    /// The same fault in the table `table`.
    pub(crate) fn below(&self, table: &str) -> Fault {
        Fault { path: [&[table.to_owned()], &self.path[..]].concat(), problem: self.problem.clone() }
    }
}

/// An error in a scenario. It displays as several lines: what was found and expected, the location, and the
/// source line with the offending text underlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    message: String,
    origin: String,
    position: Option<(usize, usize)>,
    rendered: String,
}

/// Location of an error.
pub(crate) enum Location<'a> {
    /// In a file; without a span, the file as a whole.
    File { name: &'a str, text: &'a str, span: Option<Range<usize>> },
    /// In an override on the command line.
    Override(&'a str),
}

impl ScenarioError {
    pub(crate) fn new(message: String, location: Location<'_>) -> ScenarioError {
        match location {
            Location::File { name, text, span } => ScenarioError::in_file(message, name, text, span),
            Location::Override(assignment) => ScenarioError::at(message, format!("--set {assignment}")),
        }
    }

    fn at(message: String, origin: String) -> ScenarioError {
        let rendered = format!("{message}\n --> {origin}");
        ScenarioError { message, origin, position: None, rendered }
    }

    fn in_file(message: String, name: &str, text: &str, span: Option<Range<usize>>) -> ScenarioError {
        let Some(span) = span else { return ScenarioError::at(message, name.to_owned()) };
        let span = one_line(text, span);
        let before = &text[..span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let position = (before.matches('\n').count() + 1, text[line_start..span.start].chars().count() + 1);
        let snippet = Snippet::source(text).path(name).annotation(AnnotationKind::Primary.span(span));
        let report = [Level::ERROR.no_name().primary_title(message.as_str()).element(snippet)];
        let rendered = Renderer::plain().render(&report);
        ScenarioError { message, origin: name.to_owned(), position: Some(position), rendered }
    }

    /// Whether both errors have the same location.
    pub(crate) fn same_location(&self, other: &ScenarioError) -> bool {
        (&self.origin, self.position) == (&other.origin, other.position)
    }

    /// Appends `note` to the message.
    pub(crate) fn noting(mut self, note: &str) -> ScenarioError {
        self.rendered.insert_str(self.message.len(), note);
        self.message.push_str(note);
        self
    }

    /// What was found and what was expected.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The file name, or the `--set` option.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The line in the file, from 1.
    pub fn line(&self) -> Option<usize> {
        self.position.map(|(line, _)| line)
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> Option<usize> {
        self.position.map(|(_, column)| column)
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
