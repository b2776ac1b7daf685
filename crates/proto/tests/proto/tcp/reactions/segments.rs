//! Reactions that choose the DSCP of segments, and query the remaining data.

use std::sync::{Arc, Mutex};

use lasthop_base::Time;
use lasthop_proto::tcp::{Flags, Flavour, Reaction, Segment, SenderState, Settings};
use lasthop_proto::{Dscp, Notice};

use super::{Witness, heard};
use crate::tcp::dialogue::{Client, settings};

/// Marks segments at given offsets; records its calls, and the data left from those offsets and from those of
/// notices.
#[derive(Debug)]
struct Marks {
    witness: Witness,
    rule: fn(u32) -> bool,
}

impl Marks {
    fn new(settings: &Settings, rule: fn(u32) -> bool) -> (Marks, Arc<Mutex<Vec<String>>>) {
        let (witness, log) = Witness::new(&Settings {
            iss: settings.iss.wrapping_add(u32::from(settings.handshake)),
            ..settings.clone()
        });
        (Marks { witness, rule }, log)
    }
}

impl Reaction for Marks {
    fn on_notice(&mut self, _now: Time, notice: &Notice, sender: &mut SenderState) {
        let left = sender.left_from(notice.seq).map_or("no end".into(), |left| left.to_string());
        self.witness.write(format!("from {}: {left}", self.witness.offset(notice.seq)));
    }

    fn dscp(&mut self, _now: Time, segment: &Segment, again: bool, sender: &SenderState) -> Dscp {
        let left = sender.left_from(segment.seq).map_or("no end".into(), |left| left.to_string());
        if segment.flags.has(Flags::SYN) {
            self.witness.write(format!("SYN{}: {left} left", if again { " again" } else { "" }));
            return Dscp::DEFAULT;
        }
        let end = segment.seq + segment.seq_len();
        let (start, end) = (self.witness.offset(segment.seq), self.witness.offset(end));
        self.witness.write(format!("{start}..{end}{}: {left} left", if again { " again" } else { "" }));
        if (self.rule)(start) { Dscp::new(9) } else { Dscp::DEFAULT }
    }
}

/// Before each segment with data, SYN or FIN is sent, a reaction returns its DSCP, and knows whether part of
/// it is a retransmission. It is not called for pure ACKs.
// Rule: A reaction sets the DSCP of each segment, and can query the remaining data. [state/output.rs]
#[test]
fn a_reaction_sets_the_dscp_of_segments() {
    let settings = Settings { handshake: true, close: true, ..settings(Flavour::NewReno, 3) };
    let (marks, log) = Marks::new(&settings, |start| start != 1000);
    let mut tcp = Client::reacting_with(&settings, Some(2500), Box::new(marks));
    tcp.sends(&["SYN"]);
    assert_eq!(heard(&log), ["SYN: 2500 left"]);
    tcp.at(100).syn_ack().sends(&["0..1000 marked", "1000..2000", "2000..2500 FIN marked"]);
    assert_eq!(heard(&log), ["0..1000: 2500 left", "1000..2000: 1500 left", "2000..2501: 500 left"]);
    tcp.at(200).acks(3, 0).sends(&["0..1000 marked"]);
    assert_eq!(heard(&log), ["0..1000 again: 2500 left"]);
    tcp.at(300).ack(2500).sends(&["2500 FIN marked"]);
    assert_eq!(heard(&log), ["2500..2501 again: 0 left"]);
}

/// The data left are counted from any offset to the end: before the first transmission and after the last,
/// with or without FIN, for data acknowledged and not yet sent; FIN does not count.
// Rule: as a_reaction_sets_the_dscp_of_segments
#[test]
fn the_remaining_data_are_counted_from_any_offset() {
    for (close, handshake) in [(false, false), (true, false), (false, true), (true, true)] {
        let settings = Settings { close, handshake, ..settings(Flavour::NewReno, 2) };
        let (marks, log) = Marks::new(&settings, |_| false);
        let mut tcp = Client::reacting_with(&settings, Some(5_500), Box::new(marks));
        let left = |tcp: &mut Client, places: &[(u32, &str)]| {
            tcp.sent();
            heard(&log);
            for (offset, left) in places {
                tcp.notice(*offset).sends_nothing();
                assert_eq!(heard(&log), [format!("from {offset}: {left}")], "{close}, {handshake}");
            }
        };
        let all = [(0, "5500"), (1, "5499"), (2000, "3500"), (3500, "2000"), (5499, "1"), (5500, "0")];
        if handshake {
            left(&mut tcp, &all);
            tcp.at(50).syn_ack();
        }
        left(&mut tcp, &all);
        left(&mut tcp, &[(5501, "0"), (9000, "0")]);
        left(tcp.at(100).ack(2000), &all[2..]);
        // All data and the FIN are sent.
        left(tcp.at(200).ack(4000), &all[3..]);
        assert_eq!(tcp.sender.snd_max(), tcp.bare_ack(5500 + u32::from(close)).ack);
        left(&mut tcp, &[(5501, "0")]);
        left(tcp.at(300).ack(5500), &[(5500, "0")]);
    }
}

/// An unbounded transfer has no data left to report, however much was sent; a long finite one does.
// Rule: as a_reaction_sets_the_dscp_of_segments
#[test]
fn an_unbounded_transfer_has_no_remaining_data() {
    for (bytes, places) in [
        (None, ["no end"; 3]),
        (Some(1 << 62), ["4611686018427387904", "4611686018427386404", "4611686018427382904"]),
    ] {
        for handshake in [false, true] {
            let settings = Settings { handshake, ..settings(Flavour::NewReno, 2) };
            let (marks, log) = Marks::new(&settings, |_| false);
            let mut tcp = Client::reacting_with(&settings, bytes, Box::new(marks));
            if handshake {
                tcp.sent();
                tcp.at(50).syn_ack();
            }
            tcp.sends_full(0..2);
            heard(&log);
            for (offset, left) in [0, 1500, 5000].into_iter().zip(places) {
                tcp.notice(offset).sends_nothing();
                assert_eq!(heard(&log), [format!("from {offset}: {left}")]);
            }
            tcp.at(100).ack(2000).sent();
            heard(&log);
            tcp.notice(1500).sends_nothing();
            assert_eq!(heard(&log), [format!("from 1500: {}", places[1])]);
        }
    }
}
