//! Retransmission by an observer between the ends.

use lasthop_scenario::Scenario;

use super::{TRACED, count, events, only, run};

const PATH: &str = include_str!("pemi.toml");

/// Repairs, losses on the air, and goodput of some transfers.
fn outcome(scheme: &str, setting: &str) -> (u64, u64, f64) {
    let scenario = Scenario::parse(PATH, "pemi.toml", &[setting]).unwrap_or_else(|error| panic!("{error}"));
    (0..4).fold((0, 0, 0.0), |(repairs, losses, rates), number| {
        let run = run(&scenario, scheme, number, TRACED);
        let of_run = run.counters.iter().find(|each| each.counter == "repairs").map_or(0, |each| each.value);
        assert_eq!(count(events(&run), "copied"), of_run, "copies are in the trace");
        let metrics = only(&run);
        (repairs + of_run, losses + metrics.lost_on_air, rates + metrics.throughput_bps)
    })
}

/// Where each packet has its reply, repairs are about as many as losses. But they leave when the group is over, and quinn has found
/// most of the losses by then: they gain a little. Where each second packet has a reply, most are sent in vain.
#[test]
fn an_observer_of_groups_is_often_later_than_quinn() {
    let (_, _, basic) = outcome("basic", "quic.ack_every=1");
    let (repairs, losses, helped) = outcome("pemi", "quic.ack_every=1");
    assert!(5 * repairs > 2 * losses && 2 * repairs < 3 * losses, "{repairs} repairs, {losses} losses");
    assert!((1.05..1.3).contains(&(helped / basic)), "{helped} {basic}");
    let (repairs, losses, _) = outcome("pemi", "quic.ack_every=2");
    assert!(repairs > 4 * losses, "{repairs} repairs, {losses} losses");
}
