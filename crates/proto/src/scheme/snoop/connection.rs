//! The agent's state of one connection: `snoop_data` and `snoop_ack` of MobiCom 1995, and the two timers.
//!
//! **Cache.** Unacknowledged segments in sequence order; none contains another. At the high-water mark, only
//! segments out of sequence are accepted, and the last ones in sequence are evicted for them: earlier ones are
//! requested first. After resegmentation, the latest segments are cached.
//! **Losses.** Only the oldest unacknowledged segment can be suspected, if it is cached and the source has not
//! retransmitted it. Every later transmission may cause a duplicate ACK. When the segment is retransmitted, the
//! outstanding duplicates are expected and suppressed. Any further duplicate is caused by a transmission after
//! the retransmission, which was then lost as well.
//! **Strays.** A transmission of an acknowledged segment may still be under way: of one that the source has repeated
//! if the acknowledgement comes sooner than any round trip, or is caused by the arrival of an earlier transmission; of a
//! copied one if it comes sooner than any copy can have arrived; and perhaps of one that a timeout has copied. Its arrival
//! causes a duplicate that requests the next segment, which may still be queued, and shows no loss. So many duplicates are
//! suppressed, unless they report later segments, until a segment that was sent later is acknowledged. Whatever was under
//! way has arrived or is lost when both ends have been silent for the persist time.
//! **Reordering.** Segments from another base station may come after later ones from the source. Duplicates that these
//! cause show no loss.
//! **Reports.** If the ACKs report later segments that have arrived, those leave the cache, and every segment with an
//! earlier last transmission is lost. A report of a segment with copies proves nothing about their order.
//! **Duplicates.** As in RFC 5681 section 2: the same acknowledgement number and window again, no data, no SYN
//! or FIN, and data outstanding, which here means cached segments. With a report of later segments, the window may
//! change (RFC 6675 section 2): a receiver such as Linux's opens it further with every segment that arrives, in order
//! or not, until its buffer has the full size. The first acknowledgement seen counts as a duplicate if it
//! acknowledges none of these. A receiver with a closed window discards data, so the segment that it requests then
//! was not lost. With timestamps, a duplicate with blocks must report data that the ACK before it did not (RFC 6675
//! section 2). Otherwise no later segment has arrived: the mobile host answers a segment that it has already, or a copy that
//! it rejects for its old timestamp (RFC 7323 section 5). Such a duplicate is suppressed, and shows no loss.

use alloc::collections::VecDeque;

use lasthop_base::{Bytes, Duration, Time};

use super::Snoop;
use crate::packet::{Dscp, Packet};
use crate::scheme::connections::ConnectionState;
use crate::tcp::{Flags, SackBlock, SackBlocks, Segment, SeqNum};

/// The action on a packet: forward or suppress it, and packets to send after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Whether the packet is forwarded; otherwise it is suppressed.
    pub(super) forward: bool,
    /// A cached segment, retransmitted.
    pub(super) to_mobile: Option<Packet>,
    /// An acknowledgement on behalf of the mobile host.
    pub(super) to_source: Option<Packet>,
}

impl Answer {
    pub(super) const FORWARD: Answer = Answer { forward: true, to_mobile: None, to_source: None };
}

/// The state of the base station's link when a segment arrives from the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkFacts {
    /// Whether the mobile host is at another base station.
    pub(super) is_away: bool,
    /// Whether another base station, and not the source, has sent the segment.
    pub(super) is_forwarded: bool,
    /// The shortest time in which the segment arrives.
    pub(super) latency: Duration,
}

/// Counters of the agent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Segments in sequence that were not cached, above the high-water mark.
    pub(super) uncached: u64,
    /// Segments out of sequence: retransmitted by the source, or reordered in the network.
    pub(super) sender_retransmissions: u64,
    /// Local retransmissions, those after a timeout, and those after silence.
    pub(super) copies: u64,
    pub(super) timeouts: u64,
    pub(super) persists: u64,
    pub(super) suppressed_dupacks: u64,
    pub(super) forwarded_dupacks: u64,
    /// Suppressed acknowledgements below the last one.
    pub(super) spurious_acks: u64,
    /// Segments below the last acknowledgement, answered by the agent.
    pub(super) answered: u64,
    /// Segments sent to the next base station of the mobile host.
    pub(super) transferred: u64,
}

/// State of a connection.
#[derive(Debug)]
pub(super) struct SnoopState {
    /// Cached segments; starts and ends both ascend.
    segments: VecDeque<CachedSegment>,
    /// End of the highest data seen.
    last_seen: SeqNum,
    /// The highest acknowledgement seen.
    acked: Option<Acked>,
    /// End of the FIN, if it was seen.
    end: Option<SeqNum>,
    /// Whether the mobile host sends data, too.
    two_way: bool,
    /// Number of transmissions of data towards the mobile host, copies included.
    transmissions: u64,
    /// Number of duplicates that transmissions before the oldest segment's last copy may still cause.
    expected: u64,
    /// Number of duplicates that transmissions after the last one of the oldest segment have caused.
    unexpected: u64,
    /// Number of duplicates that transmissions of acknowledged segments may still cause, and the number of the last of
    /// these transmissions.
    strays: u64,
    last_stray: u64,
    /// Number of segments above the oldest that have arrived.
    beyond: u64,
    /// Below this number, segments may have been transmitted before earlier ones, which another base station sent.
    reordered: Option<SeqNum>,
    /// Number of the latest transmission that was reported, and the end of the highest segment reported.
    reported: Option<(u64, SeqNum)>,
    rtt: RttEstimate,
    /// When the oldest segment is retransmitted again after a retransmission that duplicates caused.
    timeout_at: Time,
    /// When the silence began, or a retransmission last interrupted it.
    quiet_since: Time,
}

/// The highest acknowledgement seen.
#[derive(Clone, Copy, Debug)]
struct Acked {
    ack: SeqNum,
    /// The window in the latest segment with this number.
    wnd: u32,
    /// The latest packet with this number, if it has no data.
    packet: Option<Packet>,
    /// The blocks of the latest segment with this number.
    sack: SackBlocks,
}

impl Acked {
    /// Whether `segment` reports data that this acknowledgement does not. A block that acknowledged data or the next block
    /// cover reports a duplicate (RFC 2883 section 4).
    fn lacks_reports_of(&self, segment: &Segment) -> bool {
        let covers =
            |outer: &SackBlock, inner: &SackBlock| outer.start <= inner.start && inner.end <= outer.end;
        segment.sack.iter().any(|block| {
            segment.ack < block.start && !self.sack.iter().any(|reported| covers(reported, block))
        })
    }
}

/// A segment with its transmission state.
#[derive(Debug)]
struct CachedSegment {
    packet: Packet,
    /// From `start` (inclusive) to `end` (exclusive), with the FIN.
    start: SeqNum,
    end: SeqNum,
    /// Number of its last transmission.
    number: u64,
    /// Whether the source has retransmitted it, or sent it late.
    from_source_again: bool,
    /// Number of local retransmissions since the source last sent it, and the time of the last one.
    copies: u32,
    last_copy: Option<Time>,
    /// When the source last sent it, and whether it had before.
    sent: Time,
    repeated: bool,
    /// Number of local retransmissions after a timeout, which may be needless.
    doubtful: u64,
    /// The shortest time in which it arrives.
    latency: Duration,
}

/// The round-trip time over the wireless link, measured once a window.
#[derive(Debug, Default)]
struct RttEstimate {
    smoothed: Option<Duration>,
    smallest: Option<Duration>,
    /// End of the timed segment, and when it was forwarded. Retransmissions cancel the sample (Karn).
    timed: Option<(SeqNum, Time)>,
}

impl RttEstimate {
    fn on_ack(&mut self, now: Time, ack: SeqNum) {
        let Some((_, since)) = self.timed.take_if(|(end, _)| *end <= ack) else { return };
        let sample = now.since(since);
        let smoothed = self.smoothed.map_or(sample, |old| weighted(old, sample));
        self.smoothed = Some(smoothed);
        self.smallest = Some(self.smallest.map_or(sample, |smallest| smallest.min(sample)));
    }
}

/// Whether the window of an acknowledgement without data, with the last number again, lets it be a duplicate; `last` is
/// the window before.
fn is_duplicate(last: u32, segment: &Segment) -> bool {
    let is_closed = last == 0 || segment.wnd == 0;
    segment.wnd == last || (!is_closed && segment.sack.iter().any(|block| segment.ack < block.start))
}

/// Smoothing with a gain of a quarter.
fn weighted(old: Duration, sample: Duration) -> Duration {
    Duration::from_nanos((3 * old.as_nanos() + sample.as_nanos()) / 4)
}

/// Why a segment is retransmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Duplicates,
    Timeout,
    Silence,
}

impl ConnectionState for SnoopState {
    type Read = Segment;

    fn new(now: Time, segment: &Segment) -> SnoopState {
        SnoopState {
            segments: VecDeque::new(),
            last_seen: segment.seq,
            acked: None,
            end: None,
            two_way: false,
            transmissions: 0,
            expected: 0,
            unexpected: 0,
            strays: 0,
            last_stray: 0,
            beyond: 0,
            reordered: None,
            reported: None,
            rtt: RttEstimate::default(),
            timeout_at: Time::NEVER,
            quiet_since: now,
        }
    }

    fn is_outdated(&self, segment: &Segment) -> bool {
        let oldest = self.segments.front().map(|cached| cached.start);
        let mut known = oldest.into_iter().chain(self.acked.map(|acked| acked.ack)).chain([self.last_seen]);
        known.any(|seq| seq.is_far_from(segment.seq))
    }

    fn cached(&self) -> usize {
        self.segments.len()
    }
}

impl SnoopState {
    /// Whether an acknowledgement contradicts the state: it acknowledges data that have not passed.
    pub(super) fn is_contradicted(&self, segment: &Segment) -> bool {
        segment.ack > self.last_seen || self.last_seen.is_far_from(segment.ack)
    }

    /// The packets of the state: the cached segments, and the latest acknowledgement.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Packet> {
        let ack = self.acked.as_ref().and_then(|acked| acked.packet.as_ref());
        self.segments.iter().map(|cached| &cached.packet).chain(ack)
    }

    /// The cached segments, in sequence.
    pub(super) fn segments(&self) -> impl Iterator<Item = &Packet> {
        self.segments.iter().map(|cached| &cached.packet)
    }

    /// Whether everything is acknowledged, including the FIN.
    pub(super) fn has_ended(&self) -> bool {
        self.acked.zip(self.end).is_some_and(|(acked, end)| acked.ack >= end)
    }

    /// `snoop_data`: a data segment or FIN from the source, for a mobile host that may be elsewhere.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &Packet,
        segment: &Segment,
        link: LinkFacts,
        scheme: &Snoop,
        counters: &mut Counters,
    ) -> Answer {
        self.quiet_since = now;
        let (start, end) = (segment.seq, segment.seq + segment.seq_len());
        if segment.flags.has(Flags::FIN) {
            self.end = Some(end);
        }
        if self.acked.is_some_and(|acked| end <= acked.ack) {
            return match link {
                LinkFacts { is_away: true, .. } => Answer::FORWARD,
                LinkFacts { is_forwarded: true, .. } => Answer { forward: false, ..Answer::FORWARD },
                _ => self.answer(counters),
            };
        }
        self.transmissions += 1;
        let is_late = start < self.last_seen;
        let new = CachedSegment {
            packet: *packet,
            start,
            end,
            number: self.transmissions,
            from_source_again: is_late && !link.is_forwarded,
            copies: 0,
            last_copy: None,
            sent: now,
            repeated: link.is_forwarded,
            doubtful: 0,
            latency: link.latency,
        };
        if is_late {
            counters.sender_retransmissions += u64::from(new.from_source_again);
            self.rtt.timed = None;
            self.cache_again(new);
            self.segments.truncate(scheme.cache as usize);
            if link.is_forwarded {
                self.reordered = Some(self.last_seen);
                let earlier = self.transmitted_earlier();
                (self.expected, self.unexpected) = (earlier.saturating_sub(self.beyond), 0);
            }
        } else if self.segments.len() < scheme.cache as usize {
            self.rtt.timed.get_or_insert((end, now));
            self.segments.push_back(new);
        } else if link.is_away {
            // The segments that the mobile host still lacks are among the latest.
            self.segments.pop_front();
            self.segments.push_back(new);
        } else {
            counters.uncached += 1;
        }
        self.last_seen = self.last_seen.max(end);
        Answer::FORWARD
    }

    /// Answers a segment that the mobile host has acknowledged, since its acknowledgement was lost. The segment
    /// is forwarded instead if it may probe a closed window, or carry an acknowledgement of the mobile host's
    /// data.
    fn answer(&self, counters: &mut Counters) -> Answer {
        let open = self.acked.filter(|acked| acked.wnd > 0 && !self.two_way);
        let Some(ack) = open.and_then(|acked| acked.packet) else { return Answer::FORWARD };
        counters.answered += 1;
        Answer { forward: false, to_mobile: None, to_source: Some(ack) }
    }

    /// Caches a segment out of sequence. A cached segment that contains it counts as retransmitted by the source.
    fn cache_again(&mut self, new: CachedSegment) {
        let after = self.segments.partition_point(|cached| cached.start <= new.start);
        let index = match after.checked_sub(1).filter(|&index| self.segments[index].end >= new.end) {
            Some(index) => {
                let cached = &mut self.segments[index];
                let same = (cached.start, cached.end) == (new.start, new.end);
                let packet = if same { new.packet } else { cached.packet };
                *cached =
                    CachedSegment { packet, start: cached.start, end: cached.end, repeated: true, ..new };
                index
            }
            None => {
                let first = self.segments.partition_point(|cached| cached.start < new.start);
                let last = self.segments.partition_point(|cached| cached.end <= new.end);
                self.segments.drain(first..last.max(first));
                self.segments.insert(first, new);
                first
            }
        };
        if index == 0 {
            self.timeout_at = Time::NEVER;
        }
    }

    /// `snoop_ack`: a segment with an acknowledgement from the mobile host that
    /// [does not contradict](SnoopState::is_contradicted) the state.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        packet: &Packet,
        segment: &Segment,
        scheme: &Snoop,
        counters: &mut Counters,
    ) -> Answer {
        self.quiet_since = now;
        let Segment { ack, wnd, .. } = *segment;
        let bare = segment.seq_len() == 0;
        self.two_way |= segment.len > 0;
        let last = self.acked;
        if last.is_some_and(|last| ack < last.ack) {
            // Window and data of a segment with data still matter.
            counters.spurious_acks += u64::from(bare);
            return Answer { forward: !bare, ..Answer::FORWARD };
        }
        self.acked = Some(Acked { ack, wnd, packet: bare.then_some(*packet), sack: segment.sack });
        // The timer keeps running while the window is closed, without effect.
        self.timeout_at = self.timeout_at.max(now);
        if scheme.selective {
            self.note_reports(segment);
        }
        let first = self.segments.front().map(|cached| cached.start);
        match last {
            Some(last) if last.ack == ack && !(bare && is_duplicate(last.wnd, segment)) => Answer::FORWARD,
            Some(last) if last.ack == ack => {
                let is_stamped = segment.timestamps.is_some();
                let is_news = !is_stamped || segment.sack.is_empty() || last.lacks_reports_of(segment);
                self.on_duplicate(now, segment, is_news, scheme, counters)
            }
            None if bare && first == Some(ack) => self.on_duplicate(now, segment, true, scheme, counters),
            _ => self.on_new_ack(now, segment, scheme, counters),
        }
    }

    fn on_new_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        scheme: &Snoop,
        counters: &mut Counters,
    ) -> Answer {
        let ack = segment.ack;
        self.rtt.on_ack(now, ack);
        self.reported = self.reported.filter(|&(_, highest)| highest > ack);
        let gone = self.segments.partition_point(|cached| cached.end <= ack);
        self.note_strays(now, gone);
        self.segments.drain(..gone);
        let filled = if self.segments.is_empty() { self.beyond } else { (gone as u64).saturating_sub(1) };
        self.beyond = self.beyond.saturating_sub(filled);
        let earlier = self.transmitted_earlier();
        self.expected = earlier.saturating_sub(self.beyond);
        self.unexpected = if scheme.bursts { self.beyond.saturating_sub(earlier) } else { 0 };
        // With reports, the oldest segment may have been retransmitted before it became the oldest.
        let copied = self.segments.front().filter(|_| scheme.selective).and_then(|oldest| oldest.last_copy);
        self.timeout_at = copied.map_or(Time::NEVER, |copied| (copied + self.timeout(scheme)).max(now));
        let copy = match self.suspect() {
            Some(oldest) if self.unexpected >= u64::from(scheme.dupacks) && !oldest.from_source_again => {
                self.retransmit(now, Cause::Duplicates, scheme, counters)
            }
            _ => None,
        };
        Answer { to_mobile: copy, ..Answer::FORWARD }
    }

    /// Number of segments above the oldest that were transmitted before it. Their arrival proves no loss.
    fn transmitted_earlier(&self) -> u64 {
        let oldest =
            self.segments.front().filter(|oldest| self.reordered.is_some_and(|end| oldest.start < end));
        let Some(oldest) = oldest else { return 0 };
        self.segments.iter().filter(|cached| cached.number < oldest.number).count() as u64
    }

    /// Counts the transmissions of the first `gone` segments, which are acknowledged, that may still arrive.
    fn note_strays(&mut self, now: Time, gone: usize) {
        let Some(arrived) = self.segments.front().map(|first| first.number) else { return };
        let smallest = self.rtt.smallest.unwrap_or(Duration::ZERO);
        for acknowledged in self.segments.range(..gone) {
            let CachedSegment { number, sent, repeated, last_copy, doubtful, latency, .. } = *acknowledged;
            let is_under_way = match last_copy {
                Some(copied) => now.since(copied) < latency,
                None => repeated && (number > arrived || now.since(sent) < smallest),
            };
            let strays = doubtful.max(u64::from(is_under_way));
            if strays > 0 {
                self.strays += strays;
                self.last_stray = self.last_stray.max(number);
            } else if number > self.last_stray {
                self.strays = 0;
            }
        }
    }

    /// Removes the segments that the mobile host reports from the cache.
    fn note_reports(&mut self, segment: &Segment) {
        let is_valid = |block: &&SackBlock| {
            segment.ack < block.start && block.start < block.end && block.end <= self.last_seen
        };
        for block in segment.sack.iter().filter(is_valid) {
            let first = self.segments.partition_point(|cached| cached.start < block.start);
            // SACK blocks do not cover FIN, which arrives with its data.
            let fin = self.end.filter(|&end| end == block.end + 1);
            let is_covered = |cached: &CachedSegment| cached.end <= block.end || fin == Some(cached.end);
            let after = self.segments.partition_point(is_covered).max(first);
            // Of a segment that was sent more than once, any transmission may have arrived.
            let once = |arrived: &CachedSegment| arrived.copies == 0 && !arrived.from_source_again;
            for arrived in self.segments.drain(first..after).filter(once) {
                let (number, highest) = self.reported.unwrap_or((0, arrived.end));
                self.reported = Some((number.max(arrived.number), highest.max(arrived.end)));
            }
        }
    }

    /// Retransmits every segment that a later transmission has overtaken.
    pub(super) fn repair_gaps(
        &mut self,
        now: Time,
        scheme: &Snoop,
        counters: &mut Counters,
        mut send: impl FnMut(Packet),
    ) {
        let Some((_, highest)) = self.reported.filter(|_| self.acked.is_some_and(|acked| acked.wnd > 0))
        else {
            return;
        };
        let gaps = self.segments.partition_point(|cached| cached.start < highest);
        for index in 0..gaps {
            let gap = &self.segments[index];
            if !gap.from_source_again && gap.copies < scheme.attempts && self.is_overtaken(gap) {
                send(self.copy(index, now, scheme, counters));
                if index == 0 {
                    self.timeout_at = now + self.timeout(scheme);
                }
            }
        }
    }

    /// Whether a transmission after the segment's last one has arrived. The link preserves order.
    fn is_overtaken(&self, segment: &CachedSegment) -> bool {
        self.reported.is_some_and(|(number, _)| segment.number < number)
    }

    /// Whether a duplicate with or without a report is answered by the base station: it repairs the segment that the
    /// duplicate requests, or has caused the duplicate by a needless copy.
    fn answers_duplicate(&mut self, scheme: &Snoop) -> bool {
        if self.strays > 0 {
            self.strays -= 1;
            return true;
        }
        self.suspect().is_some_and(|oldest| {
            let repairs =
                if self.is_overtaken(oldest) { oldest.copies < scheme.attempts } else { oldest.copies > 0 };
            repairs && !oldest.from_source_again
        })
    }

    fn on_duplicate(
        &mut self,
        now: Time,
        segment: &Segment,
        is_news: bool,
        scheme: &Snoop,
        counters: &mut Counters,
    ) -> Answer {
        let (suppress, copy) = match self.suspect() {
            _ if scheme.selective => (self.answers_duplicate(scheme), None),
            Some(oldest) if !oldest.from_source_again && !is_news => {
                self.strays = self.strays.saturating_sub(1);
                (true, None)
            }
            Some(oldest) if !oldest.from_source_again => {
                let recovering = oldest.copies > 0;
                self.take_duplicate(now, segment, recovering, scheme, counters)
            }
            _ => (false, None),
        };
        let forward = !(suppress && scheme.suppress);
        *(if forward { &mut counters.forwarded_dupacks } else { &mut counters.suppressed_dupacks }) += 1;
        Answer { forward, to_mobile: copy, to_source: None }
    }

    /// Handles a duplicate that requests the suspect. Returns whether to suppress it, and the retransmission that
    /// it causes.
    fn take_duplicate(
        &mut self,
        now: Time,
        segment: &Segment,
        recovering: bool,
        scheme: &Snoop,
        counters: &mut Counters,
    ) -> (bool, Option<Packet>) {
        let reports_later = segment.sack.iter().any(|block| segment.ack < block.start);
        if self.strays > 0 && !reports_later {
            self.strays -= 1;
            return (true, None);
        }
        self.beyond += 1;
        if self.expected > 0 {
            self.expected -= 1;
            return (true, None);
        }
        self.unexpected += 1;
        if self.unexpected < u64::from(scheme.dupacks) {
            return (recovering, None);
        }
        let copy = self.retransmit(now, Cause::Duplicates, scheme, counters);
        (copy.is_some(), copy)
    }

    /// The segment that the mobile host expects next, if it is cached and fits the window.
    fn suspect(&self) -> Option<&CachedSegment> {
        let requested = |cached: &&CachedSegment| {
            self.acked.is_none_or(|acked| cached.start <= acked.ack && acked.wnd > 0)
        };
        self.segments.front().filter(requested)
    }

    /// Retransmits the suspect, unless its attempts are exhausted.
    fn retransmit(
        &mut self,
        now: Time,
        cause: Cause,
        scheme: &Snoop,
        counters: &mut Counters,
    ) -> Option<Packet> {
        let oldest = self.segments.front().filter(|oldest| oldest.copies < scheme.attempts)?;
        let since = self.transmissions - oldest.number;
        let packet = self.copy(0, now, scheme, counters);
        self.expected = match cause {
            Cause::Duplicates | Cause::Timeout => (self.expected + since).saturating_sub(self.unexpected),
            Cause::Silence => 0,
        };
        let doubtful = &mut self.segments[0].doubtful;
        *doubtful = if cause == Cause::Timeout { *doubtful + 1 } else { 0 };
        counters.timeouts += u64::from(cause == Cause::Timeout);
        counters.persists += u64::from(cause == Cause::Silence);
        self.unexpected = 0;
        if cause == Cause::Duplicates || self.timeout_at < Time::NEVER {
            self.timeout_at = now + self.timeout(scheme);
        }
        Some(packet)
    }

    /// A copy of the segment at `index`, to be sent now.
    fn copy(&mut self, index: usize, now: Time, scheme: &Snoop, counters: &mut Counters) -> Packet {
        let segment = &mut self.segments[index];
        self.transmissions += 1;
        (segment.number, segment.last_copy) = (self.transmissions, Some(now));
        segment.copies += 1;
        let mut packet = segment.packet;
        if scheme.expedite && packet.dscp == Dscp::DEFAULT {
            packet.dscp = Dscp::EXPEDITED;
        }
        self.rtt.timed = None;
        counters.copies += 1;
        packet
    }

    /// Handles the return of the mobile host. Both timers restart. Packets that passed meanwhile give no sample of the
    /// round-trip time and cause no duplicates. A host that arrives during a transfer finds packets queued, so that no
    /// sample may be near the smallest possible round-trip time over the link, `floor`.
    pub(super) fn resume(&mut self, now: Time, floor: Duration) {
        self.rtt.timed = None;
        self.rtt.smallest = Some(floor);
        self.quiet_since = now;
        self.timeout_at = Time::NEVER;
        (self.expected, self.unexpected, self.strays, self.beyond) = (0, 0, 0, 0);
        self.reordered = None;
    }

    /// The size of the oldest cached segment.
    pub(super) fn oldest_size(&self) -> Bytes {
        self.segments.front().map_or(Bytes::ZERO, |oldest| oldest.packet.size)
    }

    /// The local retransmission timeout.
    fn timeout(&self, scheme: &Snoop) -> Duration {
        self.rtt.smoothed.map_or(scheme.initial, |smoothed| smoothed * 2).max(scheme.min_timeout)
    }

    /// The end of the current silence.
    fn persist_at(&self, scheme: &Snoop) -> Time {
        let smallest = self.rtt.smallest.map_or(scheme.initial, |smallest| smallest * 2);
        self.quiet_since + smallest.max(scheme.persist)
    }

    /// When the oldest segment will be retransmitted.
    pub(super) fn deadline(&self, scheme: &Snoop) -> Time {
        match self.suspect() {
            Some(oldest) if oldest.copies < scheme.attempts => self.timeout_at.min(self.persist_at(scheme)),
            _ => Time::NEVER,
        }
    }

    /// The oldest segment, if its retransmission is due.
    pub(super) fn on_timeout(
        &mut self,
        now: Time,
        scheme: &Snoop,
        counters: &mut Counters,
    ) -> Option<Packet> {
        if self.deadline(scheme) > now {
            return None;
        }
        let cause = if self.timeout_at <= now { Cause::Timeout } else { Cause::Silence };
        if self.persist_at(scheme) <= now {
            self.quiet_since = now;
            // Nothing is in flight any more.
            self.strays = 0;
        }
        self.retransmit(now, cause, scheme, counters)
    }
}
