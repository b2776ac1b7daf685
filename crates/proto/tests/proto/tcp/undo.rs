//! Undo of spurious window reductions under every congestion control: detected by timestamps (Eifel, RFC 3522
//! and 4015), by DSACK (RFC 3708), and by F-RTO (RFC 5682). Segments are sent at time zero; the round-trip
//! time is 100 ms.

use lasthop_base::Duration;
use lasthop_proto::Component;
use lasthop_proto::tcp::{Congestion, Flavour, Settings};

use crate::tcp::dialogue::{Client, MSS, Steps, ms, settings};

/// Each controller, and whether it restores ssthresh with the window: BBR has none.
const CONTROLS: [(Congestion, bool); 5] = [
    (Congestion::Reno, true),
    (Congestion::Cubic, true),
    (Congestion::Westwood, true),
    (Congestion::Bbr, false),
    (Congestion::Bbr3, false),
];

fn records(congestion: Congestion, initial: u32) -> Settings {
    Settings {
        congestion,
        rto_min: Duration::from_millis(200),
        tlp: false,
        ..settings(Flavour::Prr, initial)
    }
}

trait Time: Steps {
    /// Sets the clock to `milliseconds`; discards the segments sent until then.
    fn until(&mut self, milliseconds: u64) -> &mut Client {
        let tcp = self.client();
        tcp.sent();
        while tcp.sender.next_wakeup() < ms(milliseconds) {
            tcp.times_out();
            tcp.sent();
        }
        tcp.at(milliseconds)
    }

    /// Asserts that the first segment is retransmitted, at once or when pacing permits. Returns its
    /// timestamp.
    fn resends_first(&mut self) -> u32 {
        let tcp = self.client();
        let first = tcp.bare_ack(0).ack;
        loop {
            if let Some(again) = tcp.sent().iter().find(|segment| segment.seq == first) {
                return again.timestamps.map_or(0, |ts| ts.value);
            }
            tcp.times_out();
        }
    }

    /// Asserts that the window is at least `cwnd` and ssthresh, if any, has its initial value.
    fn is_restored(&mut self, cwnd: f64, name: &str, threshold: bool) {
        let sender = &self.client().sender;
        assert_eq!(sender.stats().undone_reductions, 1, "{name}");
        assert!(sender.cwnd() >= cwnd, "{name}: {}", sender.cwnd());
        assert!(sender.cwnd() <= 2.0 * cwnd, "{name}: {}", sender.cwnd());
        assert!(!threshold || sender.ssthresh() == f64::INFINITY, "{name}: {}", sender.ssthresh());
    }
}

impl Time for Client {}

/// Three segments behind the first arrive before it.
fn reorders(tcp: &mut Client) -> &mut Client {
    tcp.sends_full(0..10).at(100);
    for end in [2000, 3000] {
        tcp.heard_of(0, 0, &[1000..end]).sent();
    }
    tcp.heard_of(0, 0, &[1000..4000]).losses(1)
}

/// Eifel: after a fast retransmit of a delayed segment, the ACK echoes the timestamp of the original, which
/// is older than that of the retransmission.
// Rule: as records::a_dsack_undoes_a_recovery
#[test]
fn eifel_undoes_a_recovery() {
    for (congestion, threshold) in CONTROLS {
        for (earlier, undone) in [(100_000, true), (1, true), (0, false)] {
            let name = format!("{congestion:?}, echo of {earlier} us before the retransmission");
            let mut tcp =
                Client::start(&Settings { timestamps: true, ..records(congestion, 10) }.with_mss(MSS));
            let resent = reorders(&mut tcp).resends_first();
            let reduced = tcp.sender.ssthresh();
            assert!(!threshold || reduced <= 7000.0, "{name}: {reduced}");
            tcp.until(125).heard(4000, resent - earlier).sent();
            if undone {
                tcp.is_restored(10_000.0, &name, threshold);
            } else {
                assert_eq!(tcp.sender.stats().undone_reductions, 0, "{name}");
                assert_eq!(tcp.sender.ssthresh(), reduced, "{name}");
            }
        }
    }
}

/// After a spurious timeout the originals arrive one by one, later than a copy could have. An echo from before the copy
/// is not its delivery, which would make all earlier segments lost (RFC 8985 section 6.2 step 2).
// Rule: RACK: an acknowledgement that echoes a timestamp from before a copy, or comes faster than the path
// allows, does not deliver the copy; as in Linux, the echo counts for cumulative acknowledgements only. [8985
// 6.2 step 2; detection/rack.rs]
#[test]
fn an_original_is_not_the_delivery_of_its_copy() {
    for (congestion, threshold) in CONTROLS {
        let name = format!("{congestion:?}");
        let mut tcp = Client::start(
            &Settings { timestamps: true, tlp: false, ..records(congestion, 10) }.with_mss(MSS),
        );
        tcp.sends_full(0..10);
        let timeout = tcp.times_out();
        tcp.sends_first("0..1000");
        for segment in 1..=10 {
            tcp.until(timeout + 150 + 20 * u64::from(segment)).heard(1000 * segment, 0).sent();
        }
        assert_eq!(tcp.sender.stats().retransmitted_segments, 1, "{name}");
        assert_eq!(tcp.sender.stats().spurious_timeouts, 1, "{name}");
        if threshold {
            assert_eq!(tcp.sender.ssthresh(), f64::INFINITY, "{name}");
        }
    }
}

/// Without timestamps: the receiver reports the retransmission as a duplicate (DSACK).
// Rule: as records::a_dsack_undoes_a_recovery
#[test]
fn dsack_undoes_a_recovery() {
    for (congestion, threshold) in CONTROLS {
        let name = format!("{congestion:?}");
        let mut tcp = Client::start(&Settings { dsack: true, ..records(congestion, 10) });
        reorders(&mut tcp).resends_first();
        tcp.until(125).ack(4000).until(225);
        assert_eq!(tcp.sender.stats().undone_reductions, 0, "{name}");
        tcp.sack(4000, &[0..1000]);
        assert_eq!(tcp.sender.stats().undone_reductions, 1, "{name}");
        // BBR restores its window with the next segment that is delivered.
        tcp.until(226).ack(5000).sent();
        tcp.is_restored(10_000.0, &name, threshold);
    }
}

/// One of two retransmissions was a duplicate, the other was not: there was a loss.
// Rule: as records::a_dsack_undoes_a_recovery
#[test]
fn one_redundant_retransmission_of_two_undoes_nothing() {
    for (congestion, _) in CONTROLS {
        let mut tcp = Client::start(&Settings { dsack: true, ..records(congestion, 10) });
        tcp.sends_full(0..10).at(100);
        for end in [3000, 4000, 5000, 6000, 7000] {
            tcp.sack(0, &[2000..end]).sent();
        }
        tcp.until(150).ack(1000).until(250).sack(7000, &[0..1000]).sent();
        assert_eq!(tcp.sender.stats().undone_reductions, 0, "{congestion:?}");
    }
}

/// Each recovery has its own first retransmission: an original sent after that of an earlier recovery counts.
// Rule: as records::a_dsack_undoes_a_recovery
#[test]
fn eifel_uses_the_first_retransmission_of_each_recovery() {
    let mut tcp =
        Client::start(&Settings { timestamps: true, ..records(Congestion::Reno, 10) }.with_mss(MSS));
    let first = reorders(&mut tcp).resends_first();
    // In the first recovery there is a loss.
    tcp.until(200).heard(12_000, first).until(290);
    assert_eq!(tcp.sender.stats().undone_reductions, 0);
    let sent = 200_000;
    for end in [14_000, 15_000, 16_000] {
        tcp.heard_of(12_000, sent, &[13_000..end]).sent();
    }
    tcp.losses(2).until(295).heard(16_000, sent).sent();
    assert_eq!(tcp.sender.stats().undone_reductions, 1);
}

/// A DSACK for a copy sent before the recovery does not count.
// Rule: as records::a_dsack_undoes_a_recovery
#[test]
fn a_dsack_for_an_earlier_copy_undoes_nothing() {
    let mut tcp = Client::start(&Settings { dsack: true, ..records(Congestion::Reno, 10) });
    tcp.sends_full(0..10).at(100).ack(2000).sent();
    for end in [4000, 5000, 6000] {
        tcp.sack(2000, &[3000..end]).sent();
    }
    tcp.losses(1).sack(2000, &[0..1000, 3000..6000]).sent();
    assert_eq!(tcp.sender.stats().undone_reductions, 0);
    tcp.until(200).sack(6000, &[2000..3000]).sent();
    assert_eq!(tcp.sender.stats().undone_reductions, 1);
}

/// The flight's acknowledgements arrive after the timeout. The first releases new data, and the second
/// acknowledges an original: the timeout was spurious (RFC 5682 section 3.1, step 3b).
// Rule: as records::a_spurious_timeout_is_undone
#[test]
fn f_rto_undoes_a_spurious_timeout() {
    for (congestion, threshold) in CONTROLS {
        for timestamps in [false, true] {
            let name = format!("{congestion:?}, timestamps: {timestamps}");
            let mut tcp = Client::start(&Settings { timestamps, ..records(congestion, 4) }.with_mss(MSS));
            tcp.sends_full(0..4).at(100).ack(4000);
            let before = tcp.sender.cwnd();
            tcp.until(400).wakes_at(400).sends_full(4..5).timeouts(1).cwnd(1000.0);
            tcp.until(450).ack(5000).sent();
            assert_eq!(tcp.sender.stats().spurious_timeouts, 0, "{name}");
            // With pacing, the next segment is retransmitted a few milliseconds later, as in Linux.
            tcp.until(455).ack(6000).sent();
            assert_eq!(tcp.sender.stats().spurious_timeouts, 1, "{name}");
            tcp.is_restored(before, &name, threshold);
            // Segments in flight are not retransmitted.
            tcp.until(470).ack(12_000);
            assert!(tcp.sent().iter().all(|segment| segment.seq >= tcp.bare_ack(12_000).ack), "{name}");
        }
    }
}

/// The second acknowledgement after the timeout may report the original by SACK, up to the last segment sent before
/// the timeout (step 3b); data sent since show nothing.
// Rule: as records::a_spurious_timeout_is_undone
#[test]
fn f_rto_accepts_a_sack_of_the_last_original() {
    for (last, spurious) in [(12_000, 1), (13_000, 0)] {
        let mut tcp = Client::start(&records(Congestion::Reno, 4));
        tcp.sends_full(0..4).at(100).ack(4000).sends_full(4..12);
        tcp.until(400).wakes_at(400).sends_full(4..5).timeouts(1);
        tcp.until(450).ack(5000).sends_full(12..14);
        tcp.until(455).sack(5000, &[last - 1000..last]).sent();
        assert_eq!(tcp.sender.stats().spurious_timeouts, spurious, "{last}");
    }
}

/// The second acknowledgement after the timeout is a duplicate: the segment was lost (step 3a).
// Rule: as records::a_spurious_timeout_is_undone
#[test]
fn a_genuine_timeout_is_not_undone() {
    for (congestion, _) in CONTROLS {
        let mut tcp = Client::start(&records(congestion, 4));
        tcp.sends_full(0..4).at(100).ack(4000);
        tcp.until(401);
        tcp.timeouts(1).until(500).ack(5000).until(600);
        tcp.sack(5000, &[12_000..13_000]).sent();
        let stats = tcp.sender.stats();
        assert_eq!((stats.spurious_timeouts, stats.undone_reductions), (0, 0), "{congestion:?}");
    }
}

/// The acknowledgement that ends the recovery may also show that it was spurious: it echoes an original, or a DSACK
/// follows.
// Rule: as records::a_dsack_undoes_a_recovery
#[test]
fn a_recovery_is_undone_at_its_end_and_after_it() {
    let mut tcp =
        Client::start(&Settings { timestamps: true, ..records(Congestion::Reno, 10) }.with_mss(MSS));
    let resent = reorders(&mut tcp).resends_first();
    tcp.until(125).heard(12_000, resent - 1).sent();
    tcp.is_restored(10_000.0, "Eifel", true);
    let mut tcp = Client::start(&Settings { dsack: true, ..records(Congestion::Reno, 10) });
    reorders(&mut tcp).resends_first();
    tcp.until(125).ack(12_000).sent();
    tcp.ack(13_000).sent();
    assert_eq!(tcp.sender.stats().undone_reductions, 0);
    tcp.sack(13_000, &[0..1000]).sent();
    tcp.is_restored(10_000.0, "DSACK", true);
}

/// Segments that a spurious recovery took for lost are not retransmitted after it was undone.
// Rule: as records::a_dsack_undoes_a_recovery
#[test]
fn an_undone_recovery_retransmits_nothing_more() {
    let mut tcp =
        Client::start(&Settings { timestamps: true, ..records(Congestion::Reno, 10) }.with_mss(MSS));
    tcp.sends_full(0..10).at(100);
    for end in [4000, 5000, 6000] {
        tcp.losses(0).heard_of(0, 0, &[3000..end]);
        if end < 6000 {
            tcp.sent();
        }
    }
    let resent = tcp.losses(1).resends_first();
    tcp.at(110).heard_of(1000, resent - 1, &[3000..6000]);
    assert_eq!(tcp.sender.stats().undone_reductions, 1);
    let missing = tcp.bare_ack(3000).ack;
    assert!(tcp.sent().iter().all(|segment| segment.seq >= missing));
}

/// The original fills the first of three gaps while a retransmission for the second is in flight: new data follow, and
/// the third gap is not filled yet (Linux `tcp_try_undo_partial`).
// Rule: as records::a_dsack_undoes_a_recovery
#[test]
fn a_late_original_releases_new_data_alone() {
    let mut tcp =
        Client::start(&Settings { timestamps: true, ..records(Congestion::Reno, 10) }.with_mss(MSS));
    tcp.sends_full(0..10).at(100);
    for end in [4000, 5000] {
        tcp.heard_of(0, 0, &[3000..end]).sent();
    }
    let resent = tcp.heard_of(0, 0, &[3000..6000]).losses(1).resends_first();
    let [second, new] = [1000, 12_000].map(|end| tcp.bare_ack(end).ack);
    for end in [7000, 8000] {
        assert!(tcp.heard_of(0, 0, &[3000..end]).sent().is_empty());
    }
    let sent = tcp.heard_of(0, 0, &[3000..9000]).sent();
    assert!(sent.iter().map(|segment| segment.seq).eq([second]), "{sent:?}");
    let sent = tcp.at(110).heard_of(1000, resent - 1, &[3000..9000]).sent();
    assert!(!sent.is_empty() && sent.iter().all(|segment| segment.seq >= new), "{sent:?}");
    assert_eq!(tcp.sender.stats().undone_reductions, 0);
    // The second original, too: nothing is in flight again, and the reduction was spurious.
    tcp.at(112).heard_of(2000, resent - 1, &[3000..9000]);
    assert_eq!(tcp.sender.stats().undone_reductions, 1);
}
