//! What the comparison of flows promises, by simulation: flows of hosts that share fades, looked at after each ten seconds.

use std::net::SocketAddr;

use lasthop_base::{Stream, Streams};
use lasthop_gateway::report::rows::{Arm, End, FlowRow, Line, Outcome, Settings};
use lasthop_gateway::report::{Evidence, Gain, OBSERVED_S};

/// What is simulated.
#[derive(Clone, Copy, Debug)]
struct World {
    /// The ratio of a helped flow's speed to that of the same flow unhelped.
    gain: f64,
    unhelped: f64,
    hosts: u64,
    flows: u32,
    /// The share of helped flows that fail.
    failing: f64,
    /// The share of flows that would go on for ever.
    endless: f64,
}

const WORLD: World = World { gain: 1.0, unhelped: 0.5, hosts: 12, flows: 2500, failing: 0.01, endless: 0.0 };

pub(crate) fn settings() -> Settings {
    Settings { time_s: 0.0, scheme: String::from("i-tcp"), is_helping: true, keys: String::new() }
}

/// The flows of a world in the order in which their observation ends. Hosts differ, fades are common to all hosts, short
/// flows are slower, and one of three comes with others of its host.
fn flows(world: World, run: u64) -> Vec<FlowRow> {
    let streams = Streams::new(44, run);
    let [mut outcomes, mut lot] = ["outcomes", "lot"].map(|name| streams.stream(name));
    let hosts: Vec<f64> = (0..world.hosts).map(|_| 0.7 * outcomes.normal()).collect();
    let (mut began_s, mut fade, mut host) = (100.0, 0.0, 0);
    let mut rows: Vec<FlowRow> = Vec::new();
    for number in 0..world.flows {
        let is_alone = outcomes.bernoulli(0.67);
        if is_alone || number == 0 {
            // A few hosts have most flows.
            host = outcomes.below(world.hosts).min(outcomes.below(world.hosts));
            began_s += 4.0 * outcomes.uniform();
            fade = 0.98 * fade + 0.2 * 0.6 * outcomes.normal();
        }
        let arm = if lot.bernoulli(world.unhelped) { Arm::Unhelped } else { Arm::Helped };
        let coin = lot.bernoulli(0.5);
        rows.push(row(
            &mut outcomes,
            world,
            (host, hosts[host as usize] + fade),
            began_s,
            number,
            (arm, coin),
        ));
    }
    rows.sort_by(|a, b| a.ended_s.total_cmp(&b.ended_s));
    rows
}

/// Flows that help makes slower, of which the first begins at `time_s`.
#[cfg(target_os = "linux")]
pub(crate) fn harmful(time_s: f64) -> Vec<FlowRow> {
    let mut rows = flows(World { gain: 0.4, ..WORLD }, 0);
    for row in &mut rows {
        row.began_s += time_s;
        row.ended_s += time_s;
    }
    rows
}

fn row(
    outcomes: &mut Stream,
    world: World,
    (host, speed): (u64, f64),
    began_s: f64,
    number: u32,
    (arm, coin): (Arm, bool),
) -> FlowRow {
    let finite = (10f64.powf(5.0 + 0.8 * outcomes.normal())).clamp(200.0, 3e7);
    let asked = if outcomes.bernoulli(world.endless) { f64::INFINITY } else { finite };
    // Seldom, a flow is slower by far.
    let outlier = if outcomes.bernoulli(0.03) { -2.0 } else { 0.0 };
    let log_speed =
        13.0 + 0.6 * (asked / 1e5).ln().clamp(-4.0, 2.0) + speed + 0.5 * outcomes.normal() + outlier;
    let gained = if arm == Arm::Helped { world.gain.ln() } else { 0.0 };
    let speed = (log_speed + gained).exp() / 8.0;
    let active_s = (asked / speed).min(OBSERVED_S);
    let is_cut_off = active_s == OBSERVED_S;
    let failure = outcomes.uniform();
    let has_failed = failure < if arm == Arm::Helped { world.failing } else { 0.01 };
    let port = [443, 80, 22][outcomes.below(3) as usize];
    let ended_s = began_s + if has_failed { OBSERVED_S } else { active_s };
    FlowRow {
        began_s,
        ended_s,
        client: SocketAddr::from(([10, 0, 0, host as u8], number as u16)),
        server: SocketAddr::from(([192, 0, 2, 1], port)),
        class: format!("port {port}"),
        arm,
        unhelped: world.unhelped,
        coin,
        outcome: match (has_failed, is_cut_off) {
            (true, _) => Outcome::Stalled,
            (false, true) => Outcome::Active,
            (false, false) => Outcome::Closed,
        },
        first_byte_s: None,
        active_s: (!has_failed).then_some(active_s),
        bytes_to_client: asked.min(speed * OBSERVED_S) as u64,
        bytes_to_server: 0,
        behind: End::Client,
        wired_rtt_s: None,
        radio_rtt_s: None,
        sent_bytes: 0,
        retransmitted_bytes: 0,
        repaired_bytes: 0,
    }
}

/// What was ever seen in a run, by looking after each ten seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// An interval without the true gain.
    missed: bool,
    /// One above a ratio of 1, and the number of flows then.
    gained: Option<u64>,
    /// One without 1 between unhelped flows.
    same_differs: bool,
    /// Harm, with an error of 1 % and of 5 %.
    harmed: [bool; 2],
}

fn look(world: World, run: u64) -> Seen {
    let mut evidence = Evidence::default();
    evidence.add(&Line::Start(settings()));
    let mut seen = Seen::default();
    let mut looked_s = 0.0;
    let rows = flows(world, run);
    let end_s = rows.last().expect("flows").ended_s + 100.0;
    let mut rows = rows.into_iter().peekable();
    while looked_s < end_s {
        looked_s += 10.0;
        while let Some(row) = rows.next_if(|row| row.ended_s <= looked_s) {
            evidence.add(&Line::Flow(Box::new(row)));
        }
        evidence.advance(looked_s);
        let report = evidence.report();
        let excludes = |gain: Option<Gain>, ratio: f64| {
            gain.is_some_and(|Gain { low, high, .. }| !(low..=high).contains(&ratio))
        };
        let all = &report.groups[0];
        seen.missed |= excludes(all.gain, world.gain);
        if seen.gained.is_none() && all.gain.is_some_and(|gain| gain.low > 1.0) {
            seen.gained = Some(all.flows);
        }
        seen.same_differs |= excludes(report.same.gain, 1.0);
        for (index, error) in [0.01, 0.05].into_iter().enumerate() {
            seen.harmed[index] |= evidence.shows_harm(error);
        }
    }
    seen
}

/// The largest count of `runs` events that a probability of 5 % explains, but for 1 in 100.
fn most_of(runs: u64) -> usize {
    let mean = 0.05 * runs as f64;
    (mean + 2.33 * (mean * 0.95).sqrt() + 0.5) as usize
}

/// The number of simulated comparisons.
fn runs() -> u64 {
    std::env::var("LASTHOP_COMPARISONS").map_or(60, |runs| runs.parse().expect("a number"))
}

fn look_at_all(world: World) -> Vec<Seen> {
    (0..runs()).map(|run| look(world, run)).collect()
}

fn count(seen: &[Seen], of: impl Fn(&Seen) -> bool) -> usize {
    seen.iter().filter(|seen| of(seen)).count()
}

#[test]
fn intervals_hold_however_often_one_looks() {
    for world in [
        WORLD,
        World { unhelped: 0.1, flows: 4000, ..WORLD },
        World { gain: 1.3, ..WORLD },
        World { gain: 3.0, hosts: 2, ..WORLD },
        World { gain: 2.0, endless: 0.9, ..WORLD },
    ] {
        let seen = look_at_all(world);
        let missed = count(&seen, |seen| seen.missed);
        let same = count(&seen, |seen| seen.same_differs);
        let gained = count(&seen, |seen| seen.gained.is_some());
        let harmed = count(&seen, |seen| seen.harmed[1]);
        let mut flows: Vec<u64> = seen.iter().filter_map(|seen| seen.gained).collect();
        flows.sort_unstable();
        println!(
            "{world:?}: {missed} missed, {same} among themselves, {harmed} harmed, {gained} gained, at {:?} flows, of {}",
            flows.get(flows.len() / 2),
            runs()
        );
        assert!(missed <= most_of(runs()), "{missed}: {world:?}");
        assert!(same <= most_of(runs()), "{same}: {world:?}");
        match world.gain > 1.0 {
            true => assert!(gained >= runs() as usize * 9 / 10, "{gained}: {world:?}"),
            false => assert!(gained <= most_of(runs()), "{gained}: {world:?}"),
        }
        assert!(harmed <= most_of(runs()), "{harmed}: {world:?}");
    }
}

#[test]
fn harm_is_found() {
    for world in [
        World { gain: 0.7, ..WORLD },
        World { failing: 0.1, ..WORLD },
        World { gain: 0.7, endless: 0.9, ..WORLD },
    ] {
        let seen = look_at_all(world);
        let harmed = count(&seen, |seen| seen.harmed[0]);
        println!("{world:?}: harm was found in {harmed} of {}", runs());
        assert!(harmed >= runs() as usize * 9 / 10, "{harmed}: {world:?}");
    }
}

#[test]
fn only_a_reload_ends_a_stop() {
    let mut evidence = Evidence::default();
    let later = |time_s| Settings { time_s, ..settings() };
    for (line, stopped_s) in [
        (Line::Start(settings()), None),
        (Line::Stop { time_s: 5.0 }, Some(5.0)),
        (Line::Start(later(6.0)), Some(5.0)),
        (Line::Clock(later(7.0)), Some(5.0)),
        (Line::Reload(later(8.0)), None),
    ] {
        evidence.add(&line);
        assert_eq!(evidence.stopped_s(), stopped_s, "{line:?}");
    }
}
