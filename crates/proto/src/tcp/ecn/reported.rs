//! What the peer reports: the counters of a data sender (RFC 9768 section 3.2.2, appendix A.2).

use super::received::FIRST_PACKETS;
use crate::tcp::segment::Segment;

/// The ACE field counts modulo this number.
const CYCLE: u32 = 8;
/// Acknowledgements that cover more packets than this on average are thinned on the path, or the receiver merges packets: their
/// counter is then believed not to have wrapped, as in Linux.
const THINNED: f64 = 4.0;
/// Weight of the latest acknowledgement in that average.
const WEIGHT: f64 = 1.0 / 64.0;

/// The delivery that an acknowledgement reports: packets, and the bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct Delivered {
    pub(in crate::tcp) packets: u32,
    pub(in crate::tcp) bytes: u32,
}

/// The marks that the peer has reported so far.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Reported {
    /// s.cep: marked packets.
    packets: u32,
    /// s.ceb: bytes in them, modulo 2²⁴.
    bytes: u32,
    /// Packets per acknowledgement, on average.
    per_ack: Option<f64>,
    /// Whether options are ignored, because the path has cleared the first one (RFC 9768 section 3.2.3.2.4).
    ignores_options: bool,
    /// The newest timestamp.
    newest: u32,
}

impl Reported {
    pub(in crate::tcp) fn new() -> Reported {
        Reported { packets: FIRST_PACKETS, bytes: 0, per_ack: None, ignores_options: false, newest: 0 }
    }

    /// Processes the SYN-ACK: counters of ECT that begin at zero were cleared on the path.
    pub(in crate::tcp) fn on_syn_ack(&mut self, segment: &Segment) {
        let option = segment.sack.ecn_counters();
        self.ignores_options =
            option.is_some_and(|option| option.ect0() == Some(0) || option.ect1() == Some(0));
    }

    /// The packets that were marked, according to an acknowledgement; zero if a later one has superseded it, or if it reports
    /// nothing new and so may be a copy.
    pub(in crate::tcp) fn on_ack(&mut self, segment: &Segment, delivered: Delivered) -> u32 {
        let stamp = segment.timestamps.map_or(self.newest, |stamps| stamps.value);
        let lead = stamp.wrapping_sub(self.newest) as i32;
        if lead < 0 || (lead == 0 && delivered.packets == 0) {
            return 0;
        }
        self.newest = stamp;
        if delivered.packets > 0 {
            let now = f64::from(delivered.packets);
            self.per_ack = Some(self.per_ack.map_or(now, |before| before + WEIGHT * (now - before)));
        }
        let option = segment.sack.ecn_counters().filter(|option| {
            let has_fields = !option.fields().is_empty();
            has_fields && !self.ignores_options
        });
        let marked_bytes = option.map(|option| {
            // A counter that has not changed may be left out.
            let counter = option.ce().unwrap_or(self.bytes);
            counter.wrapping_sub(core::mem::replace(&mut self.bytes, counter)) & 0xff_ffff
        });
        let least = u32::from(segment.flags.ace()).wrapping_sub(self.packets) % CYCLE;
        let is_thinned = self.per_ack.is_some_and(|packets| packets > THINNED);
        let marked = match marked_bytes {
            Some(bytes) => nearest(least, delivered, bytes),
            None if is_thinned => least,
            None => greatest(least, delivered.packets),
        };
        self.packets = self.packets.wrapping_add(marked);
        marked
    }
}

/// The greatest number of marked packets among those delivered that agrees with the ACE field, whose counter has grown by `least`
/// or by whole cycles more; `least` if fewer packets were delivered, because other packets are counted, too.
fn greatest(least: u32, packets: u32) -> u32 {
    least + packets.saturating_sub(least) / CYCLE * CYCLE
}

/// The number that agrees with the ACE field and is nearest to that of the `marked` bytes.
fn nearest(least: u32, delivered: Delivered, marked: u32) -> u32 {
    let most = greatest(least, delivered.packets);
    if most == least {
        return least;
    }
    let packets = u64::from(marked) * u64::from(delivered.packets) / u64::from(delivered.bytes.max(1));
    let beyond = packets.saturating_sub(u64::from(least)) as u32;
    (least + (beyond + CYCLE / 2) / CYCLE * CYCLE).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::tcp::ecn::{EcnMode, Received};
    use crate::tcp::segment::{EcnCounters, FieldOrder, Flags};

    fn packets(packets: u32) -> Delivered {
        Delivered { packets, bytes: 1460 * packets }
    }

    fn ack(ace: u8, marked_bytes: Option<u32>) -> Segment {
        let mut segment = Segment { flags: Flags::ACK.with_ace(ace), ..Segment::default() };
        let option = |bytes| EcnCounters::new(FieldOrder::Ect0First, &[1, bytes]);
        segment.sack.set_ecn_counters(marked_bytes.map(option));
        segment
    }

    /// The cases of the kernel's tests. An ACK of ten packets, the first of the connection, is taken for one of a receiver that
    /// merges packets; after one that acknowledged a single packet, it stands for the most that its ACE field allows. The option
    /// decides either way.
    #[test]
    fn large_acks_are_taken_as_in_linux() {
        for (ace, marked) in [(5, 0), (6, 1), (4, 7)] {
            assert_eq!(Reported::new().on_ack(&ack(ace, None), packets(10)), marked, "ACE {ace}");
        }
        let mut reported = Reported::new();
        assert_eq!(reported.on_ack(&ack(5, None), packets(1)), 0);
        let mut with_option = reported;
        assert_eq!(reported.on_ack(&ack(5, None), packets(9)), 8);
        assert_eq!(with_option.on_ack(&ack(5, Some(0)), packets(9)), 0);
    }

    /// An acknowledgement without progress may be a copy, unless its timestamp is new.
    #[test]
    fn only_progress_counts() {
        let mut reported = Reported::new();
        assert_eq!(reported.on_ack(&ack(6, Some(1000)), Delivered::default()), 0);
        let timestamps = Some(crate::tcp::Timestamps { value: 3, echo: 0 });
        let newer = Segment { timestamps, ..ack(6, Some(1000)) };
        assert_eq!(reported.on_ack(&newer, Delivered::default()), 1);
        assert_eq!(reported.on_ack(&newer, Delivered::default()), 0);
    }

    /// An option that the path has cleared is ignored.
    #[test]
    fn a_cleared_option_is_ignored() {
        let mut reported = Reported::new();
        let mut syn_ack = ack(2, None);
        syn_ack.sack.set_ecn_counters(Some(EcnCounters::new(FieldOrder::Ect1First, &[0, 0, 0])));
        reported.on_syn_ack(&syn_ack);
        assert_eq!(reported.on_ack(&ack(5, Some(0)), packets(1)), 0);
        assert_eq!(reported.on_ack(&ack(5, Some(0)), packets(9)), 8);
    }

    /// With options, every mark is counted once, however many acknowledgements are lost; without them, as long as fewer than eight
    /// packets are acknowledged at once.
    #[test]
    fn every_mark_is_counted_once() {
        let mut random = lasthop_base::Streams::new(1, 0).stream("marks");
        for (has_options, losses) in [(true, 0.9), (false, 0.3)] {
            for share in [0.01, 0.3, 0.9] {
                let (mut received, mut reported) = (Received::new(EcnMode::Accurate), Reported::new());
                let (mut marked, mut counted, mut covered) = (0, 0, 0);
                for _ in 0..20_000 {
                    let is_marked = random.bernoulli(share);
                    let segment = Segment { len: 1460, flags: Flags::ACK, ..Segment::default() };
                    received.on_packet(if is_marked { Ecn::Ce } else { Ecn::Ect1 }, &segment);
                    (marked, covered) = (marked + u32::from(is_marked), covered + 1);
                    let mut report = ack(0, None);
                    report.flags = received.report(Flags::ACK);
                    report.sack.set_ecn_counters(received.option().filter(|_| has_options));
                    let arrives = !random.bernoulli(losses) || (!has_options && covered == 7);
                    if arrives {
                        counted += reported.on_ack(&report, packets(covered));
                        covered = 0;
                        assert_eq!(counted, marked);
                    }
                }
                assert!(marked > 100);
            }
        }
    }
}
