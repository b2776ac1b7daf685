//! Rate and delay of a link over time, as every run of a seed and number meets them.

use lasthop_base::{Duration, Streams, Time};
use lasthop_link::graph::LinkId;
use lasthop_link::varying::Timing;
use lasthop_scenario::{ErrorKind, Scenario, ScenarioError, alternatives};

use crate::link_name;

/// Opportunities of a trace are counted in bins of this length.
const BIN: Duration = Duration::from_millis(100);

/// Maximum number of rows, or of opportunities.
const MAX_ROWS: f64 = 4e6;

/// Which direction of a link, of which run, until when.
#[derive(Clone, Copy, Debug)]
pub struct LinkAsked<'a> {
    /// The link; by default the first whose rate or delay varies.
    pub link: Option<&'a str>,
    /// The direction to the base station, or to the first end of a wired link.
    pub up: bool,
    /// The seed of the study.
    pub seed: u64,
    /// The number of the run.
    pub run: u64,
    /// The end, in seconds; at most the time limit counts.
    pub until_s: f64,
}

/// The names of the links whose rate or delay varies in either direction.
///
/// # Errors
/// If the scenario has [faults](Scenario::faults).
pub fn varying_links(scenario: &Scenario) -> Result<Vec<String>, ScenarioError> {
    let network = scenario.network()?;
    let varying = (0..).map(LinkId).zip(&network.links).filter(|(_, link)| link.varies());
    Ok(varying.map(|(id, _)| link_name(&network, id)).collect())
}

/// Rate in bits per second and delay in seconds of a link over time: the times from which on they hold, in seconds. The
/// delay is NaN if each packet has its own. The opportunities of a trace are counted in bins of 100 ms.
///
/// # Errors
/// If the scenario has [faults](Scenario::faults), or no such link, or if there are too many changes.
pub fn link_timing(scenario: &Scenario, asked: LinkAsked<'_>) -> Result<Vec<[f64; 3]>, ScenarioError> {
    let (timing, until) = timing(scenario, asked)?;
    let delay = |delay: Option<Duration>| delay.map_or(f64::NAN, |delay| delay.as_secs_f64());
    let rows = timing.trajectory(until, BIN).into_iter();
    Ok(rows.map(|(at, bps, held)| [at.as_secs_f64(), bps, delay(held)]).collect())
}

/// The transmission opportunities of a link in milliseconds: a mahimahi trace of it.
///
/// # Errors
/// As [`link_timing`](link_timing).
pub fn link_opportunities(scenario: &Scenario, asked: LinkAsked<'_>) -> Result<Vec<u64>, ScenarioError> {
    let (timing, until) = timing(scenario, asked)?;
    Ok(timing.opportunities(until))
}

fn timing(scenario: &Scenario, asked: LinkAsked<'_>) -> Result<(Timing, Time), ScenarioError> {
    let LinkAsked { link, up, seed, run, until_s } = asked;
    let network = scenario.network()?;
    let all = || (0..).map(LinkId).zip(&network.links);
    let found = match link {
        Some(wanted) => all().find(|(id, _)| link_name(&network, *id) == wanted),
        None => all().find(|(_, link)| link.varies()),
    };
    let Some((id, link)) = found else {
        let names: Vec<String> = all().map(|(id, _)| link_name(&network, id)).collect();
        return Err(scenario.error(
            ErrorKind::Request,
            match link {
                Some(wanted) => {
                    let alternatives = alternatives(wanted, names.iter().map(String::as_str));
                    format!("link: found \"{wanted}\", {alternatives}")
                }
                None => String::from(
                    "link: found none whose rate or delay varies; name one, such as \"base-mobile\"",
                ),
            },
        ));
    };
    let until = Time::ZERO + scenario.limit.min(Duration::from_secs_f64(until_s));
    let Some(rate) = link.rate(up) else {
        return Err(scenario.error(
            ErrorKind::Request,
            String::from("link: found one of a cell, expected one with a rate of its own"),
        ));
    };
    let steps = link.step(up).map_or(0.0, |step| until.as_secs_f64() / step.as_secs_f64());
    let opportunities = rate.as_bps() as f64 * until.as_secs_f64() / 12_032.0;
    for (found, what) in [(opportunities, "packets"), (steps, "changes")] {
        if found > MAX_ROWS {
            let problem = format!("found {found:.0} {what} until then, expected at most {MAX_ROWS:.0}");
            return Err(scenario.error(ErrorKind::Request, format!("link: {problem}; ask for less time")));
        }
    }
    let streams = Streams::new(seed, run);
    let timing = network.timing(id, up, streams).expect("the link has a rate");
    Ok((timing, until))
}
