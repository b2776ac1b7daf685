//! Messages about problems of files, in terms of scenarios.

use std::ops::Range;

use crate::tree::{Kind, Problem};

/// `problem` prefixed with the key at `path`; numbers in the path are indices of list elements.
pub(crate) fn at<S: AsRef<str>>(path: &[S], problem: &str) -> String {
    if path.is_empty() { problem.to_owned() } else { format!("{}: {problem}", dotted(path)) }
}

/// The message for text that is not valid TOML.
pub(crate) fn syntax(message: &str, text: &str, span: &Range<usize>) -> String {
    let start = text[..text.floor_char_boundary(span.start)].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let value = line.split_once('=').map_or("", |(_, value)| value.trim_start());
    let bare = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let hint = match bare && value.contains(|c: char| c.is_ascii_alphabetic()) {
        true => "; a quantity is written in quotes, such as \"2 Mbps\"",
        false => "",
    };
    format!("not TOML: {message}{hint}")
}

/// The message for a problem of the key `path` with the value `culprit`. `expected` gives the expected
/// contents of a missing key.
pub(crate) fn complaint(
    problem: &Problem,
    path: &[String],
    culprit: Option<&Kind>,
    expected: &dyn Fn(&str) -> Option<String>,
) -> String {
    match problem {
        Problem::UnknownKey { key, known } => {
            format!("unknown key {}, {}", dotted(path), alternatives(key, known.iter().copied()))
        }
        Problem::MissingKey(key) => {
            let full = dotted(&key_of(problem, path, culprit));
            let what = expected(key).map_or(String::new(), |what| format!(", expected {what}"));
            format!("missing key {full}{what}")
        }
        Problem::UnknownWord { word, known } => {
            let path = key_of(problem, path, culprit);
            at(&path, &format!("found \"{word}\", {}", alternatives(word, known.iter().copied())))
        }
        Problem::NoAlternative { known } => at(path, &choice(culprit, path, known)),
        Problem::Alone => {
            let name = culprit.and_then(Kind::as_text).unwrap_or_default();
            let table = dotted(&[path, &[name.to_owned()]].concat());
            at(path, &format!("found \"{name}\" alone, expected its parameters in a table [{table}]"))
        }
        Problem::Unexpected { found, expected } => {
            at(path, &format!("found {found}, expected {}", in_words(expected)))
        }
        Problem::NotNumber { expected } => {
            at(path, &format!("found a number, expected {}", in_words(expected)))
        }
        Problem::Other(message) => at(path, message),
    }
}

/// The key of a problem that was found at `path`.
pub(crate) fn key_of(problem: &Problem, path: &[String], culprit: Option<&Kind>) -> Vec<String> {
    match problem {
        Problem::MissingKey(key) => [path, &[String::from(*key)]].concat(),
        // An alternative is named by a value, or by the key of its parameters.
        Problem::UnknownWord { word, .. } if culprit.and_then(Kind::as_text) != Some(word) => {
            path[..path.len().saturating_sub(1)].to_vec()
        }
        _ => path.to_vec(),
    }
}

/// What was expected, if `problem` is another type.
pub(crate) fn expectation(problem: &Problem) -> Option<String> {
    match problem {
        Problem::Unexpected { expected, .. } => Some(in_words(expected).to_owned()),
        _ => None,
    }
}

/// The end of "found "`word`", expected one of ...": the alternatives, and the most similar one.
///
/// A candidate is similar if it differs by a letter or two, or if `word` is one of its parts, as in `linux-bbr`.
pub fn alternatives<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates
        .iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|&(likeness, near)| {
            likeness > 0.8
                || strsim::osa_distance(word, near) == 1
                || near.split('-').any(|part| part == word)
        })
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, near)| format!("; did you mean \"{near}\"?"));
    let quoted: Vec<String> = candidates.iter().map(|candidate| format!("\"{candidate}\"")).collect();
    let list = match quoted.as_slice() {
        [] => String::from("nothing"),
        [one] => one.clone(),
        [firsts @ .., last] => format!("{} or {last}", firsts.join(", ")),
    };
    format!("expected {list}{}", near.unwrap_or_default())
}

/// Where the remedy begins in a message that may quote from `texts` of the user: a suggestion, or else what was expected, or
/// else what stands behind a semicolon.
pub(crate) fn remedy(message: &str, texts: &[&str]) -> Option<usize> {
    let mut own = message.to_owned();
    let mut at = 0;
    while let Some(quote) = own[at..].find('"') {
        let begin = at + quote + 1;
        let rest = &own[begin..];
        let quoted = rest.match_indices('"').map(|(end, _)| &rest[..end]);
        let mut of_user = quoted.filter(|part| texts.iter().any(|text| text.contains(part)));
        // The longest: a text of the user may have quotes of its own.
        let length = of_user.next_back().map_or(0, str::len);
        own.replace_range(begin..begin + length, &"_".repeat(length));
        at = (begin + length + usize::from(length > 0)).min(own.len());
    }
    let expected =
        || own.match_indices("expected ").find(|(at, _)| !own[..*at].ends_with(char::is_alphabetic));
    let begins = own.find("did you mean ").or_else(|| Some(expected()?.0));
    begins.or_else(|| Some(own.find("; ")? + 2))
}

/// The message for a `culprit` that should name one of the `known` alternatives.
fn choice(culprit: Option<&Kind>, path: &[String], known: &[&str]) -> String {
    match culprit {
        Some(Kind::Table(table)) if !table.is_empty() => {
            let keys: Vec<String> = table.keys().map(|key| format!("\"{key}\"")).collect();
            format!("found {}, expected only one of them", keys.join(" and "))
        }
        Some(Kind::Table(_)) | None => {
            let found = culprit.map_or("nothing", Kind::what);
            format!("found {found} that names no alternative, expected a table [{}.NAME]", dotted(path))
        }
        Some(found) => format!("found {}, {}", found.what(), alternatives("", known.iter().copied())),
    }
}

/// Tables whose keys are user-defined names, possibly numbers: `[connection.1]`.
const NAMED: [&str; 5] = ["application", "connection", "host", "senders", "traffic"];

/// A path in the format `schemes[1]`, `radio.rate`, `connection.1.size`.
pub(crate) fn dotted<S: AsRef<str>>(path: &[S]) -> String {
    let mut dotted = String::new();
    let mut table = None;
    for key in path.iter().map(AsRef::as_ref) {
        match table {
            None => dotted.push_str(key),
            Some(table) if key.parse::<usize>().is_ok() && !NAMED.contains(&table) => {
                dotted.push_str(&format!("[{key}]"));
            }
            Some(_) => dotted.push_str(&format!(".{key}")),
        }
        table = Some(key);
    }
    dotted
}

/// Plain English for what serde expected.
fn in_words(wanted: &str) -> &str {
    match wanted {
        "f64" => "a number",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u8" => "a whole number from 0 to 255",
        "u64" | "usize" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list in brackets",
        "a map" => "a table",
        _ if wanted.starts_with("struct ") => "a table",
        _ => wanted,
    }
}
