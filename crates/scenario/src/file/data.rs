//! Reads the data files that a scenario names.

use std::path::Path;

use crate::document::Document;
use crate::error::{ErrorKind, Fault, ScenarioError};
use crate::schema::Scenario;

impl Scenario {
    /// Reads all data files. Their paths are relative to the directory of the scenario's file.
    pub(super) fn read_files(&mut self, document: &Document) -> Result<(), ScenarioError> {
        let directory = Path::new(document.name()).parent().unwrap_or(Path::new("")).to_owned();
        let cache = document.data_files();
        let mut failed = None;
        self.each_file(&mut |keys, file| {
            if failed.is_none()
                && let Err(problem) = cache.read(&directory, file)
            {
                failed = Some(Fault { path: keys.iter().map(|key| (*key).to_owned()).collect(), problem });
            }
        });
        failed.map_or(Ok(()), |fault| Err(document.fault(&fault).with_kind(ErrorKind::Unreadable)))
    }

    /// The hashes of the contents of its data files, in order.
    pub(super) fn digests(&mut self) -> Vec<u64> {
        let mut digests = Vec::new();
        self.each_file(&mut |_, file| digests.extend(file.digest()));
        digests
    }
}
