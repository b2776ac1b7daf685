//! What schemes need of the network on which they are installed.

use alloc::vec::Vec;

use super::{ArqUse, Combination, QueueUse};

/// A capability of a network on which a combination of schemes relies. The parts that a scheme installs declare it; a network
/// without it refuses the combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Connections cross a wireless link.
    WirelessLink,
    /// The wireless links recover their own losses.
    Arq,
    /// Each wireless link has a queue of its own, which may be replaced.
    OwnQueue,
    /// The queues before wireless links can let packets go first.
    PriorityQueue,
    /// The wireless links have an error-correcting code.
    Code,
    /// Base stations are where connections change between a wired and a wireless part.
    PartsAtBaseStations,
    /// The base stations of a moving host have wired paths to each other.
    WiredPathsBetweenStations,
    /// Wireless links carry packets in order.
    Order,
    /// All packets of a wireless link pass the agents at its base station.
    AgentsPassed,
    /// Sources of QUIC have one agent on the way, to which packets keep their order, and a control that its reports suit.
    Reports,
    /// Finite connections are closed with FIN.
    Close,
    /// The queues before wireless links drop nothing, by which sizes of segments would run away.
    Room,
}

impl Combination<'_> {
    /// What the combination needs, by what its schemes install.
    pub fn needs(&self) -> impl Iterator<Item = Need> + use<> {
        let link = self.link();
        let replaces_queue = link.queue != QueueUse::Kept;
        let splits = self.splitter().is_some();
        let needs = [
            (link.arq.is_needed() || replaces_queue, Need::WirelessLink),
            (link.arq == ArqUse::Required, Need::Arq),
            (replaces_queue, Need::OwnQueue),
            (link.queue == QueueUse::ExpeditedFirst, Need::PriorityQueue),
            (link.protects.is_some(), Need::Code),
            (splits && self.split_node().is_none(), Need::PartsAtBaseStations),
            (!self.connected().is_empty(), Need::WiredPathsBetweenStations),
            (self.exchanges_packets(), Need::Order),
            (!self.pairs().is_empty(), Need::AgentsPassed),
            (self.sidecar().is_some(), Need::Reports),
            (splits, Need::Close),
            (self.sizes_by_queue(), Need::Room),
        ];
        needs
            .into_iter()
            .filter_map(|(is_needed, need)| is_needed.then_some(need))
            .collect::<Vec<_>>()
            .into_iter()
    }
}
