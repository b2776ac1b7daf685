//! noq beside quinn, of which it is a fork: what differs is that its CUBIC takes back a reduction for what arrives after all.

use super::{Observe, only, read, refused, run};

/// Goodput of run 0, in Mb/s.
fn rate(sender: &str, scheme: &str, overrides: &[&str]) -> f64 {
    let sender = format!("sender={sender}");
    let scenario = read(&[&[sender.as_str(), "limit=20 s"], overrides].concat());
    only(&run(&scenario, scheme, 0, Observe::default())).throughput_bps / 1e6
}

/// Packets that come late look lost, and none is. CUBIC of quinn reduces its window each time, and that of noq takes it back; with a
/// threshold that few packets are late by, there is little to take back.
#[test]
fn noq_takes_back_what_reordering_cost() {
    let late = ["radio.channel=perfect", "wired.delay.netem={ delay = \"29 ms\", jitter = \"2 ms\" }"];
    let gain = |threshold| {
        let all = [&late[..], &[threshold]].concat();
        rate("noq-cubic", "basic", &all) / rate("quinn-cubic", "basic", &all)
    };
    let [usual, patient] = ["quic.packet_threshold=3", "quic.packet_threshold=20"].map(gain);
    assert!(usual > 3.0 && (1.0..1.3).contains(&patient), "{usual} {patient}");
}

/// So late repairs help, with the threshold of RFC 9002. With a source that hears of each loss, they do not: it was one.
#[test]
fn a_sidekick_helps_noq_with_the_usual_threshold() {
    let lossy = ["radio.channel.frame-loss.loss=0.01"];
    let gain = |sender| rate(sender, "sidekick", &lossy) / rate(sender, "basic", &lossy);
    let [quinn, cubic, newreno] = ["quinn-cubic", "noq-cubic", "noq-newreno"].map(gain);
    assert!(quinn < 1.4 && newreno < 1.4 && cubic > 3.0, "{quinn} {cubic} {newreno}");
    let at_source = [&lossy[..], &["scheme.sidekick.reader=source"]].concat();
    let source = rate("noq-cubic", "sidekick", &at_source) / rate("noq-cubic", "basic", &lossy);
    assert!(source < 1.2, "{source}");
}

#[test]
fn bbr_of_noq_is_refused_with_the_reason() {
    for name in ["noq-bbr", "noq-bbr3"] {
        let message = refused(&[&format!("sender={name}")]);
        assert!(message.contains("noq's BBR cannot be seeded"), "{message}");
    }
    assert!(!refused(&["sender=noq-vegas"]).contains("seeded"));
}
