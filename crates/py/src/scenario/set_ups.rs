//! What a scenario keeps of the schemes that have run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use lasthop_experiment::SharedSetup;
use lasthop_scenario::ScenarioError;

/// The number of schemes whose set-ups are kept.
const MAX_SET_UPS: usize = 16;

/// The set-ups of schemes that have run, so that many single runs cost no more than those of a study.
#[derive(Default)]
pub(super) struct SetUps(Mutex<BTreeMap<String, SharedSetup>>);

impl SetUps {
    /// The set-up of a scheme, made unless it is kept.
    pub(super) fn get(
        &self,
        scenario: &Arc<lasthop_scenario::Scenario>,
        scheme: &str,
    ) -> Result<SharedSetup, ScenarioError> {
        let kept = || self.0.lock().expect("no thread panics while it holds the lock");
        if let Some(set_up) = kept().get(scheme) {
            return Ok(set_up.clone());
        }
        let set_up = SharedSetup::new(scenario.clone(), scheme)?;
        let mut kept = kept();
        if kept.len() >= MAX_SET_UPS {
            kept.clear();
        }
        kept.insert(scheme.to_owned(), set_up.clone());
        Ok(set_up)
    }
}
