//! The usual segments go a short way through sender and receiver. The same transfers here take the long one, too.

extern crate std;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Duration, Streams, Time};

use super::Sender;
use crate::component::{Component, Effect, Out, Port};
use crate::packet::{Body, Ecn, FlowId, HostId, Packet};
use crate::tcp::cc::Congestion;
use crate::tcp::ecn::EcnMode;
use crate::tcp::settings::{Flavour, Profile, Settings};
use crate::tcp::{Connection, Receiver, Transfer};

/// What the ends sent and when, and what they counted, in a transfer over a path that loses, reorders, repeats and marks packets.
fn transfer(settings: &Settings, seed: u64, is_short: bool) -> (Vec<(Time, Packet)>, String) {
    let mut random = Streams::new(seed, 0).stream("path");
    let connection = Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) };
    let bytes = 300 * u64::from(settings.mss()) + random.below(2_000);
    let start = Transfer { bytes: Some(bytes), start: Time::ZERO };
    let (mut sender, mut receiver) =
        (Sender::new(connection, settings, start, None), Receiver::new(connection, settings));
    sender.state.sends_plainly &= is_short;
    let (mut out, mut sent, mut flying) = (Out::default(), Vec::new(), Vec::<(Time, Packet)>::new());
    loop {
        let place = (0..flying.len()).min_by_key(|&place| flying[place].0);
        let arrival = place.map_or(Time::NEVER, |place| flying[place].0);
        let now = arrival.min(sender.next_wakeup()).min(receiver.next_wakeup());
        if now > Time::ZERO + Duration::from_secs(3_600) {
            return (sent, format!("{:?} {:?} {}", sender.stats(), receiver.stats(), sender.cwnd()));
        }
        if arrival == now {
            let (_, packet) = flying.swap_remove(place.expect("a packet arrives"));
            let Body::Tcp(segment) = packet.body else { unreachable!("all are segments") };
            match (packet.dst == connection.dst, is_short) {
                (true, true) => receiver.receive(now, &packet, Port::ONLY, &mut out),
                (true, false) => receiver.take_any(now, &segment, packet.ecn, &mut out),
                (false, true) => sender.receive(now, &packet, Port::ONLY, &mut out),
                (false, false) => sender.take_any(now, &segment, packet.ecn, &mut out),
            }
        } else if sender.next_wakeup() == now {
            sender.wake(now, &mut out);
        } else {
            receiver.wake(now, &mut out);
        }
        while let Some((_, effect)) = out.take() {
            let Effect::Send(_, mut packet) = effect else { continue };
            sent.push((now, packet));
            if packet.ecn != Ecn::NotEct && random.bernoulli(0.02) {
                packet.ecn = Ecn::Ce;
            }
            let late = if random.bernoulli(0.02) { 40 } else { 1 };
            let copies = [1, 0, 2][usize::from(random.bernoulli(0.03)) + usize::from(random.bernoulli(0.01))];
            for _ in 0..copies {
                let delay = Duration::from_millis(20) + random.up_to(Duration::from_millis(late));
                flying.push((now + delay, packet));
            }
        }
    }
}

#[test]
fn the_short_way_of_usual_segments_does_what_the_long_one_does() {
    let of = |profile: Profile| profile.settings();
    let flavour = |flavour| Settings { flavour, ..of(Profile::Rfc) };
    let all = [
        Settings { ack_every: 1, close: true, ..of(Profile::Rfc) },
        flavour(Flavour::Tahoe),
        flavour(Flavour::Reno),
        flavour(Flavour::Sack),
        flavour(Flavour::GoBackN),
        flavour(Flavour::SelectiveRepeat),
        Settings { handshake: false, timestamps: true, ..of(Profile::Rfc) },
        of(Profile::Ns2),
        of(Profile::Linux),
        Settings { congestion: Congestion::Prague, ..of(Profile::Linux) },
        Settings { ecn: EcnMode::Classic, ..of(Profile::Rfc) },
        of(Profile::LinuxBbr),
        of(Profile::Freebsd),
        of(Profile::Ebsn),
    ];
    for (number, settings) in all.iter().enumerate() {
        for seed in 0..2 {
            let (short, long) = (transfer(settings, seed, true), transfer(settings, seed, false));
            assert!(short.0.len() > 300, "a transfer of 300 segments");
            assert_eq!(short, long, "settings {number}, seed {seed}");
        }
    }
}
