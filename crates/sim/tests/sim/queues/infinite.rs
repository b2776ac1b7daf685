//! A queue without a limit: M/D/1.

use lasthop_base::Duration;
use lasthop_proto::traffic::Pattern;
use lasthop_sim::QueueLimit;

use crate::queues::net::{DELAY, Estimate, Net, SERVICE, always, load};

/// Mean wait, in services, for Poisson sources with these loads in thousandths of the link rate.
fn mean_wait(loads: &[u64], stretch: Duration) -> Estimate {
    let configs: Vec<_> = loads.iter().map(|&each| always(Pattern::Poisson { rate: load(each) })).collect();
    let mut net = Net::new(loads[0], &configs, QueueLimit::Unlimited);
    let passage = (SERVICE + DELAY).as_secs_f64();
    let wait = net.ratio(stretch, |net| {
        let sink = net.sink();
        (sink.total_delay.as_secs_f64() - passage * sink.packets as f64, sink.packets as f64)
    });
    assert_eq!(net.engine.tap().lost, 0);
    wait.over(SERVICE.as_secs_f64())
}

/// Pollaczek-Khinchine formula for constant services of length s: ρs/(2(1 − ρ)).
fn md1(load: f64) -> f64 {
    load / (2.0 * (1.0 - load))
}

#[test]
fn mean_waits_match_pollaczek_khinchine() {
    for (thousandths, stretch_s, tolerance) in
        [(300, 5, 0.05), (500, 5, 0.05), (800, 10, 0.1), (900, 20, 0.15)]
    {
        let load = thousandths as f64 / 1_000.0;
        let found = mean_wait(&[thousandths], Duration::from_secs(stretch_s));
        found.assert_is(&format!("wait at load {load}"), md1(load), tolerance);
    }
}

#[test]
fn superposed_poisson_sources_are_poisson() {
    let found = mean_wait(&[300, 500], Duration::from_secs(10));
    found.assert_is("wait at loads 0.3 and 0.5", md1(0.8), 0.1);
    let found = mean_wait(&[50; 10], Duration::from_secs(5));
    found.assert_is("wait at ten loads of 0.05", md1(0.5), 0.05);
}
