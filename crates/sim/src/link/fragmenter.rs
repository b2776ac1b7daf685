//! Fragmentation of packets into units, and their coding.

use lasthop_base::Bytes;
use lasthop_proto::Packet;
use lasthop_proto::fec::{self, BlockCode, Covers};
use lasthop_proto::frag::{Fragments, Mtu};

use super::RadioConfig;

/// An error-correcting code, and which units it protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fec {
    /// The code.
    pub code: BlockCode,
    /// The units that are coded.
    pub covers: Covers,
}

/// How a unit is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Uncoded.
    Uncoded,
    /// The check bits replace payload: the unit consists of codewords.
    Within,
    /// The check bits are added to the unit. With a fixed unit size it becomes several units.
    OnTop,
}

/// Fragments packets into units.
#[derive(Clone, Copy)]
pub(super) struct Fragmenter {
    mtu: Option<Mtu>,
    /// Fixed size of all units, if configured.
    unit: Option<Mtu>,
    fec: Option<Fec>,
    /// Whether retransmitted units are coded.
    repeats: bool,
    /// Whether units are coded for which the ARQ asks.
    requested: bool,
    /// Whether every packet is one unit without a code.
    sends_whole: bool,
}

/// The units of a packet.
#[derive(Clone, Copy)]
pub(super) struct Units {
    /// Size of the packet, padded to full units if the unit size is fixed.
    fragments: Fragments,
    coding: Coding,
}

impl Units {
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.fragments.count()
    }

    #[inline]
    pub(super) fn size(&self, index: u32) -> Bytes {
        self.fragments.size(index)
    }

    /// Coding of the first transmission.
    pub(super) fn coding(&self) -> Coding {
        self.coding
    }
}

impl Fragmenter {
    pub(super) fn new(config: &RadioConfig) -> Fragmenter {
        let RadioConfig { mtu, fec, .. } = *config;
        let (mtu, unit) = match config.arq.cuts_frames() {
            true => (Mtu::new(Bytes(1)), None),
            false => (mtu, config.fixed_unit()),
        };
        assert!(mtu.is_none() || unit.is_none(), "a fixed unit size excludes an MTU");
        let covers = |covers| fec.is_some_and(|fec| fec.covers == covers);
        let (repeats, requested) = (covers(Covers::Repeats), covers(Covers::Requested));
        let sends_whole = mtu.is_none() && unit.is_none() && fec.is_none();
        Fragmenter { mtu, unit, fec, repeats, requested, sends_whole }
    }

    /// Whether every packet is one unit without a code.
    #[inline]
    pub(super) fn sends_whole(&self) -> bool {
        self.sends_whole
    }

    #[inline]
    pub(super) fn fragment(&self, packet: &Packet) -> Units {
        // Most links do not fragment, and this runs for every packet.
        if self.unit.is_none() && self.fec.is_none() {
            let fragments = Fragments::of(packet.size, self.mtu);
            return Units { fragments, coding: Coding::Uncoded };
        }
        self.fragment_and_code(packet)
    }

    #[inline(never)]
    fn fragment_and_code(&self, packet: &Packet) -> Units {
        let code = self.fec.and_then(|fec| match fec.covers {
            Covers::Marked(dscp) if dscp != packet.dscp => None,
            Covers::Repeats | Covers::Requested => None,
            Covers::Marked(_) | Covers::All => Some(fec.code),
        });
        let coding = match (code, self.unit) {
            (None, _) => Coding::Uncoded,
            (Some(_), Some(_)) => Coding::Within,
            (Some(_), None) => Coding::OnTop,
        };
        let fragments = match self.unit {
            None => Fragments::of(packet.size, self.mtu),
            Some(unit) => {
                let count = u64::from(fec::units(packet.size, unit, code));
                Fragments::of(Bytes(count * unit.get().0), Some(unit))
            }
        };
        Units { fragments, coding }
    }

    /// Coding of the `number`-th transmission of a unit, for an ARQ that asks for a code or does not.
    #[inline]
    pub(super) fn coding_of(&self, units: &Units, number: u32, is_requested: bool) -> Coding {
        let is_coded = (self.repeats && number > 1) || (self.requested && is_requested);
        if is_coded { Coding::OnTop } else { units.coding }
    }
}
