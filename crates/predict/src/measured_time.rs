//! The time over which a run measures throughput.

use lasthop_base::Time;
use lasthop_scenario::Scenario;
use lasthop_scenario::network::Workload;

/// The longest time in seconds over which a run measures throughput: from the start of its first transfer, or the
/// end of the warm-up if later, until the limit. Without transfers all of it after the warm-up.
pub fn measured_time_s(scenario: &Scenario) -> f64 {
    let seconds = |time: Time| time.since(Time::ZERO).as_secs_f64();
    let network = scenario.network().ok();
    let starts = network.iter().flat_map(|network| &network.flows).filter_map(|flow| match &flow.workload {
        Workload::Transfer { transfer, .. } => Some(transfer.start),
        _ => None,
    });
    let warmup = Time::ZERO + scenario.warmup;
    let begin = starts.min().map_or(warmup, |start| start.max(warmup));
    scenario.limit.as_secs_f64() - seconds(begin)
}
