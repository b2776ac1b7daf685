//! MTU fragmentation and reassembly.
//!
//! A packet larger than the MTU is sent as full fragments and a shorter last one. If a fragment is lost, the
//! packet is lost, because the network layer has no smaller unit (EBSN paper, TR-96-014, sections 3.1 and
//! 4.1).

use lasthop_base::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum transmission unit: the largest fragment in bytes, as counted by the network layer. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Bytes", into = "Bytes")]
pub struct Mtu(Bytes);

impl Mtu {
    /// An MTU of `size`, or `None` for zero.
    pub const fn new(size: Bytes) -> Option<Mtu> {
        if size.0 == 0 { None } else { Some(Mtu(size)) }
    }

    /// The size.
    pub const fn get(self) -> Bytes {
        self.0
    }
}

impl TryFrom<Bytes> for Mtu {
    type Error = &'static str;
    fn try_from(size: Bytes) -> Result<Mtu, Self::Error> {
        Mtu::new(size).ok_or("found \"0 B\", expected a size above zero, such as \"128 B\"")
    }
}

impl From<Mtu> for Bytes {
    fn from(mtu: Mtu) -> Bytes {
        mtu.0
    }
}

/// Fragmentation of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragments {
    packet: Bytes,
    mtu: Option<Mtu>,
}

impl Fragments {
    /// Fragments of a packet of size `packet`; a single one without an MTU.
    pub const fn of(packet: Bytes, mtu: Option<Mtu>) -> Fragments {
        Fragments { packet, mtu }
    }

    /// Number of fragments, at least one.
    ///
    /// # Panics
    /// If there are more than `u32::MAX`.
    pub fn count(&self) -> u32 {
        let count = self.mtu.map_or(1, |mtu| self.packet.0.div_ceil(mtu.0.0).max(1));
        u32::try_from(count).expect("fewer fragments than 2^32")
    }

    /// Size of fragment `index`, counted from zero.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn size(&self, index: u32) -> Bytes {
        debug_assert!(index < self.count(), "fragment {index} of {}", self.count());
        match self.mtu {
            None => self.packet,
            Some(mtu) => mtu.0.min(self.packet - mtu.0 * u64::from(index)),
        }
    }
}

/// Outcome of the reassembly of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reassembled {
    /// Every fragment arrived.
    Complete,
    /// The sending end gave up before every fragment had arrived.
    Abandoned,
}

/// Reassembly state of one packet, whose fragments may arrive in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reassembly {
    /// Fragments whose outcome is not known yet.
    pending: u32,
    /// The outcome if all pending fragments arrive.
    outcome: Reassembled,
}

impl Reassembly {
    /// Expects `fragments` fragments.
    pub const fn of(fragments: u32) -> Reassembly {
        Reassembly { pending: fragments, outcome: Reassembled::Complete }
    }

    /// A fragment has arrived.
    ///
    /// # Panics
    /// If all fragments have arrived already.
    pub fn arrived(&mut self) {
        self.pending = self.pending.checked_sub(1).expect("a fragment ends once");
    }

    /// Several fragments have arrived.
    ///
    /// # Panics
    /// If that are more than are pending.
    pub fn arrived_together(&mut self, fragments: u32) {
        self.pending = self.pending.checked_sub(fragments).expect("a fragment ends once");
    }

    /// Number of fragments whose outcome is not known yet.
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// The missing fragments will not arrive.
    pub fn abandon(&mut self) {
        *self = Reassembly { pending: 0, outcome: Reassembled::Abandoned };
    }

    /// The outcome, once it is known for all fragments.
    pub fn outcome(&self) -> Option<Reassembled> {
        (self.pending == 0).then_some(self.outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    fn cut(packet: u64, mtu: Option<u64>) -> Vec<u64> {
        let mtu = mtu.map(|bytes| Mtu::new(Bytes(bytes)).unwrap());
        let fragments = Fragments::of(Bytes(packet), mtu);
        (0..fragments.count()).map(|index| fragments.size(index).0).collect()
    }

    #[test]
    fn only_the_last_fragment_is_shorter() {
        assert_eq!(cut(576, Some(128)), [128, 128, 128, 128, 64]);
        assert_eq!(cut(256, Some(128)), [128, 128]);
        assert_eq!(cut(129, Some(128)), [128, 1]);
        assert_eq!(cut(40, Some(128)), [40]);
        assert_eq!(cut(0, Some(128)), [0]);
        assert_eq!(cut(1536, None), [1536]);
    }

    #[test]
    fn nothing_is_lost_or_added_by_cutting() {
        for packet in 1..200 {
            for mtu in 1..20 {
                let sizes = cut(packet, Some(mtu));
                assert_eq!(sizes.iter().sum::<u64>(), packet);
                assert!(sizes.iter().all(|&size| 0 < size && size <= mtu));
            }
        }
    }

    #[test]
    #[should_panic(expected = "fragment 5 of 5")]
    fn there_is_no_fragment_beyond_the_last() {
        Fragments::of(Bytes(576), Mtu::new(Bytes(128))).size(5);
    }

    #[test]
    fn a_packet_is_complete_when_all_of_it_arrived() {
        let mut packet = Reassembly::of(3);
        packet.arrived();
        packet.arrived();
        assert_eq!(packet.outcome(), None);
        packet.arrived();
        assert_eq!(packet.outcome(), Some(Reassembled::Complete));
    }

    #[test]
    fn a_packet_given_up_is_over_at_once() {
        let mut packet = Reassembly::of(9);
        packet.arrived();
        packet.abandon();
        assert_eq!(packet.outcome(), Some(Reassembled::Abandoned));
    }

    #[test]
    fn an_mtu_of_zero_is_refused() {
        let read = |text: &'static str| {
            let text: StrDeserializer<'_, Error> = text.into_deserializer();
            Mtu::deserialize(text).map_err(|error| alloc::format!("{error}"))
        };
        assert_eq!(read("128 B"), Ok(Mtu(Bytes(128))));
        assert_eq!(read("0 B"), Err("found \"0 B\", expected a size above zero, such as \"128 B\"".into()));
    }
}
