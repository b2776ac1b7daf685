//! Random settings for randomised tests.

use std::iter;

use lasthop_base::{Bytes, Duration, Probability, Stream, Streams};
use lasthop_link::queue::{Management, Queue, codel, fq_codel, red};
use lasthop_proto::tcp::{
    Congestion, Deflation, Detection, EcnMode, Flavour, IdleRestart, InitialThreshold, InitialWindow,
    Profile, RttArithmetic, RttSamples, Rules, Settings, SlowStartExit, WindowCounts,
};
use lasthop_sim::QueueLimit;
use serde::Deserialize;

/// A user timeout that no losses of a test outlast. By default, Linux gives a silent peer up.
pub const ENDLESS_PATIENCE: Option<Duration> = Some(Duration::from_secs(1_000_000_000));

/// All flavours.
pub const FLAVOURS: [Flavour; 7] = [
    Flavour::Tahoe,
    Flavour::Reno,
    Flavour::NewReno,
    Flavour::Sack,
    Flavour::GoBackN,
    Flavour::SelectiveRepeat,
    Flavour::Prr,
];

/// One of several values with equal probability.
pub fn pick<T: Copy>(random: &mut Stream, among: &[T]) -> T {
    among[random.below(among.len() as u64) as usize]
}

/// One of several names with equal probability. Each name has a draw of its own, and the highest one wins: a further name
/// takes its share and changes no other outcome, so a new scheme does not re-roll the worlds of the others.
pub fn pick_name<'a>(random: &mut Stream, among: &[&'a str]) -> &'a str {
    let draws = Streams::new(random.below(u64::MAX), 0);
    let winner = among.iter().max_by_key(|name| draws.stream(name).below(u64::MAX));
    winner.expect("there are names")
}

/// A fair coin.
pub fn coin(random: &mut Stream) -> bool {
    random.bernoulli(0.5)
}

/// A whole number of milliseconds up to `most`.
pub fn milliseconds(random: &mut Stream, most: u64) -> Duration {
    Duration::from_millis(random.below(most + 1))
}

/// Random settings: any profile, with any setting that a scenario may override.
pub fn settings(random: &mut Stream) -> Settings {
    let profile = pick(random, &Profile::ALL);
    let base = profile.settings();
    let flavour = pick(random, &FLAVOURS);
    let rules = pick(random, &[Rules::Rfc, Rules::Ns2]);
    let mss = pick(random, &[1, 88, 536, 960, 1460]);
    // A header with timestamps, and the payload.
    let packet_size = base.header + Bytes(12 + u64::from(mss));
    let rto_min = milliseconds(random, 1_000);
    Settings {
        flavour,
        user_timeout: ENDLESS_PATIENCE,
        detection: pick(random, &[Detection::Rack, Detection::Sack]),
        congestion: congestion(random, flavour),
        slow_start_exit: pick(
            random,
            &[
                SlowStartExit::Loss,
                SlowStartExit::Hystart,
                SlowStartExit::Hystart16,
                SlowStartExit::HystartPlusPlus,
            ],
        ),
        rules: if flavour == Flavour::Prr { Rules::Rfc } else { rules },
        window: (packet_size * (1 + random.below(60))).into(),
        window_counts: pick(
            random,
            &[WindowCounts::Payload, WindowCounts::Packets, WindowCounts::NearestPackets],
        ),
        initial_window: pick(
            random,
            &[
                InitialWindow::Rfc5681,
                InitialWindow::Rfc6928,
                InitialWindow::Segments(1),
                InitialWindow::Segments(4),
            ],
        ),
        delay_growth: coin(random),
        initial_ssthresh: pick(
            random,
            &[InitialThreshold::Unlimited, InitialThreshold::Window, InitialThreshold::Segments(5)],
        ),
        iss: pick(random, &[0, 1, u32::MAX, u32::MAX - 30_000, 1 << 31]),
        handshake: coin(random),
        close: coin(random),
        dupthresh: 1 + random.below(5) as u32,
        limited_transmit: coin(random),
        max_burst: random.below(5) as u32,
        halve_exactly: coin(random),
        careful: coin(random),
        deflation: pick(random, &[Deflation::Always, Deflation::Net3, Deflation::Never]),
        partial_deflation: coin(random),
        impatient: coin(random),
        partial_ack_sends: coin(random),
        tlp: coin(random),
        frto: coin(random),
        undo: coin(random),
        cwnd_validation: coin(random),
        ecn: ecn_mode(random),
        pacing: coin(random),
        rtt_arithmetic: pick(
            random,
            &[RttArithmetic::Exact, RttArithmetic::Ticks, RttArithmetic::NearestTick, RttArithmetic::Linux],
        ),
        rtt_samples: pick(random, &[RttSamples::OneAtATime, RttSamples::EveryAck]),
        tick: pick(random, &[1, 10, 100, 500].map(Duration::from_millis)),
        rto_initial: Duration::from_millis(200 + random.below(3_000)),
        rto_min,
        rto_max: Duration::from_secs(2 + random.below(60)),
        ack_every: 1 + random.below(3) as u32,
        quick_acks: random.below(20) as u32,
        ack_delay: milliseconds(random, 400),
        sack_blocks: 1 + random.below(4) as u32,
        dsack: coin(random),
        timestamps: coin(random),
        window_autotuning: coin(random),
        idle_restart: pick(random, &[IdleRestart::Never, IdleRestart::InitialWindow, IdleRestart::Halving]),
        ..base
    }
    .with_mss(mss)
}

/// Off as often as on, in which case half of the connections have accurate feedback.
fn ecn_mode(random: &mut Stream) -> EcnMode {
    let is_on = coin(random);
    // Takes nothing from what is drawn later, and depends little on it.
    let is_accurate = ((random.clone().uniform() * 1e9) as u64).is_multiple_of(2);
    match (is_on, is_accurate) {
        (false, _) => EcnMode::Off,
        (true, false) => EcnMode::Classic,
        (true, true) => EcnMode::Accurate,
    }
}

/// A congestion control that supports `flavour`; AIMD and none are drawn more often than others.
pub fn congestion(random: &mut Stream, flavour: Flavour) -> Congestion {
    let usual = pick(random, &[Some(Congestion::Aimd), Some(Congestion::None), None, None]);
    let any = pick(random, Congestion::ALL);
    usual.unwrap_or(if any.control().needs_samples && flavour != Flavour::Prr {
        Congestion::Cubic
    } else {
        any
    })
}

/// A queue with room for at least two packets.
pub fn queue(random: &mut Stream, packet: Bytes) -> QueueLimit {
    match random.below(3) {
        0 => QueueLimit::Unlimited,
        1 => QueueLimit::Packets(2 + random.below(20) as u32),
        _ => QueueLimit::Bytes(packet * (2 + random.below(20))),
    }
}

/// A discipline of any kind with any parameters. [`Priority`](lasthop_link::queue::Priority), which has none, is left to
/// tests of its own.
pub fn management(random: &mut Stream) -> Management {
    let limit = queue(random, Bytes(1500));
    let target = Duration::from_micros(1 + random.below(20_000));
    let interval = Duration::from_micros(1 + random.below(200_000));
    let mtu = Bytes(pick(random, &[0, 576, 1500, 9000]));
    let ecn = coin(random);
    let drawn = match random.below(3) {
        0 => Management::Codel(codel::Params { limit, target, interval, mtu, ecn }),
        1 => {
            let quantum = Bytes(1 + random.below(3_000));
            let flows = 1 + random.below(6) as u32;
            Management::FqCodel(fq_codel::Params { limit, quantum, flows, target, interval, mtu, ecn })
        }
        _ => {
            let min = random.uniform() * 10.0;
            let probability =
                |random: &mut Stream| Probability::new(0.001 + 0.998 * random.uniform()).expect("in [0, 1]");
            Management::Red(red::Params {
                limit,
                min,
                max: min + 0.1 + random.uniform() * 20.0,
                weight: probability(random),
                max_probability: probability(random),
                gentle: coin(random),
                wait: coin(random),
                mean_packet: Bytes(1 + random.below(1500)),
                ecn,
            })
        }
    };
    // A further discipline takes its share of the worlds and changes no other.
    let mut of_others = random.clone();
    let others: Vec<_> = Management::all().filter(|(name, _)| !OWN_DRAWS.contains(&name.as_str())).collect();
    let names: Vec<_> =
        OWN_DRAWS[..3].iter().copied().chain(others.iter().map(|(name, _)| name.as_str())).collect();
    let name = pick_name(&mut of_others, &names);
    let other = others.iter().find(|(other, _)| other == name);
    other.map_or(drawn, |(_, usual)| varied(&mut of_others, usual))
}

/// The disciplines that [`management`] draws by rules of their own, and the one that it leaves out.
const OWN_DRAWS: [&str; 4] = ["codel", "fq-codel", "red", "priority"];

/// A discipline with valid parameters around `usual`: each is up to twice as large, each flag is a coin, and the limit is a
/// [queue].
fn varied(random: &mut Stream, usual: &Management) -> Management {
    let table = toml::Table::try_from(usual).expect("parameters are a table");
    let mut tries = iter::repeat_with(|| {
        let mut table = table.clone();
        for params in table.iter_mut().filter_map(|(_, params)| params.as_table_mut()) {
            for (_, value) in params.iter_mut() {
                vary(random, value);
            }
        }
        match Queue::deserialize(table) {
            Ok(Queue::Managed(management)) => {
                Some(management).filter(|valid| valid.validate().is_ok() && passes(valid, LARGEST))
            }
            _ => None,
        }
    });
    tries.by_ref().take(100).flatten().next().unwrap_or(*usual)
}

/// Size of the largest packet: 1500 B, and as many options of TCP as a header has room for.
const LARGEST: Bytes = Bytes(1540);

/// Whether packets of a size ever pass.
fn passes(management: &Management, packet: Bytes) -> bool {
    management.largest_packet().is_none_or(|largest| packet <= largest)
}

fn vary(random: &mut Stream, value: &mut toml::Value) {
    let up_to = |random: &mut Stream, usual: u64| 1 + random.below(2 * usual.max(1));
    *value = match &*value {
        toml::Value::Boolean(_) => coin(random).into(),
        toml::Value::Integer(usual) => (up_to(random, usual.unsigned_abs()) as i64).into(),
        toml::Value::Float(usual) if *usual <= 1.0 => random.uniform().into(),
        toml::Value::Float(usual) => (2.0 * usual * random.uniform()).into(),
        toml::Value::String(text) => {
            if let Ok(usual) = text.parse::<Duration>() {
                Duration::from_nanos(up_to(random, usual.as_nanos())).to_string().into()
            } else if let Ok(usual) = text.parse::<Bytes>() {
                Bytes(up_to(random, usual.0)).to_string().into()
            } else if text.parse::<QueueLimit>().is_ok() {
                queue(random, Bytes(1500)).to_string().into()
            } else {
                return;
            }
        }
        _ => return,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_further_name_takes_its_share_and_changes_no_other_outcome() {
        let names = ["a", "b", "c", "d"];
        let mut won = [0_u32; 4];
        for seed in 0..4_000 {
            let pick = |count: usize| pick_name(&mut Streams::new(seed, 0).stream("draw"), &names[..count]);
            let (before, after) = (pick(3), pick(4));
            assert!(after == before || after == "d");
            won[names.iter().position(|name| *name == after).unwrap()] += 1;
        }
        // 1,000 each, with a standard deviation of 27.
        assert!(won.iter().all(|won| won.abs_diff(1_000) < 5 * 27), "{won:?}");
    }
}
