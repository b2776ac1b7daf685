//! What runs have in common.

use lasthop_experiment::Run;

/// The counters called `name` of all agents together.
pub(crate) fn counter(run: &Run, name: &str) -> u64 {
    let counters = run.agents.iter().flat_map(|agent| &agent.counters);
    counters.filter(|(other, _)| *other == name).map(|(_, value)| value).sum()
}
