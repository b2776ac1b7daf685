//! Links whose rate or delay varies: beside an independent model of mahimahi's link, beside links with a fixed rate, and
//! against closed forms. Seeds are fixed; each statistic must lie within 5 standard errors of its expectation.

mod granted;
mod limits;
mod reordering;
mod shaper;

use std::collections::VecDeque;

use lasthop_base::{BitRate, Bytes, Contents, Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{Model, Start, TwoState};
use lasthop_link::queue::{Codel, Discipline, DropTail, codel};
use lasthop_link::varying::{Delay, Opportunities, Rate, Timing, TimingStreams};
use lasthop_proto::arq::{Config, Retransmissions, selective_repeat};
use lasthop_proto::fec::BlockCode;
use lasthop_proto::frag::Mtu;
use lasthop_proto::{
    Body, Component, Datagram, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, fec,
};
use lasthop_sim::{Expansion, Fec, Link, QueueLimit, RadioConfig};
use lasthop_testing::net::plain_radio;
use serde::Deserialize;

#[derive(Deserialize)]
struct Stated {
    #[serde(default = "one_mbps")]
    rate: Rate,
    #[serde(default)]
    delay: Delay,
}

fn one_mbps() -> Rate {
    Rate::Fixed("1 Mbps".parse().unwrap())
}

/// A rate and a delay, with the contents of their files.
fn stated(text: &str, files: &[&str]) -> (Rate, Delay) {
    let Stated { mut rate, mut delay } = toml::from_str(text).expect("rate and delay");
    let mut contents = files.iter();
    for (_, file) in rate.files().into_iter().chain(delay.files()) {
        file.read(contents.next().expect("a file")).unwrap_or_else(|error| panic!("{error:?}"));
    }
    rate.validate().expect("a sound rate");
    delay.validate().expect("a sound delay");
    (rate, delay)
}

const HORIZON: Time = Time::from_nanos(1_000_000_000_000_000);

fn streams(run: u64) -> TimingStreams {
    let streams = Streams::new(41, run);
    let two = |name: &str| ["steps", "slots"].map(|part| streams.stream(&format!("{name} {part}")));
    TimingStreams { rate: two("rate"), delay: two("delay"), phase: streams.stream("phase") }
}

fn timing((rate, delay): &(Rate, Delay), run: u64) -> Timing {
    Timing::new(rate, delay, streams(run), HORIZON)
}

fn tail(limit: QueueLimit) -> Box<dyn Discipline> {
    Box::new(DropTail::new(limit))
}

fn packet(number: usize, size: u64) -> Packet {
    let body = Body::Datagram(Datagram { seq: number as u64, sent: Time::ZERO });
    let (src, dst, flow) = (HostId(0), HostId(1), FlowId(0));
    Packet {
        src,
        dst,
        flow,
        size: Bytes(size),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    }
}

/// What becomes of each packet: its arrival, or none if it is dropped. `arrivals` are in order, and come before anything
/// that the link does at the same instant, or after it.
fn drive(link: &mut dyn Component, arrivals: &[(Time, u64)], link_first: bool) -> Vec<Option<Time>> {
    let mut fates = vec![None; arrivals.len()];
    let mut out = Out::default();
    let mut to_come: VecDeque<_> = (0..).zip(arrivals).collect();
    loop {
        let due = link.next_wakeup();
        let next = to_come.front().map_or(Time::NEVER, |(_, arrival)| arrival.0);
        if due == Time::NEVER && next == Time::NEVER {
            return fates;
        }
        let now = due.min(next);
        if due < next || (due == next && link_first) {
            link.wake(now, &mut out);
        } else {
            let (number, (_, size)) = to_come.pop_front().expect("a packet is to come");
            link.receive(now, &packet(number, *size), Port::ONLY, &mut out);
        }
        while let Some((_, effect)) = out.take() {
            if let Effect::Send(_, Packet { body: Body::Datagram(datagram), .. }) = effect {
                fates[datagram.seq as usize] = Some(now);
            }
        }
    }
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// Mahimahi's link over one trace, written anew from its source: at each opportunity what is queued is sent, up to 1504
/// bytes; packets come after the opportunities of their time.
fn mahimahi(trace: &[u64], most: usize, arrivals: &[(Time, u64)]) -> Vec<Option<Time>> {
    let mut fates = vec![None; arrivals.len()];
    let (mut queue, mut transit) = (VecDeque::new(), None::<(usize, u64)>);
    let mut to_come = arrivals.iter().enumerate().peekable();
    for round in 0.. {
        for at in trace.iter().map(|opportunity| ms(round * trace[trace.len() - 1] + opportunity)) {
            while let Some((number, (_, size))) = to_come.next_if(|(_, arrival)| arrival.0 < at) {
                if queue.len() < most {
                    queue.push_back((number, *size));
                }
            }
            let mut left = 1504;
            while left > 0 {
                let Some((number, size)) = transit.take().or_else(|| queue.pop_front()) else { break };
                let part = left.min(size);
                left -= part;
                if part == size {
                    fates[number] = Some(at);
                } else {
                    transit = Some((number, size - part));
                }
            }
        }
        if to_come.peek().is_none() && queue.is_empty() && transit.is_none() {
            return fates;
        }
    }
    unreachable!("rounds do not end")
}

/// A random trace: bursts of opportunities at one time, and silences.
fn random_trace(random: &mut Stream) -> Vec<u64> {
    let mut at = random.below(3);
    let mut trace = Vec::new();
    for _ in 0..1 + random.below(200) {
        trace.push(at);
        if random.bernoulli(0.6) {
            let most = if random.bernoulli(0.05) { 2_000 } else { 12 };
            at += random.below(most);
        }
    }
    let last = trace.len() - 1;
    trace[last] = trace[last].max(1);
    trace
}

fn random_arrivals(random: &mut Stream, count: usize, most: u64) -> Vec<(Time, u64)> {
    let (mut whole, mut at) = (0, Time::ZERO);
    let arrivals = (0..count).map(|_| {
        if random.bernoulli(0.7) {
            let silence = if random.bernoulli(0.02) { 30_000 } else { 20 };
            whole += random.below(silence);
        }
        // Most come at whole milliseconds, where opportunities are.
        let part = if random.bernoulli(0.3) { random.below(1_000_000) } else { 0 };
        at = at.max(ms(whole) + Duration::from_nanos(part));
        (at, 28 + random.below(most))
    });
    arrivals.collect()
}

#[test]
fn a_trace_link_equals_mahimahi() {
    for seed in 0..400 {
        let mut random = Streams::new(5, seed).stream("mahimahi");
        let trace = random_trace(&mut random);
        let arrivals = random_arrivals(&mut random, 400, if seed % 3 == 0 { 9_000 } else { 1_476 });
        let most = [usize::MAX, 0, 1, 2, 10][seed as usize % 5];
        let limit = if most == usize::MAX { QueueLimit::Unlimited } else { QueueLimit::Packets(most as u32) };
        let file: String = trace.iter().map(|ms| format!("{ms}\n")).collect();
        let link = stated("rate.mahimahi.file = \"t\"", &[&file]);
        let expected = mahimahi(&trace, most, &arrivals);
        assert!(seed > 0 || expected.iter().all(Option::is_some));
        for link_first in [false, true] {
            let found = drive(&mut Link::wired_varying(timing(&link, 0), tail(limit)), &arrivals, link_first);
            assert_eq!(found, expected, "seed {seed}, {trace:?}");
        }
    }
}

/// A constant rate as a series is the wired link of that rate, to the nanosecond, whatever the queue.
#[test]
fn a_constant_series_equals_a_wired_link() {
    let series = "rate.series.file = \"a\"\ndelay.series.file = \"b\"";
    let rates = "time_s,rate_kbps\n0,777\n1,777\n1.5,777\n";
    let delays = "time_ms,delay_ms\n0,30\n13,30\n";
    let rate: BitRate = "777 kbps".parse().unwrap();
    for seed in 0..100 {
        let mut random = Streams::new(6, seed).stream("series");
        let arrivals = random_arrivals(&mut random, 400, 3_000);
        let limit = [QueueLimit::Unlimited, QueueLimit::Packets(3), QueueLimit::Bytes(Bytes(9_000))]
            [seed as usize % 3];
        let mut wired = Link::wired(rate, Duration::from_millis(30), limit);
        let expected = drive(&mut wired, &arrivals, true);
        let link = stated(series, &[rates, delays]);
        let found = drive(&mut Link::wired_varying(timing(&link, 0), tail(limit)), &arrivals, true);
        assert_eq!(found, expected, "seed {seed}");
    }
}

/// So is a trace of equal distances to within one opportunity, if a packet fills one.
#[test]
fn a_constant_trace_is_within_one_opportunity_of_a_wired_link() {
    // 1504 bytes every 4 ms.
    let rate = BitRate::from_bps(1504 * 8 * 250).unwrap();
    let link = stated("rate.mahimahi.file = \"t\"", &["4\n"]);
    assert_eq!(link.0.nominal(), rate);
    for seed in 0..50 {
        let mut random = Streams::new(7, seed).stream("constant");
        let mut arrivals = random_arrivals(&mut random, 400, 1);
        arrivals.iter_mut().for_each(|arrival| arrival.1 = 1504);
        let mut wired = Link::wired(rate, Duration::ZERO, QueueLimit::Unlimited);
        let expected = drive(&mut wired, &arrivals, true);
        let found =
            drive(&mut Link::wired_varying(timing(&link, 0), tail(QueueLimit::Unlimited)), &arrivals, true);
        for (found, expected) in found.into_iter().zip(expected) {
            let (found, expected) = (found.unwrap().as_secs_f64(), expected.unwrap().as_secs_f64());
            assert!((found - expected).abs() <= 0.004 + 1e-12, "seed {seed}: {found} for {expected}");
        }
    }
}

/// A wireless link with a timing of fixed rate and delay is the fixed link, with fades, codes, fragments, and an ARQ.
#[test]
fn a_wireless_link_with_a_fixed_timing_equals_the_fixed_link() {
    let p = |p| Probability::new(p).unwrap();
    let length = Duration::from_millis;
    let rate: BitRate = "500 kbps".parse().unwrap();
    let mut failed = 0;
    for seed in 0..120 {
        let mut random = Streams::new(8, seed).stream("wireless");
        let arrivals = random_arrivals(&mut random, 150, 1_476);
        let code = Fec { code: BlockCode::new(255, 131, 18).unwrap(), covers: fec::Covers::All };
        let repeat = selective_repeat::Params {
            retransmissions: Retransmissions::AtMost(3),
            feedback_delay: length(7),
            slot: length(1),
        };
        let config = RadioConfig {
            delay: length(5),
            expansion: Expansion::new(1.5).unwrap(),
            mtu: (seed % 2 == 0).then(|| Mtu::new(Bytes(500)).unwrap()),
            fec: (seed % 3 == 0).then_some(code),
            arq: if seed % 4 < 2 { Config::None } else { Config::SelectiveRepeat(repeat) },
            ..plain_radio(rate)
        };
        let states = TwoState {
            good: length(400),
            bad: length(100),
            good_ber: p(1e-5),
            bad_ber: p(2e-3),
            start: Start::Stationary,
        };
        let codel = || -> Box<dyn Discipline> { Box::new(Codel::new(codel::Params::default())) };
        let build = |varying: bool| {
            let streams = Streams::new(9, seed);
            let channel = Model::TwoState(states).build(streams.stream("channel"));
            let (bits, backoff) = (streams.stream("bits"), streams.stream("backoff"));
            match varying {
                true => {
                    let link = (Rate::Fixed(rate), Delay::Fixed(length(5)));
                    Link::radio_varying(config, timing(&link, 0), codel(), channel, bits, backoff)
                }
                false => Link::radio(config, codel(), channel, bits, backoff),
            }
        };
        let (mut fixed, mut varying) = (build(false), build(true));
        let expected = drive(&mut fixed, &arrivals, true);
        assert_eq!(drive(&mut varying, &arrivals, true), expected, "seed {seed}");
        assert_eq!(varying.stats(), fixed.stats(), "seed {seed}");
        failed += fixed.stats().failed_attempts;
    }
    assert!(failed > 1_000, "{failed} failed attempts");
}

/// A wireless link at the rate of `link`, without delay, queue limit or framing.
fn radio(link: &(Rate, Delay), arq: Config, model: Model) -> Link {
    let config = RadioConfig { arq, ..plain_radio(link.0.nominal()) };
    let streams = Streams::new(9, 0);
    let channel = model.build(streams.stream("channel"));
    let [bits, backoff] = ["bits", "backoff"].map(|name| streams.stream(name));
    Link::radio_varying(config, timing(link, 0), tail(QueueLimit::Unlimited), channel, bits, backoff)
}

/// By hand: 8000 bits in the first second, none in the next two, and 4000 bits in a quarter of a second. Of a trace, 12,000
/// bits at the mean rate of three opportunities in 6 ms.
#[test]
fn air_time_is_what_the_bits_take_at_the_rate_of_their_time() {
    let series = stated("rate.series.file = \"t\"", &["time_s,rate_bps\n0,8000\n1,0\n3,16000\n4,16000\n"]);
    let trace = stated("rate.mahimahi.file = \"t\"", &["1\n2\n6\n"]);
    let of_trace = trace.0.nominal().time_for(Bytes(1_500));
    assert_eq!(of_trace.as_nanos(), 12_000_000_000_000_u64.div_ceil(6_016_000));
    let repeat = Config::SelectiveRepeat(selective_repeat::Params::default());
    for (link, arq, air_time) in [
        (&series, Config::None, Duration::from_millis(1_250)),
        (&series, repeat, Duration::from_millis(1_250)),
        (&trace, Config::None, of_trace),
        (&trace, repeat, of_trace),
    ] {
        let mut radio = radio(link, arq, Model::default());
        drive(&mut radio, &[(Time::ZERO, 1_500)], true);
        assert_eq!((radio.stats().air_time, radio.stats().bits_on_air), (air_time, 12_000));
    }
}

/// Over a trace too, packets survive as the channel has it, and an ARQ repairs them in later opportunities.
#[test]
fn a_trace_composes_with_losses_and_an_arq() {
    let link = stated("rate.mahimahi.file = \"t\"", &["1\n2\n3\n4\n5\n20\n"]);
    let model = || toml::from_str::<Wrapped>("model.frame-loss.loss = 0.3").unwrap().model;
    #[derive(Deserialize)]
    struct Wrapped {
        model: Model,
    }
    let mut random = Streams::new(10, 0).stream("arrivals");
    let arrivals = random_arrivals(&mut random, 3_000, 1_000);
    let patient =
        selective_repeat::Params { retransmissions: Retransmissions::Unlimited, ..Default::default() };
    for arq in [Config::None, Config::SelectiveRepeat(patient)] {
        let mut radio = radio(&link, arq, model());
        let fates = drive(&mut radio, &arrivals, true);
        let lost = fates.iter().filter(|fate| fate.is_none()).count() as f64 / 3_000.0;
        if arq == Config::None {
            assert!((lost - 0.3).abs() < 5.0 * (0.21_f64 / 3_000.0).sqrt(), "{lost}");
        } else {
            assert_eq!(lost, 0.0);
            let share = radio.stats().failed_attempts as f64 / radio.stats().attempts as f64;
            assert!((share - 0.3).abs() < 5.0 * (0.21_f64 / 3_000.0).sqrt(), "{share}");
        }
        for (fate, (came, _)) in fates.iter().zip(&arrivals) {
            let Some(at) = fate else { continue };
            let into = at.as_nanos() % 20_000_000 / 1_000_000;
            assert!(at > came && [0, 1, 2, 3, 4, 5].contains(&into), "arrival at {at}");
        }
    }
}

/// A step of the rate applies to the rest of the transmission; nothing is sent without a rate.
#[test]
fn a_transmission_goes_through_steps() {
    let link = stated("rate.series.file = \"t\"", &["time_s,rate_bps\n0,8000\n1,0\n3,16000\n4,16000\n"]);
    let arrivals = [(ms(500), 1_000), (ms(500), 100), (ms(2_000), 10), (ms(7_000), 1_000)];
    let found =
        drive(&mut Link::wired_varying(timing(&link, 0), tail(QueueLimit::Unlimited)), &arrivals, true);
    // 500 bytes until 1 s, the other 500 from 3 s on; the series repeats every 5 s.
    let expected = [3_250, 3_300, 3_305, 8_500].map(|at| Some(ms(at)));
    assert_eq!(found, expected);
}

/// The table gives the rate from each level on, and none below the first.
#[test]
fn the_signal_gives_the_rate() {
    let text = "rate.signal = { file = \"t\", table = [[-5, \"8 kbps\"], [10, \"80 kbps\"]] }";
    let link = stated(text, &["time_s,sinr_db\n0,-5.1\n1,-5\n2,9.9\n3,10\n4,25\n"]);
    let rows = timing(&link, 0).trajectory(ms(5_000), Duration::from_secs(1));
    let rates: Vec<_> = rows.iter().map(|(_, rate, _)| *rate).collect();
    assert_eq!(rates, [0.0, 8e3, 8e3, 8e4, 8e4]);
    assert_eq!(link.0.nominal().as_bps(), 35_200);
}

/// Packets do not overtake each other, and each takes the next delay of a list.
#[test]
fn delays_keep_the_order() {
    let link = stated("rate = \"8 Mbps\"\ndelay.per-packet.file = \"t\"", &["delay_ms\n30\n0\n50\n"]);
    let arrivals: Vec<_> = (0..5).map(|n| (ms(10 * n), 1_000)).collect();
    let found =
        drive(&mut Link::wired_varying(timing(&link, 0), tail(QueueLimit::Unlimited)), &arrivals, true);
    // Sent by 1, 11, 21, 31, 41 ms; the delays are 30, 0, 50, 30, 0 ms.
    assert_eq!(found, [31, 31, 71, 71, 71].map(|at| Some(ms(at))));
    let link = stated("rate = \"8 Mbps\"\ndelay.series.file = \"t\"", &["time_s,delay_s\n0,0.03\n0.02,0\n"]);
    let found =
        drive(&mut Link::wired_varying(timing(&link, 0), tail(QueueLimit::Unlimited)), &arrivals, true);
    assert_eq!(found, [31, 41, 41, 41, 71].map(|at| Some(ms(at))));
}

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// Logarithms are normal with variance σ² + τ² at every time from the beginning, and their covariance over t is
/// σ² e^(−t/c) + τ² (1 − t/slot). Over independent runs.
#[test]
fn a_lognormal_rate_is_stationary_with_its_correlation() {
    let text = "rate.lognormal = { median = \"10 Mbps\", sigma = 0.6, step = \"100 ms\", correlation = \"2 s\", \
                slot = \"15 s\", slot_sigma = 0.4 }";
    let link = stated(text, &[]);
    let mean = 1e7 * (0.26_f64).exp();
    assert!((link.0.nominal().as_bps() as f64 - mean).abs() < 1.0);
    let runs = 20_000;
    let times = [0.0, 1.0, 5.05, 20.0];
    let mut logs = vec![Vec::new(); times.len()];
    for run in 0..runs {
        let rows = timing(&link, run).trajectory(ms(20_001), Duration::from_secs(1));
        for (logs, t) in logs.iter_mut().zip(times) {
            let at = Time::ZERO + Duration::from_secs_f64(t);
            let row = rows.partition_point(|row| row.0 <= at) - 1;
            logs.push((rows[row].1 / 1e7).ln());
        }
    }
    let n = runs as f64;
    let variance = 0.36 + 0.16;
    for (logs, t) in logs.iter().zip(times) {
        let (mean, found) = moments(logs);
        assert!(mean.abs() < 5.0 * (variance / n).sqrt(), "mean at {t} s: {mean}");
        assert!((found - variance).abs() < 5.0 * variance * (2.0 / n).sqrt(), "variance at {t} s: {found}");
    }
    for (index, t) in times.iter().enumerate().skip(1) {
        let products: Vec<_> = logs[0].iter().zip(&logs[index]).map(|(a, b)| a * b).collect();
        let (found, spread) = moments(&products);
        let steps = (t * 10.0).floor() / 10.0;
        let expected = 0.36 * (-steps / 2.0).exp() + 0.16 * (1.0 - t / 15.0).max(0.0);
        assert!(
            (found - expected).abs() < 5.0 * (spread / n).sqrt(),
            "covariance over {t} s: {found}, not {expected}"
        );
    }
}

/// Rate and delay of a link change their slots together, 15 s apart, at a time that differs between runs.
#[test]
fn slots_of_rate_and_delay_coincide() {
    let slots = "sigma = 0, step = \"1 h\", slot = \"15 s\", slot_sigma = 0.3";
    let text = format!(
        "rate.lognormal = {{ median = \"10 Mbps\", {slots} }}\n\
         delay.lognormal = {{ least = \"20 ms\", median = \"5 ms\", {slots} }}"
    );
    let link = stated(&text, &[]);
    let mut phases = Vec::new();
    for run in 0..50 {
        let rows = timing(&link, run).trajectory(ms(100_000), Duration::from_secs(1));
        let changes: Vec<_> = rows.iter().skip(1).map(|row| row.0).collect();
        assert!(changes.windows(2).all(|two| two[1].since(two[0]) == Duration::from_secs(15)), "{changes:?}");
        let differ = |two: &[(Time, f64, Option<Duration>)]| two[0].1 != two[1].1 && two[0].2 != two[1].2;
        assert!(rows.windows(2).all(differ));
        phases.push(changes[0].as_secs_f64());
    }
    let (mean, _) = moments(&phases);
    assert!(phases.iter().all(|phase| (0.0..=15.0).contains(phase)));
    assert!((mean - 7.5).abs() < 5.0 * 15.0 / (12.0_f64 * 50.0).sqrt(), "{mean}");
}

/// What a link gave is a mahimahi trace: that of a trace is the trace, and that of a generator carries as much, to a
/// packet, at any time.
#[test]
fn a_link_writes_its_trace() {
    let trace = "3\n3\n10\n250\n";
    let link = stated("rate.mahimahi.file = \"t\"", &[trace]);
    assert_eq!(timing(&link, 0).opportunities(ms(500)), [3, 3, 10, 250, 253, 253, 260, 500]);
    let link = stated("rate.lognormal = { median = \"5 Mbps\", sigma = 0.7 }", &[]);
    let times = timing(&link, 3).opportunities(ms(60_000));
    let rows = timing(&link, 3).trajectory(ms(60_000), Duration::from_secs(1));
    let mut bits = 0.0;
    for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
        bits += row.1 * next.0.since(row.0).as_secs_f64();
        let by_then = times.partition_point(|&at| ms(at) <= next.0) as f64 * 1504.0 * 8.0;
        assert!(
            (bits - by_then).abs() <= 1504.0 * 8.0 + row.1 * 0.001,
            "{by_then} of {bits} bits at {}",
            next.0
        );
    }
    let file: String = times.iter().map(|at| format!("{at}\n")).collect();
    let mean = Opportunities::parse(&file).unwrap().mean_bps();
    assert!((mean / (bits / 60.0) - 1.0).abs() < 0.01, "{mean}");
}

/// Whatever the files hold, the error names the line.
#[test]
fn hostile_traces_are_refused() {
    for (text, line, problem) in [
        ("", None, "found nothing"),
        ("0\n0\n", None, "found no time above 0"),
        ("1\n\n2\n", Some(2), "found \"\", expected a whole number"),
        ("1\n2.5\n", Some(2), "found \"2.5\", expected a whole number"),
        ("-1\n", Some(1), "found \"-1\", expected a whole number"),
        ("5\n4\n", Some(2), "found 4 after 5, expected times that do not decrease"),
        ("1000000001\n", Some(1), "expected at most 1000000000 milliseconds"),
        ("99999999999999999999\n", Some(1), "expected a whole number"),
        ("time_s,rate\n", Some(1), "found \"time_s,rate\", expected a whole number"),
        (
            "\u{1b}[31mred and quite a long line with many letters\n",
            Some(1),
            "\u{fffd}[31mred and quite a long line...",
        ),
    ] {
        let error = Opportunities::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text:?}");
        assert!(error.problem.contains(problem), "{text:?}: {}", error.problem);
    }
    for (text, file, problem) in [
        ("rate.series.file = \"t\"", "time_s,rate_bps\n0,-1\n", "found a rate below zero"),
        ("rate.series.file = \"t\"", "time_s,rate_bps\n0,0\n", "found no rate above zero"),
        ("rate.series.file = \"t\"", "time_s,rate_mbps\n0,1e9\n", "found a rate above 1 Tb/s"),
        ("delay.series.file = \"t\"", "time_s,delay_s\n0,9999\n", "found a delay above one hour"),
        ("delay.per-packet.file = \"t\"", "delay_ms\n1\n-1\n", "found a negative delay"),
    ] {
        let Stated { mut rate, mut delay } = toml::from_str(text).unwrap();
        let (_, unread) = rate.files().or(delay.files()).unwrap();
        let error = unread.read(file).unwrap_err();
        assert!(error.problem.contains(problem), "{file:?}: {}", error.problem);
    }
}

/// Files that were damaged at random are read or refused, and what is read can be used.
#[test]
fn damaged_files_do_not_panic() {
    let sound = [
        ("rate.mahimahi.file = \"t\"", "0\n3\n3\n10\n250\n"),
        ("rate.series.file = \"t\"", "time_s,rate_kbps,x\n0,800,1\n# c\n1.5,0,1\n2,90,1\n"),
        ("delay.series.file = \"t\"", "time_ms,delay_ms\n0,30\n20,1e1\n"),
        ("delay.per-packet.file = \"t\"", "delay_s\n0.1\n0\n2\n"),
        (
            "rate.signal = { file = \"t\", table = [[-5, \"8 kbps\"], [10, \"80 kbps\"]] }",
            "time_s,rssi_dbm\n0,-5\n1,20\n",
        ),
    ];
    let mut random = Streams::new(12, 0).stream("damage");
    let letters = b"0123456789-+.,e\n#naifxs_ \r\t\x00\xff";
    let mut used = 0;
    for round in 0..20_000 {
        let (text, file) = sound[round % sound.len()];
        let mut bytes = file.as_bytes().to_vec();
        for _ in 0..1 + random.below(4) {
            let place = random.below(bytes.len() as u64 + 1) as usize;
            let letter = letters[random.below(letters.len() as u64) as usize];
            match random.below(3) {
                0 => bytes.insert(place, letter),
                1 if place < bytes.len() => drop(bytes.remove(place)),
                _ if place < bytes.len() => bytes[place] = letter,
                _ => {}
            }
        }
        let Ok(file) = String::from_utf8(bytes) else { continue };
        let Stated { mut rate, mut delay } = toml::from_str(text).unwrap();
        let (_, unread) = rate.files().or(delay.files()).unwrap();
        if unread.read(&file).is_err() || rate.validate().and(delay.validate()).is_err() {
            continue;
        }
        let steps = [rate.mean_step(), delay.mean_step()].into_iter().flatten();
        if steps.min().is_some_and(|step| step < Duration::from_micros(10)) {
            // A scenario refuses so many steps.
            continue;
        }
        let timing = Timing::new(&rate, &delay, streams(0), ms(2_000));
        let mut link = Link::wired_varying(timing, tail(QueueLimit::Packets(5)));
        drive(&mut link, &[(ms(0), 100), (ms(1), 1_500), (ms(40), 9_000), (ms(1_999), 40)], true);
        used += 1;
    }
    assert!(used > 2_000, "{used}");
}
