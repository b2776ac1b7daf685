//! A flow, as the headers of its packets show it.
//!
//! ```text
//! client ── data, ACKs ──> gateway ── ... ──> server      of both hosts: what each has sent, and acknowledged
//!        <── over the radio: SYN, data ──                 of the part over the radio: handshake, retransmissions
//! ```
//!
//! What a flow carries is what its receivers acknowledge, wherever these are. So both arms are seen alike: the data that a
//! gateway has acknowledged and not yet delivered do not count.

use lasthop_proto::tcp::{Flags, Segment, SeqNum};
use lasthop_wire::Tcp;

use crate::report::rows::{End, Outcome};

/// The longest pause, in nanoseconds, that counts as activity although no data wait.
const PAUSE_NS: u64 = 1_000_000_000;

/// The time without progress, in nanoseconds, after which a flow whose data wait has failed.
const STALL_NS: u64 = 30_000_000_000;

/// The largest distance of a reset from the latest data of its end, as windows are seldom larger. Others are forged, or late.
const NEAR: u32 = 1 << 24;

/// The highest sequence number so far, and the bytes from the first one to it.
#[derive(Clone, Copy, Debug, Default)]
struct Highest {
    last: Option<SeqNum>,
    bytes: u64,
}

impl Highest {
    fn begin(&mut self, at: SeqNum) {
        self.last.get_or_insert(at);
    }

    fn is_near(&self, at: SeqNum) -> bool {
        self.last.is_none_or(|last| (at.0.wrapping_sub(last.0) as i32).unsigned_abs() <= NEAR)
    }

    /// Takes over a higher number; returns by how much.
    fn reach(&mut self, end: SeqNum) -> u32 {
        let last = *self.last.get_or_insert(end);
        let ahead = end.0.wrapping_sub(last.0);
        if end <= last {
            return 0;
        }
        self.last = Some(end);
        self.bytes += u64::from(ahead);
        ahead
    }
}

/// One direction of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    sent: Highest,
    acknowledged: Highest,
    has_ended: bool,
}

impl Direction {
    /// The bytes that its receiver has; acknowledgements also count the end.
    fn delivered(&self) -> u64 {
        self.acknowledged.bytes.min(self.sent.bytes)
    }

    fn waits(&self) -> bool {
        self.sent.bytes > self.delivered()
    }
}

/// The handshake over the radio.
#[derive(Clone, Copy, Debug)]
enum Handshake {
    Before,
    /// A SYN was sent over the radio at this time.
    Sent(u64),
    /// One was sent again, so that its answer tells no time.
    Ambiguous,
    Answered(u64),
}

/// A flow that is being observed. Times are in nanoseconds of one clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Track {
    began_ns: u64,
    /// The number of the client's SYN.
    seq: SeqNum,
    /// The end behind the radio.
    pub(super) behind: End,
    /// By the end that sends.
    directions: [Direction; 2],
    handshake: Handshake,
    /// When the server's answer to the SYN, and the client's to that, arrived.
    answers_ns: [Option<u64>; 2],
    is_reset: bool,
    /// The latest packet of a host, and the pauses before it.
    latest_ns: u64,
    paused_ns: u64,
    /// The latest progress, and the pauses before it.
    progress: Option<(u64, u64)>,
    /// Since when data wait without progress, if any do.
    waits_ns: Option<u64>,
    first_byte_ns: Option<u64>,
    to_radio: Highest,
    /// Bytes below the highest number that have not been seen on their way to the radio: the log of two processors may
    /// swap packets, and what was lost before was never sent over the radio.
    unseen: u64,
    pub(super) sent_bytes: u64,
    pub(super) retransmitted_bytes: u64,
    pub(super) repaired_bytes: u64,
}

impl Track {
    /// A flow whose client's SYN has the number `seq`.
    pub(super) fn new(began_ns: u64, seq: SeqNum, behind: End) -> Track {
        let mut directions: [Direction; 2] = Default::default();
        directions[End::Client as usize].sent.begin(seq + 1);
        Track {
            began_ns,
            seq,
            behind,
            directions,
            handshake: Handshake::Before,
            answers_ns: [None; 2],
            is_reset: false,
            latest_ns: began_ns,
            paused_ns: 0,
            progress: None,
            waits_ns: None,
            first_byte_ns: None,
            to_radio: Highest::default(),
            unseen: 0,
            sent_bytes: 0,
            retransmitted_bytes: 0,
            repaired_bytes: 0,
        }
    }

    /// Whether a SYN with this number is the client's own, sent again.
    pub(super) fn may_resend(&self, seq: SeqNum) -> bool {
        self.seq == seq
    }

    /// A packet has arrived from the host at one end.
    pub(super) fn received(&mut self, from: End, tcp: &Tcp<'_>, now_ns: u64) {
        let segment = &tcp.header.segment;
        let (is_syn, is_ack) = (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK));
        let now_ns = now_ns.max(self.latest_ns);
        if now_ns - self.latest_ns > PAUSE_NS && !self.waits() {
            self.paused_ns += now_ns - self.latest_ns;
        }
        self.latest_ns = now_ns;

        let own = &mut self.directions[from as usize];
        let first = if is_syn { segment.seq + 1 } else { segment.seq };
        own.sent.begin(first);
        let ends = segment.flags.has(Flags::FIN);
        if segment.len > 0 || ends {
            // The end has a number, too: the log of two processors may have it before the last data.
            let fresh = own.sent.reach(first + segment.len);
            if from == self.behind {
                self.repaired_bytes += u64::from(segment.len.saturating_sub(fresh));
            }
        }
        own.has_ended |= ends;
        let is_reset = segment.flags.has(Flags::RST) && own.sent.is_near(first);
        // Once both hosts have ended it, a host that knows no more of the connection answers what comes late.
        self.is_reset |= is_reset && !self.directions.iter().all(|direction| direction.has_ended);
        let has_progressed = is_ack && self.acknowledges(from, segment, now_ns);
        self.waits_ns = match self.waits_ns {
            _ if !self.waits() => None,
            Some(since_ns) if !has_progressed => Some(since_ns),
            _ => Some(now_ns),
        };
    }

    /// The host at one end acknowledges what it has. Returns whether that is more than before.
    fn acknowledges(&mut self, from: End, segment: &Segment, now_ns: u64) -> bool {
        if from == End::Server || !segment.flags.has(Flags::SYN) {
            self.answers_ns[from as usize].get_or_insert(now_ns);
        }
        if from == self.behind
            && let Handshake::Sent(sent_ns) = self.handshake
        {
            // The kernel notes arrivals; what leaves, the observer notes, and may be late.
            self.handshake = match now_ns.saturating_sub(sent_ns) {
                0..1000 => Handshake::Ambiguous,
                rtt_ns => Handshake::Answered(rtt_ns),
            };
        }
        let other = &mut self.directions[from.other() as usize];
        let before = other.delivered();
        other.acknowledged.begin(segment.ack);
        other.acknowledged.reach(segment.ack);
        let has_progressed = other.delivered() > before;
        if has_progressed {
            self.progress = Some((now_ns, self.paused_ns));
            if from == End::Client {
                self.first_byte_ns.get_or_insert(now_ns);
            }
        }
        has_progressed
    }

    /// A packet in the name of the host at one end is sent over the radio.
    pub(super) fn sent(&mut self, from: End, tcp: &Tcp<'_>, now_ns: u64) {
        // From one radio to another, the part to the server's is not the one that is observed.
        if from == self.behind {
            return;
        }
        let segment = &tcp.header.segment;
        if segment.flags.has(Flags::SYN) {
            self.to_radio.begin(segment.seq + 1);
            self.handshake = match self.handshake {
                Handshake::Before => Handshake::Sent(now_ns),
                Handshake::Sent(_) | Handshake::Ambiguous => Handshake::Ambiguous,
                answered @ Handshake::Answered(_) => answered,
            };
        } else if segment.len > 0 {
            self.to_radio.begin(segment.seq);
            let ahead = u64::from(self.to_radio.reach(segment.seq + segment.len));
            let len = u64::from(segment.len);
            let again = len.saturating_sub(ahead);
            let late = again.min(self.unseen);
            self.unseen = self.unseen - late + ahead.saturating_sub(len);
            self.sent_bytes += len;
            self.retransmitted_bytes += again - late;
        }
    }

    /// Whether data, or the answer to the client, are under way.
    fn waits(&self) -> bool {
        !self.is_answered() || self.directions.iter().any(Direction::waits)
    }

    /// Whether the client knows that the server has answered.
    fn is_answered(&self) -> bool {
        self.answers_ns[End::Client as usize].is_some()
    }

    /// Whether nothing more is to come.
    pub(super) fn has_ended(&self) -> bool {
        self.is_reset || self.directions.iter().all(|direction| direction.has_ended && !direction.waits())
    }

    /// How it stands.
    pub(super) fn outcome(&self, now_ns: u64) -> Outcome {
        let is_idle_since = |time_ns: u64| now_ns.saturating_sub(time_ns) > PAUSE_NS;
        match () {
            () if self.is_reset => Outcome::Reset,
            () if !self.is_answered() => Outcome::Unanswered,
            () if self.has_ended() => Outcome::Closed,
            () if self.waits_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) >= STALL_NS) => {
                Outcome::Stalled
            }
            () if !self.waits() && self.progress.is_none_or(|(time_ns, _)| is_idle_since(time_ns)) => {
                Outcome::Open
            }
            () => Outcome::Active,
        }
    }

    /// The bytes that the end has acknowledged.
    pub(super) fn delivered_to(&self, end: End) -> u64 {
        self.directions[end.other() as usize].delivered()
    }

    /// The time from its beginning to the latest progress, without pauses.
    pub(super) fn active_ns(&self) -> Option<u64> {
        self.progress.map(|(time_ns, paused_ns)| time_ns.saturating_sub(self.began_ns + paused_ns))
    }

    /// The time from its beginning to the first data that the client acknowledged.
    pub(super) fn first_byte_ns(&self) -> Option<u64> {
        self.first_byte_ns.map(|time_ns| time_ns - self.began_ns)
    }

    /// The round-trip time of the wired part, of the handshake.
    pub(super) fn wired_rtt_ns(&self) -> Option<u64> {
        let [of_client, of_server] = self.answers_ns;
        match self.behind {
            End::Client => of_server?.checked_sub(self.began_ns),
            End::Server => of_client?.checked_sub(of_server?),
        }
    }

    /// The round-trip time over the radio, of the handshake.
    pub(super) fn radio_rtt_ns(&self) -> Option<u64> {
        match self.handshake {
            Handshake::Answered(rtt_ns) => Some(rtt_ns),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::{Dscp, Ecn};
    use lasthop_wire::{Ip, IpPacket, TcpHeader, write};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A flow whose client is behind the radio; its numbers begin just before they wrap.
    struct Talk(Track);

    const CLIENT_SEQ: u32 = u32::MAX;
    /// Of the server, and of the gateway in its name.
    const SERVER_SEQ: u32 = 7000;
    const OWN_SEQ: u32 = 90_000;

    impl Talk {
        fn opened() -> Talk {
            let mut talk = Talk(Track::new(0, SeqNum(CLIENT_SEQ), End::Client));
            talk.hears(End::Client, 0, CLIENT_SEQ, 0, Flags::SYN, 0);
            talk.hears(End::Server, 30, SERVER_SEQ, CLIENT_SEQ.wrapping_add(1), Flags::SYN | Flags::ACK, 0);
            talk.sends(31, OWN_SEQ, Flags::SYN | Flags::ACK, 0);
            talk.hears(End::Client, 51, 0, OWN_SEQ + 1, Flags::ACK, 0);
            talk
        }

        fn with(seq: u32, ack: u32, flags: Flags, len: u32, take: impl FnOnce(&Tcp<'_>)) {
            let ip = Ip {
                src: [10, 0, 0, 1].into(),
                dst: [10, 0, 0, 2].into(),
                dscp: Dscp::DEFAULT,
                ecn: Ecn::NotEct,
                hop_limit: 64,
                identification: 0,
                dont_fragment: true,
            };
            let segment = Segment { seq: SeqNum(seq), ack: SeqNum(ack), len, flags, ..Segment::default() };
            let header = TcpHeader { segment, ..TcpHeader::default() };
            let bytes = write::tcp(&ip, &header, &vec![0; len as usize]).expect("a packet");
            // As the log has it, without the data.
            let packet = IpPacket::parse_captured(&bytes[..40], bytes.len()).expect("a packet");
            take(packet.tcp().expect("a segment"));
        }

        fn hears(&mut self, from: End, at_ms: u64, seq: u32, ack: u32, flags: Flags, len: u32) {
            Talk::with(seq, ack, flags, len, |tcp| self.0.received(from, tcp, at_ms * MS));
        }

        fn sends(&mut self, at_ms: u64, seq: u32, flags: Flags, len: u32) {
            Talk::with(seq, 0, flags, len, |tcp| self.0.sent(End::Server, tcp, at_ms * MS));
        }

        /// The client acknowledges so many bytes.
        fn acknowledges(&mut self, at_ms: u64, bytes: u32) {
            self.hears(End::Client, at_ms, 0, OWN_SEQ + 1 + bytes, Flags::ACK, 0);
        }

        fn serves(&mut self, at_ms: u64, offset: u32, len: u32) {
            self.hears(End::Server, at_ms, SERVER_SEQ + 1 + offset, 0, Flags::ACK, len);
        }
    }

    #[test]
    fn what_the_receiver_acknowledges_counts() {
        let mut talk = Talk::opened();
        assert_eq!((talk.0.radio_rtt_ns(), talk.0.wired_rtt_ns()), (Some(20 * MS), Some(30 * MS)));
        // The gateway has acknowledged all to the server; the client only a part.
        talk.serves(60, 0, 1000);
        talk.serves(61, 1000, 1000);
        talk.sends(61, OWN_SEQ + 1, Flags::ACK, 2000);
        talk.acknowledges(90, 1000);
        assert_eq!((talk.0.delivered_to(End::Client), talk.0.active_ns()), (1000, Some(90 * MS)));
        assert_eq!(talk.0.first_byte_ns(), Some(90 * MS));
        talk.sends(300, OWN_SEQ + 1001, Flags::ACK, 1000);
        talk.acknowledges(320, 2000);
        assert_eq!((talk.0.delivered_to(End::Client), talk.0.active_ns()), (2000, Some(320 * MS)));
        assert_eq!((talk.0.sent_bytes, talk.0.retransmitted_bytes), (3000, 1000));
        assert_eq!(talk.0.outcome(400 * MS), Outcome::Active);
        assert_eq!(talk.0.outcome(1400 * MS), Outcome::Open);
    }

    #[test]
    fn swapped_packets_are_not_sent_again() {
        let mut talk = Talk::opened();
        for (offset, len) in [(0, 1000), (3000, 1000), (1000, 1000), (2000, 1000)] {
            talk.sends(61, OWN_SEQ + 1 + offset, Flags::ACK, len);
        }
        assert_eq!((talk.0.sent_bytes, talk.0.retransmitted_bytes), (4000, 0));
        // Half of it is new.
        talk.sends(90, OWN_SEQ + 3001, Flags::ACK, 2000);
        assert_eq!((talk.0.sent_bytes, talk.0.retransmitted_bytes), (6000, 1000));
    }

    /// The gateway may deliver data to one host when the other has long closed.
    #[test]
    fn a_reset_after_both_ends_is_none() {
        for closes in [true, false] {
            let mut talk = Talk::opened();
            talk.serves(60, 0, 1000);
            talk.hears(End::Client, 61, 0, OWN_SEQ + 1, Flags::FIN | Flags::ACK, 0);
            if closes {
                talk.hears(End::Server, 62, SERVER_SEQ + 1001, 0, Flags::FIN | Flags::ACK, 0);
            }
            talk.hears(End::Server, 72, SERVER_SEQ + 1001 + u32::from(closes), 0, Flags::RST, 0);
            assert_eq!(talk.0.has_ended(), !closes);
            talk.acknowledges(80, 1000);
            let outcome = if closes { Outcome::Closed } else { Outcome::Reset };
            assert_eq!((talk.0.outcome(100 * MS), talk.0.has_ended()), (outcome, true));
        }
    }

    /// The log has the server's end before its last data.
    #[test]
    fn the_end_tells_how_much_there_is() {
        let mut talk = Talk::opened();
        talk.serves(60, 0, 1000);
        talk.hears(End::Client, 61, 0, OWN_SEQ + 1, Flags::FIN | Flags::ACK, 0);
        talk.hears(End::Server, 62, SERVER_SEQ + 1501, 0, Flags::FIN | Flags::ACK, 0);
        talk.acknowledges(63, 1000);
        assert!(!talk.0.has_ended());
        talk.acknowledges(64, 1501);
        assert!(talk.0.has_ended());
        talk.serves(65, 1000, 500);
        assert_eq!((talk.0.delivered_to(End::Client), talk.0.repaired_bytes), (1500, 0));
    }

    #[test]
    fn pauses_without_waiting_data_do_not_count() {
        let mut talk = Talk::opened();
        talk.serves(60, 0, 1000);
        talk.acknowledges(100, 1000);
        // Idle for five seconds; a fade of four, during which data wait.
        talk.serves(5100, 1000, 1000);
        talk.acknowledges(9100, 2000);
        assert_eq!(talk.0.active_ns(), Some(4100 * MS));
        // A pause within a window's round trip counts.
        talk.serves(9900, 2000, 1000);
        talk.acknowledges(9950, 3000);
        assert_eq!(talk.0.active_ns(), Some(4950 * MS));
    }

    #[test]
    fn outcomes_are_told_apart() {
        let mut talk = Talk(Track::new(0, SeqNum(1), End::Server));
        talk.hears(End::Client, 0, 1, 0, Flags::SYN, 0);
        assert_eq!(talk.0.outcome(60_000 * MS), Outcome::Unanswered);
        assert!(!talk.0.has_ended());

        let mut talk = Talk::opened();
        talk.hears(End::Client, 60, 0, OWN_SEQ + 1, Flags::ACK, 100);
        talk.hears(End::Server, 90, SERVER_SEQ + 1, 100, Flags::ACK, 0);
        assert_eq!(talk.0.delivered_to(End::Server), 100);
        talk.serves(91, 0, 500);
        assert_eq!(talk.0.outcome(30_000 * MS), Outcome::Active);
        assert_eq!(talk.0.outcome(31_000 * MS), Outcome::Stalled);
        // Its server is slow, and no data wait.
        talk.acknowledges(31_500, 500);
        assert_eq!(talk.0.outcome(90_000 * MS), Outcome::Open);

        // After a long pause, a segment is under way.
        let mut talk = Talk::opened();
        talk.serves(60, 0, 500);
        talk.acknowledges(90, 500);
        talk.serves(59_900, 500, 500);
        assert_eq!(talk.0.outcome(60_000 * MS), Outcome::Active);
        assert_eq!(talk.0.outcome(89_900 * MS), Outcome::Stalled);

        let mut talk = Talk::opened();
        talk.hears(End::Client, 60, 0, OWN_SEQ + 1, Flags::ACK, 100);
        talk.hears(End::Server, 90, SERVER_SEQ + 1, 100, Flags::ACK, 0);
        talk.serves(91, 0, 500);
        talk.acknowledges(31_500, 500);
        talk.hears(End::Server, 90_001, SERVER_SEQ + 501, 100, Flags::FIN | Flags::ACK, 0);
        talk.acknowledges(90_002, 501);
        assert!(!talk.0.has_ended());
        talk.hears(End::Client, 90_003, 100, OWN_SEQ + 502, Flags::FIN | Flags::ACK, 0);
        assert!(talk.0.has_ended());
        assert_eq!((talk.0.outcome(91_000 * MS), talk.0.delivered_to(End::Client)), (Outcome::Closed, 500));

        let mut talk = Talk::opened();
        talk.hears(End::Client, 60, 1 << 30, 0, Flags::RST, 0);
        assert!(!talk.0.has_ended());
        talk.hears(End::Client, 60, 0, 0, Flags::RST, 0);
        assert_eq!((talk.0.has_ended(), talk.0.outcome(61 * MS)), (true, Outcome::Reset));
    }

    #[test]
    fn a_repeated_handshake_tells_no_time() {
        let mut talk = Talk(Track::new(0, SeqNum(9), End::Server));
        for at_ms in [1, 1001] {
            Talk::with(50, 0, Flags::SYN, 0, |tcp| talk.0.sent(End::Client, tcp, at_ms * MS));
        }
        talk.hears(End::Server, 1050, SERVER_SEQ, 51, Flags::SYN | Flags::ACK, 0);
        talk.hears(End::Client, 1090, 10, SERVER_SEQ + 1, Flags::ACK, 0);
        assert_eq!((talk.0.radio_rtt_ns(), talk.0.wired_rtt_ns()), (None, Some(40 * MS)));
        // Upwards, what arrives again was lost before.
        talk.hears(End::Server, 1100, SERVER_SEQ + 1001, 51, Flags::ACK, 1000);
        talk.hears(End::Server, 1200, SERVER_SEQ + 1, 51, Flags::ACK, 1000);
        assert_eq!((talk.0.repaired_bytes, talk.0.sent_bytes), (1000, 0));
    }
}
