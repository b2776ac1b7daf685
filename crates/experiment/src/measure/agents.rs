//! Counters of schemes' agents.

use std::fmt;

use lasthop_proto::Tally;
use lasthop_sim::Node;

/// The kind of a counter, which determines how it is aggregated into a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Total,
    Level,
    Peak,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    name: &'static str,
    kind: Kind,
    value: u64,
}

/// The counters of one agent, at one instant or from the end of the warm-up on.
#[derive(Clone, Debug, Default)]
pub struct AgentCounters(Vec<Counter>);

impl Tally for AgentCounters {
    fn total(&mut self, name: &'static str, value: u64) {
        self.0.push(Counter { name, kind: Kind::Total, value });
    }

    fn level(&mut self, name: &'static str, value: u64) {
        self.0.push(Counter { name, kind: Kind::Level, value });
    }

    fn peak(&mut self, name: &'static str, value: u64) {
        self.0.push(Counter { name, kind: Kind::Peak, value });
    }
}

impl AgentCounters {
    /// The present counters of an agent.
    pub fn of(agent: &Node) -> AgentCounters {
        let mut counters = AgentCounters::default();
        agent.count(&mut counters);
        counters
    }

    /// Checks that the agent reported the same counters earlier: the columns of a study are fixed before its runs.
    ///
    /// # Panics
    /// If it did not.
    pub fn check(&self, earlier: &AgentCounters) {
        let declared = |counters: &AgentCounters| {
            counters.0.iter().map(|each| (each.name, each.kind)).collect::<Vec<_>>()
        };
        assert_eq!(declared(self), declared(earlier), "an agent reports the same counters at all times");
    }

    /// The totals since `earlier` counters of the same agent, and the present levels and peaks.
    ///
    /// # Panics
    /// If the agent reported other counters then.
    pub fn since(&self, earlier: &AgentCounters) -> AgentCounters {
        self.check(earlier);
        let since = |(now, earlier): (&Counter, &Counter)| match now.kind {
            Kind::Total => Counter { value: now.value - earlier.value, ..*now },
            Kind::Level | Kind::Peak => *now,
        };
        AgentCounters(self.0.iter().zip(&earlier.0).map(since).collect())
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|counter| counter.name)
    }

    /// The value of counter number `index`.
    pub fn value(&self, index: usize) -> u64 {
        self.0[index].value
    }

    /// The names and values.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|counter| (counter.name, counter.value))
    }
}

/// A counter of a scheme: of all its agents together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeCounter {
    /// The name of the scheme.
    pub scheme: &'static str,
    /// The name of the counter.
    pub counter: &'static str,
    /// The sum over the agents, or their greatest peak.
    pub value: u64,
}

/// The name of the metric: `SCHEME.COUNTER`.
impl fmt::Display for SchemeCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.scheme, self.counter)
    }
}

/// The counters of each scheme, given those of each agent with its scheme, in the order of their first occurrence.
///
/// # Panics
/// If two agents of a scheme mean different kinds by the same name.
pub fn by_scheme<'a>(agents: impl Iterator<Item = (&'static str, &'a AgentCounters)>) -> Vec<SchemeCounter> {
    let mut found: Vec<(SchemeCounter, Kind)> = Vec::new();
    for (scheme, counters) in agents {
        for &Counter { name, kind, value } in &counters.0 {
            let known = found.iter_mut().find(|(each, _)| each.scheme == scheme && each.counter == name);
            let Some((each, known)) = known else {
                found.push((SchemeCounter { scheme, counter: name, value }, kind));
                continue;
            };
            assert_eq!(kind, *known, "the agents of {scheme} agree on the kind of {name}");
            each.value = if kind == Kind::Peak { each.value.max(value) } else { each.value + value };
        }
    }
    found.into_iter().map(|(each, _)| each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent with a counter of each kind.
    fn agent(values: [u64; 3]) -> AgentCounters {
        let mut counters = AgentCounters::default();
        counters.total("sent", values[0]);
        counters.level("held", values[1]);
        counters.peak("held_peak", values[2]);
        counters
    }

    #[test]
    fn a_total_grows_since_the_warm_up_and_levels_and_peaks_do_not() {
        let since: Vec<_> = agent([10, 4, 7]).since(&agent([3, 5, 6])).values().collect();
        assert_eq!(since, [("sent", 7), ("held", 4), ("held_peak", 7)]);
    }

    #[test]
    fn agents_of_a_scheme_add_up_and_the_greatest_peak_counts() {
        let (one, two, other) = (agent([10, 4, 7]), agent([1, 2, 9]), agent([5, 5, 5]));
        let found = by_scheme([("a", &one), ("b", &other), ("a", &two)].into_iter());
        let found: Vec<_> = found.iter().map(|each| (each.to_string(), each.value)).collect();
        let expected = [
            ("a.sent", 11),
            ("a.held", 6),
            ("a.held_peak", 9),
            ("b.sent", 5),
            ("b.held", 5),
            ("b.held_peak", 5),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    #[should_panic(expected = "an agent reports the same counters at all times")]
    fn a_counter_that_appears_later_is_a_fault() {
        agent([10, 4, 7]).since(&AgentCounters::default());
    }

    #[test]
    #[should_panic(expected = "the agents of a agree on the kind of held")]
    fn one_name_has_one_kind() {
        let mut other = AgentCounters::default();
        other.total("held", 1);
        by_scheme([("a", &agent([1, 1, 1])), ("a", &other)].into_iter());
    }
}
