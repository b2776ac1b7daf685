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
    /// Whether those that are sent again are coded.
    repeats: bool,
}

/// The units of a packet.
#[derive(Clone, Copy)]
pub(super) struct Units {
    /// Of the packet, filled up to whole units if these have one size.
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

    /// How they are coded when they are sent for the first time.
    pub(super) fn coding(&self) -> Coding {
        self.coding
    }
}

impl Cutter {
    pub(super) fn new(config: &RadioConfig) -> Cutter {
        let RadioConfig { mtu, unit, fec, .. } = *config;
        assert!(mtu.is_none() || unit.is_none(), "units have one size, or a largest one");
        Cutter { mtu, unit, fec, repeats: fec.is_some_and(|fec| fec.covers == Covers::Repeats) }
    }

    #[inline]
    pub(super) fn cut(&self, packet: &Packet) -> Units {
        // Most links are like this, and cut every packet.
        if self.unit.is_none() && self.fec.is_none() {
            let fragments = Fragments::of(packet.size, self.mtu);
            return Units { fragments, coding: Coding::Plain };
        }
        self.cut_and_code(packet)
    }

    #[inline(never)]
    fn cut_and_code(&self, packet: &Packet) -> Units {
        let code = self.fec.and_then(|fec| match fec.covers {
            Covers::Marked(dscp) if dscp != packet.dscp => None,
            Covers::Repeats => None,
            Covers::Marked(_) | Covers::All => Some(fec.code),
        });
        let coding = match (code, self.unit) {
            (None, _) => Coding::Plain,
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

    /// How a unit is coded that is sent for the `number`-th time.
    #[inline]
    pub(super) fn coding_of(&self, units: &Units, number: u32) -> Coding {
        if self.repeats && number > 1 { Coding::OnTop } else { units.coding }
    }
}
