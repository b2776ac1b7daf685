//! The base station's agent, by hand.

use lasthop_base::{Bytes, Time};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flags, Segment, SeqNum};
use lasthop_proto::{Body, Dscp, Ecn, Effect, FlowId, Handle, HostId, Notice, NoticeCode, Out, Packet, Port};
use lasthop_testing::schemes::agent;

const LHACK: NoticeCode = NoticeCode { kind: 41, code: 1 };
const FHACK: NoticeCode = NoticeCode { kind: 41, code: 2 };
const SIDES: [Port; 2] = [Port::WIRED, Port::RADIO];

fn packet(body: Body) -> Packet {
    let (src, dst, dscp) = (HostId(3), HostId(5), Dscp::DEFAULT);
    Packet { src, dst, flow: FlowId(7), size: Bytes(540), dscp, ecn: Ecn::NotEct, handle: Handle::NONE, body }
}

fn segment(seq: u32, len: u32, flags: Flags) -> Packet {
    packet(Body::Tcp(Segment { seq: SeqNum(seq), len, flags, ..Segment::default() }))
}

/// The effects of the scheme's agent on packets that arrive at these ports.
fn effects(schemes: &Schemes, packets: &[(Port, Packet)]) -> Vec<Effect> {
    let mut agent = agent(schemes, "lhack");
    let mut out = Out::default();
    for &(port, packet) in packets {
        agent.receive(Time::ZERO, &packet, port, &mut out);
    }
    assert_eq!(agent.next_wakeup(), Time::NEVER, "it waits for nothing");
    std::iter::from_fn(|| out.take()).map(|(_, effect)| effect).collect()
}

/// A notice of a hop acknowledgement, 40 bytes, to the source.
fn answer(code: NoticeCode, seq: u32) -> Packet {
    let body = Body::Notice(Notice { code, seq: SeqNum(seq) });
    Packet { src: HostId(5), dst: HostId(3), size: Bytes(40), ..packet(body) }
}

/// Section 4: for every message an lhack to a source in the wired network, an fhack to a mobile one, for each
/// copy; the message is forwarded unchanged.
#[test]
fn every_message_is_acknowledged() {
    for (from, code) in [(Port::WIRED, LHACK), (Port::RADIO, FHACK)] {
        let messages = [(9, Flags::ACK), (509, Flags::ACK), (9, Flags::ACK), (1009, Flags::ACK | Flags::FIN)];
        let messages = messages.map(|(seq, flags)| (from, segment(seq, 500, flags)));
        let expected: Vec<Effect> = messages
            .iter()
            .flat_map(|&(_, message)| {
                let seq = message.segment().expect("a segment").seq.0;
                [Effect::Send(from.across(), message), Effect::Send(from, answer(code, seq))]
            })
            .collect();
        assert_eq!(effects(&Schemes::default(), &messages), expected);
    }
}

/// Packets without data are forwarded and not acknowledged, in either direction.
#[test]
fn packets_without_data_are_not_acknowledged() {
    let syn = segment(8, 0, Flags::SYN);
    let ack = segment(9, 0, Flags::ACK);
    let fin = segment(9, 0, Flags::ACK | Flags::FIN);
    for from in SIDES {
        let others = [syn, ack, fin, answer(LHACK, 9), answer(FHACK, 9)];
        let expected = others.map(|packet| Effect::Send(from.across(), packet));
        assert_eq!(effects(&Schemes::default(), &others.map(|packet| (from, packet))), expected);
    }
}

/// Either kind of notice can be disabled, and their size is a parameter.
#[test]
fn parameters_select_and_size_notices() {
    let mut schemes = Schemes::default();
    schemes.lhack.size = Bytes(56);
    schemes.lhack.first_hop = false;
    let message = segment(9, 500, Flags::ACK);
    let lhack = Packet { size: Bytes(56), ..answer(LHACK, 9) };
    let forwarded = |from: Port| Effect::Send(from.across(), message);
    assert_eq!(
        effects(&schemes, &SIDES.map(|from| (from, message))),
        [forwarded(Port::WIRED), Effect::Send(Port::WIRED, lhack), forwarded(Port::RADIO)]
    );
    schemes.lhack.first_hop = true;
    schemes.lhack.last_hop = false;
    let fhack = Packet { size: Bytes(56), ..answer(FHACK, 9) };
    assert_eq!(
        effects(&schemes, &SIDES.map(|from| (from, message))),
        [forwarded(Port::WIRED), forwarded(Port::RADIO), Effect::Send(Port::RADIO, fhack)]
    );
}
