//! Bad periods of a channel in the run of a seed and a number.

use lasthop_base::{Duration, Streams, Time};
use lasthop_channel::{Sojourn, State};
use lasthop_scenario::Scenario;
use lasthop_scenario::network::{Network, NetworkLink};

/// The bad periods of the first wireless link's channel in run number `run` with `seed`, in seconds:
/// those that begin before `until_s` and the time limit. They are the same for every scheme. Empty for a
/// channel without states, and for a scenario with [faults](Scenario::faults).
pub fn bad_periods(scenario: &Scenario, seed: u64, run: u64, until_s: f64) -> Vec<(f64, f64)> {
    let until = Time::ZERO + scenario.limit.min(Duration::from_secs_f64(until_s));
    let Ok(network) = scenario.network() else { return Vec::new() };
    let periods = periods_until(&network, Streams::new(seed, run), until);
    periods.iter().map(|(start, end)| (start.as_secs_f64(), end.as_secs_f64())).collect()
}

/// The bad periods of the first wireless link's channel in a run that begin before `until`, each with its
/// start and end. If its mobile host moves: the periods in which none of its base stations reaches it well. Channel
/// states depend on the run number only, not on packets.
fn periods_until(network: &Network, streams: Streams, until: Time) -> Vec<(Time, Time)> {
    let first = network.links.iter().find_map(|link| match link {
        NetworkLink::Radio(hop) => Some(match hop.place {
            Some((index, _)) => {
                let mut last_hops = network.last_hops();
                let links = last_hops.remove(&network.moving[index].host).unwrap_or_default();
                network.channels(&links, streams)
            }
            None => vec![hop.channel(1 - hop.mobile, network, streams)],
        }),
        NetworkLink::Station(station) => Some(vec![station.channel(streams)]),
        NetworkLink::Wired(_) => None,
    });
    let Some(mut channels) = first else { return Vec::new() };
    let mut periods: Vec<(Time, Time)> = Vec::new();
    let mut now = Time::ZERO;
    while now < until {
        let sojourns: Vec<Sojourn> = channels.iter_mut().map(|channel| channel.sojourn(now)).collect();
        let end = sojourns.iter().map(|sojourn| sojourn.until).min().unwrap_or(Time::NEVER);
        if sojourns.iter().all(|sojourn| sojourn.state == State::Bad) {
            match periods.last_mut().filter(|last| channels.len() > 1 && last.1 == now) {
                Some(last) => last.1 = end,
                None => periods.push((now, end)),
            }
        }
        now = end;
    }
    periods
}
