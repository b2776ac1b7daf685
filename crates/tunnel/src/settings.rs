//! The settings of an end of the tunnel.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use lasthop_base::{BitRate, Duration};
use lasthop_proto::arq::Retransmissions;
use lasthop_proto::scheme::parameters::PacketFec;

/// The help that packets of a class get.
#[derive(Clone, Debug, PartialEq)]
pub enum Help {
    /// None: they pass the tunnel alone.
    None,
    /// A code across packets, with these parameters.
    Fec(PacketFec),
    /// Retransmission of lost packets.
    Arq {
        /// Maximum number of retransmissions of a packet.
        retransmissions: Retransmissions,
        /// Whether packets leave in the order in which they have entered.
        in_order: bool,
    },
}

/// An end of the tunnel.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The help of each class of packets that enter here. The first is that of packets without help.
    pub classes: Vec<Help>,
    /// The share of flows without help that this end states, in thousandths.
    pub unhelped: u16,
    /// The other end, if this one is to find it.
    pub peer: Option<SocketAddr>,
    /// The rate of the path, from which times of the code follow that are not stated.
    pub rate: Option<BitRate>,
    /// The sizes of datagrams that the path may carry. What it carries of them is probed; packets are [`OVERHEAD`](crate::OVERHEAD)
    /// bytes smaller.
    pub sizes: RangeInclusive<usize>,
    /// Whether codes adapt to the loss that is measured: their `n` is then the most that blocks have.
    pub adapts: bool,
    /// The time after which the other end is taken for dead, without a datagram from it, or without word that one of this end has
    /// arrived there. It must be longer than the round trip.
    pub patience: Duration,
}

/// The rate of a path of which nothing is known.
const UNKNOWN_RATE: u64 = 100_000_000_000;

impl Settings {
    pub(crate) fn rate(&self) -> BitRate {
        self.rate.or_else(|| BitRate::from_bps(UNKNOWN_RATE)).expect("not zero")
    }
}
