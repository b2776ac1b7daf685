//! The map in CONTRIBUTING.md matches the directory tree, and the documentation of each crate contains a
//! diagram.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directories listed in the map, as paths; those of a crate without its `src`.
fn mapped() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("it is there");
    let map = text.split("## Where things live").nth(1).expect("the map has a heading");
    let lines = map.lines().skip_while(|line| line.is_empty()).take_while(|line| line.starts_with("    "));
    let mut folders = BTreeSet::new();
    let mut above: Vec<(usize, String)> = Vec::new();
    for line in lines {
        let indent = line.len() - line.trim_start().len();
        let name = line.split_whitespace().next().expect("a line has a name");
        above.retain(|(outer, _)| *outer < indent);
        let prefix = above.last().map_or(String::new(), |(_, path)| format!("{path}/"));
        let Some(folder) = name.strip_suffix('/') else {
            assert!(root().join(&prefix).join(name).is_file(), "the map has {prefix}{name}");
            continue;
        };
        let path = format!("{prefix}{folder}");
        folders.insert(path.clone());
        above.push((indent, path));
    }
    folders
}

/// Names of the subdirectories, without hidden ones and build output.
fn folders_in(path: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root().join(path)) else { return Vec::new() };
    let folders = entries.map(|entry| entry.expect("it can be read")).filter(|entry| entry.path().is_dir());
    let names = folders.map(|entry| entry.file_name().into_string().expect("a plain name"));
    let made = ["target", "out", "snapshots", "__pycache__"];
    names.filter(|name| !name.starts_with(['.', '_']) && !made.contains(&name.as_str())).collect()
}

#[test]
fn the_map_lists_exactly_the_directories() {
    let mut found: BTreeSet<String> = ["crates", "python/lasthop", "python/tests"].map(str::to_owned).into();
    found.extend(folders_in("").into_iter().filter(|name| name != "crates" && name != "python"));
    found.extend(folders_in("python/lasthop").iter().map(|name| format!("python/lasthop/{name}")));
    for name in folders_in("crates") {
        let rooms = folders_in(&format!("crates/{name}/src"));
        found.extend(rooms.iter().map(|room| format!("crates/{name}/{room}")));
        found.insert(format!("crates/{name}"));
    }
    assert_eq!(mapped(), found);
}

/// A paragraph, followed by a diagram in text.
#[test]
fn every_crate_documentation_has_a_diagram() {
    for name in folders_in("crates") {
        let text = fs::read_to_string(root().join(format!("crates/{name}/src/lib.rs"))).expect("it is there");
        let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let picture = head.iter().position(|line| *line == "//! ```text");
        assert!(picture.is_some_and(|line| line >= 2), "crates/{name}/src/lib.rs has no picture");
    }
}
