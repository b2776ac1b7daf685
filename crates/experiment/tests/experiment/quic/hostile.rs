//! Datagrams of strangers: an end of a QUIC connection neither panics nor loops, whatever arrives.

use std::sync::Arc;

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::application::{self, Activity, Distribution, Messages};
use lasthop_proto::stack::{Contents as _, Dialogue, Stack, StackFlow};
use lasthop_proto::tcp::{Connection, Transfer};
use lasthop_proto::{Component, Effect, FlowId, Handle, HostId, Out, Packet, Port, Signal, quic};
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

/// What an end has sent, and the requests that it has made.
fn sent(out: &mut Out) -> (Vec<Packet>, Vec<Signal>) {
    let (mut packets, mut requests) = (Vec::new(), Vec::new());
    while let Some((_, effect)) = out.take() {
        match effect {
            Effect::Send(_, packet) => packets.push(packet),
            Effect::Signal(signal @ Signal::Request(_)) => requests.push(signal),
            _ => {}
        }
    }
    (packets, requests)
}

/// The ends of a transfer, or of an application.
fn ends(stack: &dyn Stack, flow: &StackFlow<'_>, random: &mut Stream) -> [Box<dyn Component>; 2] {
    if coin(random) {
        let bytes = coin(random).then_some(50_000);
        return stack.transfer(flow, Transfer { bytes, start: Time::ZERO });
    }
    let of = |bytes| Distribution::Constant(Bytes(bytes));
    let (think, waits) = (Distribution::Constant(Duration::from_millis(20)), coin(random));
    let messages = Messages { request: of(2_000), response: of(9_000), think, waits, requests: Some(20) };
    let activity = Activity::Messages(messages);
    let config = application::Config { start: Time::ZERO, stop: Time::NEVER, tls: true, activity };
    let streams = Streams::new(46, 2);
    stack.application(flow, &Dialogue { responses: FlowId(1), config: &config, name: "user", streams })
}

/// A dialogue in which datagrams arrive at once, and some of them changed, or changed copies before them.
fn dialogue(random: &mut Stream) -> u64 {
    let contents = Contents::default();
    let mut distorted = 0;
    for stack in stacks() {
        for sender in stack.senders() {
            // Whatever is changed on the way, TLS rejects: it ends no dialogue.
            let tls = random.below(8) == 0;
            let [wakes, most] = if tls { [30, 100] } else { [300, 2_000] };
            let flow = StackFlow {
                connection: Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) },
                sender: sender.name,
                quic: &quic::Settings {
                    zero_rtt: coin(random),
                    one_stream: coin(random),
                    tls,
                    ..quic::Settings::default()
                },
                random: random.clone(),
                contents: Arc::new(contents.clone()),
                log: None,
                sidecar: None,
            };
            let mut ends = ends(*stack, &flow, random);
            let mut out = Out::default();
            for _ in 0..wakes {
                let (index, now) =
                    (0..2).map(|end| (end, ends[end].next_wakeup())).min_by_key(|each| each.1).expect("two");
                if now == Time::NEVER {
                    break;
                }
                ends[index].wake(now, &mut out);
                assert!(ends[index].next_wakeup() > now);
                let (mut under_way, requests) = sent(&mut out);
                requests.iter().for_each(|request| ends[1].on_signal(now, request, &mut out));
                let mut handled = 0;
                while handled < most
                    && let Some(packet) = under_way.pop()
                {
                    handled += 1;
                    let end = packet.dst.index();
                    let mut bytes = Vec::new();
                    contents.take(packet.handle, &mut |datagram| bytes.extend_from_slice(datagram));
                    if random.bernoulli(0.2) {
                        distort(&mut bytes, random);
                        distorted += 1;
                    }
                    let handle = contents.put(&bytes);
                    let port = Port(packet.flow.0);
                    ends[end].receive(now, &Packet { handle, ..packet }, port, &mut out);
                    assert!(ends[end].next_wakeup() > now);
                    let (packets, requests) = sent(&mut out);
                    requests.iter().for_each(|request| ends[1].on_signal(now, request, &mut out));
                    under_way.extend(packets);
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
