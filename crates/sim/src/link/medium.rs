//! What carries the packets of a link that sends each of them once.

use lasthop_base::Time;
use lasthop_link::pace::Pace;
use lasthop_proto::Packet;

use super::LinkStats;

/// The medium of a link without an ARQ. Losses do not affect timing, so the outcome of a packet is known when its
/// transmission starts.
pub(crate) trait Medium: Send {
    /// Whether it is wireless.
    const IS_RADIO: bool;

    /// Sends a packet from `start` on.
    fn send<P: Pace>(&mut self, pace: &mut P, packet: &Packet, start: Time) -> Passage;

    /// Counts the packets that had arrived before `now`, and at `now` itself if `inclusive`.
    fn settle(&mut self, _now: Time, _inclusive: bool) {}

    /// Sets the end of the run.
    fn until(&mut self, _horizon: Time) {}

    /// Counters, without those of the queue.
    fn stats(&self) -> LinkStats {
        LinkStats::default()
    }
}

/// The passage of a packet over a medium.
pub(crate) struct Passage {
    /// When its last bits are sent.
    pub(crate) end: Time,
    /// When it arrives at the other end.
    pub(crate) arrival: Time,
    /// Whether it arrives with errors.
    pub(crate) is_lost: bool,
}
