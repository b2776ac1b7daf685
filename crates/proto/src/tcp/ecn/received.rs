//! What an end has received, and reports: the counters of a data receiver (RFC 9768 section 3.2.1).

use super::EcnMode;
use crate::packet::{Ecn, EcnCounters, FieldOrder, Flags, Segment};

/// The counter of marked packets begins here, so that a field that the path clears is noticed.
pub(super) const FIRST_PACKETS: u32 = 5;
/// So do those of bytes with ECT(0) and ECT(1); that of bytes with CE begins at 0.
const FIRST_BYTES: u32 = 1;

/// The number of marked packets since the last acknowledgement at which the next one is due: with data to acknowledge, and without
/// (RFC 9768 section 3.2.2.5.1).
const DUE_WITH_DATA: u32 = 2;
const DUE_WITHOUT: u32 = 3;

/// The feedback that an end gives on the packets it receives.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Received {
    mode: EcnMode,
    /// Classic feedback: whether acknowledgements carry ECE, until the sender responds with CWR.
    echoes: bool,
    /// r.cep: marked packets, with or without data.
    packets: u32,
    /// Those that no segment has reported yet.
    unreported: u32,
    /// r.e0b, r.ceb and r.e1b: bytes of payload.
    ect0: u32,
    ce: u32,
    ect1: u32,
    /// Which of them have ever grown, and whether one has since the last option.
    seen: Seen,
    has_grown: bool,
    /// Whether the last packet was marked.
    was_marked: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    ect0: bool,
    ce: bool,
    ect1: bool,
}

impl Received {
    pub(in crate::tcp) fn new(mode: EcnMode) -> Received {
        Received {
            mode,
            echoes: false,
            packets: FIRST_PACKETS,
            unreported: 0,
            ect0: FIRST_BYTES,
            ce: 0,
            ect1: FIRST_BYTES,
            seen: Seen::default(),
            has_grown: false,
            was_marked: false,
        }
    }

    pub(in crate::tcp) fn mode(&self) -> EcnMode {
        self.mode
    }

    /// Records a packet; returns whether its marks are to be acknowledged at once.
    #[inline]
    pub(in crate::tcp) fn on_packet(&mut self, ecn: Ecn, segment: &Segment) -> bool {
        match self.mode {
            EcnMode::Off => false,
            EcnMode::Classic => {
                // RFC 3168 section 6.1.3: a mark on a packet with CWR restarts the echo.
                self.echoes = ecn == Ecn::Ce || (self.echoes && !segment.flags.has(Flags::CWR));
                false
            }
            EcnMode::Accurate => self.count(ecn, segment.len, segment.seq_len() > 0),
        }
    }

    fn count(&mut self, ecn: Ecn, bytes: u32, occupies: bool) -> bool {
        let is_marked = ecn == Ecn::Ce;
        if is_marked {
            self.packets = self.packets.wrapping_add(1);
            self.unreported += 1;
        }
        if bytes > 0 {
            let (counter, seen) = match ecn {
                Ecn::NotEct => (None, None),
                Ecn::Ect0 => (Some(&mut self.ect0), Some(&mut self.seen.ect0)),
                Ecn::Ect1 => (Some(&mut self.ect1), Some(&mut self.seen.ect1)),
                Ecn::Ce => (Some(&mut self.ce), Some(&mut self.seen.ce)),
            };
            if let (Some(counter), Some(seen)) = (counter, seen) {
                *counter = counter.wrapping_add(bytes);
                (*seen, self.has_grown) = (true, true);
            }
        }
        let was_marked = core::mem::replace(&mut self.was_marked, is_marked);
        let begins = is_marked && !was_marked;
        let due = if occupies { DUE_WITH_DATA } else { DUE_WITHOUT };
        (begins && bytes > 0) || self.unreported >= due
    }

    /// Records a marked SYN-ACK, once however often it is repeated (RFC 9768 section 3.2.2.2).
    pub(in crate::tcp) fn on_marked_syn_ack(&mut self) {
        self.packets = FIRST_PACKETS + 1;
    }

    /// Whether so many marks are unreported that a segment has to report them.
    pub(in crate::tcp) fn is_due(&self) -> bool {
        self.unreported >= DUE_WITHOUT
    }

    /// Reports on an acknowledgement with these `flags`; returns them with the feedback.
    #[inline]
    pub(in crate::tcp) fn report(&mut self, flags: Flags) -> Flags {
        match self.mode {
            EcnMode::Off => flags,
            EcnMode::Classic if self.echoes => flags | Flags::ECE,
            EcnMode::Classic => flags,
            EcnMode::Accurate => {
                self.unreported = 0;
                flags.with_ace(self.packets as u8)
            }
        }
    }

    /// The AccECN option of the next acknowledgement, if a counter has grown since the last one: the fields that have ever grown.
    #[inline]
    pub(in crate::tcp) fn option(&self) -> Option<EcnCounters> {
        (self.mode == EcnMode::Accurate && self.has_grown).then(|| self.counters())
    }

    fn counters(&self) -> EcnCounters {
        let Seen { ect0, ce, ect1 } = self.seen;
        let fields = match (ect0 && ect1, ce) {
            (true, _) => EcnCounters::FIELDS,
            (false, true) => 2,
            (false, false) => 1,
        };
        let (order, values) = if ect0 {
            (FieldOrder::Ect0First, [self.ect0, self.ce, self.ect1])
        } else {
            (FieldOrder::Ect1First, [self.ect1, self.ce, self.ect0])
        };
        EcnCounters::new(order, &values[..fields])
    }

    /// The option of a SYN-ACK, by which the peer learns that the path lets it through (RFC 9768 section 3.2.3.2.1): all fields.
    pub(in crate::tcp) fn first_option(&self) -> Option<EcnCounters> {
        let values = [self.ect1, self.ce, self.ect0];
        (self.mode == EcnMode::Accurate).then(|| EcnCounters::new(FieldOrder::Ect1First, &values))
    }

    /// Called when the option was sent.
    pub(in crate::tcp) fn on_option_sent(&mut self) {
        self.has_grown = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(bytes: u32) -> Segment {
        Segment { len: bytes, flags: Flags::ACK, ..Segment::default() }
    }

    /// The sequence of marks, acknowledgements and options of the kernel's test of its counters: packets of 1000 B with CE, ECT(0),
    /// CE, ECT(1) and CE are reported by the ACE fields 6, 6, 7, 7 and 0, and by these bytes.
    #[test]
    fn counters_grow_and_wrap() {
        let mut received = Received::new(EcnMode::Accurate);
        for (ecn, ace, [ect0, ce, ect1]) in [
            (Ecn::Ce, 6, [None, Some(1000), Some(1)]),
            (Ecn::Ect0, 6, [Some(1001), Some(1000), None]),
            (Ecn::Ce, 7, [Some(1001), Some(2000), None]),
            (Ecn::Ect1, 7, [Some(1001), Some(2000), Some(1001)]),
            (Ecn::Ce, 0, [Some(1001), Some(3000), Some(1001)]),
        ] {
            assert_eq!(received.on_packet(ecn, &data(1000)), ecn == Ecn::Ce, "{ecn:?}");
            assert_eq!(received.report(Flags::ACK).ace(), ace);
            let option = received.option().expect("a counter has grown");
            assert_eq!([option.ect0(), option.ce(), option.ect1()], [ect0, ce, ect1]);
            received.on_option_sent();
            assert_eq!(received.option(), None);
        }
    }

    /// A first mark is acknowledged at once, and then every second one with data, or every third one without (RFC 9768 section
    /// 3.2.2.5.1).
    #[test]
    fn marks_are_acknowledged_early() {
        let mut received = Received::new(EcnMode::Accurate);
        let mut due = |ecn, bytes: u32, answers: bool| {
            let due = received.on_packet(ecn, &data(bytes));
            if answers && due {
                received.report(Flags::ACK);
            }
            due
        };
        let marked =
            |due: &mut dyn FnMut(Ecn, u32, bool) -> bool,
             bytes: u32,
             times: usize|
             -> alloc::vec::Vec<bool> { (0..times).map(|_| due(Ecn::Ce, bytes, true)).collect() };
        assert!(!due(Ecn::Ect1, 1000, true));
        assert_eq!(marked(&mut due, 1000, 5), [true, false, true, false, true]);
        assert!(!due(Ecn::Ect1, 1000, true));
        assert_eq!(marked(&mut due, 0, 6), [false, false, true, false, false, true]);
    }
}
