//! Undo of spurious window reductions under every congestion control: detected by timestamps (Eifel, RFC 3522
//! and 4015), by DSACK (RFC 3708), and by F-RTO (RFC 5682). Segments are sent at time zero; the round-trip
//! time is 100 ms.

use lasthop_base::Duration;
use lasthop_proto::Component;
use lasthop_proto::tcp::{Congestion, Flavour, Settings};

use crate::dialogue::{Client, Steps, ms, settings};

/// Each control, and whether it restores the threshold with the window: BBR goes by its model, and has none.
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
    /// The clock is this many milliseconds; whatever was sent until then is forgotten.
    fn until(&mut self, milliseconds: u64) -> &mut Client {
        let tcp = self.client();
        tcp.sent();
        while tcp.sender.next_wakeup() < ms(milliseconds) {
            tcp.times_out();
            tcp.sent();
        }
        tcp.at(milliseconds)
    }

    /// The first segment is retransmitted, now or when pacing lets it out; says with which timestamp.
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

    /// The window is at least so large, and the threshold that of the beginning, or there is none.
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

/// A fast retransmit of what was late: the acknowledgement that follows echoes the original, which was sent before
/// the retransmission.
#[test]
fn an_echo_of_the_original_undoes_a_recovery() {
    for (congestion, threshold) in CONTROLS {
        for (earlier, undone) in [(100_000, true), (1, true), (0, false)] {
            let name = format!("{congestion:?}, echo of {earlier} us before the retransmission");
            let mut tcp = Client::start(&Settings { timestamps: true, ..records(congestion, 10) });
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

/// The same without timestamps: when the retransmission arrives, the receiver reports that it came twice.
#[test]
fn a_duplicate_report_undoes_a_recovery() {
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

/// One of two retransmissions came twice, the other did not: something was lost.
#[test]
fn one_needless_retransmission_of_two_undoes_nothing() {
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

/// Each recovery has its own first retransmission: an original that was sent after that of an earlier one counts.
#[test]
fn an_echo_counts_in_the_second_recovery_as_well() {
    let mut tcp = Client::start(&Settings { timestamps: true, ..records(Congestion::Reno, 10) });
    let first = reorders(&mut tcp).resends_first();
    // This time something was lost.
    tcp.until(200).heard(12_000, first).until(290);
    assert_eq!(tcp.sender.stats().undone_reductions, 0);
    let sent = 200_000;
    for end in [14_000, 15_000, 16_000] {
        tcp.heard_of(12_000, sent, &[13_000..end]).sent();
    }
    tcp.losses(2).until(295).heard(16_000, sent).sent();
    assert_eq!(tcp.sender.stats().undone_reductions, 1);
}

/// The report of a copy from before the recovery explains nothing of it.
#[test]
fn an_older_duplicate_explains_nothing() {
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

/// The acknowledgements of a flight come after the timeout. The first lets out new data, and the second acknowledges
/// an original: the timeout was spurious (RFC 5682 section 3.1, step 3b).
#[test]
fn a_spurious_timeout_is_undone() {
    for (congestion, threshold) in CONTROLS {
        for timestamps in [false, true] {
            let name = format!("{congestion:?}, timestamps: {timestamps}");
            let mut tcp = Client::start(&Settings { timestamps, ..records(congestion, 4) });
            tcp.sends_full(0..4).at(100).ack(4000);
            let before = tcp.sender.cwnd();
            tcp.until(400).wakes_at(400).sends_full(4..5).timeouts(1).cwnd(1000.0);
            tcp.until(450).ack(5000).sent();
            assert_eq!(tcp.sender.stats().spurious_timeouts, 0, "{name}");
            // Where segments are paced, the next is retransmitted a few milliseconds later, as in Linux.
            tcp.until(455).ack(6000).sent();
            assert_eq!(tcp.sender.stats().spurious_timeouts, 1, "{name}");
            tcp.is_restored(before, &name, threshold);
            // Nothing is retransmitted that was in flight.
            tcp.until(470).ack(12_000);
            assert!(tcp.sent().iter().all(|segment| segment.seq >= tcp.bare_ack(12_000).ack), "{name}");
        }
    }
}

/// The second acknowledgement after the timeout repeats the first: what is missing was lost (step 3a).
#[test]
fn a_justified_timeout_stands() {
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
