//! One congestion control over two transports, and two implementations of one control over one transport.

use super::{Observe, only, read, run};

/// Goodput of each run, in bits per second.
fn rates(sender: &str, loss: &str, runs: u64) -> Vec<f64> {
    let scenario = read(&[&format!("sender={sender}"), &format!("radio.channel.frame-loss.loss={loss}")]);
    (0..runs).map(|n| only(&run(&scenario, "basic", n, Observe::default())).throughput_bps).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// If each `packets`-th packet is lost, the window of Reno grows by one packet in a round trip from W/2 to W, after one of recovery.
/// Losses are random here. A QUIC sender reduces its window at once and pauses, where TCP goes on at half of the rate by
/// proportional rate reduction: with the same losses, its recovery lasts longer, by less than half a round trip.
#[test]
fn reno_of_linux_is_its_closed_form_over_both_transports() {
    // A round trip with the time of a packet at 10 Mb/s; payload of a packet over TCP and over QUIC.
    const ROUND_TRIP: f64 = 0.0612;
    const PAYLOADS: [f64; 2] = [1448.0, 1430.0];
    for (loss, packets) in [("0.01", 100.0_f64), ("0.03", 100.0 / 3.0)] {
        let most = ((0.25 + 1.5 * packets).sqrt() - 0.5) / 0.75;
        let cycle = most / 2.0 + 1.0;
        let [tcp, quic] = ["linux-reno", "quinn-linux-reno"].map(|sender| mean(&rates(sender, loss, 8)));
        let expected = 8.0 * PAYLOADS[0] * packets / (cycle * ROUND_TRIP);
        assert!((tcp / expected - 1.0).abs() < 0.06, "{loss}: {tcp} for {expected}");
        let longer = cycle * (tcp / quic * PAYLOADS[1] / PAYLOADS[0] - 1.0);
        assert!((0.05..0.4).contains(&longer), "{loss}: {longer} round trips, {tcp} {quic}");
    }
}

/// CUBIC of Linux over QUIC is CUBIC of Linux over TCP, with the same fades, and not the CUBIC of quinn.
#[test]
fn what_quinns_cubic_differs_by_is_the_control() {
    let [tcp, carried, quinn] =
        ["linux", "quinn-linux-cubic", "quinn-cubic"].map(|sender| rates(sender, "0.03", 8));
    let ratio = |one: &[f64], other: &[f64]| mean(one) / mean(other);
    assert!((0.95..1.0).contains(&ratio(&carried, &tcp)), "{carried:?} {tcp:?}");
    assert!(ratio(&quinn, &carried) > 1.2, "{quinn:?} {carried:?}");
}

/// An end keeps to the rate of a control that has one: BBR of Linux shares a last hop evenly with the same control over TCP, and
/// by itself leaves the queue nearly empty, which BBR of quinn fills.
#[test]
fn bbr_keeps_to_its_rate_over_quic() {
    let scenario = read(&[
        "radio.channel=perfect",
        "limit=30 s",
        "connection.tcp.sender=linux-bbr",
        "connection.quic.sender=quinn-linux-bbr",
    ]);
    let run_of_both = run(&scenario, "basic", 0, Observe::default());
    let [one, other] = [0, 1].map(|place: usize| run_of_both.connections[place].metrics.throughput_bps);
    assert!((0.6..1.6).contains(&(one / other)), "{one} {other}");
    let [linux, quinn] = ["quinn-linux-bbr", "quinn-bbr"].map(|sender| {
        let scenario = read(&["radio.channel=perfect", "limit=20 s", &format!("sender={sender}")]);
        only(&run(&scenario, "basic", 0, Observe::default())).mean_rtt_s.expect("samples")
    });
    // The path has 62 ms, and a full queue 60 ms more.
    assert!((0.06..0.08).contains(&linux) && quinn > 0.1, "{linux} {quinn}");
}

/// A receiver acknowledges as often as the sender asks it to, which costs nothing without losses.
#[test]
fn a_receiver_acknowledges_as_often_as_it_is_asked_to() {
    let of = |setting: &str| {
        let overrides = ["sender=quinn-cubic", "limit=10 s", "radio.channel=perfect", setting];
        let run = run(&read(&overrides), "basic", 0, Observe::default());
        let metrics = only(&run);
        let acks = metrics.acks_sent.expect("they are counted") as f64;
        (metrics.throughput_bps, metrics.segments_sent as f64 / acks)
    };
    for (setting, packets) in
        [("quic.ack_every=1", 1.0..1.1), ("quic.ack_every=2", 1.9..2.1), ("quic.ack_every=10", 8.0..10.1)]
    {
        let (rate, per_ack) = of(setting);
        assert!(rate > 9.0e6 && packets.contains(&per_ack), "{setting}: {rate}, {per_ack}");
    }
    // 25 packets of 1.2 ms come before the delay of 25 ms is over, and 200 ms are no more than a round trip.
    let (_, slow) = of("quic={ ack_every = 1000, ack_delay = \"200 ms\" }");
    let (_, quick) = of("quic={ ack_every = 1000, ack_delay = \"25 ms\" }");
    assert!((15.0..24.0).contains(&quick) && (1.5 * quick..120.0).contains(&slow), "{quick} {slow}");
}

#[test]
fn acknowledgement_settings_are_checked() {
    for (setting, reason) in
        [("ack_every=0", "from 1 to 1000 packets"), ("ack_delay=2 s", "from \"1 ms\" to \"1 s\"")]
    {
        let message = super::refused(&["sender=quinn-cubic", &format!("quic.{setting}")]);
        assert!(message.contains(reason) && message.contains("quic.ack_"), "{message}");
    }
}

/// Where an end paces, acknowledgements alone are not paced: at the rate of its first window, a receiver would merge five packets into
/// each.
#[test]
fn acknowledgements_are_not_paced() {
    let fast = [
        "sender=quinn-linux-bbr",
        "limit=2 s",
        "radio.channel=perfect",
        "radio.rate=500 Mbps",
        "radio.queue=4000 packets",
        "quic.window=50 MB",
    ];
    let run = run(&read(&fast), "basic", 0, Observe::default());
    let metrics = only(&run);
    let per_ack = metrics.segments_sent as f64 / metrics.acks_sent.expect("they are counted") as f64;
    assert!(metrics.throughput_bps > 3e8 && (1.9..2.2).contains(&per_ack), "{metrics:?}");
}
