//! Random segments, at the edges of what is acceptable and far away, in every state, with an application that does anything.

use lasthop_base::{Bytes, Duration, Stream, Streams};
use lasthop_endpoint::Config;
use lasthop_endpoint::StateName::{
    CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen, SynReceived, SynSent,
    TimeWait,
};
use lasthop_proto::Ecn;
use lasthop_proto::tcp::{EcnCounters, EcnMode, FieldOrder, Flags, Profile, SackBlock, Settings};

use crate::peer::{Peer, SYN_ACK};

/// A number near one of the edges of a window of 10,000 bytes, or anywhere.
fn offset(random: &mut Stream) -> u32 {
    let edge = [0, 10_000, 50_000, 1 << 30, 1 << 31][random.below(5) as usize];
    let near = random.below(7) as u32;
    match random.below(4) {
        0 => random.below(1 << 32) as u32,
        1 => near.wrapping_sub(3).wrapping_add(edge),
        2 => near.wrapping_sub(3).wrapping_sub(edge),
        _ => random.below(3000) as u32,
    }
}

fn deliver_anything(peer: &mut Peer, random: &mut Stream) {
    let ack = peer.endpoint.sender().map_or(peer.iss + 1, |sender| sender.snd_max());
    let seq = peer.endpoint.receiver().map(|receiver| receiver.rcv_nxt());
    let mut header = peer.header(Flags(random.below(1 << 8) as u16));
    if random.bernoulli(0.7) {
        header.segment.flags = header.segment.flags | Flags::ACK;
    }
    let segment = &mut header.segment;
    segment.flags = segment.flags.with_ace(random.below(8) as u8);
    segment.seq = seq.unwrap_or(segment.seq) + if random.bernoulli(0.5) { 0 } else { offset(random) };
    segment.ack = ack + if random.bernoulli(0.5) { 0 } else { offset(random) };
    segment.wnd = if random.bernoulli(0.3) { 0 } else { random.below(1 << 16) as u32 };
    for _ in 0..random.below(3) {
        let start = ack - offset(random);
        segment.sack.push(SackBlock { start, end: start + offset(random) });
    }
    if random.bernoulli(0.3) {
        let order = if random.bernoulli(0.5) { FieldOrder::Ect0First } else { FieldOrder::Ect1First };
        let counters = [0; 3].map(|_: u32| random.below(1 << 24) as u32);
        let option = EcnCounters::new(order, &counters[..random.below(4) as usize]);
        segment.sack.set_ecn_counters(Some(option));
    }
    (header.mss, header.window_scale) = (Some(random.below(1 << 16) as u16), Some(random.below(15) as u8));
    header.sack_permitted = random.bernoulli(0.5);
    let payload = vec![random.below(256) as u8; [0, 0, 1, 100, 12_000][random.below(5) as usize]];
    let ecn = if random.bernoulli(0.2) { Ecn::Ce } else { Ecn::NotEct };
    peer.deliver_marked(header, &payload, ecn);
}

fn act(peer: &mut Peer, random: &mut Stream) {
    let now = peer.now;
    match random.below(40) {
        0 => peer.endpoint.shutdown(now),
        1 => peer.endpoint.close(now),
        2 if random.bernoulli(0.2) => peer.endpoint.abort(peer.now),
        3..8 => _ = peer.endpoint.send(now, &vec![1; random.below(5000) as usize]),
        8..12 => _ = peer.endpoint.read(now, &mut vec![0; random.below(5000) as usize]),
        12..18 => peer.wait(Duration::from_millis(random.below(3000))),
        18 => peer.wait(Duration::from_secs(random.below(100))),
        _ => deliver_anything(peer, random),
    }
}

/// In ESTABLISHED with all options.
fn modern(random: &mut Stream) -> Peer {
    let profiles = [Profile::Linux, Profile::LinuxBbr, Profile::LinuxBbr3, Profile::Freebsd];
    let profile = profiles[random.below(4) as usize].settings();
    let ecn = if random.bernoulli(0.5) { EcnMode::Classic } else { EcnMode::Accurate };
    let settings = Settings { ecn, window: Bytes(10_000).into(), ..profile };
    let mut peer = Peer::listening(Config { settings, ..Config::default() });
    peer.timestamp = Some(1);
    let mut syn = peer.header(Flags::SYN | ecn.syn_flags());
    (syn.mss, syn.window_scale, syn.sack_permitted) = (Some(1000), Some(2), true);
    peer.deliver(syn, b"");
    peer.seq += 1;
    peer.expect_syn(SYN_ACK);
    peer.send(Flags::ACK, b"");
    peer
}

// Rule: Random segments in every state, with an application that does anything: no panic, no transition
// outside of the state diagram. []
#[test]
fn nothing_that_arrives_makes_an_endpoint_panic() {
    let states = [
        Closed,
        Listen,
        SynSent,
        SynReceived,
        Established,
        FinWait1,
        FinWait2,
        CloseWait,
        Closing,
        LastAck,
        TimeWait,
    ];
    for seed in 0..crate::streams::worlds(2000) {
        let mut random = Streams::new(seed, 0).stream("fuzzing");
        let mut peer = if random.bernoulli(0.5) {
            modern(&mut random)
        } else {
            Peer::in_state(states[random.below(states.len() as u64) as usize])
        };
        let mut sent = 0;
        for _ in 0..100 {
            act(&mut peer, &mut random);
            let packets = peer.sent();
            assert!(packets.iter().all(|packet| packet.to_bytes().is_ok()));
            sent += packets.len();
            let wakeup = peer.endpoint.next_wakeup();
            assert!(wakeup > peer.now, "seed {seed}: {:?}", peer.state());
        }
        assert!(sent < 20_000, "seed {seed} sends {sent} packets");
    }
}
