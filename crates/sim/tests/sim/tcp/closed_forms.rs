//! TCP throughput against formulas for a given window, link and loss rate.
//!
//! Losses are independent per packet, and the link is so fast that nothing queues, so the round-trip time is
//! constant as the formulas assume. Each run is long enough that its statistical error is at most a fifth of
//! the tolerance; seeds are fixed.

use lasthop_base::{BitRate, Bytes, Duration, Streams, Time};
use lasthop_proto::Component;
use lasthop_proto::tcp::{Flavour, Profile, Receiver, Sender, Settings, Transfer};
use lasthop_sim::{Builder, Link, NoTap, Node, QueueLimit};
use lasthop_testing::net::{CONNECTION, Filter, Loses, ring};

const GIGABIT: u64 = 1_000_000_000;
const ROUND_TRIP: f64 = 0.1;

/// Goodput of an unbounded transfer over `seconds`, in bits per second of payload.
fn throughput(settings: &Settings, bps: u64, loss: f64, seconds: u64) -> f64 {
    let rate = BitRate::from_bps(bps).expect("not zero");
    let link = || Link::wired(rate, Duration::from_millis(50), QueueLimit::Unlimited);
    let mut random = Streams::new(1, 0).stream("loss");
    let loses: Loses = Box::new(move |_| random.bernoulli(loss));
    let mut net = Builder::new();
    let sender =
        net.add(Sender::new(CONNECTION, settings, Transfer { bytes: None, start: Time::ZERO }, None));
    let receiver = net.add(Receiver::new(CONNECTION, settings));
    let (there, filter) = (net.add(link()), net.add(Box::new(Filter(loses)) as Box<dyn Component>));
    let back = net.add(link());
    ring(&mut net, &[sender, there, filter, receiver, back]);
    let mut engine = net.build(NoTap);
    engine.run(&[], Time::ZERO + Duration::from_secs(seconds));
    let Node::Receiver(sink) = engine.node(receiver) else { unreachable!("added there") };
    sink.stats().delivered.bits() as f64 / seconds as f64
}

fn within(found: f64, expected: f64, tolerance: f64, what: &str) {
    let ratio = found / expected;
    println!("{what}: {ratio:.3} of the formula");
    assert!((ratio - 1.0).abs() <= tolerance, "{what}: {found:.0} b/s is {ratio:.3} of {expected:.0} b/s");
}

/// Throughput = window / RTT if the window is the bottleneck. Slow start costs less than 0.1 %.
// Rule: Throughput is window / RTT or the link rate; under losses it follows the square-root and PFTK
// formulas. []
#[test]
fn throughput_is_window_limited() {
    for window in [4 * 1460, 20 * 1460, 65_535] {
        let settings = Settings { window: Bytes(window).into(), ack_every: 1, ..Settings::default() };
        let full = (window / 1460) * 1460;
        let serialised = 1500.0 * 8.0 / GIGABIT as f64 + 40.0 * 8.0 / GIGABIT as f64;
        let expected = full as f64 * 8.0 / (ROUND_TRIP + serialised);
        within(throughput(&settings, GIGABIT, 0.0, 1_000), expected, 0.001, &format!("window of {window} B"));
    }
}

/// Throughput is the link rate less headers if the link is the bottleneck.
// Rule: as throughput_is_window_limited
#[test]
fn throughput_is_link_limited() {
    for bps in [64_000, 384_000, 2_000_000] {
        let settings = Settings { window: Bytes(1 << 20).into(), ..Settings::default() };
        let expected = bps as f64 * 1460.0 / 1500.0;
        within(throughput(&settings, bps, 0.0, 1_000), expected, 0.002, &format!("{bps} b/s"));
    }
}

fn unlimited(flavour: Flavour, ack_every: u32) -> Settings {
    let window = Bytes(1 << 30);
    Settings { flavour, ack_every, window: window.into(), limited_transmit: false, ..Settings::default() }
}

/// Square-root law, MSS/RTT · C/√p (Mathis, Semke, Mahdavi, Ott 1997). For random loss C is 1.31 with an
/// acknowledgement per segment and 0.93 with one for two (their table 1). Valid if timeouts are rare and
/// windows are large, here twenty segments and more. Tolerance 10 %, the scatter of their simulations.
// Rule: as throughput_is_window_limited
#[test]
fn throughput_follows_the_square_root_law() {
    for (ack_every, c) in [(1, 1.31), (2, 0.93)] {
        for flavour in [Flavour::NewReno, Flavour::Sack] {
            for loss in [0.0005, 0.001, 0.002] {
                let found = throughput(&unlimited(flavour, ack_every), GIGABIT, loss, 5_000);
                let expected = 1460.0 * 8.0 / ROUND_TRIP * c / f64::sqrt(loss);
                within(found, expected, 0.10, &format!("{flavour:?}, loss {loss}, {ack_every} per ack"));
            }
        }
    }
}

/// PFTK with timeouts (Padhye, Firoiu, Towsley, Kurose 1998, equation 31). The model is of Reno and counts
/// all losses of a round as one, so under independent losses it underestimates Reno by at most its fitting
/// error. Tolerance 25 %, for losses that leave a window of more than three segments.
// Rule: as throughput_is_window_limited
#[test]
fn throughput_follows_pftk_with_timeouts() {
    for b in [1u32, 2] {
        for loss in [0.005, 0.01, 0.02, 0.05] {
            let p: f64 = loss;
            let (b_, t0) = (f64::from(b), 1.0);
            let timeouts = t0 * (3.0 * (3.0 * b_ * p / 8.0).sqrt()).min(1.0) * p * (1.0 + 32.0 * p * p);
            let segments_per_second = 1.0 / (ROUND_TRIP * (2.0 * b_ * p / 3.0).sqrt() + timeouts);
            let found = throughput(&unlimited(Flavour::Reno, b), GIGABIT, loss, 5_000);
            within(
                found,
                segments_per_second * 1460.0 * 8.0,
                0.25,
                &format!("Reno, loss {loss}, {b} per ack"),
            );
        }
    }
}

/// BBR version 3 spends 2 % of its bandwidth on ProbeRTT and 1 % on its pacing margin (draft-ietf-ccwg-bbr,
/// "ProbeRTT Design Rationale" and "Pacing Rate"); tolerance 2 %. It tolerates 1 % loss and reduces its rate
/// above 2 %; version 1 ignores losses.
#[test]
fn bbr3_tolerates_losses_up_to_its_threshold() {
    let rate = 20_000_000;
    let version_3 = Profile::LinuxBbr3.settings();
    let share = |settings: &Settings, loss| {
        let full = f64::from(rate as u32) * 1448.0 / 1500.0;
        let found = throughput(settings, rate, loss, 60) / full;
        println!("{:?}, loss {loss}: {found:.3} of the link", settings.congestion);
        found
    };
    assert!(share(&version_3, 0.0) >= 0.97 - 0.02);
    assert!(share(&version_3, 0.01) >= 0.8);
    assert!(share(&version_3, 0.05) <= 0.25);
    assert!(share(&Profile::LinuxBbr.settings(), 0.05) >= 0.8);
}
