//! Playback of a video, by hand, over two links of 1 Mb/s and 10 ms each way.

use super::*;
use lasthop_proto::application::{Adaptation, Video, Viewing};
use lasthop_proto::{Experience, VideoStats};

fn video(bps: &[u64], adaptation: Adaptation) -> Video {
    let bitrates = bps.iter().map(|&bps| BitRate::from_bps(bps).unwrap());
    Video {
        length: Duration::from_millis(4_500),
        segment: Duration::from_secs(1),
        bitrates: bitrates.collect(),
        adaptation,
        buffer: Duration::from_secs(3),
        startup: Duration::from_secs(1),
    }
}

const RATE: Adaptation = Adaptation::Rate { segments: 5 };

fn config(video: Video, stop: Time) -> application::Config {
    let viewing = Viewing { video, request: Distribution::Constant(Bytes(460)) };
    application::Config { start: Time::ZERO, stop, tls: false, activity: Activity::Video(viewing) }
}

/// The final counters, the end of playback, and the time of the last response.
fn watch(video: Video, stop: Time) -> (VideoStats, u64, u64) {
    let Net { builder, client: asks, .. } = net(&bare(), config(video, stop), 0, [0, 0]);
    let mut engine = builder.build(NoTap);
    assert_eq!(engine.run(&[asks], at(100_000_000)), Ended::Finished);
    let client = client(&engine, asks);
    let Experience::Video(stats) = client.experience(at(60_000_000)) else { panic!("it plays a video") };
    let last = client.waits().last().expect("there are responses").until();
    (stats, engine.now().as_nanos() / 1_000, last.as_nanos() / 1_000)
}

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// Time from the request to the last byte of a segment, without the acknowledgement of the previous one.
fn fetched(bytes: u64) -> u64 {
    14_000 + 320 + (bytes + 40 * bytes.div_ceil(1_460)) * 8 + 10_000
}

/// At a tenth of the link's rate the buffer fills at once. Then the player fetches a segment whenever there
/// is room.
#[test]
fn a_slow_video_plays_without_a_stall() {
    let (stats, end, last) = watch(video(&[100_000], RATE), Time::NEVER);
    let first = fetched(12_500);
    // The buffer holds 3 s. The fourth segment is requested after 1 s of playback, and the fifth, of 0.5 s,
    // after 1.5 s.
    assert_eq!(last, first + 1_500_000 + fetched(6_250));
    let expected = VideoStats {
        segments: 5,
        fetched: us(4_500_000),
        bits: 450_000,
        switches: 0,
        startup_delay: Some(us(first)),
        played: us(4_500_000),
        stalls: 0,
        stalled: Duration::ZERO,
    };
    assert_eq!((stats, end), (expected, first + 4_500_000));
}

/// At twice the link's rate, playback stalls after each segment until the next one is there.
#[test]
fn a_fast_video_stalls_after_each_segment() {
    let (stats, end, fetched_at) = watch(video(&[2_000_000], RATE), Time::NEVER);
    let [first, last] = [fetched(250_000), 320 + fetched(125_000)];
    let next = 320 + first;
    assert_eq!(fetched_at, first + 3 * next + last);
    let stalled = 3 * (next - 1_000_000) + (last - 1_000_000);
    let expected = VideoStats {
        segments: 5,
        fetched: us(4_500_000),
        bits: 9_000_000,
        switches: 0,
        startup_delay: Some(us(first)),
        played: us(4_500_000),
        stalls: 4,
        stalled: us(stalled),
    };
    assert_eq!((stats, end), (expected, fetched_at + 500_000));
}

/// From the lowest bitrate to the highest that the measured throughput carries.
#[test]
fn a_player_by_rate_settles_below_the_rate_of_the_link() {
    let (stats, ..) = watch(video(&[100_000, 600_000, 2_000_000], RATE), Time::NEVER);
    assert_eq!((stats.switches, stats.stalls), (1, 0));
    assert_eq!(stats.bits, 100_000 + 600_000 * 7 / 2);
}

/// Fetched segments are still played, and the end is not a stall.
#[test]
fn a_stopped_player_fetches_no_more_segments() {
    let (stats, end, last) = watch(video(&[2_000_000], RATE), at(3_000_000));
    assert_eq!((stats.segments, stats.stalls), (2, 1));
    let waited = 320 + fetched(250_000) - 1_000_000;
    assert_eq!((stats.played, stats.stalled, end), (us(2_000_000), us(waited), last + 1_000_000));
}

/// The buffer of 3 s has no room for a second segment of 2 s, so playback starts before 3 s are buffered.
#[test]
fn playback_starts_when_the_buffer_has_no_room_for_more() {
    let segment = Duration::from_secs(2);
    let startup = Duration::from_secs(3);
    let (stats, end, _) = watch(Video { segment, startup, ..video(&[100_000], RATE) }, Time::NEVER);
    let first = fetched(25_000);
    assert_eq!((stats.startup_delay, stats.stalls), (Some(us(first)), 0));
    assert_eq!((stats.played, end), (us(4_500_000), first + 4_500_000));
}
