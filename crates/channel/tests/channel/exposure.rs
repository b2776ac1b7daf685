//! Bit error rates over the parts of a frame.

use lasthop_base::{Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{Channel, FixedPeriods, Model, Outages};

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn build(model: &str) -> Box<dyn Channel> {
    let model: Model = toml::from_str(model).unwrap();
    model.build(Streams::new(9, 0).stream("channel"))
}

/// Every model, with states of a few milliseconds.
fn channels() -> Vec<(&'static str, Box<dyn Channel>)> {
    let perfect = Model::Perfect.build(Streams::new(9, 0).stream("channel"));
    let mut all = vec![("perfect", perfect)];
    all.extend(
        [
            "iid = { ber = 1e-3 }",
            "iid = { ber = 1 }",
            "frame-loss = { loss = 0.3 }",
            "two-state = { good = \"2 ms\", bad = \"1 ms\", good_ber = 1e-4, bad_ber = 3e-3 }",
            "two-state = { good = \"2 ms\", bad = \"1 ms\", good_ber = 0, bad_ber = 1 }",
            "fixed-periods = { good = \"2 ms\", bad = \"1 ms\", good_ber = 1e-3, bad_ber = 0.1 }",
            "rayleigh-gilbert = { fading_margin = \"3 dB\", doppler = 0.1, step = \"1 ms\", good_ber = 1e-4 }",
            "nguyen-noble = { leave_error = 0.5, leave_error_free = 0.5, error_rate = 0.02, \
             error_unit = \"0.5 ms\", error_free_unit = \"1 ms\" }",
            "nguyen-noble = { leave_error = 0.5, leave_error_free = 0.5, error_rate = 1, \
             errors_per = \"bit\", error_unit = \"0.5 ms\", error_free_unit = \"1 ms\" }",
        ]
        .map(|model| (model, build(model))),
    );
    let outages = Outages {
        first: Duration::from_millis(10),
        every: Some(Duration::from_millis(40)),
        lasts: Duration::from_millis(5),
    };
    let beneath = build("two-state = { good = \"2 ms\", bad = \"1 ms\" }");
    all.push(("outages", outages.interrupt(beneath)));
    all
}

/// Frames in order of their start times, with up to 2000 bits; some have zero length, some span several
/// states.
fn frames(stream: &mut Stream, n: usize) -> Vec<(Time, Time, u64)> {
    let mut start = Time::ZERO;
    let mut frame = || {
        start += stream.up_to(Duration::from_millis(4));
        let longest = [0, 1_000, 1_000_000, 1_000_000, 20_000_000][stream.below(5) as usize];
        (start, start + stream.up_to(Duration::from_nanos(longest)), stream.below(2000))
    };
    (0..n).map(|_| frame()).collect()
}

fn parts(channel: &mut dyn Channel, start: Time, end: Time) -> (Vec<(f64, f64)>, f64) {
    let mut parts = Vec::new();
    let survival = channel.exposure(start, end, &mut |share, ber| parts.push((share, ber.get())));
    (parts, survival)
}

/// Queried in either order, since the second query must find the trajectory of the first unchanged.
#[test]
fn exposure_agrees_with_survival() {
    let frames = frames(&mut Streams::new(9, 0).stream("frames"), 3000);
    for (name, mut channel) in channels() {
        let mut cut = 0;
        for (index, &(start, end, bits)) in frames.iter().enumerate() {
            let before = (index % 2 == 0).then(|| channel.survival(start, end, bits));
            let (parts, whole) = parts(&mut *channel, start, end);
            let survival = before.unwrap_or_else(|| channel.survival(start, end, bits));
            let shares: f64 = parts.iter().map(|(share, _)| share).sum();
            assert!((shares - 1.0).abs() < 1e-12, "{name}: shares of {parts:?}");
            let bits_right = |&(share, ber): &(f64, f64)| (1.0 - ber).powf(share * bits as f64);
            let product = whole * parts.iter().map(bits_right).product::<f64>();
            assert!((product - survival).abs() < 1e-12, "{name}: {product}, not {survival}, from {parts:?}");
            cut += u32::from(parts.len() > 1);
        }
        let has_states = !["perfect", "iid", "frame-loss"].iter().any(|model| name.starts_with(model));
        assert_eq!(cut > 300, has_states, "{name}: {cut} of {} frames in parts", frames.len());
    }
}

/// 10 ms good and 4 ms bad, queried from 9 to 26 ms: in order, with partial states at both ends.
#[test]
fn parts_come_in_order_with_their_shares() {
    let p = |p| Probability::new(p).unwrap();
    let periods = FixedPeriods {
        good: Duration::from_millis(10),
        bad: Duration::from_millis(4),
        good_ber: p(0.25),
        bad_ber: p(0.5),
    };
    let mut channel = Model::FixedPeriods(periods).build(Streams::new(9, 0).stream("channel"));
    let mut asked = |start, end| parts(&mut *channel, ms(start), ms(end));
    assert_eq!(asked(2, 10), (vec![(1.0, 0.25)], 1.0), "one that touches a state does not overlap it");
    assert_eq!(asked(9, 9), (vec![(1.0, 0.25)], 1.0));
    let four = vec![(1.0 / 17.0, 0.25), (4.0 / 17.0, 0.5), (10.0 / 17.0, 0.25), (2.0 / 17.0, 0.5)];
    assert_eq!(asked(9, 26), (four, 1.0));
    assert_eq!(asked(10, 10), (vec![(1.0, 0.5)], 1.0), "one of no time meets the state that begins");
    assert_eq!(asked(11, 13), (vec![(1.0, 0.5)], 1.0), "an earlier frame reached further");
}

#[test]
fn frame_loss_is_independent_of_bits() {
    assert_eq!(parts(&mut *build("frame-loss = { loss = 0.25 }"), ms(0), ms(1)), (vec![(1.0, 0.0)], 0.75));
    let outages = Outages { first: Duration::ZERO, every: None, lasts: Duration::from_millis(5) };
    let mut channel = outages.interrupt(build("iid = { ber = 1e-3 }"));
    assert_eq!(parts(&mut *channel, ms(4), ms(6)), (vec![(1.0, 1e-3)], 0.0));
    assert_eq!(parts(&mut *channel, ms(5), ms(6)), (vec![(1.0, 1e-3)], 1.0));
}

#[test]
#[should_panic(expected = "queried for 0.001000000 s after 0.002000000 s")]
fn a_query_back_in_time_panics() {
    let mut channel = build("two-state = { good = \"2 ms\", bad = \"1 ms\" }");
    parts(&mut *channel, ms(2), ms(3));
    channel.survival(ms(1), ms(3), 1);
}

#[test]
#[should_panic(expected = "before its start")]
fn a_frame_that_ends_before_its_start_panics() {
    parts(&mut *build("two-state = { good = \"2 ms\", bad = \"1 ms\" }"), ms(2), ms(1));
}
