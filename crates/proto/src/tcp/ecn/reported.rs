//! What the peer reports: the counters of a data sender (RFC 9768 section 3.2.2, appendix A.2).

use core::cmp::Ordering;

use lasthop_base::{Duration, Time};

use super::received::FIRST_PACKETS;
use crate::packet::Segment;

/// The ACE field counts modulo this number.
const CYCLE: u32 = 8;
/// Acknowledgements that cover more packets than this on average are thinned on the path, or the receiver merges packets: their
/// counter is then believed not to have wrapped, as in Linux.
const THINNED: f64 = 4.0;
/// Weight of the latest acknowledgement in that average.
const WEIGHT: f64 = 1.0 / 64.0;
/// Half the cycle of timestamps in microseconds: no older one tells which segment is newer.
const HALF_CYCLE: Duration = Duration::from_micros(1 << 31);

/// The delivery that an acknowledgement reports: packets, and the bytes in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) struct Delivered {
    pub(in crate::tcp) packets: u32,
    pub(in crate::tcp) bytes: u32,
}

/// Packets and bytes that acknowledgements without an option reported as delivered, and the packets that were counted as marked among
/// them: the next option covers them, too.
#[derive(Clone, Copy, Debug, Default)]
struct Uncovered {
    packets: u64,
    bytes: u64,
    marked: u64,
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
    /// Whether the path clears the ACE field, so that nothing reported counts.
    is_cleared: bool,
    /// Since the last option.
    uncovered: Uncovered,
    /// The newest timestamp, and when it arrived.
    newest: Option<(u32, Time)>,
}

impl Reported {
    pub(in crate::tcp) fn new() -> Reported {
        Reported {
            packets: FIRST_PACKETS,
            bytes: 0,
            per_ack: None,
            ignores_options: false,
            is_cleared: false,
            uncovered: Uncovered::default(),
            newest: None,
        }
    }

    /// Ignores all reports from now on.
    pub(in crate::tcp) fn on_cleared_field(&mut self) {
        self.is_cleared = true;
    }

    /// Processes the SYN-ACK: counters of ECT that begin at zero were cleared on the path.
    pub(in crate::tcp) fn on_syn_ack(&mut self, segment: &Segment) {
        let option = segment.sack.ecn_counters();
        self.ignores_options =
            option.is_some_and(|option| option.ect0() == Some(0) || option.ect1() == Some(0));
    }

    /// The packets that were marked, according to an acknowledgement; zero if a later one has superseded it, or if it reports
    /// nothing new and so may be a copy.
    pub(in crate::tcp) fn on_ack(&mut self, now: Time, segment: &Segment, delivered: Delivered) -> u32 {
        let is_news = match self.order(now, segment) {
            Ordering::Less => false,
            Ordering::Equal => delivered.packets > 0,
            Ordering::Greater => true,
        };
        if self.is_cleared || !is_news {
            return 0;
        }
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
            Some(bytes) => nearest(least, delivered, bytes, self.uncovered),
            None if is_thinned => least,
            None => greatest(least, delivered.packets),
        };
        self.uncovered = match option {
            Some(_) => Uncovered::default(),
            None => self.uncovered.with(delivered, marked),
        };
        self.packets = self.packets.wrapping_add(marked);
        marked
    }

    /// How a segment that arrives `now` follows the newest one, by its timestamp; equal without one.
    fn order(&mut self, now: Time, segment: &Segment) -> Ordering {
        let Some(stamps) = segment.timestamps else { return Ordering::Equal };
        let newest = self.newest.filter(|(_, at)| now.since(*at) < HALF_CYCLE);
        let order = newest
            .map_or(Ordering::Greater, |(newest, _)| (stamps.value.wrapping_sub(newest) as i32).cmp(&0));
        if order != Ordering::Less {
            self.newest = Some((stamps.value, now));
        }
        order
    }
}

impl Uncovered {
    fn with(self, delivered: Delivered, marked: u32) -> Uncovered {
        Uncovered {
            packets: self.packets + u64::from(delivered.packets),
            bytes: self.bytes + u64::from(delivered.bytes),
            marked: self.marked + u64::from(marked),
        }
    }
}

/// The greatest number of marked packets among those delivered that agrees with the ACE field, whose counter has grown by `least`
/// or by whole cycles more; `least` if fewer packets were delivered, because other packets are counted, too.
fn greatest(least: u32, packets: u32) -> u32 {
    least + packets.saturating_sub(least) / CYCLE * CYCLE
}

/// The number that agrees with the ACE field and is nearest to that of the `marked` bytes, less those that were counted before.
fn nearest(least: u32, delivered: Delivered, marked: u32, before: Uncovered) -> u32 {
    let most = greatest(least, delivered.packets);
    if most == least {
        return least;
    }
    let all = before.with(delivered, 0);
    let packets = u64::from(marked) * all.packets / all.bytes.max(1);
    let beyond = packets.saturating_sub(before.marked + u64::from(least)) as u32;
    (least + (beyond + CYCLE / 2) / CYCLE * CYCLE).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, EcnCounters, FieldOrder, Flags};
    use crate::tcp::ecn::{EcnMode, Received};

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
            assert_eq!(Reported::new().on_ack(Time::ZERO, &ack(ace, None), packets(10)), marked, "ACE {ace}");
        }
        let mut reported = Reported::new();
        assert_eq!(reported.on_ack(Time::ZERO, &ack(5, None), packets(1)), 0);
        let mut with_option = reported;
        assert_eq!(reported.on_ack(Time::ZERO, &ack(5, None), packets(9)), 8);
        assert_eq!(with_option.on_ack(Time::ZERO, &ack(5, Some(0)), packets(9)), 0);
    }

    /// An acknowledgement without progress may be a copy, unless its timestamp is new.
    #[test]
    fn only_progress_counts() {
        let mut reported = Reported::new();
        assert_eq!(reported.on_ack(Time::ZERO, &ack(6, Some(1000)), Delivered::default()), 0);
        let timestamps = Some(crate::tcp::Timestamps { value: 3, echo: 0 });
        let newer = Segment { timestamps, ..ack(6, Some(1000)) };
        assert_eq!(reported.on_ack(Time::ZERO, &newer, Delivered::default()), 1);
        assert_eq!(reported.on_ack(Time::ZERO, &newer, Delivered::default()), 0);
    }

    /// Whatever the peer's clock shows at first, and after half a cycle without a segment.
    #[test]
    fn timestamps_may_begin_anywhere() {
        let mut reported = Reported::new();
        // An acknowledgement overtaken by another one does not count. The last one comes after 2,250 s.
        for (now, sent, ace, marked) in
            [(2200, 2200, 6, 1), (2202, 2202, 7, 1), (2203, 2201, 0, 0), (4452, 4452, 0, 1)]
        {
            let timestamps = Some(crate::tcp::Timestamps { value: (sent * 1_000_000_u64) as u32, echo: 0 });
            let segment = Segment { timestamps, ..ack(ace, None) };
            let now = Time::ZERO + Duration::from_secs(now);
            assert_eq!(reported.on_ack(now, &segment, packets(1)), marked, "{sent} s");
        }
    }

    /// An option covers all since the last one, among them four packets that an acknowledgement without one has counted.
    #[test]
    fn an_option_repeats_no_mark() {
        let mut reported = Reported::new();
        assert_eq!(reported.on_ack(Time::ZERO, &ack(5, Some(0)), packets(1)), 0);
        assert_eq!(reported.on_ack(Time::ZERO, &ack(1, None), packets(4)), 4);
        assert_eq!(reported.on_ack(Time::ZERO, &ack(1, Some(4 * 1460)), packets(8)), 0);
        assert_eq!(reported.on_ack(Time::ZERO, &ack(1, Some(12 * 1460)), packets(8)), 8);
    }

    /// An option that the path has cleared is ignored.
    #[test]
    fn a_cleared_option_is_ignored() {
        let mut reported = Reported::new();
        let mut syn_ack = ack(2, None);
        syn_ack.sack.set_ecn_counters(Some(EcnCounters::new(FieldOrder::Ect1First, &[0, 0, 0])));
        reported.on_syn_ack(&syn_ack);
        assert_eq!(reported.on_ack(Time::ZERO, &ack(5, Some(0)), packets(1)), 0);
        assert_eq!(reported.on_ack(Time::ZERO, &ack(5, Some(0)), packets(9)), 8);
    }

    /// With options, every mark is counted once, however many acknowledgements are lost; without them, as long as fewer than eight
    /// packets are acknowledged at once. Acknowledgements of both kinds may follow each other.
    #[test]
    fn every_mark_is_counted_once() {
        let mut random = lasthop_base::Streams::new(1, 0).stream("marks");
        for (options, losses) in [(1.0, 0.9), (0.0, 0.3), (0.5, 0.5)] {
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
                    let has_option = random.bernoulli(options);
                    report.sack.set_ecn_counters(received.option().filter(|_| has_option));
                    let arrives = !random.bernoulli(losses) || (options < 1.0 && covered == 7);
                    if arrives {
                        counted += reported.on_ack(Time::ZERO, &report, packets(covered));
                        covered = 0;
                        assert_eq!(counted, marked);
                    }
                }
                assert!(marked > 100);
            }
        }
    }
}
