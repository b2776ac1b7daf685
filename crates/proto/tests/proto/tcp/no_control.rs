//! A sender without congestion control: the congestion window is constant, and only the receive window limits
//! the data in flight, for every flavour and both rule sets.

use lasthop_base::{Bytes, Time};
use lasthop_proto::Notice;
use lasthop_proto::tcp::{
    Congestion, Flavour, InitialWindow, Reaction, Response, Rules, SenderState, Settings,
};

use crate::tcp::dialogue::{Client, MSS, settings};

const FLAVOURS: [Flavour; 7] = [
    Flavour::Tahoe,
    Flavour::Reno,
    Flavour::NewReno,
    Flavour::Sack,
    Flavour::GoBackN,
    Flavour::SelectiveRepeat,
    Flavour::Prr,
];

/// Calls `case` with a window of eight segments, and settings that would limit a controlled sender.
fn each(case: impl Fn(&Settings)) {
    for flavour in FLAVOURS {
        for rules in [Rules::Rfc, Rules::Ns2] {
            if flavour == Flavour::Prr && rules == Rules::Ns2 {
                continue;
            }
            let settings = Settings {
                rules,
                congestion: Congestion::None,
                window: Bytes(8000).into(),
                initial_window: InitialWindow::Segments(1),
                delay_growth: true,
                tlp: false,
                ..settings(flavour, 1)
            };
            case(&settings.with_mss(MSS));
        }
    }
}

/// The first of eight segments arrives, and the last three cause three duplicates; the reply is discarded.
fn duplicates(tcp: &mut Client) -> &mut Client {
    tcp.heard(1000, 0).sent();
    (5..8).for_each(|echo| _ = tcp.heard_of(1000, echo, &[5000..(echo + 1) * 1000]).sent());
    tcp
}

/// The initial flight is the receive window, with a handshake and without.
// Rule: Without congestion control the window is constant: under losses, a lost SYN, idling, recovery,
// classifications. [cc/none.rs state.rs state/loss.rs]
#[test]
fn the_initial_flight_is_the_receive_window() {
    each(|settings| {
        Client::start(settings).cwnd(8000.0).sends_full(0..8);
        let mut tcp = Client::start(&Settings { handshake: true, ..settings.clone() });
        tcp.sends(&["SYN"]).at(100).syn_ack().cwnd(8000.0).sends_full(0..8);
        tcp.at(200).heard(1000, 100_000).cwnd(8000.0).sends_full(8..9);
    });
}

/// A loss does not reduce the window: neither one detected by duplicates nor a timeout, also the second for
/// the same data.
// Rule: as the_initial_flight_is_the_receive_window
#[test]
fn losses_leave_the_window_unchanged() {
    each(|settings| {
        let mut tcp = Client::start(settings);
        tcp.sends_full(0..8).at(100);
        duplicates(&mut tcp).losses(1).cwnd(8000.0);
        let mut tcp = Client::start(settings);
        tcp.sends_full(0..8).wakes_at(1000).cwnd(8000.0).sends_full(0..8);
        tcp.wakes_at(3000).cwnd(8000.0).sends_full(0..8).timeouts(2);
        tcp.at(3100).heard(8000, 3_000_000).cwnd(8000.0).sends_full(8..16);
    });
}

/// A lost SYN does not reduce the window.
// Rule: as the_initial_flight_is_the_receive_window
#[test]
fn a_lost_syn_leaves_the_window_unchanged() {
    each(|settings| {
        let mut tcp = Client::start(&Settings { handshake: true, ..settings.clone() });
        tcp.sends(&["SYN"]).wakes_at(1000).sends(&["SYN"]).cwnd(8000.0).at(1100);
        let answer = tcp.syn_ack_segment();
        tcp.receives(answer).cwnd(8000.0).sends_full(0..8);
    });
}

/// An idle period does not reduce the window.
// Rule: as the_initial_flight_is_the_receive_window
#[test]
fn idling_leaves_the_window_unchanged() {
    each(|settings| {
        let mut tcp = Client::supplied(settings);
        tcp.supply(8000).sends_full(0..8).at(100).heard(8000, 7).sends_nothing();
        tcp.at(60_000).supply(9000).cwnd(8000.0).sends_full(8..16);
    });
}

/// NewReno's partial acknowledgements do not deflate the window, also after a timeout, and recovery ends with
/// the previous window.
// Rule: as the_initial_flight_is_the_receive_window
#[test]
fn recovery_leaves_the_window_unchanged() {
    for rules in [Rules::Rfc, Rules::Ns2] {
        for partial_deflation in [false, true] {
            let settings = Settings {
                rules,
                partial_deflation,
                congestion: Congestion::None,
                window: Bytes(8000).into(),
                ..settings(Flavour::NewReno, 1)
            };
            let mut tcp = Client::start(&settings);
            tcp.sends_full(0..8).wakes_at(1000).sends_full(0..8).at(1100).ack(8000).sends_full(8..16);
            tcp.ack(9000).sends_full(16..17).acks(3, 9000).sends_full(9..10).cwnd(8000.0);
            // More than the duplicates have inflated the window.
            tcp.at(1200).ack(15_000).cwnd(8000.0).sends_first("15000..16000");
            tcp.at(1300).ack(17_000).cwnd(8000.0).sent();
        }
    }
}

/// Reduces the window on each notice, as source quench does.
#[derive(Debug)]
struct Quench;

impl Reaction for Quench {
    fn on_notice(&mut self, _now: Time, _notice: &Notice, sender: &mut SenderState) {
        sender.shrink_window_to_one_segment();
    }
}

/// Returns a given classification of every loss.
#[derive(Debug)]
struct Judge(Response);

impl Reaction for Judge {
    fn judge(&mut self, _now: Time, _hole: lasthop_proto::tcp::Hole, _sender: &mut SenderState) -> Response {
        self.0
    }
}

/// Source quench and classifications of losses have no effect.
// Rule: as the_initial_flight_is_the_receive_window
#[test]
fn reactions_to_losses_leave_the_window_unchanged() {
    each(|settings| {
        let mut tcp = Client::reacting(settings, Quench);
        tcp.sends_full(0..8).at(100).notice(0).cwnd(8000.0).sends_nothing();
        for response in [Response::Congestion, Response::Corruption, Response::Reduce(0.5)] {
            let mut tcp = Client::reacting(settings, Judge(response));
            tcp.sends_full(0..8).at(100);
            duplicates(&mut tcp).cwnd(8000.0);
            tcp.times_out();
            tcp.cwnd(8000.0).sent();
        }
    });
}

/// Sets the window on each notice.
#[derive(Debug)]
struct Set(u32);

impl Reaction for Set {
    fn on_notice(&mut self, _now: Time, _notice: &Notice, sender: &mut SenderState) {
        sender.set_window(self.0);
    }
}

/// A window set by a reaction is kept until it is set again.
// Rule: as the_initial_flight_is_the_receive_window
#[test]
fn a_window_set_by_a_reaction_is_kept() {
    each(|settings| {
        let mut tcp = Client::reacting(settings, Set(3000));
        tcp.sends_full(0..8).at(100).notice(0).heard(6000, 5).cwnd(3000.0).sends_full(8..9);
        tcp.at(200).heard(9000, 100_000).cwnd(3000.0).sends_full(9..12);
        tcp.times_out();
        tcp.cwnd(3000.0).sends_full(9..12);
    });
}
