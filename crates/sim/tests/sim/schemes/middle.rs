//! An agent by hand, between two hosts whose segments arrive at it.

use lasthop_base::{Bytes, Time};
use lasthop_proto::tcp::{Flags, Segment, SeqNum};
use lasthop_proto::{Body, Component, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port};
use lasthop_testing::dialogue::ms;
use lasthop_testing::schemes::{Counters, agent, schemes_of};

/// An acknowledgement.
pub(super) fn ack_of(ack: u32) -> Segment {
    Segment { ack: SeqNum(ack), flags: Flags::ACK, ..Segment::default() }
}

/// Data.
pub(super) fn data_of(seq: u32, len: u32) -> Segment {
    Segment { seq: SeqNum(seq), len, flags: Flags::ACK, ..Segment::default() }
}

/// An agent at a base station. Its times are in milliseconds.
pub(super) struct Middle {
    agent: Box<dyn Component>,
    now: Time,
}

impl Middle {
    pub(super) fn new(scheme: &str, tables: &str) -> Middle {
        Middle { agent: agent(&schemes_of(tables), scheme), now: Time::ZERO }
    }

    /// What it sends and drops when a segment arrives.
    fn receive(&mut self, at: u64, port: Port, segment: Segment) -> Vec<Effect> {
        assert!(self.now <= ms(at) && ms(at) <= self.agent.next_wakeup(), "{at}");
        self.now = ms(at);
        let (src, dst) = if port == Port::WIRED { (HostId(0), HostId(1)) } else { (HostId(1), HostId(0)) };
        let (flow, size, body) = (FlowId(3), Bytes(u64::from(segment.len) + 40), Body::Tcp(segment));
        let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE);
        let packet = Packet { src, dst, flow, size, dscp, ecn, handle, body };
        let mut out = Out::default();
        self.agent.receive(self.now, &packet, port, &mut out);
        std::iter::from_fn(|| out.take()).map(|(_, effect)| effect).collect()
    }

    fn expect(
        &mut self,
        at: u64,
        port: Port,
        segment: Segment,
        dropped: usize,
        sent: &[Segment],
    ) -> &mut Self {
        let effects = self.receive(at, port, segment);
        let (drops, sends): (Vec<_>, Vec<_>) =
            effects.into_iter().partition(|effect| matches!(effect, Effect::Drop(..)));
        assert_eq!((drops.len(), segments(&sends, port.across())), (dropped, sent.to_vec()), "at {at} ms");
        self
    }

    /// A segment goes on.
    pub(super) fn passes(&mut self, at: u64, port: Port, segment: Segment) -> &mut Self {
        self.expect(at, port, segment, 0, &[segment])
    }

    /// It goes on, in place of so many that were held.
    pub(super) fn passes_in_place(&mut self, at: u64, port: Port, segment: Segment, of: usize) -> &mut Self {
        self.expect(at, port, segment, of, &[segment])
    }

    /// It is held.
    pub(super) fn holds(&mut self, at: u64, port: Port, segment: Segment) -> &mut Self {
        self.expect(at, port, segment, 0, &[])
    }

    /// It is held, in place of another one.
    pub(super) fn holds_in_place(&mut self, at: u64, port: Port, segment: Segment) -> &mut Self {
        self.expect(at, port, segment, 1, &[])
    }

    /// It lets these go on.
    pub(super) fn sends(&mut self, at: u64, port: Port, segment: Segment, sent: &[Segment]) -> &mut Self {
        self.expect(at, port, segment, 0, sent)
    }

    /// The next deadline is this, and lets these go on through `port`.
    pub(super) fn wakes(&mut self, at: u64, port: Port, sent: &[Segment]) -> &mut Self {
        assert_eq!(self.agent.next_wakeup(), ms(at));
        self.now = ms(at);
        let mut out = Out::default();
        self.agent.wake(self.now, &mut out);
        let effects: Vec<_> = std::iter::from_fn(|| out.take()).map(|(_, effect)| effect).collect();
        assert_eq!(segments(&effects, port), sent);
        self
    }

    /// There is no deadline, and nothing is held.
    pub(super) fn holds_nothing(&mut self) -> &mut Self {
        assert_eq!(self.agent.next_wakeup(), Time::NEVER);
        self.agent.kept(&mut |packet| panic!("{packet:?}"));
        self
    }

    pub(super) fn counts(&self, expected: &[(&'static str, u64)]) {
        let mut counters = Counters::default();
        self.agent.count(&mut counters);
        assert_eq!(counters.0.into_iter().collect::<Vec<_>>(), expected);
    }
}

fn segments(effects: &[Effect], through: Port) -> Vec<Segment> {
    let segment = |effect: &Effect| match effect {
        Effect::Send(port, packet) if *port == through => *packet.segment().expect("a segment"),
        other => panic!("{other:?}"),
    };
    effects.iter().map(segment).collect()
}
