//! Reactions that request retransmissions.

use std::sync::{Arc, Mutex};

use lasthop_base::Time;
use lasthop_proto::Notice;
use lasthop_proto::tcp::{Flavour, Reaction, Rules, Segment, SenderState, SeqNum, Settings};

use super::losses::FLAVOURS;
use super::{Witness, heard};
use crate::tcp::dialogue::{Client, MSS, settings};

/// Requests retransmission of the segments at its offsets on each notice, and records refusals.
#[derive(Debug)]
struct Asks {
    witness: Witness,
    offsets: Vec<u32>,
}

impl Reaction for Asks {
    fn on_notice(&mut self, _now: Time, _notice: &Notice, sender: &mut SenderState) {
        for offset in &self.offsets {
            if !sender.resend(self.witness.first_byte + *offset) {
                self.witness.write(format!("not {offset}"));
            }
        }
    }

    fn on_sent(&mut self, now: Time, start: SeqNum, end: SeqNum, again: bool) {
        self.witness.on_sent(now, start, end, again);
    }
}

/// A sender whose reaction requests the segments at `offsets` on each notice.
fn asking(settings: &Settings, offsets: &[u32]) -> (Client, Arc<Mutex<Vec<String>>>) {
    let (witness, log) = Witness::new(settings);
    (Client::reacting(settings, Asks { witness, offsets: offsets.into() }), log)
}

/// Requested retransmissions are sent before new data, in the order requested, and reported to the reaction.
/// They count as retransmissions, but not as fast retransmits or losses: windows are unchanged. That of the
/// left edge restarts the timer.
// Rule: Requested segments are retransmitted if they are in flight. [state.rs state/output.rs sender.rs]
#[test]
fn a_reaction_may_request_retransmissions() {
    for flavour in FLAVOURS {
        let settings = Settings { max_burst: 1, ..settings(flavour, 4) };
        let (mut tcp, log) = asking(&settings, &[1000, 0]);
        tcp.sends_full(0..1).at(100).notice(0).sends(&["0..1000", "1000..2000"]).timer_at(1100);
        assert_eq!(heard(&log), ["sent 0..1000", "not 1000", "sent 0..1000 again", "sent 1000..2000"]);
        tcp.at(200).notice(0).sends(&["1000..2000", "0..1000", "2000..3000"]).timer_at(1200);
        tcp.cwnd(4000.0).ssthresh(f64::INFINITY).at(300).ack(1000).sends_full(3..4);
        tcp.at(400).notice(0).sends(&["1000..2000", "4000..5000"]);
        let stats = tcp.sender.stats();
        assert_eq!((stats.retransmitted_segments, stats.fast_retransmits, stats.timeouts), (4, 0, 0));
    }
}

/// Above the left edge the timer is not restarted.
// Rule: as a_reaction_may_request_retransmissions
#[test]
fn only_the_left_edge_restarts_the_timer() {
    let (mut tcp, _) = asking(&settings(Flavour::NewReno, 4), &[1000]);
    tcp.sends_full(0..4).at(100).notice(0).sends_full(1..2).timer_at(1000);
    tcp.at(150).ack(1000).sends_full(4..6).timer_at(1150).at(200).notice(0).sends_full(1..2).timer_at(1200);
}

/// Requests are refused for data that are acknowledged, never sent, to be retransmitted after a timeout
/// anyway, or SACKed; a segment ends where such data begin.
// Rule: as a_reaction_may_request_retransmissions
#[test]
fn requests_for_data_not_in_flight_are_refused() {
    let (mut tcp, log) = asking(&settings(Flavour::NewReno, 4), &[0, 1500, 3999, 4000]);
    tcp.sends_full(0..4).at(100).ack(1000).sends_full(4..6).notice(0);
    tcp.sends(&["1500..2500", "3999..4999", "4000..5000"]);
    assert_eq!(heard(&log)[6], "not 0");
    tcp.at(150).wakes_at(1100).sends_full(1..2).at(1200).notice(0).sends(&["1500..2000"]);
    assert_eq!(heard(&log)[1..], ["not 0", "not 3999", "not 4000", "sent 1500..2000 again"]);

    let (mut tcp, log) = asking(&settings(Flavour::Sack, 4), &[500, 1000, 1999, 3000]);
    tcp.sends_full(0..4).at(100).sack(0, &[1000..2000]).notice(0).sends(&["500..1000", "3000..4000"]);
    assert_eq!(heard(&log)[4..6], ["not 1000", "not 1999"]);
}

/// Requests are refused before the connection is open and after its end.
// Rule: as a_reaction_may_request_retransmissions
#[test]
fn requests_outside_a_connection_are_refused() {
    let settings = Settings { handshake: true, close: true, ..settings(Flavour::NewReno, 4) };
    let (witness, log) = Witness::new(&settings);
    let reaction = Asks { witness, offsets: vec![0, 1] };
    let mut tcp = Client::reacting_with(&settings, Some(1500), Box::new(reaction));
    tcp.sends(&["SYN"])
        .at(50)
        .notice(0)
        .sends_nothing()
        .at(100)
        .syn_ack()
        .sends(&["0..1000", "1000..1500 FIN"]);
    assert_eq!(heard(&log)[1..3], ["not 0", "not 1"]);
    tcp.at(150).notice(0).sends_full(0..1).at(200).ack(1501).is_finished().notice(0).sends_nothing();
}

/// A timed segment gives no sample after a requested retransmission (Karn's rule), of itself or of one before
/// it.
// Rule: as a_reaction_may_request_retransmissions
#[test]
fn requested_retransmissions_give_no_sample() {
    for rules in [Rules::Rfc, Rules::Ns2] {
        for offset in [0, 1000] {
            let (mut tcp, _) = asking(&Settings { rules, ..settings(Flavour::NewReno, 4) }, &[offset]);
            tcp.sent();
            tcp.at(50)
                .notice(0)
                .sends(&[&format!("{offset}..{}", offset + 1000)])
                .at(100)
                .ack(2000)
                .srtt(None);
        }
    }
}

/// Requests the second segment on an acknowledgement.
#[derive(Debug)]
struct AsksOnAck;

impl Reaction for AsksOnAck {
    fn on_segment(&mut self, _now: Time, _segment: &Segment, sender: &mut SenderState) {
        sender.resend(sender.snd_una() + MSS);
    }
}

/// A retransmission requested on an acknowledgement is sent with the data that it releases, unless it is
/// acknowledged by it.
// Rule: as a_reaction_may_request_retransmissions
#[test]
fn segments_may_be_requested_on_an_acknowledgement() {
    for flavour in [Flavour::NewReno, Flavour::Prr] {
        let settings = Settings { limited_transmit: false, ..settings(flavour, 4) };
        let mut tcp = Client::reacting_with(&settings, Some(4000), Box::new(AsksOnAck));
        tcp.sends_full(0..4).at(100).ack(1000).sends_full(1..2);
        tcp.at(110).ack(3000).sends_nothing().at(120).ack(3000).sends_nothing().ack(4000).is_finished();
    }
}
