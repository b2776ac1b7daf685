//! The file of observed flows, as the gateway writes it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::report::rows::{Line, Settings, former};

/// The size beyond which a file is continued in a new one. The former one is kept, with `.1` at the end of its name.
const LIMIT: u64 = 16 << 20;

/// The file, open for further lines.
#[derive(Debug)]
pub(crate) struct Rows {
    path: PathBuf,
    file: File,
    len: u64,
    settings: Option<Settings>,
}

impl Rows {
    /// Makes sure that the file can be written, and is root's alone if it is an old one: a confined process cannot change that.
    pub(crate) fn prepare(path: &Path) -> io::Result<()> {
        Rows::open(path)?.file.set_permissions(Permissions::from_mode(0o600))
    }

    /// Opens the file, for root alone; if its directory is missing, it is made, for root alone as well.
    pub(crate) fn open(path: &Path) -> io::Result<Rows> {
        let wrong = |error: io::Error| {
            io::Error::new(error.kind(), format!("gateway.flows {}: {error}", path.display()))
        };
        if let Some(directory) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(wrong)?;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).mode(0o600).open(path).map_err(wrong)?;
        let mut rows = Rows { path: path.to_owned(), len: file.metadata()?.len(), file, settings: None };
        let mut last = [b'\n'];
        if rows.len > 0 {
            rows.file.read_exact_at(&mut last, rows.len - 1).map_err(wrong)?;
        }
        // The line before was cut off, such as by a full disk.
        if last != [b'\n'] {
            rows.file.write_all(b"\n").map_err(wrong)?;
            rows.len += 1;
        }
        Ok(rows)
    }

    /// Appends a line. A file that continues a full one says first what flows get, and since when they are not helped, if harm
    /// was found at `stopped_s`.
    pub(crate) fn append(&mut self, line: &Line, stopped_s: Option<f64>) -> io::Result<()> {
        if let Line::Start(settings) | Line::Reload(settings) | Line::Clock(settings) = line {
            self.settings = Some(settings.clone());
        }
        if self.len >= LIMIT {
            fs::rename(&self.path, former(&self.path))?;
            *self = Rows { settings: self.settings.take(), ..Rows::open(&self.path)? };
            if let Some(settings) = self.settings.clone() {
                self.write(&Line::Start(settings))?;
            }
            if let Some(time_s) = stopped_s {
                self.write(&Line::Stop { time_s })?;
            }
        }
        self.write(line)
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.len += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Evidence;

    #[test]
    fn a_line_that_was_cut_off_costs_itself_alone() {
        let path = std::env::temp_dir().join(format!("lasthop-cut-{}.jsonl", std::process::id()));
        let write = |time_s| {
            Rows::open(&path).expect("a file").append(&Line::Stop { time_s }, None).expect("room");
        };
        write(1.0);
        write(2.0);
        let whole = fs::read(&path).expect("a file");
        fs::write(&path, &whole[..whole.len() - 5]).expect("a file");
        write(3.0);
        let text = fs::read_to_string(&path).expect("a file");
        let read = text.lines().filter(|line| serde_json::from_str::<Line>(line).is_ok()).count();
        assert_eq!((text.lines().count(), read), (3, 2));
        fs::remove_file(&path).expect("a file");
    }

    #[test]
    fn a_stop_outlasts_the_files_that_are_continued() {
        let directory = std::env::temp_dir().join(format!("lasthop-rows-{}", std::process::id()));
        let path = directory.join("missing/flows.jsonl");
        let mut rows = Rows::open(&path).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("its owner");
        Rows::prepare(&path).expect("a file");
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        let mode = fs::metadata(directory.join("missing")).expect("a directory").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        // As long as a twentieth of a file.
        let settings =
            |time_s| Settings { time_s, keys: " ".repeat(LIMIT as usize / 20), ..Settings::default() };
        let mut evidence = Evidence::default();
        let lines = std::iter::once(Line::Stop { time_s: 9.0 });
        for line in lines.chain((0..50).map(|number| Line::Clock(settings(f64::from(number))))) {
            evidence.add(&line);
            rows.append(&line, evidence.stopped_s()).expect("room");
        }
        assert!(fs::metadata(&path).expect("a file").len() <= LIMIT * 11 / 10);
        assert_eq!(Evidence::read(&path).expect("a file").stopped_s(), Some(9.0));
        fs::remove_dir_all(directory).expect("a directory");
    }
}
