//! Differences of counters, as used for the warm-up: each count is subtracted separately, and instants are
//! not.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::VideoStats;
use lasthop_proto::tcp::{ReceiverStats, SenderStats};
use lasthop_proto::traffic::{SinkStats, SourceStats};

/// Counters of which each is `factor` times its own prime number, so that none can stand for another.
fn sender(factor: u64, instant: u64) -> SenderStats {
    SenderStats {
        segments_sent: 2 * factor,
        wire_bytes_sent: Bytes(3 * factor),
        payload_sent: Bytes(5 * factor),
        pacing_wait: Duration::from_nanos(43 * factor),
        started: Some(Time::from_nanos(instant)),
        completed: Some(Time::from_nanos(instant + 1)),
        ..SenderStats::default()
    }
}

fn receiver(factor: u64, instant: u64) -> ReceiverStats {
    ReceiverStats {
        delivered: Bytes(2 * factor),
        last_delivery: Time::from_nanos(instant),
        segments: 3 * factor,
        ..ReceiverStats::default()
    }
}

fn video(factor: u64, instant: u64) -> VideoStats {
    let nanos = |factor| Duration::from_nanos(factor);
    VideoStats {
        segments: 2 * factor,
        fetched: nanos(3 * factor),
        bits: 5 * factor,
        switches: 7 * factor,
        startup_delay: Some(nanos(instant)),
        played: nanos(11 * factor),
        stalls: 13 * factor,
        stalled: nanos(17 * factor),
    }
}

fn source(factor: u64) -> SourceStats {
    SourceStats { packets: 2 * factor, bytes: Bytes(3 * factor) }
}

fn sink(factor: u64, instant: u64) -> SinkStats {
    SinkStats {
        packets: 2 * factor,
        bytes: Bytes(3 * factor),
        total_delay: Duration::from_nanos(5 * factor),
        greatest_delay: Duration::from_nanos(instant),
        total_jitter: Duration::from_nanos(7 * factor),
        last_arrival: Time::from_nanos(instant),
    }
}

#[test]
fn what_was_counted_before_is_left_out() {
    assert_eq!(sender(10, 100).since(&sender(3, 50)), sender(7, 100));
    assert_eq!(receiver(10, 100).since(&receiver(3, 50)), receiver(7, 100));
    assert_eq!(video(10, 100).since(&video(3, 50)), video(7, 100));
    assert_eq!(source(10).since(&source(3)), source(7));
    assert_eq!(sink(10, 100).since(&sink(3, 50)), sink(7, 100));
}
