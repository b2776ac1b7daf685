//! Air time of radios, and the energy of mobile hosts.

use lasthop_experiment::{Experiment, NetworkMetrics, Observe};
use lasthop_scenario::Scenario;
use lasthop_testing::scenario_texts::with;

/// A datagram of 1250 B to the mobile host and one of 125 B from it, over 1 Mb/s, within a second.
const DATAGRAMS: &str = r#"schemes = ["basic"]
limit = "1 s"

[wired]
rate = "10 Mbps"

[radio]
rate = "1 Mbps"
power = { transmit = "2 W", receive = "1 W", idle = "500 mW" }

[traffic.down]
from = "fixed"
to = "mobile"
packet_size = "1250 B"
law.constant.rate = "1 kbps"

[traffic.up]
from = "mobile"
to = "fixed"
packet_size = "125 B"
law.constant.rate = "900 bps"
"#;

fn metrics(text: &str, overrides: &[&str]) -> NetworkMetrics {
    let scenario = Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
    let scheme = scenario.schemes[0].clone();
    let run = scenario.run(&scheme, 1, 0, Observe::default()).unwrap_or_else(|error| panic!("{error}"));
    run.metrics.network
}

fn assert_close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
        "found {found}, expected {expected}"
    );
}

/// By hand: 10 ms down and 1 ms up; a second of 0.5 W, 10 ms of 0.5 W more and 1 ms of 1.5 W more.
#[test]
fn one_packet_takes_the_energy_of_its_air_time() {
    let found = metrics(DATAGRAMS, &[]);
    assert_close(found.air_time_s, 0.011);
    assert_close(found.uplink_air_time_s, 0.001);
    assert_eq!(found.link_bits, 11_000);
    let energy = 0.5 + 0.005 + 0.0015;
    assert_close(found.mobile_energy_j.unwrap(), energy);
    // 1222 B and 97 B without headers.
    assert_close(found.energy_per_bit_j.unwrap(), energy / (8.0 * 1_319.0));
    // Half as many bits again, for as much longer.
    let coded = metrics(DATAGRAMS, &["radio.expansion=1.5"]);
    assert_close(coded.air_time_s, 0.0165);
    assert_close(coded.mobile_energy_j.unwrap(), 0.5 + 1.5 * 0.0065);
    assert_eq!(coded.energy_per_bit_j.map(|energy| energy > found.energy_per_bit_j.unwrap()), Some(true));
}

#[test]
fn without_powers_there_is_no_energy() {
    let text = DATAGRAMS.replace("power =", "# power =");
    let found = metrics(&text, &[]);
    assert_close(found.air_time_s, 0.011);
    assert_eq!((found.mobile_energy_j, found.energy_per_bit_j), (None, None));
    // A link may have its own power.
    let own = ["link.base-mobile.power={transmit=\"2 W\", receive=\"1 W\", idle=\"0 W\"}"];
    assert_close(metrics(&text, &own).mobile_energy_j.unwrap(), 0.012);
    // Nothing delivered is not a bit.
    let lost = metrics(DATAGRAMS, &["radio.channel.frame-loss.loss=1"]);
    assert_close(lost.mobile_energy_j.unwrap(), 0.5065);
    assert_eq!(lost.energy_per_bit_j, None);
}

/// What a warm-up leaves out: here everything but half a second of idling.
#[test]
fn the_warm_up_does_not_count() {
    let found = metrics(DATAGRAMS, &["warmup=500 ms"]);
    assert_eq!((found.air_time_s, found.uplink_air_time_s, found.energy_per_bit_j), (0.0, 0.0, None));
    assert_close(found.mobile_energy_j.unwrap(), 0.25);
}

/// With an ARQ the air time is that of all attempts: of as many bits as were sent, each rounded up to a nanosecond.
#[test]
fn retransmissions_take_air_time() {
    let power = "power = { transmit = \"2 W\", receive = \"1 W\", idle = \"1 W\" }\nexpansion";
    let text =
        with("expansion", power).replace("schemes = [\"basic\", \"ebsn\"]", "schemes = [\"local-recovery\"]");
    let found = metrics(&text, &[]);
    assert!(found.link_failures > 100);
    let bits_over_rate = found.link_bits as f64 / 19_200.0;
    assert!((found.air_time_s - bits_over_rate).abs() < 1e-9 * found.link_attempts as f64);
    // Receiving costs what idling costs.
    let run = Scenario::parse::<&str>(&text, "test.toml", &[]).unwrap();
    let run = run.run("local-recovery", 1, 0, Observe::default()).unwrap();
    let took = run.metrics.connections.completion_time_s.unwrap();
    let sending = found.mobile_energy_j.unwrap() - found.uplink_air_time_s;
    // The run ends when the last acknowledgement has arrived.
    assert!((sending - took) > 0.0 && (sending - took) < 1.0, "{sending} {took}");
    assert_close(found.energy_per_bit_j.unwrap(), found.mobile_energy_j.unwrap() / 800_000.0);
}

/// Links whose rates are drawn: between the air times at the least and the greatest rate.
#[test]
fn a_rate_that_varies_changes_the_air_time() {
    let steps = ["radio.rate.lognormal={median=\"1 Mbps\", sigma=1, slot=\"1 s\"}"];
    let found = metrics(DATAGRAMS, &steps);
    let nominal = metrics(DATAGRAMS, &[]).air_time_s;
    assert!(found.air_time_s != nominal && found.air_time_s > 0.0);
    assert_eq!(found.link_bits, 11_000);
}

/// A host that moves between base stations has one radio, three hosts have three.
#[test]
fn each_mobile_host_idles_once() {
    let moving = ["topology.hand-off.stations=3", "mobility.mobile.moves.periodic.stay=\"300 ms\""];
    let idle = metrics(DATAGRAMS, &moving).mobile_energy_j.unwrap();
    assert!((0.5..0.6).contains(&idle), "{idle}");
    let hosts = DATAGRAMS.replace("\"fixed\"", "\"server\"").replace("\"mobile\"", "\"MH1\"");
    let shared =
        ["topology.shared-radio.mobiles=3", "radio.arq.stop-and-wait={}", "schemes=[\"local-recovery\"]"];
    let found = metrics(&hosts, &shared);
    assert_close(found.air_time_s, 0.011);
    assert_close(found.mobile_energy_j.unwrap(), 3.0 * 0.5 + 0.0065);
    // A host that never sends listens all the same.
    let (deaf, _) = DATAGRAMS.split_once("[traffic.up]").unwrap();
    assert_close(metrics(deaf, &[]).mobile_energy_j.unwrap(), 0.505);
}

#[test]
fn invalid_powers_are_reported() {
    for (power, reason) in [
        ("{ transmit = \"2 W\", receive = \"1 W\" }", "missing key radio.power.idle"),
        ("{ transmit = 2, receive = \"1 W\", idle = \"1 W\" }", "expected a power with its unit, such as"),
        ("{ transmit = \"2 Wh\", receive = \"1 W\", idle = \"1 W\" }", "expected a power such as \"900 mW\""),
    ] {
        let text = DATAGRAMS.replace("{ transmit = \"2 W\", receive = \"1 W\", idle = \"500 mW\" }", power);
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err(power).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let uplink = "radio.uplink.power={transmit=\"2 W\", receive=\"1 W\", idle=\"0 W\"}";
    let error = Scenario::parse(DATAGRAMS, "test.toml", &[uplink]).expect_err("one direction").to_string();
    assert!(error.contains("radio.uplink.power: found it for one direction"), "{error}");
}
