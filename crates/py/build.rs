//! Compiles the worked scenarios of `scenarios/` into the extension module, so that an installed package has
//! them.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").canonicalize()?;
    println!("cargo::rerun-if-changed={}", directory.display());
    let files: io::Result<Vec<PathBuf>> = fs::read_dir(&directory)?.map(|entry| Ok(entry?.path())).collect();
    let mut files: Vec<PathBuf> =
        files?.into_iter().filter(|path| path.extension() == Some("toml".as_ref())).collect();
    files.sort();
    let pairs = files.iter().filter_map(|path| {
        let name = path.file_stem()?.to_str()?;
        Some(format!("({name:?}, include_str!({path:?})),\n"))
    });
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    fs::write(out.join("scenarios.rs"), format!("[\n{}]", pairs.collect::<String>()))
}
