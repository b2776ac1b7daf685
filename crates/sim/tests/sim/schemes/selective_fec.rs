//! Which segments are marked for protection (selective FEC paper, section II): the first and the last three
//! of a transfer, and retransmissions at the left edge of the window.

use lasthop_base::Bytes;
use lasthop_proto::fec::Covers;
use lasthop_proto::scheme::{ArqUse, LinkUse, Schemes};
use lasthop_proto::tcp::{Flavour, InitialWindow, Rules, Settings};
use lasthop_proto::{Dscp, HostId};
use lasthop_testing::dialogue::{Client, MSS, Steps, settings};
use lasthop_testing::schemes::{installed, schemes_of};

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];

/// The schemes with these parameters of selective FEC.
fn schemes(parameters: &str) -> Schemes {
    schemes_of(&format!("[selective-fec]\n{parameters}"))
}

fn link(parameters: &str) -> LinkUse {
    installed(&schemes(parameters), "selective-fec").link()
}

/// A sender under the scheme, with `bytes` to send, started at time zero.
fn start(parameters: &str, settings: &Settings, bytes: Option<u64>) -> Client {
    let reactions = installed(&schemes(parameters), "selective-fec").reactions();
    Client::installed(settings, bytes, reactions)
}

const SELECTIVE: &str = "";

/// The link recovers by its ARQ and codes packets with the source's DSCP, which is one for local use.
// Rule: The source marks, and the link protects the marked packets. [II; ../scheme/selective_fec.rs]
#[test]
fn the_link_requirements_match_the_marking() {
    let marked = link(SELECTIVE);
    let LinkUse { arq: ArqUse::Required, protects: Some(Covers::Marked(dscp)), .. } = marked else {
        panic!("{marked:?}")
    };
    assert_eq!(dscp.get() % 4, 3, "local use, by RFC 2474 section 6");
    for protect in ["all", "selective", "retransmitted"] {
        let parameters = format!("protect = \"{protect}\"");
        assert_eq!(link(&parameters), marked);
        let mut tcp = start(&parameters, &settings(Flavour::NewReno, 4), None);
        for packet in tcp.packets() {
            assert!(packet.src == HostId(0) && [dscp, Dscp::DEFAULT].contains(&packet.dscp), "{packet:?}");
        }
    }
    for (protect, protects) in [("none", None), ("repeated-units", Some(Covers::Repeats))] {
        let parameters = format!("protect = \"{protect}\"");
        assert_eq!(link(&parameters), LinkUse { arq: ArqUse::Required, protects, ..LinkUse::default() });
        assert!(installed(&schemes(&parameters), "selective-fec").reactions().is_empty(), "{protect}");
    }
    let parameters = "protect = \"marked\"\nmark = 46";
    assert_eq!(link(parameters).protects, Some(Covers::Marked(Dscp::EXPEDITED)));
    assert!(installed(&schemes(parameters), "selective-fec").reactions().is_empty());
}

// Rule: as the_link_requirements_match_the_marking
#[test]
fn omitted_parameters_default_to_the_paper() {
    assert_eq!(schemes(SELECTIVE), Schemes::default());
    assert_eq!(schemes("protect = \"selective\"\nsegments = 3"), Schemes::default());
    assert_ne!(schemes("segments = 2"), Schemes::default());
}

/// Scheme-specific steps of a conversation.
trait MarkSteps: Steps {
    /// One letter per packet sent since the last call: `M` if it is marked.
    fn letters(&mut self) -> String {
        self.client()
            .packets()
            .iter()
            .map(|packet| if packet.dscp == Dscp::DEFAULT { '.' } else { 'M' })
            .collect()
    }

    /// Asserts the marks of the segments sent, one letter each.
    fn marks(&mut self, marks: &str) -> &mut Client {
        assert_eq!(self.letters(), marks);
        self.client()
    }
}

impl MarkSteps for Client {}

/// The first three and the last three, so all of six; a short last segment counts as one of the last.
// Rule: The first and the last segments of a transfer are marked, whenever they are sent. [II;
// ../scheme/selective_fec.rs]
#[test]
fn both_ends_of_a_transfer_are_marked() {
    for (bytes, marks) in [
        (Some(1), "M"),
        (Some(2_000), "MM"),
        (Some(3_000), "MMM"),
        (Some(5_000), "MMMMM"),
        (Some(6_000), "MMMMMM"),
        (Some(6_001), "MMM.MMM"),
        (Some(7_000), "MMM.MMM"),
        (Some(9_001), "MMM....MMM"),
        (Some(9_999), "MMM....MMM"),
        (Some(10_000), "MMM....MMM"),
        (None, "MMM............."),
    ] {
        for flavour in FLAVOURS {
            start(SELECTIVE, &settings(flavour, 16), bytes).marks(marks);
            // The same with smaller windows.
            let mut tcp = start(SELECTIVE, &settings(flavour, 1), bytes);
            let (mut found, mut acked, end) = (String::new(), 0, bytes.unwrap_or(16_000) as u32);
            for time in 1.. {
                found += &tcp.letters();
                if acked == end {
                    break;
                }
                acked = end.min(acked + 1000);
                tcp.at(time).ack(acked);
            }
            assert_eq!(found[..marks.len()], *marks);
        }
    }
}

/// The number of marked segments at each end is a parameter.
// Rule: as both_ends_of_a_transfer_are_marked
#[test]
fn the_number_of_marked_segments_is_a_parameter() {
    for (segments, marks) in
        [(0, ".........."), (1, "M........M"), (2, "MM......MM"), (5, "MMMMMMMMMM"), (u32::MAX, "MMMMMMMMMM")]
    {
        let parameters = format!("segments = {segments}");
        start(&parameters, &settings(Flavour::NewReno, 16), Some(9_500)).marks(marks);
    }
    // Of ten segments two remain after eight were sent, however many were retransmitted in between.
    let mut tcp = start("segments = 10", &settings(Flavour::Sack, 8), None);
    tcp.marks("MMMMMMMM").at(100).sack(0, &[1000..2000, 3000..8000]);
    tcp.sends(&["0..1000 marked", "2000..3000 marked", "8000..9000 marked", "9000..10000 marked"]);
    tcp.at(200).ack(10_000).marks("....");
    // Retransmissions at the left edge are marked as well.
    let mut tcp = start("segments = 0", &settings(Flavour::NewReno, 4), None);
    tcp.marks("....").at(100).acks(3, 0).sends_first("0..1000 marked");
}

/// Segments count regardless of options, which reduce the payload, and of FIN.
// Rule: as both_ends_of_a_transfer_are_marked
#[test]
fn handshakes_and_fin_do_not_count_as_segments() {
    let settings = Settings { handshake: true, close: true, ..settings(Flavour::NewReno, 16) };
    let mut tcp = start(SELECTIVE, &settings, Some(7_000));
    tcp.sends(&["SYN marked"]).at(100).syn_ack().sends(&[
        "0..1000 marked",
        "1000..2000 marked",
        "2000..3000 marked",
        "3000..4000",
        "4000..5000 marked",
        "5000..6000 marked",
        "6000..7000 FIN marked",
    ]);
    // FIN is lost, and is then at the left edge.
    tcp.at(200).ack(7_000).wakes_at(1_200).sends(&["7000 FIN marked"]).at(1_300).ack(7_001).is_finished();
    let mut tcp = start(SELECTIVE, &settings, None);
    tcp.sends(&["SYN marked"]).wakes_at(1_000).sends(&["SYN marked"]);
    let timestamps = Settings { timestamps: true, handshake: false, ..settings }.with_mss(MSS);
    start(SELECTIVE, &timestamps, Some(9_001)).marks("MMM....MMM");
}

/// After three duplicates the left edge is retransmitted, marked; the other segments of the window are not.
// Rule: A retransmission at the left edge of the window is marked. [II; ../scheme/selective_fec.rs]
#[test]
fn a_fast_retransmission_is_marked() {
    for rules in [Rules::Rfc, Rules::Ns2] {
        for flavour in FLAVOURS {
            let settings = Settings { rules, ..settings(flavour, 8) };
            let mut tcp = start(SELECTIVE, &settings, None);
            tcp.marks("MMM.....").at(100).ack(4000).sent();
            tcp.sack(4000, &[5000..6000]).sack(4000, &[5000..7000]).sent();
            tcp.sack(4000, &[5000..8000]).sends_first("4000..5000 marked");
        }
    }
}

/// Each partial acknowledgement reveals the next hole at the left edge.
// Rule: as a_fast_retransmission_is_marked
#[test]
fn a_retransmission_by_partial_acknowledgement_is_marked() {
    for rules in [Rules::Rfc, Rules::Ns2] {
        let settings = Settings { rules, ..settings(Flavour::NewReno, 8) };
        let mut tcp = start(SELECTIVE, &settings, None);
        tcp.marks("MMM.....").at(100).ack(4000).sent();
        tcp.acks(2, 4000).sent();
        tcp.ack(4000).sends_first("4000..5000 marked");
        tcp.at(200).ack(6000).sends_first("6000..7000 marked");
        tcp.at(300).ack(7000).sends_first("7000..8000 marked");
    }
}

/// A hole beyond the left edge is retransmitted unmarked.
// Rule: as a_fast_retransmission_is_marked
#[test]
fn holes_beyond_the_left_edge_are_not_marked() {
    let mut tcp = start(SELECTIVE, &settings(Flavour::Sack, 12), None);
    tcp.marks("MMM.........").at(100).ack(4000).sent();
    tcp.sack(4000, &[5000..6000, 7000..8000]).sent();
    tcp.sack(4000, &[5000..6000, 7000..9000]).sends_first("4000..5000 marked");
    tcp.sack(4000, &[5000..6000, 7000..16_000]).sends_first("6000..7000");
    // Once the left edge reaches it and it is lost again, it is marked.
    tcp.at(200).ack(6000).packets();
    tcp.times_out();
    tcp.sends(&["6000..7000 marked"]);
    // Among the first and last segments of a transfer, holes are marked at any position.
    let mut tcp = start(SELECTIVE, &settings(Flavour::Sack, 12), Some(12_000));
    tcp.marks("MMM......MMM").at(100);
    tcp.sack(0, &[1000..2000, 3000..9000]).sends(&["0..1000 marked", "2000..3000 marked"]);
    tcp.sack(0, &[1000..9000, 10_000..12_000]).sends(&["9000..10000 marked"]);
}

/// After a timeout, only segments at the left edge when sent are marked.
// Rule: as a_fast_retransmission_is_marked
#[test]
fn only_the_first_retransmission_after_a_timeout_is_marked() {
    for rules in [Rules::Rfc, Rules::Ns2] {
        for flavour in FLAVOURS {
            let settings = Settings { rules, ..settings(flavour, 12) };
            let mut tcp = start(SELECTIVE, &settings, None);
            tcp.marks("MMM.........").at(100).ack(4000).packets();
            let due = tcp.times_out();
            tcp.sends(&["4000..5000 marked"]);
            // It had arrived; two segments may be sent, and the first is at the left edge.
            tcp.at(due + 100).ack(5000).sends(&["5000..6000 marked", "6000..7000"]);
            tcp.at(due + 200).ack(6000).sends(&["7000..8000", "8000..9000"]);
            // Lost twice more: the timer finds it each time.
            for _ in 0..2 {
                tcp.times_out();
                tcp.sends(&["6000..7000 marked"]);
            }
        }
    }
}

/// The first and the last three segments are marked when retransmitted too, at the left edge or not.
// Rule: as both_ends_of_a_transfer_are_marked
#[test]
fn both_ends_of_a_transfer_are_marked_when_retransmitted() {
    for flavour in FLAVOURS {
        let mut tcp = start(SELECTIVE, &settings(flavour, 6), Some(20_000));
        tcp.marks("MMM...").wakes_at(1_000).sends(&["0..1000 marked"]);
        tcp.at(1_100).ack(1000).sends(&["1000..2000 marked", "2000..3000 marked"]);
        tcp.at(1_200).ack(2000).sends(&["3000..4000", "4000..5000"]);
        let mut tcp = start(SELECTIVE, &settings(flavour, 8), Some(8_000));
        tcp.marks("MMM..MMM").at(100).ack(4000).sends_nothing().wakes_at(1_100).marks("M");
        tcp.at(1_200).ack(5000).sends(&["5000..6000 marked", "6000..7000 marked"]);
        tcp.at(1_300).ack(6000).sends(&["7000..8000 marked"]);
    }
}

/// With `protect = all`, everything but acknowledgements is marked.
// Rule: All segments, or all retransmissions. [IV, V; ../scheme/selective_fec.rs]
#[test]
fn protecting_all_marks_all_but_acknowledgements() {
    let settings = Settings { handshake: true, close: true, ..settings(Flavour::NewReno, 16) };
    let mut tcp = start("protect = \"all\"", &settings, Some(9_500));
    tcp.sends(&["SYN marked"]).at(100).syn_ack().marks("MMMMMMMMMM");
    tcp.at(200).ack(9_500).wakes_at(1_200).sends(&["9500 FIN marked"]);
    let mut tcp = start("protect = \"all\"", &settings, None);
    tcp.at(100).sent();
    tcp.syn_ack().marks("MMMMMMMMMMMMMMMM").acks(3, 0).sends(&["0..1000 marked"]);
}

/// With `protect = retransmitted`, new segments are unmarked, also at the ends; all retransmissions are
/// marked.
// Rule: as protecting_all_marks_all_but_acknowledgements
#[test]
fn protecting_retransmissions_marks_every_retransmission() {
    let parameters = "protect = \"retransmitted\"";
    start(parameters, &settings(Flavour::NewReno, 16), Some(9_500)).marks("..........");
    let mut tcp = start(parameters, &settings(Flavour::Sack, 12), None);
    tcp.marks("............").at(100).ack(4000).sent();
    tcp.sack(4000, &[5000..6000, 7000..8000]).sent();
    tcp.sack(4000, &[5000..6000, 7000..9000]).sends_first("4000..5000 marked");
    tcp.sack(4000, &[5000..6000, 7000..16_000]).sends_first("6000..7000 marked");
    for flavour in FLAVOURS {
        let mut tcp = start(parameters, &settings(flavour, 4), None);
        tcp.marks("....").wakes_at(1_000).marks("M").at(1_100).ack(1000).marks("MM");
        // The last one is new.
        tcp.at(1_200).ack(3000).marks("M.");
    }
}

/// Sequence numbers may wrap before, within and after each end of the transfer.
// Rule: as both_ends_of_a_transfer_are_marked
#[test]
fn marks_survive_sequence_wrap() {
    for wrap in (0..=11_000).step_by(500).chain([1, 999, 1001, 2999, 3001, 6999, 9499, 9501]) {
        for iss in [0u32.wrapping_sub(wrap), 0x8000_0000 - wrap] {
            let settings = Settings { iss, close: true, ..settings(Flavour::NewReno, 16) };
            let mut tcp = start(SELECTIVE, &settings, Some(9_500));
            tcp.marks("MMM....MMM").at(100).acks(3, 0).sends(&["0..1000 marked"]);
            tcp.at(200).ack(4000).sends(&["4000..5000 marked"]).at(300).ack(9_501).is_finished();
            let mut tcp = start(SELECTIVE, &settings, None);
            tcp.marks("MMM.............").wakes_at(1_000).marks("M").at(1_100).ack(1000).marks("MM");
            tcp.at(1_200).ack(2000).marks("..");
        }
    }
}

/// The end of the first segments is not mistaken for a future one after 2 GiB, and the first segments do not
/// recur after 4 GiB.
// Rule: as both_ends_of_a_transfer_are_marked
#[test]
fn only_the_first_segments_of_a_long_transfer_are_marked() {
    let settings = Settings {
        packet_size: Bytes(64_040),
        window: Bytes(1 << 20).into(),
        initial_window: InitialWindow::Segments(4),
        ..settings(Flavour::NewReno, 1)
    };
    let bytes = (1u64 << 32) + (1 << 31) + 7 * 64_000;
    for (bytes, last) in [(None, 0), (Some(bytes), 3)] {
        let mut tcp = start(SELECTIVE, &settings, bytes);
        let (mut sent, mut acked, mut time) = (0u64, 0u64, 0);
        let mut marked = Vec::new();
        while bytes.map_or(acked <= 1 << 33, |bytes| acked < bytes) {
            for packet in tcp.packets() {
                if packet.dscp != Dscp::DEFAULT {
                    marked.push(sent);
                }
                sent += u64::from(packet.segment().expect("data").len);
            }
            assert!(sent > acked);
            acked = (acked + 128_000).min(sent);
            time += 1;
            tcp.at(time).ack(acked as u32);
        }
        let first = [0, 64_000, 128_000];
        assert_eq!(marked[..3], first);
        let ends: Vec<u64> = marked[3..].iter().map(|&at| (sent - at).div_ceil(64_000)).collect();
        assert_eq!(ends, [3, 2, 1][..last], "counted from the end: {ends:?}");
    }
}
