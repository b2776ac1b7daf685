//! Contents of the data files that a scenario names.

use std::any::Any;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use lasthop_base::{LineError, Unread};

/// Maximum size of a data file.
const MAX_SIZE: u64 = 64 << 20;

/// The files that have been read, so that the points of a sweep share their contents.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataFiles(Arc<Mutex<HashMap<PathBuf, Box<dyn Any + Send + Sync>>>>);

impl DataFiles {
    /// Reads `file`, whose path is relative to `directory`, or takes what has been read.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) fn read(&self, directory: &Path, file: &mut dyn Unread) -> Result<(), String> {
        let path = directory.join(file.path());
        let mut known = self.0.lock().expect("no thread panics while it holds the lock");
        if known.get(&path).is_some_and(|known| file.take_from(&**known)) {
            return Ok(());
        }
        let shown = path.display();
        let cannot =
            |error| format!("cannot read {shown}: {error}; the path is relative to that of the scenario");
        let metadata = fs::metadata(&path).map_err(cannot)?;
        if !metadata.is_file() {
            return Err(format!("found {shown}, which is not a regular file, expected one"));
        }
        if metadata.len() > MAX_SIZE {
            let (size, most) = (metadata.len() >> 20, MAX_SIZE >> 20);
            return Err(format!(
                "found {shown} with {size} MiB, expected at most {most} MiB; use a part of it"
            ));
        }
        let text = String::from_utf8(fs::read(&path).map_err(cannot)?).map_err(|error| {
            let before = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..before].split(|&byte| byte == b'\n').count();
            format!(
                "{shown}:{line}: found a byte that is not UTF-8, expected text; unpack it if it is compressed"
            )
        })?;
        file.read(&text).map_err(|LineError { line, problem }| match line {
            Some(line) => format!("{shown}:{line}: {problem}"),
            None => format!("{shown}: {problem}"),
        })?;
        known.insert(path, file.copy());
        Ok(())
    }
}
