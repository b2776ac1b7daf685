//! Reactions at the receiver: they change, suppress and request acknowledgements.

use lasthop_base::{Duration, Time};
use lasthop_proto::Notice;
use lasthop_proto::tcp::{AckResponse, Flags, Flavour, Receiver, ReceiverReaction, Segment, Settings};

use crate::tcp::dialogue::{Server, settings};

/// Closes the window on a notice, and opens it again after 100 ms with three acknowledgements; marks each
/// acknowledgement.
#[derive(Debug)]
struct Freezes(Option<Time>);

impl ReceiverReaction for Freezes {
    fn on_notice(&mut self, now: Time, _notice: &Notice, receiver: &mut Receiver) {
        self.0 = Some(now + Duration::from_millis(100));
        receiver.acknowledge_now(1);
    }

    fn on_ack(&mut self, _now: Time, ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        ack.flags = ack.flags | Flags::CWR;
        if self.0.is_some() {
            ack.wnd = 0;
        }
        AckResponse::Send
    }

    fn next_wakeup(&self) -> Time {
        self.0.unwrap_or(Time::NEVER)
    }

    fn on_timer(&mut self, _now: Time, receiver: &mut Receiver) {
        self.0 = None;
        receiver.acknowledge_now(3);
    }
}

/// Suppresses acknowledgements of an even number of bytes.
#[derive(Debug, Default)]
struct Withholds {
    heard: Vec<u32>,
    shown: u32,
}

impl ReceiverReaction for Withholds {
    fn on_segment(&mut self, _now: Time, segment: &Segment, receiver: &mut Receiver) {
        assert!(segment.seq >= receiver.rcv_nxt() && !receiver.has_gap(), "as it was before the segment");
        self.heard.push(segment.len);
    }

    fn on_ack(&mut self, _now: Time, _ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        self.shown += 1;
        if self.shown % 2 == 1 { AckResponse::Send } else { AckResponse::Withhold }
    }
}

/// A receiver's reaction changes and requests acknowledgements, receives notices, and has a timer independent
/// of the delayed ACK timer.
// Rule: A receiver's reaction changes, suppresses and requests ACKs, receives notices and has a timer.
// [receiver_reaction.rs receiver.rs]
#[test]
fn a_receiver_reaction_changes_and_requests_acks() {
    let settings = Settings { ack_every: 2, ..settings(Flavour::Reno, 8) };
    let window = settings.window_payload();
    let mut tcp = Server::reacting_in_order(&settings, vec![Box::new(Freezes(None))]);
    tcp.at(10).data(0..1000).is_silent().at(20).data(1000..2000);
    let ack = tcp.answer();
    assert!(ack.flags.has(Flags::CWR) && ack.wnd == window);
    tcp.at(30).notice(2000).acks_with_window(2000, 0);
    tcp.at(40).data(2000..3000).is_silent().wakes_at(130).acks_times(3, 3000).no_timer();
    tcp.at(140).data(3000..4000).wakes_at(340).acks_with_window(4000, window);
}

/// A suppressed acknowledgement does not count as sent, and is not passed to the next reaction.
// Rule: as a_receiver_reaction_changes_and_requests_acks
#[test]
fn a_receiver_reaction_may_suppress_acks() {
    let settings = Settings { ack_every: 1, ..settings(Flavour::Reno, 8) };
    let reactions: Vec<Box<dyn ReceiverReaction>> =
        vec![Box::new(Withholds::default()), Box::new(Freezes(None))];
    let mut tcp = Server::reacting_in_order(&settings, reactions);
    tcp.data(0..1000).acks(1000).data(1000..2000).is_silent().data(2000..3000).acks(3000);
    tcp.data(3000..4000).is_silent().delivered(4000);
    assert_eq!(tcp.receiver.stats().acks_sent, 2);
}

/// A duplicate whose report is withheld is reported by the next acknowledgement, once, as in Linux; duplicates
/// that touch are reported as one.
// Rule: A duplicate whose report a scheme withholds is reported by the next acknowledgement. [Linux;
// receiver.rs]
#[test]
fn a_withheld_report_of_a_duplicate_is_sent_later() {
    let settings = Settings { ack_every: 1, dsack: true, ..settings(Flavour::Sack, 8) };
    let mut tcp = Server::reacting_in_order(&settings, vec![Box::new(Holds::default())]);
    tcp.data(0..1000).acks(1000).data(1000..2000).acks(2000);
    tcp.data(0..1000).is_silent().data(1000..2000).is_silent();
    tcp.data(2000..3000).reports(3000, &[0..2000]).data(3000..4000).reports(4000, &[]);
}

/// Suppresses the third and the fourth acknowledgement.
#[derive(Debug, Default)]
struct Holds(u32);

impl ReceiverReaction for Holds {
    fn on_ack(&mut self, _now: Time, _ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        self.0 += 1;
        if matches!(self.0, 3 | 4) { AckResponse::Withhold } else { AckResponse::Send }
    }
}
