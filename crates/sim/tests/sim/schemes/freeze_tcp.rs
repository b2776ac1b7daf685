//! Freeze-TCP: the receiver by hand, and a sender whose window it closes.

use lasthop_proto::Reach;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flavour, Settings};
use lasthop_testing::dialogue::{Client, Server, settings};
use lasthop_testing::schemes::installed;

const WINDOW: u32 = 1 << 20;

fn receiver() -> Server {
    let settings = Settings { ack_every: 1, ..settings(Flavour::NewReno, 8) };
    Server::installed(&settings, installed(&Schemes::default(), "freeze-tcp").receiver_reactions())
}

// Rule: The window is zero from the warning until the signal is back; three ACKs then open it. [3;
// ../scheme/freeze_tcp.rs]
#[test]
fn the_window_is_closed_from_the_warning_until_the_signal_is_back() {
    let mut tcp = receiver();
    tcp.at(10).data(0..1000).acks_with_window(1000, WINDOW);
    tcp.at(20).reach(Reach::Fading).acks_with_window(1000, 0);
    tcp.at(30).data(1000..2000).acks_with_window(2000, 0);
    tcp.at(40).reach(Reach::Lost).is_silent();
    tcp.at(90).reach(Reach::Back).acks_times(3, 2000);
    tcp.at(100).data(2000..3000).acks_with_window(3000, WINDOW);
}

/// Without a warning the window is closed once the signal is lost, for what arrives before it is.
// Rule: as the_window_is_closed_from_the_warning_until_the_signal_is_back
#[test]
fn a_loss_without_a_warning_closes_the_window_silently() {
    let mut tcp = receiver();
    tcp.at(10).reach(Reach::Lost).is_silent().data(0..1000).acks_with_window(1000, 0);
    tcp.at(50).reach(Reach::Back).acks_times(3, 1000);
}

/// A closed window: no loss is assumed, however long it lasts, and the window is as before when it opens.
// Rule: The source probes, and keeps its window. [3]
#[test]
fn a_frozen_source_probes_and_keeps_its_window() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    tcp.sends_full(0..4).at(100).with_window(0).ack(2000).sends_nothing();
    for _ in 0..6 {
        tcp.times_out();
        tcp.packets();
    }
    tcp.timeouts(0).cwnd(5000.0);
}
