//! Translation of messages from serde and the TOML parser into terms of scenario files.

use std::ops::Range;

use toml::de::DeValue;

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

/// The message for an error at the key `path` with the value `culprit`. `expected` gives the expected
/// contents of a missing key.
pub(crate) fn complaint(
    message: &str,
    path: &[String],
    culprit: Option<&DeValue<'_>>,
    expected: &dyn Fn(&str) -> Option<String>,
) -> String {
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let (word, candidates) = names(rest);
        return format!("unknown key {}, {}", dotted(path), alternatives(word, candidates));
    }
    if let Some(rest) = message.strip_prefix("unexpected keys in table: ")
        && let Some((_, candidates)) = rest.split_once(", available keys: ")
    {
        let word = path.last().map_or("", String::as_str);
        return format!("unknown key {}, {}", dotted(path), alternatives(word, candidates.split(", ")));
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        let (word, candidates) = names(rest);
        // An alternative is named by a value, or by the key of its parameters.
        let by_value = matches!(culprit, Some(DeValue::String(value)) if value == word);
        let path = if by_value { path } else { &path[..path.len().saturating_sub(1)] };
        return at(path, &format!("found \"{word}\", {}", alternatives(word, candidates)));
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        let key = rest.trim_matches('`');
        let full = dotted(&[path, &[key.to_owned()]].concat());
        let what = expected(key).map_or(String::new(), |what| format!(", expected {what}"));
        return format!("missing key {full}{what}");
    }
    if message.starts_with("wanted ") {
        return at(path, &choice(culprit, path));
    }
    if message.contains("unit variant, expected")
        && let Some(DeValue::String(name)) = culprit
    {
        let table = dotted(&[path, &[name.to_string()]].concat());
        return at(path, &format!("found \"{name}\" alone, expected its parameters in a table [{table}]"));
    }
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match wrong.and_then(|rest| rest.split_once(", expected ")) {
        Some((found, wanted)) => at(path, &format!("found {}, expected {}", plain(found), in_words(wanted))),
        None => at(path, message),
    }
}

/// What serde expected, if `message` reports a wrong type.
pub(crate) fn expectation(message: &str) -> Option<String> {
    let (_, wanted) = message.strip_prefix("invalid type: ")?.split_once(", expected ")?;
    Some(in_words(wanted).to_owned())
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

/// The first name and the others in serde's message "`word`, expected one of `a`, `b`".
fn names(rest: &str) -> (&str, impl Iterator<Item = &str>) {
    let mut names = rest.split('`').skip(1).step_by(2);
    (names.next().unwrap_or_default(), names)
}

/// The message for a `culprit` that should name one of several alternatives.
fn choice(culprit: Option<&DeValue<'_>>, path: &[String]) -> String {
    match culprit {
        Some(DeValue::Table(table)) if !table.is_empty() => {
            let keys: Vec<String> = table.keys().map(|key| format!("\"{}\"", key.get_ref())).collect();
            format!("found {}, expected only one of them", keys.join(" and "))
        }
        found => {
            let found = found.map_or("nothing", DeValue::type_str);
            format!("found a {found} that names no alternative, expected a table [{}.NAME]", dotted(path))
        }
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

/// Plain English for the value that serde found: "integer `2`".
fn plain(found: &str) -> &str {
    match found {
        "map" => "a table",
        "sequence" => "a list",
        _ => found
            .strip_prefix("string ")
            .or_else(|| found.split_once('`').and_then(|(_, value)| value.strip_suffix('`')))
            .unwrap_or(found),
    }
}

/// Plain English for what serde expected.
fn in_words(wanted: &str) -> &str {
    match wanted {
        "f64" => "a number",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u8" | "u64" | "usize" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list in brackets",
        "a map" => "a table",
        _ if wanted.starts_with("struct ") => "a table",
        _ => wanted,
    }
}
