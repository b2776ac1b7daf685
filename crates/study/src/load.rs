//! Reading and writing scenarios.

use std::fs;
use std::hash::Hasher;
use std::path::Path;

use fnv::FnvHasher;
use toml::Table;

use crate::document::Document;
use crate::error::{Place, ScenarioError};
use crate::scenario::Scenario;

impl Scenario {
    /// Reads the file at `path`, with `overrides` laid over it in their order, each as
    /// `"radio.rate=2 Mbps"`.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a sound scenario.
    pub fn load<S: AsRef<str>>(path: &Path, overrides: &[S]) -> Result<Scenario, ScenarioError> {
        let name = path.display().to_string();
        let whole = |message| ScenarioError::new(message, Place::File { name: &name, text: "", span: None });
        let bytes = fs::read(path).map_err(|error| whole(format!("cannot read the file: {error}")))?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Scenario::parse(text, &name, overrides),
            Err(error) => {
                let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
                Err(whole(format!("not TOML: line {line} has a byte that is not UTF-8")))
            }
        }
    }

    /// Reads the scenario in `text`, which messages call `name`, with `overrides` laid over it in
    /// their order.
    ///
    /// # Errors
    /// If it is not a sound scenario.
    pub fn parse<S: AsRef<str>>(text: &str, name: &str, overrides: &[S]) -> Result<Scenario, ScenarioError> {
        let mut document = Document::parse(text, name)?;
        for assignment in overrides {
            document.set(assignment.as_ref())?;
        }
        let mut scenario: Scenario = document.read()?;
        scenario.settle_profile(&document);
        scenario.file = name.to_owned();
        match scenario.faults().first() {
            Some(fault) => Err(document.fault(fault)),
            None => Ok(scenario),
        }
    }

    /// Gives TCP its profile's settings wherever the document says nothing.
    fn settle_profile(&mut self, document: &Document<'_>) {
        let table = |settings| Table::try_from(settings).expect("settings are a table");
        let (stated, mut settled) = (table(&self.tcp), table(&self.tcp.profile.settings()));
        for key in document.keys_of("tcp") {
            settled.insert(key.to_owned(), stated[key].clone());
        }
        self.tcp = settled.try_into().expect("settings survive a round trip");
    }

    /// The canonical form: the same scenario with every default and every unit spelled out, in the
    /// order of the schema. Reading it gives this scenario.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a scenario is a table of plain values")
    }

    /// A name for what the scenario says, whatever its formatting: the FNV-1a hash (64 bits) of the
    /// [canonical form](Scenario::to_toml), in 16 hexadecimal digits.
    pub fn hash(&self) -> String {
        let mut hasher = FnvHasher::default();
        hasher.write(self.to_toml().as_bytes());
        format!("{:016x}", hasher.finish())
    }
}
