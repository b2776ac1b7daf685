//! The file of observed flows, as the gateway writes it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
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
    /// Opens the file, for root alone.
    pub(crate) fn open(path: &Path) -> io::Result<Rows> {
        let wrong = |error: io::Error| {
            io::Error::new(error.kind(), format!("gateway.flows {}: {error}", path.display()))
        };
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).map_err(wrong)?;
        file.set_permissions(Permissions::from_mode(0o600)).map_err(wrong)?;
        let len = file.metadata()?.len();
        Ok(Rows { path: path.to_owned(), file, len, settings: None })
    }

    /// Appends a line.
    pub(crate) fn append(&mut self, line: &Line) -> io::Result<()> {
        if let Line::Start(settings) | Line::Reload(settings) = line {
            self.settings = Some(settings.clone());
        }
        if self.len >= LIMIT {
            fs::rename(&self.path, former(&self.path))?;
            *self = Rows { settings: self.settings.take(), ..Rows::open(&self.path)? };
            if let Some(settings) = self.settings.clone() {
                self.write(&Line::Start(settings))?;
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
