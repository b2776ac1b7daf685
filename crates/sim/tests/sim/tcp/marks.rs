//! Accurate ECN end to end: every mark is counted once.

use lasthop_base::{BitRate, Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::tcp::{Congestion, EcnMode, Flavour, Profile, Receiver, Sender, Settings, Transfer};
use lasthop_proto::{Component, DropReason, Ecn, Out, Packet, Port};
use lasthop_sim::{Builder, Link, NoTap, Node, QueueLimit};
use lasthop_testing::net::{CONNECTION, ring};

/// A path that marks packets and loses others.
#[derive(Debug)]
struct Path {
    marks: f64,
    losses: f64,
    random: Stream,
}

impl Component for Path {
    fn receive(&mut self, _now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        if self.random.bernoulli(self.losses) {
            return out.drop(*packet, DropReason::Scripted);
        }
        let is_marked = packet.ecn.is_capable() && self.random.bernoulli(self.marks);
        let ecn = if is_marked { Ecn::Ce } else { packet.ecn };
        out.send(Port::ONLY, Packet { ecn, ..*packet });
    }
}

/// Marks that arrived, marks that were counted, and segments that arrived twice, of a transfer of 500 segments whose data are marked
/// with probability `marks`, and half of whose ACKs may be lost.
fn transfer(settings: &Settings, marks: f64, ack_losses: f64, seed: u64) -> (u64, u64, u64) {
    let streams = Streams::new(seed, 0);
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(500 * u64::from(settings.mss())), start: Time::ZERO };
    let sender = net.add(Sender::new(CONNECTION, settings, transfer, None));
    let receiver = net.add(Receiver::new(CONNECTION, settings));
    let rate = BitRate::from_bps(10_000_000).expect("not zero");
    let links =
        [(); 2].map(|()| net.add(Link::wired(rate, Duration::from_millis(10), QueueLimit::Unlimited)));
    let paths = [("data", marks, 0.0), ("acks", marks, ack_losses)].map(|(name, marks, losses)| {
        net.add(Box::new(Path { marks, losses, random: streams.stream(name) }) as Box<dyn Component>)
    });
    ring(&mut net, &[sender, links[0], paths[0], receiver, links[1], paths[1]]);
    let mut engine = net.build(NoTap);
    engine.run(&[sender], Time::ZERO + Duration::from_secs(10_000));
    let (Node::Receiver(sink), Node::Sender(source)) = (engine.node(receiver), engine.node(sender)) else {
        unreachable!("added there")
    };
    assert!(source.stats().completed.is_some(), "the transfer has not ended");
    (sink.stats().marks, source.stats().marks, sink.stats().duplicate_segments)
}

/// Whatever share of packets is marked and however many ACKs are lost, by every recovery: the last ACK reports all marks, except those
/// on data that arrived again after it was sent.
/// With the most of both, timestamps sample the wait for lost ACKs, so that timeouts grow until the sender gives up, as in Linux.
#[test]
fn every_mark_is_counted_once() {
    for flavour in [Flavour::Tahoe, Flavour::NewReno, Flavour::Sack, Flavour::Prr] {
        for congestion in [Congestion::Cubic, Congestion::Dctcp, Congestion::Prague] {
            if congestion.control().needs_samples && flavour != Flavour::Prr {
                continue;
            }
            for (marks, ack_losses) in
                [(0.02, 0.0), (0.02, 0.5), (0.3, 0.2), (0.9, 0.0), (0.9, 0.3), (0.9, 0.5)]
            {
                for seed in 0..4 {
                    let timestamps = seed % 2 == 0;
                    if timestamps && (marks, ack_losses) == (0.9, 0.5) {
                        continue;
                    }
                    let settings = Settings {
                        flavour,
                        congestion,
                        ecn: EcnMode::Accurate,
                        window: Bytes(1 << 20).into(),
                        timestamps,
                        close: false,
                        ..Profile::Linux.settings()
                    };
                    let (arrived, counted, again) = transfer(&settings, marks, ack_losses, seed);
                    let case = format!("{flavour:?}, {congestion:?}, {marks}, {ack_losses}, seed {seed}");
                    assert!(arrived > 0 && counted <= arrived, "{case}: {counted} of {arrived}");
                    assert!(arrived - counted <= again, "{case}: {counted} of {arrived}, {again} twice");
                }
            }
        }
    }
}
