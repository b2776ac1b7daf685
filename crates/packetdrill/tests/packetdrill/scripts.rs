//! The scripts of tests/packetdrill, if packetdrill is installed.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// packetdrill, by the environment variable LASTHOP_PACKETDRILL or on PATH.
fn packetdrill() -> Option<PathBuf> {
    if let Some(named) = env::var_os("LASTHOP_PACKETDRILL") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join("packetdrill")).find(|file| file.is_file())
}

/// The shared library, which is built with this test: in the directory of the test or the one above.
fn library() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    test.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("liblasthop_packetdrill.so"))
        .find(|file| file.is_file())
        .expect("the library is built")
}

#[test]
fn the_endpoint_passes_our_scripts() {
    let Some(packetdrill) = packetdrill() else {
        return println!("skipped: packetdrill was not found on PATH nor by LASTHOP_PACKETDRILL");
    };
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/packetdrill.py");
    let mut line = Command::new("python3");
    line.arg(runner).arg("--packetdrill").arg(packetdrill).arg("--library").arg(library());
    let output = match line.output() {
        Ok(output) => output,
        Err(error) => return println!("skipped: python3: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if said.contains("lockall") {
        return println!("skipped: packetdrill may not lock its memory here, which root may");
    }
    assert!(output.status.success(), "{said}");
}
