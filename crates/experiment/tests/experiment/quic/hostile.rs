//! Datagrams of strangers: an end of a QUIC connection neither panics nor loops, whatever arrives.

use std::sync::Arc;

use lasthop_base::{Stream, Streams, Time};
use lasthop_proto::stack::{Contents as _, StackFlow};
use lasthop_proto::tcp::{Connection, Transfer};
use lasthop_proto::{Effect, FlowId, Handle, HostId, Out, Packet, Port, quic};
use lasthop_scenario::stacks::stacks;
use lasthop_sim::Contents;
use lasthop_testing::random::coin;

const DIALOGUES: u64 = 60;

/// Changes a datagram as a stranger might: some bytes, the length, or all of it.
fn distort(bytes: &mut Vec<u8>, random: &mut Stream) {
    match random.below(6) {
        0 => bytes.truncate(random.below(bytes.len() as u64 + 1) as usize),
        1 => *bytes = (0..random.below(1500)).map(|_| random.below(256) as u8).collect(),
        2 => bytes.extend_from_within(..bytes.len() / 2),
        3 => {
            // A plausible first byte.
            let first = 0xc0 | random.below(64) as u8;
            let rest = (0..1199).map(|_| random.below(256) as u8);
            *bytes = [first, 0, 0, 0, 1].into_iter().chain(rest).collect();
        }
        _ => {
            for _ in 0..=random.below(8) {
                if !bytes.is_empty() {
                    let place = random.below(bytes.len() as u64) as usize;
                    bytes[place] = random.below(256) as u8;
                }
            }
        }
    }
}

/// What an end has sent.
fn sent(out: &mut Out) -> Vec<Packet> {
    let mut packets = Vec::new();
    while let Some((_, effect)) = out.take() {
        if let Effect::Send(_, packet) = effect {
            packets.push(packet);
        }
    }
    packets
}

/// A dialogue in which datagrams arrive at once, and some of them changed, or changed copies before them.
fn dialogue(random: &mut Stream) -> u64 {
    let contents = Contents::default();
    let mut distorted = 0;
    for stack in stacks() {
        for sender in stack.senders() {
            let mut ends = stack.ends(&StackFlow {
                connection: Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) },
                transfer: Transfer { bytes: coin(random).then_some(50_000), start: Time::ZERO },
                sender: sender.name,
                quic: &quic::Settings::default(),
                random: random.clone(),
                contents: Arc::new(contents.clone()),
            });
            let mut out = Out::default();
            for _ in 0..300 {
                let (index, now) =
                    (0..2).map(|end| (end, ends[end].next_wakeup())).min_by_key(|each| each.1).expect("two");
                if now == Time::NEVER {
                    break;
                }
                ends[index].wake(now, &mut out);
                assert!(ends[index].next_wakeup() > now);
                let mut under_way = sent(&mut out);
                let mut handled = 0;
                while handled < 2_000
                    && let Some(packet) = under_way.pop()
                {
                    handled += 1;
                    let end = usize::from(packet.dst.0);
                    let mut bytes = Vec::new();
                    contents.take(packet.handle, &mut |datagram| bytes.extend_from_slice(datagram));
                    if random.bernoulli(0.2) {
                        distort(&mut bytes, random);
                        distorted += 1;
                    }
                    let handle = contents.put(&bytes);
                    ends[end].receive(now, &Packet { handle, ..packet }, Port::ONLY, &mut out);
                    assert!(ends[end].next_wakeup() > now);
                    under_way.extend(sent(&mut out));
                }
                under_way.iter().for_each(|packet| contents.take(packet.handle, &mut |_| ()));
            }
            let stranger = Packet { handle: Handle::NONE, ..empty() };
            ends.iter_mut()
                .for_each(|end| end.receive(Time::from_nanos(1 << 50), &stranger, Port::ONLY, &mut out));
            assert!(ends.iter().all(|end| end.report().is_some()));
        }
    }
    assert_eq!(contents.held(), (0, 0));
    distorted
}

/// A packet whose contents are not there.
fn empty() -> Packet {
    use lasthop_proto::{Body, Datagram, Dscp, Ecn};
    Packet {
        src: HostId(1),
        dst: HostId(0),
        flow: FlowId(0),
        size: lasthop_base::Bytes(28),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Datagram(Datagram { seq: 0, sent: Time::ZERO }),
    }
}

#[test]
fn no_datagram_makes_an_end_panic_or_loop() {
    let streams = Streams::new(46, 1);
    let distorted: u64 =
        (0..DIALOGUES).map(|number| dialogue(&mut streams.stream(&number.to_string()))).sum();
    assert!(distorted > 100 * DIALOGUES / 10, "{distorted}");
}
