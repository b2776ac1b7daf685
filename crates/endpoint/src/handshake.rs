//! The three-way handshake (RFC 9293 section 3.5).

use lasthop_base::{Duration, Time};
use lasthop_proto::Ecn;
use lasthop_proto::tcp::{Flags, SackBlocks, Segment, SeqNum};

use crate::clock::Clock;
use crate::config::Config;
use crate::ecn::{EcnAgreement, EcnHandshake, PeerEcn};
use crate::options::{Agreement, Offer};
use crate::packet::{Incoming, OutgoingQueue};
use crate::throttle::Throttle;

/// The largest window without scaling, in bytes. The window of a SYN is never scaled (RFC 7323 section 2.2).
pub(crate) const LARGEST_WINDOW: u32 = 0xffff;

/// How the connection was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Actively,
    Passively,
}

/// Our side of a handshake: SYN or SYN-ACK was sent, and is retransmitted until it is acknowledged.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) opened: Opened,
    pub(crate) iss: SeqNum,
    pub(crate) clock: Clock,
    offer: Offer,
    ecn: EcnHandshake,
    window: u32,
    is_v4: bool,
    began: Time,
    sent_at: Time,
    is_retransmitted: bool,
    rto: Duration,
    deadline: Time,
    throttle: Throttle,
}

/// The peer's SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSyn {
    pub(crate) irs: SeqNum,
    offer: Offer,
    ecn: PeerEcn,
    pub(crate) window: u32,
}

impl PeerSyn {
    pub(crate) fn of(packet: &Incoming<'_>) -> PeerSyn {
        let segment = packet.header.segment;
        let offer = Offer::theirs(&packet.header, packet.remote.is_ipv4());
        PeerSyn { irs: segment.seq, offer, ecn: PeerEcn::of(&segment, packet.ecn), window: segment.wnd }
    }

    /// The next sequence number expected. Data on a SYN are ignored; the peer will retransmit them.
    pub(crate) fn rcv_nxt(&self) -> SeqNum {
        self.irs + 1
    }
}

impl Handshake {
    /// A handshake that begins now; nothing is sent yet.
    pub(crate) fn new(
        now: Time,
        config: &Config,
        outgoing: &OutgoingQueue,
        (iss, timestamp_offset): (SeqNum, u32),
        opened: Opened,
    ) -> Handshake {
        let is_v4 = outgoing.local.is_ipv4();
        Handshake {
            opened,
            iss,
            clock: Clock::new(now, timestamp_offset),
            offer: Offer::ours(config, is_v4),
            ecn: EcnHandshake::new(config.settings.ecn_mode()),
            window: config.settings.window_payload().min(LARGEST_WINDOW),
            is_v4,
            began: now,
            sent_at: now,
            is_retransmitted: false,
            rto: config.settings.rto_initial,
            deadline: Time::NEVER,
            throttle: Throttle::default(),
        }
    }

    /// The next sequence number after SYN.
    pub(crate) fn snd_nxt(&self) -> SeqNum {
        self.iss + 1
    }

    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Sends SYN, or SYN-ACK once the peer's SYN has arrived.
    pub(crate) fn send(&mut self, now: Time, syn: Option<&PeerSyn>, outgoing: &mut OutgoingQueue) {
        let offer = match syn {
            Some(syn) => self.offer.answering(&syn.offer),
            None => self.offer,
        };
        let (marks, counters) = match syn {
            Some(syn) => self.ecn.syn_ack(&syn.ecn),
            None => (self.ecn.syn_flags(), None),
        };
        let mut sack = SackBlocks::default();
        sack.set_ecn_counters(counters);
        let stamp = offer.timestamps().then(|| self.clock.stamp(now));
        let segment = Segment {
            seq: self.iss,
            ack: syn.map_or(SeqNum(0), PeerSyn::rcv_nxt),
            wnd: self.window,
            flags: marks | if syn.is_some() { Flags::SYN | Flags::ACK } else { Flags::SYN },
            sack,
            timestamps: stamp,
            ..Segment::default()
        };
        outgoing.put(offer.write(segment), Ecn::NotEct, Vec::new());
        self.sent_at = now;
        self.deadline = now + self.rto;
    }

    /// Retransmits, and doubles the timeout (RFC 6298 section 5.5). Returns false, without a retransmission, once
    /// `syn_timeout` is over.
    pub(crate) fn retransmit(
        &mut self,
        now: Time,
        config: &Config,
        syn: Option<&PeerSyn>,
        outgoing: &mut OutgoingQueue,
    ) -> bool {
        if now.since(self.began) >= config.syn_timeout {
            return false;
        }
        self.rto = (self.rto * 2).min(config.settings.rto_max);
        self.is_retransmitted = true;
        self.send(now, syn, outgoing);
        true
    }

    /// Whether a `later` SYN than `syn` asks for other ECN feedback.
    pub(crate) fn is_contradicted(&self, syn: &PeerSyn, later: &PeerSyn) -> bool {
        self.ecn.is_contradicted(&syn.ecn, &later.ecn)
    }

    /// Retransmits the SYN-ACK in response to a retransmitted SYN, which is the `later` one of `syn`.
    pub(crate) fn on_duplicate_syn(
        &mut self,
        now: Time,
        syn: &mut PeerSyn,
        later: &PeerSyn,
        outgoing: &mut OutgoingQueue,
    ) {
        self.ecn.on_repeated_syn(&later.ecn);
        syn.ecn.repeat(later.ecn);
        if self.throttle.permits(now) {
            self.is_retransmitted = true;
            self.send(now, Some(syn), outgoing);
        }
    }

    /// Sends a challenge ACK in SYN-RECEIVED, rate-limited.
    pub(crate) fn challenge(&mut self, now: Time, syn: &PeerSyn, outgoing: &mut OutgoingQueue) {
        if self.throttle.permits(now) {
            let agreed = self.agreement(syn);
            let stamp = agreed.timestamps.then(|| self.clock.stamp(now));
            let (seq, ack, wnd) = (self.snd_nxt(), syn.rcv_nxt(), self.window >> agreed.our_scale);
            let segment =
                Segment { seq, ack, wnd, flags: Flags::ACK, timestamps: stamp, ..Segment::default() };
            outgoing.put_bare(segment);
        }
    }

    /// Sends RST in SYN-RECEIVED, with timestamps if negotiated (RFC 7323 section 3.2).
    pub(crate) fn reset(&self, now: Time, syn: &PeerSyn, outgoing: &mut OutgoingQueue) {
        let (seq, ack, flags) = (self.snd_nxt(), syn.rcv_nxt(), Flags::RST | Flags::ACK);
        let timestamps = self.agreement(syn).timestamps.then(|| self.clock.stamp(now));
        outgoing.put_bare(Segment { seq, ack, flags, timestamps, ..Segment::default() });
    }

    /// Whether a segment is acceptable in SYN-RECEIVED (RFC 9293 section 3.10.7.4, RFC 7323 section 5.3).
    pub(crate) fn is_acceptable(&self, now: Time, syn: &PeerSyn, segment: &Segment) -> bool {
        let outdated = !segment.flags.has(Flags::RST)
            && self.agreement(syn).timestamps
            && self.clock.is_outdated(now, segment);
        let edge = syn.rcv_nxt() + self.window;
        !outdated && segment.seq >= syn.rcv_nxt() && segment.seq <= edge
    }

    /// Processes the acknowledgement of the SYN-ACK; returns its flags with the ACE field as a counter.
    pub(crate) fn on_first_ack(&mut self, syn: &PeerSyn, segment: &Segment) -> Flags {
        self.ecn.on_first_ack(&syn.ecn, segment)
    }

    /// The feedback of ECN marks that both ends use.
    pub(crate) fn ecn(&self, syn: &PeerSyn) -> EcnAgreement {
        self.ecn.agreement(&syn.ecn)
    }

    /// The options that both ends have offered.
    pub(crate) fn agreement(&self, syn: &PeerSyn) -> Agreement {
        self.offer.agree(&syn.offer, self.is_v4)
    }

    /// The round-trip time, if SYN was sent only once (RFC 6298 section 3).
    pub(crate) fn rtt(&self, now: Time) -> Option<Duration> {
        (!self.is_retransmitted).then(|| now.since(self.sent_at))
    }
}
