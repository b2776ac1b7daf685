//! ECN in the handshake (RFC 3168 section 6.1.1, RFC 9768 section 3.1), with its fall-backs.

use lasthop_proto::Ecn;
use lasthop_proto::tcp::{EcnCounters, EcnMode, FieldOrder, Flags, Segment, code_of, is_unchanged};

/// The ACE field before any packet was marked.
const FIRST_ACE: u8 = 5;

/// The peer's SYN or SYN-ACK, as far as ECN is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerEcn {
    flags: Flags,
    /// The ECN field with which it arrived.
    arrived: Ecn,
}

impl PeerEcn {
    pub(crate) fn of(segment: &Segment, arrived: Ecn) -> PeerEcn {
        PeerEcn { flags: segment.flags, arrived }
    }

    /// Takes over a later SYN of the same handshake, which is the one to report on. It does not change the mode.
    pub(crate) fn repeat(&mut self, later: PeerEcn) {
        self.arrived = later.arrived;
    }
}

/// Our side of the negotiation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnHandshake {
    /// The feedback that the settings ask for.
    mode: EcnMode,
    /// SYNs sent, and SYN-ACKs.
    syns: u32,
    syn_acks: u32,
    /// Whether ECN-capable packets may be sent with accurate feedback: no SYN or SYN-ACK of ours or the peer's was without ECN
    /// (RFC 9768 section 3.1.5), and none arrived changed (section 3.2.2.3).
    is_capable: bool,
    /// Whether the path clears the ACE field.
    is_cleared: bool,
}

/// The outcome of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EcnAgreement {
    pub(crate) mode: EcnMode,
    /// Whether ECN-capable packets may be sent.
    pub(crate) is_capable: bool,
    /// Whether the path clears the ACE field, so that what the peer reports is to be ignored.
    pub(crate) is_cleared: bool,
    /// The ECN field with which the SYN-ACK arrived, if accurate feedback reports it.
    pub(crate) syn_ack: Option<Ecn>,
}

impl EcnHandshake {
    pub(crate) fn new(mode: EcnMode) -> EcnHandshake {
        EcnHandshake { mode, syns: 0, syn_acks: 0, is_capable: true, is_cleared: false }
    }

    /// The flags of the next SYN. Some networks drop those that ask for ECN: a retransmission is without it (RFC 3168 section
    /// 6.1.1.1), with accurate feedback from the second one on, since the first SYN may have been lost by chance.
    pub(crate) fn syn_flags(&mut self) -> Flags {
        let attempts = if self.mode == EcnMode::Accurate { 2 } else { 1 };
        self.syns += 1;
        if self.syns > attempts { Flags::default() } else { self.mode.syn_flags() }
    }

    /// The flags of the next SYN-ACK, and its option. With accurate feedback, the second one has no option, which some networks
    /// may drop, and later ones have no flags either (RFC 9768 section 3.2.3.2.2).
    pub(crate) fn syn_ack(&mut self, syn: &PeerEcn) -> (Flags, Option<EcnCounters>) {
        let mode = self.mode.answering(syn.flags);
        self.syn_acks += 1;
        if mode == EcnMode::Accurate && self.syn_acks > 2 {
            self.is_capable = false;
            return (Flags::default(), None);
        }
        let has_option = mode == EcnMode::Accurate && self.syn_acks == 1;
        let option = has_option.then(|| EcnCounters::new(FieldOrder::Ect1First, &[1, 0, 1]));
        (mode.syn_ack_flags(syn.arrived), option)
    }

    /// Whether the `first` SYN and a `later` one of the same handshake ask this end for different feedback, by which both ends could
    /// end up in different modes.
    pub(crate) fn is_contradicted(&self, first: &PeerEcn, later: &PeerEcn) -> bool {
        let [first, later] = [first, later].map(|syn| self.mode.answering(syn.flags));
        first != later && first != EcnMode::Off && later != EcnMode::Off
    }

    /// Notes a SYN of the peer that repeats the first one.
    pub(crate) fn on_repeated_syn(&mut self, later: &PeerEcn) {
        self.is_capable &= later.flags.ace() != 0;
    }

    /// Processes the acknowledgement of the SYN-ACK. A pure one reports the ECN field of the SYN-ACK in its ACE field (RFC 9768
    /// section 3.2.2.1). Neither that nor a counter is zero, since no other packet of ours can have been marked: a zero shows that the
    /// path clears the flags (section 3.2.2.4). Returns its flags with the ACE field as a counter.
    pub(crate) fn on_first_ack(&mut self, syn: &PeerEcn, segment: &Segment) -> Flags {
        let flags = segment.flags;
        if self.mode.answering(syn.flags) != EcnMode::Accurate {
            return flags;
        }
        self.is_cleared = flags.ace() == 0;
        self.is_capable &= !self.is_cleared;
        let reports = segment.seq_len() == 0 && segment.sack.is_empty();
        if self.is_cleared || !reports {
            return flags;
        }
        self.is_capable &= is_unchanged(flags);
        flags.with_ace(FIRST_ACE + u8::from(flags.ace() == code_of(Ecn::Ce)))
    }

    /// The outcome, given the peer's SYN or SYN-ACK.
    pub(crate) fn agreement(&self, peer: &PeerEcn) -> EcnAgreement {
        let is_answer = peer.flags.has(Flags::ACK);
        let mode = if is_answer { self.mode.agreed_by(peer.flags) } else { self.mode.answering(peer.flags) };
        let is_accurate = mode == EcnMode::Accurate;
        let is_changed = is_answer && !is_unchanged(peer.flags);
        EcnAgreement {
            mode,
            is_capable: !is_accurate || (self.is_capable && !is_changed),
            is_cleared: self.is_cleared,
            syn_ack: Some(peer.arrived).filter(|_| is_answer && is_accurate),
        }
    }
}
