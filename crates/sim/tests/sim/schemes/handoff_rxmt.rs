//! Fast retransmissions after a hand-off: both ends by hand.

use lasthop_proto::Reach;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flavour, Settings};
use lasthop_testing::dialogue::{Client, Server, settings};
use lasthop_testing::schemes::installed;

// Rule: The receiver sends three duplicate ACKs when the signal is back. [../scheme/handoff_rxmt.rs]
#[test]
fn the_receiver_sends_duplicates_when_the_signal_is_back() {
    let settings = Settings { ack_every: 1, ..settings(Flavour::NewReno, 8) };
    let schemes = Schemes::default();
    let mut tcp = Server::installed(&settings, installed(&schemes, "handoff-rxmt").receiver_reactions());
    tcp.at(10).data(0..1000).acks(1000);
    tcp.at(20).reach(Reach::Fading).is_silent().reach(Reach::Lost).is_silent();
    tcp.at(50).reach(Reach::Back).acks_times(3, 1000).no_timer();
}

/// The oldest segment is retransmitted immediately, the window is halved, and the timer is restarted.
// Rule: The sender retransmits its oldest segment, with half the window. [../scheme/handoff_rxmt.rs]
#[test]
fn the_sender_retransmits_when_the_signal_is_back() {
    let schemes = Schemes::default();
    let reactions = installed(&schemes, "handoff-rxmt").reactions();
    let mut tcp = Client::installed(&settings(Flavour::NewReno, 8), None, reactions);
    tcp.sends_full(0..8).at(100).reach(Reach::Lost).sends_nothing().cwnd(8000.0);
    tcp.at(300).reach(Reach::Back).sends(&["0..1000"]).cwnd(4000.0).timer_at(1300);
    tcp.at(400).ack(8000).sends_full(8..13);
    // Without outstanding data there is no retransmission.
    let reactions = installed(&schemes, "handoff-rxmt").reactions();
    let mut tcp = Client::installed(&settings(Flavour::NewReno, 2), Some(2000), reactions);
    tcp.sends_full(0..2).at(100).ack(2000).is_finished().at(200).reach(Reach::Back).sends_nothing();
}

/// The minimum window is two segments.
// Rule: as the_sender_retransmits_when_the_signal_is_back
#[test]
fn the_window_is_two_segments_at_least() {
    let schemes = Schemes::default();
    let reactions = installed(&schemes, "handoff-rxmt").reactions();
    let mut tcp = Client::installed(&settings(Flavour::NewReno, 2), None, reactions);
    tcp.sends_full(0..2).at(100).reach(Reach::Back).sends(&["0..1000"]).cwnd(2000.0);
}
