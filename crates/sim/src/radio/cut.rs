//! How packets become units on the air.

use lasthop_base::Bytes;
use lasthop_proto::Packet;
use lasthop_proto::fec::{self, BlockCode, Covers};
use lasthop_proto::frag::{Fragments, Mtu};

use super::RadioConfig;

/// A code, and what it protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fec {
    /// The code.
    pub code: BlockCode,
    /// Which units are coded.
    pub covers: Covers,
}

/// How the bits of a unit are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Not at all.
    Plain,
    /// The unit is full of codewords: of its packet it holds less.
    Within,
    /// The check bits come on top. Units of one size become several of it.
    OnTop,
}

/// Makes units of packets.
#[derive(Clone, Copy)]
pub(super) struct Cutter {
    mtu: Option<Mtu>,
    /// All units have this size.
    unit: Option<Mtu>,
    fec: Option<Fec>,
}

/// The units of a packet.
#[derive(Clone, Copy)]
pub(super) struct Units {
    fragments: Fragments,
    /// How many of which size, if all are alike.
    alike: Option<(u32, Bytes)>,
    coding: Coding,
}

impl Units {
    pub(super) fn count(&self) -> u32 {
        self.alike.map_or_else(|| self.fragments.count(), |(count, _)| count)
    }

    pub(super) fn size(&self, index: u32) -> Bytes {
        self.alike.map_or_else(|| self.fragments.size(index), |(_, size)| size)
    }

    /// How they are coded when they are sent for the first time.
    pub(super) fn coding(&self) -> Coding {
        self.coding
    }
}

impl Cutter {
    pub(super) fn new(config: &RadioConfig) -> Cutter {
        let RadioConfig { mtu, unit, fec, .. } = *config;
        assert!(mtu.is_none() || unit.is_none(), "units have one size, or a largest one");
        Cutter { mtu, unit, fec }
    }

    pub(super) fn cut(&self, packet: &Packet) -> Units {
        let fragments = Fragments::of(packet.size, self.mtu);
        let covered = |fec: &Fec| [Covers::Marked(packet.dscp), Covers::All].contains(&fec.covers);
        let code = self.fec.filter(covered).map(|fec| fec.code);
        let coding = match (code, self.unit) {
            (None, _) => Coding::Plain,
            (Some(_), Some(_)) => Coding::Within,
            (Some(_), None) => Coding::OnTop,
        };
        let alike = self.unit.map(|unit| (fec::units(packet.size, unit, code), unit.get()));
        Units { fragments, alike, coding }
    }

    /// How a unit is coded that is sent for the `number`-th time.
    pub(super) fn coding_of(&self, units: &Units, number: u32) -> Coding {
        let repeats = self.fec.is_some_and(|fec| fec.covers == Covers::Repeats);
        if repeats && number > 1 { Coding::OnTop } else { units.coding }
    }
}
