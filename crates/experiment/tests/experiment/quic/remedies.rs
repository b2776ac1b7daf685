//! What schemes do for QUIC: those that read TCP nothing, and links, codes and queues what they do for any packet.

use lasthop_experiment::{Observe, Run};
use lasthop_proto::scheme::Schemes;
use lasthop_scenario::Scenario;

use super::{TRACED, count, events, only, read, run};

const LOSSY: &str = "radio.channel.frame-loss.loss=0.01";

/// Each scheme of the registry that says so, wherever it can be installed.
#[test]
fn schemes_that_read_tcp_change_no_packet_of_quic() {
    let all = Schemes::default();
    let names: Vec<(&str, bool)> = all.all().map(|scheme| (scheme.name(), scheme.reads_tcp())).collect();
    let link = [
        "sender=quinn-cubic",
        "limit=3 s",
        LOSSY,
        "radio.arq.stop-and-wait.retransmissions=0",
        "radio.fec=bch-255-131-18",
        "scheme.basic.arq=true",
    ];
    let basic = run(&read(&link), "basic", 0, TRACED);
    assert!(basic.without_effect.is_empty());
    let mut unchanged = 0;
    for (name, _) in names.iter().filter(|(_, reads_tcp)| *reads_tcp) {
        let Ok(scenario) = read(&link).with_schemes(vec![String::from(*name)], []) else { continue };
        let run = run(&scenario, name, 0, TRACED);
        assert_eq!((events(&run), only(&run)), (events(&basic), only(&basic)), "{name}");
        assert_eq!(run.connections[0].parts.len(), 1, "{name} does not split it");
        assert_eq!(run.without_effect.iter().map(|each| each.0).collect::<Vec<_>>(), [*name]);
        unchanged += 1;
    }
    assert!(unchanged >= 15, "{unchanged} schemes were tried");
}

#[test]
fn links_and_codes_help_quic() {
    let scenario = read(&["sender=quinn-cubic", LOSSY]);
    let of = |scheme: &str| run(&scenario, scheme, 0, Observe::default());
    let rate = |scheme: &str| of(scheme).metrics.connections.throughput_bps;
    let basic = rate("basic");
    assert!(rate("arq") > 3.5 * basic && rate("packet-fec") > 2.5 * basic);
    assert_eq!((rate("snoop"), rate("i-tcp")), (basic, basic));
    assert!(of("arq").without_effect.is_empty());
    assert_eq!(of("snoop").without_effect, [("snoop", "QUIC encrypts what it would read or change in TCP")]);
}

#[test]
fn a_scheme_for_quic_says_that_it_does_nothing_for_tcp() {
    let names = |overrides: &[&str]| {
        let scenario = read(overrides).with_schemes(vec![String::from("pemi")], []).expect("it is supported");
        let run = run(&scenario, "pemi", 0, Observe::default());
        run.without_effect.iter().map(|each| each.0).collect::<Vec<_>>()
    };
    assert_eq!(names(&["sender=linux", "limit=1 s"]), ["pemi"]);
    assert!(names(&["sender=quinn-cubic", "limit=1 s"]).is_empty());
    assert!(
        names(&["connection.tcp.sender=linux", "connection.quic.sender=quinn-cubic", "limit=1 s"]).is_empty()
    );
}

/// Where no connection uses TCP, a code for marks that nobody sets says so too.
#[test]
fn a_code_for_marks_says_that_quic_sets_none() {
    let code = ["sender=quinn-cubic", "limit=1 s", "radio.fec=bch-255-131-18", "radio.arq.stop-and-wait={}"];
    let names = |overrides: &[&str]| {
        let scenario = read(&[&code, overrides].concat());
        let scenario =
            scenario.with_schemes(vec![String::from("selective-fec")], []).expect("it is supported");
        let run = run(&scenario, "selective-fec", 0, Observe::default());
        run.without_effect.iter().map(|each| (each.0, each.1.contains("marks"))).collect::<Vec<_>>()
    };
    assert_eq!(names(&["scheme.selective-fec.protect=marked"]), [("selective-fec", true)]);
    assert_eq!(names(&["scheme.selective-fec.protect=selective"]), [("selective-fec", false)]);
    assert!(names(&["scheme.selective-fec.protect=repeated-units"]).is_empty());
}

/// Beside QUIC, a scheme still helps TCP.
#[test]
fn a_scheme_for_tcp_has_effect_beside_quic() {
    let both = ["connection.tcp.sender=linux", "connection.quic.sender=quinn-cubic", LOSSY, "limit=20 s"];
    let scenario = read(&both);
    let [basic, snoop, split] =
        ["basic", "snoop", "i-tcp"].map(|scheme| run(&scenario, scheme, 0, Observe::default()));
    assert!(snoop.connections[0].metrics.throughput_bps > 2.0 * basic.connections[0].metrics.throughput_bps);
    assert!(snoop.without_effect.is_empty());
    assert_eq!(split.connections.iter().map(|each| each.parts.len()).collect::<Vec<_>>(), [2, 1]);
}

/// Packets are repaired unread, whatever their transport. The repairs arrive after three later packets or more, by which TCP of Linux
/// learns how far packets are reordered, and QUIC with its usual threshold takes them for lost.
#[test]
fn a_sidekick_helps_those_who_wait_for_its_repairs() {
    let of = |overrides: &[&str], scheme| {
        run(&read(&[&[LOSSY, "limit=20 s"], overrides].concat()), scheme, 0, TRACED)
    };
    let rate = |run: &Run| run.metrics.connections.throughput_bps;
    for (overrides, least, most) in [
        (&["sender=linux"][..], 4.0, 6.0),
        (&["sender=quinn-cubic"], 0.8, 1.4),
        (&["sender=quinn-cubic", "quic.packet_threshold=10"], 3.5, 6.0),
    ] {
        let [basic, helped] = ["basic", "sidekick"].map(|scheme| of(overrides, scheme));
        let gain = rate(&helped) / rate(&basic);
        assert!((least..most).contains(&gain), "{overrides:?}: {gain}");
        assert!(helped.without_effect.is_empty());
        let counter = |name| helped.counters.iter().find(|each| each.counter == name).map(|each| each.value);
        let repairs = counter("repairs").expect("it is counted");
        assert_eq!(count(events(&helped), "copied"), repairs, "copies are in the trace");
    }
}

/// Traffic without answers, for whose quACKs there is a way back nevertheless. What was lost and repaired is not lost.
#[test]
fn a_sidekick_repairs_one_way_traffic() {
    let text = r#"
        limit = "60 s"
        schemes = ["basic", "sidekick"]
        [traffic.film]
        from = "fixed"
        to = "mobile"
        packet_size = "1 KB"
        law.constant = { rate = "800 kbps" }
        stop = "50 s"
        [wired]
        rate = "10 Mbps"
        delay = "5 ms"
        [radio]
        rate = "2 Mbps"
        delay = "5 ms"
        channel.frame-loss.loss = 0.1
    "#;
    let scenario = Scenario::parse::<&str>(text, "film.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let [basic, helped] =
        ["basic", "sidekick"].map(|scheme| run(&scenario, scheme, 0, Observe::default()).traffic.remove(0).1);
    assert!(basic.lost_packets > basic.sent_packets / 12);
    assert_eq!(helped.sent_packets, basic.sent_packets);
    assert_eq!(helped.delivered_packets + helped.lost_packets, helped.sent_packets);
    assert!(helped.lost_packets < helped.sent_packets / 500, "{}", helped.lost_packets);
}
