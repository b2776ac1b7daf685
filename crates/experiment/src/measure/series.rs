//! Time series of a sender's state, as columns.

use lasthop_base::Time;
use lasthop_proto::{ComponentId, FlowId, Probe};
use lasthop_sim::{Node, Tap};

/// The quantities that the sender of a connection, or of one part of a split connection, reports over time: a
/// row at the start and after each event that changed one of them. A value holds until the next row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Time in seconds.
    pub time_s: Vec<f64>,
    /// Name of each quantity, with its unit, and its values; NaN where undefined.
    pub columns: Vec<(&'static str, Vec<f64>)>,
}

/// Records the [`Series`] of one sender.
pub(crate) struct Recorder {
    id: ComponentId,
    flow: FlowId,
    shown: Shown,
    series: Series,
}

/// The most recent values.
#[derive(Default)]
struct Shown(Vec<(&'static str, f64)>);

impl Probe for Shown {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.push((name, value));
    }
}

impl Recorder {
    /// A recorder for the sender of `flow`, which is component `id` or inside it.
    pub(crate) fn new(id: ComponentId, flow: FlowId) -> Recorder {
        Recorder { id, flow, shown: Shown::default(), series: Series::default() }
    }

    /// How many rows there are so far.
    pub(crate) fn rows(&self) -> usize {
        self.series.time_s.len()
    }

    pub(crate) fn into_series(self) -> Series {
        self.series
    }
}

impl Tap for Recorder {
    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        if id != self.id {
            return;
        }
        self.shown.0.clear();
        match component {
            Node::Proxy(proxy) => {
                proxy
                    .relay(self.flow)
                    .expect("the sender of the part is in this proxy")
                    .show(&mut self.shown);
            }
            other => other.show(&mut self.shown),
        }
        let Series { time_s, columns } = &mut self.series;
        if columns.is_empty() {
            columns.extend(self.shown.0.iter().map(|&(name, _)| (name, Vec::new())));
        }
        let names = columns.iter().map(|(name, _)| name);
        assert!(
            names.eq(self.shown.0.iter().map(|(name, _)| name)),
            "a component shows the same quantities at all times"
        );
        // Compared bitwise, because NaN differs from itself.
        let same = |((_, column), (_, value)): (&(_, Vec<f64>), &(_, f64))| {
            column.last().is_some_and(|last| last.to_bits() == value.to_bits())
        };
        if !columns.iter().zip(&self.shown.0).all(same) {
            time_s.push(now.as_secs_f64());
            columns.iter_mut().zip(&self.shown.0).for_each(|((_, column), (_, value))| column.push(*value));
        }
    }

    fn sees_wire(&self, _wire: &lasthop_sim::Wire) -> bool {
        false
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, id: ComponentId) -> bool {
        id == self.id
    }
}
