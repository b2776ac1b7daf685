//! RACK-TLP: the worked examples of RFC 8985 in sections 3.4 and 3.5 and in the text. Congestion control is
//! off to isolate loss detection. The round-trip time is 100 ms.

use lasthop_base::Duration;
use lasthop_proto::tcp::{Congestion, Flavour, Settings};

use crate::tcp::dialogue::{Client, settings};

fn rack(tlp: bool) -> Settings {
    Settings {
        congestion: Congestion::None,
        rto_min: Duration::from_millis(200),
        tlp,
        dsack: true,
        ..settings(Flavour::Prr, 10)
    }
}

/// Section 3.4: the last three of four segments are lost. A probe reveals this; the loss of the first
/// retransmission is revealed by the second.
// Rule: RACK-TLP: the worked examples. [8985 3.4, 3.5, 3.3.1, 6.2; detection/rack.rs recovery/prr/mod.rs]
#[test]
fn fast_recovery() {
    let mut tcp = Client::start_with(&rack(true), Some(4000));
    tcp.sends_full(0..4).at(100).ack(1000).sends_nothing();
    // Two round trips later.
    tcp.wakes_at(302).sends_full(3..4);
    tcp.at(402).sack(1000, &[3000..4000]).sends_full(1..3);
    tcp.at(502).sack(1000, &[2000..4000]).sends_full(1..2);
    tcp.at(602).ack(4000).is_finished().timeouts(0);
}

/// Section 3.5: the first of three segments is lost, and the others were sent just before its timeout. Only
/// the first is retransmitted, since the others may still arrive.
// Rule: as fast_recovery
#[test]
fn a_timeout_spares_recently_sent_segments() {
    let mut tcp = Client::supplied_without_nagle(&rack(false));
    tcp.supply(1000).sends_full(0..1).at(100).ack(1000).at(1000).supply(1000).sends_full(1..2);
    tcp.at(1290).supply(2000).sends_full(2..4).wakes_at(1300).sends_full(1..2).timeouts(1);
    assert_eq!(tcp.sender.pipe(), 3000);
    tcp.at(1390).sack(1000, &[2000..3000]).sends_nothing();
    tcp.at(1391).sack(1000, &[2000..4000]).sends_nothing();
    tcp.at(1400).ack(4000).is_not_finished().timeouts(1);
    // Segments sent a round trip before are lost with the first.
    tcp.at(2000).supply(1000).sends_full(4..5).at(2010).supply(1000).sends_full(5..6);
    let first = tcp.times_out();
    assert!(first > 2110);
    tcp.sends_full(4..6);
}

/// Section 3.3.1: a segment overtaken by one other is not retransmitted if it arrives within a quarter of the
/// minimum round-trip time, plus the 2 ms timer slack of Linux.
// Rule: as fast_recovery
#[test]
fn reordering_within_the_window_causes_no_retransmission() {
    for (arrives, resent) in [(126, false), (128, true)] {
        let mut tcp = Client::start_with(&rack(false), Some(4000));
        tcp.sends_full(0..4).at(100).sack(0, &[1000..2000]).sends_nothing().timer_at(127);
        if resent {
            tcp.wakes_at(127).sends_full(0..1);
        }
        tcp.at(arrives).ack(2000).sends_nothing().losses(u64::from(resent));
    }
}

/// Section 6.2 step 4: on a path that reorders, each DSACK widens the reordering window by a quarter of the
/// minimum round-trip time, once per round trip and up to the smoothed one; after sixteen recoveries without
/// DSACK it is reset.
// Rule: as fast_recovery
#[test]
fn dsack_widens_the_reordering_window() {
    let patient = Settings { undo: false, rto_min: Duration::from_secs(1), ..rack(false) };
    let mut tcp = Client::supplied(&patient);
    // One segment is reordered.
    tcp.supply(4000).sends_full(0..4).at(100).sack(0, &[1000..2000]).at(101).ack(4000);
    let (mut now, mut left) = (200, 4_u32);
    let mut waits = Vec::new();
    for round in 0..28 {
        let block = |from: u32, to: u32| (left + from) * 1000..(left + to) * 1000;
        tcp.at(now).supply(4000).sends_full(left..left + 4).at(now + 100).sack(left * 1000, &[block(1, 2)]);
        if round > 0 && round < 8 {
            // The DSACK of the previous round is repeated: no second step in this round trip.
            tcp.sack(left * 1000, &[(left - 4) * 1000..(left - 3) * 1000, block(1, 3)]);
        }
        let look = tcp.times_out();
        waits.push(look - now - 100);
        // The original arrives, and a round trip later its copy.
        tcp.sends_full(left..left + 1).at(look + 1).ack((left + 4) * 1000).at(look + 101);
        if round < 8 {
            tcp.sack((left + 4) * 1000, &[block(0, 1)]);
        }
        (now, left) = (look + 200, left + 4);
    }
    assert_eq!(waits[..4], [27, 52, 77, 102], "{waits:?}");
    assert!(waits[4..24].iter().all(|wait| (102..=104).contains(wait)), "{waits:?}");
    assert_eq!(waits[24..], [27; 4], "{waits:?}");
}
