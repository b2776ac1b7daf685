//! A component driven by hand: no engine, no clock. A TCP sender gets an acknowledgement late, and its timer expires.
//!
//! `cargo run -p lasthop-sim --example component_by_hand`

use lasthop_base::{Duration, Time};
use lasthop_proto::tcp::{Connection, Reactions, Sender, Settings, Transfer};
use lasthop_proto::{Component, Effect, FlowId, HostId, Out};

fn main() {
    let connection = Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) };
    // Without a handshake the first data leave at once.
    let settings = Settings { handshake: false, ..Settings::default() };
    let transfer = Transfer { bytes: Some(100_000), start: Time::ZERO };
    let mut sender = Sender::new(connection, &settings, transfer, Reactions::default());

    // The loop of every driver: wake the component at its deadline, then carry out its effects.
    let mut out = Out::default();
    let mut sent = Vec::new();
    while sender.next_wakeup() < Time::ZERO + Duration::from_millis(3_500) {
        let now = sender.next_wakeup();
        sender.wake(now, &mut out);
        while let Some((_, effect)) = out.take() {
            let Effect::Send(_port, packet) = effect else { unreachable!("a sender only sends") };
            println!("{now}: {} B leave, cwnd {:.0} B", packet.size.0, sender.cwnd());
            sent.push(now);
        }
    }
    // Nobody acknowledges: the initial window, then the first segment again after 1 s, and after twice that.
    let last: Vec<f64> = sent.iter().rev().take(2).map(|at| at.as_secs_f64()).collect();
    assert_eq!(last, [3.0, 1.0]);
    assert_eq!(sender.stats().timeouts, 2);
}
