//! Bursts of lost frames: lengths, distances, and the closed form of the loss probability.

use lasthop_base::{Duration, Probability, Streams, Time};
use lasthop_channel::{Channel, FrameBursts, Model};

fn model(begin: f64, frames: u32) -> Model {
    Model::FrameBursts(FrameBursts { begin: Probability::new(begin).expect("in [0, 1]"), frames })
}

fn channel(begin: f64, frames: u32) -> Box<dyn Channel> {
    model(begin, frames).build(Streams::new(3, 0).stream("channel"))
}

/// Whether each of the next `count` frames is lost, whatever their sizes.
fn losses(channel: &mut dyn Channel, count: usize) -> Vec<bool> {
    let instant = |number: usize| Time::ZERO + Duration::from_millis(number as u64);
    let lost = |number: usize| match number % 2 {
        0 => channel.survival(instant(number), instant(number + 1), 1 + 1000 * (number as u64 % 3)) == 0.0,
        _ => channel.exposure(instant(number), instant(number + 1), &mut |_, _| {}) == 0.0,
    };
    (0..count).map(lost).collect()
}

/// Every burst has the stated length; those that follow one another without a frame between them are multiples.
#[test]
fn bursts_have_the_stated_length() {
    for frames in [1, 2, 4, 6] {
        let lost = losses(&mut *channel(0.02, frames), 100_000);
        let runs = lost.chunk_by(|a, b| a == b).filter(|run| run[0]);
        let lengths: Vec<_> = runs.map(<[bool]>::len).collect();
        let (last, whole) = lengths.split_last().expect("there are bursts");
        assert!(whole.iter().all(|length| length % frames as usize == 0), "{frames}: {whole:?}");
        assert!(*last > 0);
        // 98 % of them stand alone.
        let alone = whole.iter().filter(|&&length| length == frames as usize).count();
        assert!(alone as f64 > 0.95 * whole.len() as f64, "{frames}: {alone} of {}", whole.len());
    }
}

/// The share of packets lost, of one and of three frames, is the closed form's within four standard errors. Bursts make
/// neighbouring packets alike, so that the errors are those of as many bursts.
#[test]
fn the_share_of_losses_has_a_closed_form() {
    for (begin, frames) in [(0.02, 1), (0.02, 4), (0.3, 2), (1.0, 3)] {
        for fragments in [1, 3] {
            let count = 300_000;
            let lost = losses(&mut *channel(begin, frames), count);
            let packets: Vec<_> = lost.chunks(fragments).collect();
            let share =
                packets.iter().filter(|packet| packet.contains(&true)).count() as f64 / packets.len() as f64;
            let expected =
                model(begin, frames).loss_probability(fragments as u32, 8000, Duration::from_millis(1));
            let error = 4.0 * (expected * (1.0 - expected) * f64::from(frames) / packets.len() as f64).sqrt();
            assert!(
                (share - expected).abs() <= error,
                "{begin}, {frames}, {fragments}: {share} for {expected}"
            );
        }
    }
}

/// Without bursts nothing is lost, and copies of the channel draw the same bursts.
#[test]
fn copies_draw_the_same_bursts() {
    assert!(losses(&mut *channel(0.0, 4), 1000).iter().all(|&lost| !lost));
    assert_eq!(losses(&mut *channel(0.1, 3), 1000), losses(&mut *channel(0.1, 3), 1000));
    let invalid = model(0.1, 0).validate().expect_err("no frames");
    assert_eq!(invalid.field, "frame-bursts.frames");
}
