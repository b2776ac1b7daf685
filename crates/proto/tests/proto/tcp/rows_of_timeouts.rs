//! Timeouts in a row: their backoff by Linux's settings, and detection of path-MTU black holes.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flavour, Profile, Settings, Transfer};

use crate::tcp::dialogue::{Client, ms, settings};

const FLAVOURS: [Flavour; 5] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack, Flavour::Prr];

/// After three seconds of timeouts the segments have 1024 B, and half of that after each further timeout, down to 48 B. The size
/// remains after an acknowledgement, and the window counts segments of this size: slow start goes from one to two, and the
/// threshold, which was two, ends it.
// Rule: With black-hole detection, data that time out for three seconds are sent in segments of 1024 B, and after each further timeout of
// half the size, of at least 48 B. [4821 7.7; Linux tcp_mtu_probing; state/timeouts.rs]
#[test]
fn segments_become_shorter_in_a_black_hole() {
    for flavour in FLAVOURS {
        let plain = Settings { packet_size: Bytes(2040), tlp: false, ..settings(flavour, 2) };
        let mut tcp = Client::start(&Settings { mtu_probing: true, ..plain.clone() });
        tcp.sends(&["0..2000", "2000..4000"]);
        let expected = [
            (1, 2000),
            (3, 2000),
            (7, 1024),
            (15, 512),
            (31, 256),
            (63, 128),
            (123, 64),
            (183, 48),
            (243, 48),
        ];
        for (at, len) in expected {
            tcp.wakes_at(1000 * at).sends(&[&format!("0..{len}")]);
        }
        tcp.cwnd(48.0).ssthresh(96.0);
        tcp.at(243_100).ack(48).cwnd(96.0);
        let sizes: Vec<u32> = tcp.sent().iter().map(|segment| segment.len).collect();
        assert_eq!(sizes, [48, 48], "{flavour:?}");
        let mut tcp = Client::start(&plain);
        tcp.sends(&["0..2000", "2000..4000"]);
        for at in [1, 3, 7, 15, 31] {
            tcp.wakes_at(1000 * at).sends(&["0..2000"]);
        }
    }
}

/// A segment that is short already stays as it is, and an acknowledgement ends the row.
// Rule: as segments_become_shorter_in_a_black_hole
#[test]
fn progress_ends_the_suspicion() {
    let own = Settings { mtu_probing: true, ..settings(Flavour::NewReno, 2) };
    let mut tcp = Client::start(&own);
    tcp.sends_full(0..2).wakes_at(1000).sends_full(0..1).wakes_at(3000).sends_full(0..1);
    tcp.at(3100).ack(1000).sends_full(1..3);
    // The timer of these starts at the acknowledgement, which gave no sample: the backoff of 4 s remains.
    tcp.wakes_at(7100).sends_full(1..2).wakes_at(15_100).sends_full(1..2);
    // Eight seconds after the first of them: 1024 B, which is more than a segment; then 512 B.
    tcp.wakes_at(31_100).sends(&["1000..1512"]);
}

/// With fewer than four segments in flight, six timeouts wait for the same RTO.
// Rule: With linear timeouts, up to six timeouts in a row do not back off while fewer than four segments are in flight.
// [Linux tcp_thin_linear_timeouts; state/timeouts.rs]
#[test]
fn thin_streams_back_off_late() {
    for flavour in FLAVOURS {
        let times = |segments, thin_linear_timeouts, times: &[u64]| {
            let settings = Settings { thin_linear_timeouts, tlp: false, ..settings(flavour, segments) };
            let mut tcp = Client::start(&settings);
            tcp.sends_full(0..segments);
            for at in times {
                tcp.wakes_at(1000 * at).sends_full(0..1);
            }
        };
        times(3, true, &[1, 2, 3, 4, 5, 6, 7, 9, 13]);
        times(4, true, &[1, 3, 7]);
        times(3, false, &[1, 3, 7]);
    }
}

/// Four short segments are not thin, though they have fewer bytes than a full one; only records tell.
// Rule: as thin_streams_back_off_late
#[test]
fn segments_are_thin_by_their_number() {
    for flavour in FLAVOURS {
        let own = settings(flavour, 10);
        let mut tcp =
            Client::supplied_without_nagle(&Settings { thin_linear_timeouts: true, tlp: false, ..own });
        tcp.open();
        for segment in ["0..100", "100..200", "200..300", "300..400"] {
            tcp.supply(100).sends(&[segment]);
        }
        let times: [u64; 3] = if flavour == Flavour::Prr { [1000, 3000, 7000] } else { [1000, 2000, 3000] };
        for at in times {
            let resent = tcp.wakes_at(at).sent();
            assert!(!resent.is_empty(), "{flavour:?}: {at} ms");
        }
    }
}

/// Timeouts of SYN that do not double the RTO, of which Linux has four since 6.5; six doubled ones follow, after which it gives up.
// Rule: A stated number of timeouts of SYN do not back off. [Linux tcp_syn_linear_timeouts; settings.rs]
#[test]
fn syn_backs_off_after_linear_timeouts() {
    let times = |profile: Profile, syn_linear_timeouts, times: &[u64], end: Option<u64>| {
        let settings = Settings { syn_linear_timeouts, ..profile.settings() };
        let mut tcp = Client::waiting(&settings, Transfer { bytes: Some(1000), start: ms(0) });
        tcp.wakes_at(0).sends(&["SYN"]);
        // The timers of Linux are rounded up, those of long times by a sixteenth at most.
        let is_due = |at: u64, expected| (1000 * expected..=1063 * expected).contains(&at);
        for &expected in times {
            let at = tcp.times_out();
            assert!(is_due(at, expected), "{profile:?}: {at} ms");
            tcp.sends(&["SYN"]);
        }
        if let Some(expected) = end {
            let at = tcp.times_out();
            assert!(is_due(at, expected), "{profile:?}: {at} ms");
            tcp.sends_nothing().is_aborted_at(at);
        }
    };
    times(Profile::Rfc, None, &[1, 3, 7, 15], None);
    times(Profile::Rfc, Some(2), &[1, 2, 3, 5, 9], None);
    times(Profile::Linux, None, &[1, 2, 3, 4, 5, 7, 11, 19, 35, 67], Some(131));
    times(Profile::Linux, Some(0), &[1, 3, 7, 15, 31, 63], Some(127));
    times(Profile::Linux515, None, &[1, 3, 7, 15, 31, 63], Some(127));
}
