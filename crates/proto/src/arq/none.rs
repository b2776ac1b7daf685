//! No ARQ: each unit goes on the air once.
//!
//! *What it does.* Sends the units of the packets one after the other and never learns what became
//! of them. The remaining fragments of a packet that has lost one still use the air.
//!
//! *Source.* The "basic TCP" of the EBSN paper (TR-96-014, sections 4.2.1 and 5), and the last hop
//! of the lhack paper (section 5).
//!
//! *Parameters.* None.

use lasthop_base::Time;

use super::{Arq, Attempt, Next, Verdict};

/// Each unit once.
#[derive(Clone, Debug, Default)]
pub struct NoArq {
    packet: u64,
    units: u32,
    sent: u32,
}

impl NoArq {
    /// Nothing to send.
    pub fn new() -> NoArq {
        NoArq::default()
    }
}

impl Arq for NoArq {
    fn begin(&mut self, packet: u64, units: u32) {
        *self = NoArq { packet, units, sent: 0 };
    }

    fn next(&self, _now: Time, backlog: bool) -> Next {
        if self.sent < self.units {
            return Next::Send(Attempt { packet: self.packet, unit: self.sent, number: 1 });
        }
        if backlog { Next::Begin } else { Next::Wait(Time::NEVER) }
    }

    fn ended(&mut self, _now: Time, _attempt: Attempt, _arrived: bool) -> Verdict {
        self.sent += 1;
        Verdict::Unacknowledged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_goes_once_whatever_becomes_of_it() {
        let mut arq = NoArq::new();
        assert_eq!(arq.next(Time::ZERO, false), Next::Wait(Time::NEVER));
        assert_eq!(arq.next(Time::ZERO, true), Next::Begin);
        for packet in 0..2 {
            arq.begin(packet, 3);
            for unit in 0..3 {
                let attempt = Attempt { packet, unit, number: 1 };
                assert_eq!(arq.next(Time::ZERO, true), Next::Send(attempt));
                assert_eq!(arq.ended(Time::ZERO, attempt, unit == 1), Verdict::Unacknowledged);
            }
            assert_eq!(arq.next(Time::ZERO, true), Next::Begin);
        }
    }
}
