//! The medium of wired links: nothing is lost.

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_link::pace::Pace;
use lasthop_proto::Packet;

use super::medium::{Medium, Passage};

/// A wire, on which every packet arrives.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    /// The fixed rate; `None` if the pace alone determines the times.
    rate: Option<BitRate>,
    /// Transmission time of the most recent size. Packets have few sizes, and a division costs as much as the
    /// rest of the link's work.
    last: (Bytes, Duration),
}

impl Wire {
    pub(super) fn new(rate: Option<BitRate>) -> Wire {
        Wire { rate, last: (Bytes::ZERO, Duration::ZERO) }
    }

    #[inline]
    fn time_for(&mut self, size: Bytes) -> Duration {
        if self.last.0 != size {
            self.note_size(size);
        }
        self.last.1
    }

    // Not inlined, so that the usual packet does not pay for the multiplications.
    #[inline(never)]
    fn note_size(&mut self, size: Bytes) {
        self.last = (size, self.rate.map_or(Duration::ZERO, |rate| rate.time_for(size)));
    }
}

impl Medium for Wire {
    const IS_RADIO: bool = false;

    #[inline(always)]
    fn send<P: Pace>(&mut self, pace: &mut P, packet: &Packet, start: Time) -> Passage {
        let end = pace.transmit(start, packet.size.bits(), self.time_for(packet.size)).end;
        Passage { end, arrival: pace.arrival(end), is_lost: false }
    }
}
