//! Accurate ECN feedback (RFC 9768): negotiation with its fall-backs, counters, and the response of the sender. Cases named after
//! the kernel restate what its own tests hold.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{
    Congestion, EcnCounters, EcnMode, FieldOrder, Flags, Flavour, Segment, SeqNum, Settings, Timestamps,
};
use lasthop_proto::{Component, Ecn};

use crate::tcp::dialogue::{Client, Server, ms, settings};

fn accurate(flavour: Flavour, initial: u32) -> Settings {
    Settings { ecn: EcnMode::Accurate, congestion: Congestion::Reno, ..settings(flavour, initial) }
}

fn with_handshake(ecn: EcnMode) -> Settings {
    Settings { handshake: true, ecn, ..accurate(Flavour::Prr, 4) }
}

/// The option with all fields: bytes with ECT(0), CE and ECT(1).
fn counters([ect0, ce, ect1]: [u32; 3]) -> Option<EcnCounters> {
    Some(EcnCounters::new(FieldOrder::Ect0First, &[ect0, ce, ect1]))
}

/// The acknowledgement of everything before `offset`, with this ACE field and these bytes with CE.
fn report(tcp: &Client, offset: u32, ace: u8, ce: u32) -> Segment {
    let mut segment = tcp.bare_ack(offset);
    segment.flags = segment.flags.with_ace(ace);
    segment.sack.set_ecn_counters(counters([1, ce, 1]));
    segment
}

/// RFC 9768 table 2: the SYN-ACK of servers with accurate, classic and no ECN, of one that reflects the SYN's flags, and of one
/// with the reserved combination (section 3.1.3). Where the SYN arrived changed, nothing is ECN-capable, but feedback stays accurate.
// Rule: Accurate ECN is negotiated on SYN and SYN-ACK. [9768 3.1.1, 3.1.2; ecn/mod.rs state/marks.rs]
#[test]
fn a_client_takes_the_mode_of_the_answer() {
    for (ace, field, is_accurate) in [
        (0b010, Ecn::Ect0, true),
        (0b011, Ecn::NotEct, true),
        (0b100, Ecn::NotEct, true),
        (0b110, Ecn::NotEct, true),
        (0b101, Ecn::Ect0, true),
        (0b001, Ecn::Ect0, false),
        (0b000, Ecn::NotEct, false),
        (0b111, Ecn::NotEct, false),
    ] {
        let mut tcp = Client::start(&with_handshake(EcnMode::Accurate));
        assert_eq!(tcp.sent()[0].flags, Flags::SYN.with_ace(0b111));
        let answer = tcp.syn_ack_segment();
        tcp.at(100).receives(Segment { flags: answer.flags.with_ace(ace), ..answer });
        for packet in tcp.packets() {
            let segment = packet.segment().expect("a segment");
            let expected = if is_accurate { 5 } else { 0 };
            assert_eq!((packet.ecn, segment.flags.ace()), (field, expected), "{ace:03b}");
        }
    }
}

/// RFC 9768 table 2 from the server's side: it answers by its own mode and the SYN's flags, and reports how the SYN arrived. The first
/// SYN-ACK has an option, the second one has not (section 3.2.3.2.2).
// Rule: as a_client_takes_the_mode_of_the_answer
#[test]
fn a_server_answers_by_its_mode() {
    let (none, classic, accurate) = (EcnMode::Off, EcnMode::Classic, EcnMode::Accurate);
    for (mode, asked, field, answer) in [
        (accurate, 0b111, Ecn::NotEct, 0b010),
        (accurate, 0b111, Ecn::Ect1, 0b011),
        (accurate, 0b111, Ecn::Ect0, 0b100),
        (accurate, 0b111, Ecn::Ce, 0b110),
        (accurate, 0b101, Ecn::NotEct, 0b010),
        (accurate, 0b011, Ecn::NotEct, 0b001),
        (accurate, 0b000, Ecn::NotEct, 0b000),
        (classic, 0b111, Ecn::NotEct, 0b001),
        (classic, 0b101, Ecn::NotEct, 0b000),
        (none, 0b111, Ecn::NotEct, 0b000),
    ] {
        let settings = with_handshake(mode);
        let mut tcp = Server::start(&settings);
        let syn =
            Segment { seq: SeqNum(settings.iss), flags: Flags::SYN.with_ace(asked), ..Segment::default() };
        let is_accurate = mode == accurate && answer > 1;
        for is_first in [true, false] {
            let packet = tcp.receives_with(syn, field).answering_packet();
            let sent = packet.segment().expect("a segment");
            assert_eq!((sent.flags.ace(), packet.ecn), (answer, Ecn::NotEct), "{mode:?}, {asked:03b}");
            let option = sent.sack.ecn_counters();
            let expected = counters([1, 0, 1]).filter(|_| is_accurate && is_first);
            assert_eq!(
                option.map(|o| [o.ect0(), o.ce(), o.ect1()]),
                expected.map(|o| [o.ect0(), o.ce(), o.ect1()])
            );
        }
    }
}

/// The second SYN asks again, since the first one may have been lost by chance; later ones do not (section 3.1.4.1).
// Rule: A SYN that is lost twice no longer asks for accurate ECN. [9768 3.1.4.1; state/output.rs]
#[test]
fn the_third_syn_is_without_ecn() {
    let mut tcp = Client::start(&with_handshake(EcnMode::Accurate));
    let mut asked = vec![tcp.sent()[0].flags.ace()];
    for _ in 0..3 {
        tcp.times_out();
        asked.push(tcp.sent()[0].flags.ace());
    }
    assert_eq!(asked, [7, 7, 0, 0]);
    // An answer to one of the first two still agrees, and the server that saw the last ones sends nothing ECN-capable.
    let answer = tcp.syn_ack_segment();
    tcp.receives(Segment { flags: answer.flags.with_ace(0b010), ..answer });
    assert!(tcp.packets().iter().all(|packet| packet.ecn == Ecn::Ect0));
    let settings = with_handshake(EcnMode::Accurate);
    let mut tcp = Server::start(&settings);
    for (ace, field) in [(7, Ecn::Ect0), (0, Ecn::NotEct)] {
        let syn =
            Segment { seq: SeqNum(settings.iss), flags: Flags::SYN.with_ace(ace), ..Segment::default() };
        assert_eq!(tcp.receives(syn).answer().flags.ace(), 0b010);
        let segment = tcp.segment(0..1000);
        if ace == 0 {
            let packet = tcp.receives_marked(segment).answering_packet();
            assert_eq!((packet.ecn, packet.segment().map(|ack| ack.flags.ace())), (field, Some(6)));
        }
    }
}

/// The first pure ACK reports how the SYN-ACK arrived; a marked one is counted once, in the counter of later segments (sections
/// 3.2.2.1, 3.2.2.2).
// Rule: The ACK of the SYN-ACK reports its ECN field. [9768 3.2.2.1, 3.2.2.2; state/marks.rs]
#[test]
fn the_first_ack_reports_the_syn_ack() {
    for (field, code, later) in
        [(Ecn::NotEct, 0b010, 5), (Ecn::Ect1, 0b011, 5), (Ecn::Ect0, 0b100, 5), (Ecn::Ce, 0b110, 6)]
    {
        let mut tcp = Client::supplied(&with_handshake(EcnMode::Accurate));
        tcp.open().sent();
        let answer = tcp.syn_ack_segment();
        let answer = Segment { flags: answer.flags.with_ace(0b010), ..answer };
        tcp.at(100).receives_with(answer, field);
        assert_eq!(tcp.sent()[0].flags.ace(), code);
        tcp.receives_with(answer, field).sent();
        tcp.supply(500);
        assert_eq!(tcp.sent()[0].flags.ace(), later);
    }
}

/// The conversation of the kernel's test of options beside SACK blocks: without timestamps three blocks fit beside all counters; with
/// them one does, and two beside two counters. Where the counters that have changed leave no room for two blocks, the blocks take
/// precedence (section 3.2.3.3).
// Rule: SACK blocks and counters share the header. [9768 3.2.3.3; receiver/report.rs]
#[test]
fn counters_leave_room_for_two_blocks() {
    for stamps in [false, true] {
        let settings =
            Settings { timestamps: stamps, dsack: true, sack_blocks: 4, ..accurate(Flavour::Sack, 4) };
        let mut tcp = Server::start(&settings);
        for (field, start, blocks, reported) in [
            (Ecn::Ect1, 1000, [1, 1], [(1, None), (1, None)]),
            (Ecn::Ect1, 3000, [2, 2], [(1, None), (1, None)]),
            (Ecn::Ce, 5000, [3, 2], [(2, Some(1000)), (2, Some(1000))]),
            // Without room for three counters, the third block is back.
            (Ecn::Ect0, 6000, [3, 3], [(3, Some(1000)), (0, None)]),
        ] {
            let timestamps = stamps.then_some(Timestamps { value: 1, echo: 0 });
            let segment = Segment { timestamps, ..tcp.segment(start..start + 1000) };
            let packet = tcp.receives_with(segment, field).answering_packet();
            let ack = packet.segment().expect("a segment");
            let option = ack.sack.ecn_counters();
            let found =
                (option.map_or(0, |option| option.fields().len()), option.and_then(|option| option.ce()));
            let case = usize::from(stamps);
            assert_eq!(
                (ack.sack.len(), found),
                (blocks[case], reported[case]),
                "{field:?}, timestamps: {stamps}"
            );
            let padded = option.map_or(0, |option| option.padded_len() as u64);
            let options = padded + 4 + 8 * ack.sack.len() as u64 + if stamps { 12 } else { 0 };
            assert_eq!(packet.size, Bytes(40 + options));
            assert!(options <= 40, "{options} bytes");
        }
    }
}

/// The conversation of the kernel's test of a sender's counters: reports of the ACE fields 6, 6, 7, 7 and 0 are three marks.
// Rule: The sender counts marks by the ACE field and the option. [9768 3.2.2.5.2, A.2; ecn/reported.rs]
#[test]
fn a_sender_counts_what_is_reported() {
    let mut tcp = Client::start(&accurate(Flavour::Prr, 10));
    tcp.at(100).packets();
    for (n, (ace, ce, marks)) in
        (1..).zip([(6, 1000, 1), (6, 1000, 1), (7, 2000, 2), (7, 2000, 2), (0, 3000, 3)])
    {
        let segment = report(&tcp, n * 1000, ace, ce);
        tcp.receives(segment).packets();
        assert_eq!(tcp.sender.stats().marks, marks);
    }
    assert_eq!(tcp.sender.stats().echoes, 3);
}

/// Marks reduce the window once per window of data, as with classic feedback, but no CWR is sent; the reduction for the next window
/// may follow at once.
// Rule: A mark reduces the window like a loss, once per window of data. [3168 6.1.2, 9768 3.4; recovery/prr/mod.rs]
#[test]
fn marks_reduce_the_window_once_per_flight() {
    for flavour in [Flavour::NewReno, Flavour::Sack, Flavour::Prr] {
        let mut tcp = Client::start(&accurate(flavour, 10));
        tcp.sends_full(0..10).at(100);
        let mut ace = 5;
        for n in 1..=10 {
            ace += 1;
            let segment = report(&tcp, n * 1000, ace, u32::from(ace - 5) * 1000);
            tcp.receives(segment).ssthresh(5000.0);
            let sent = tcp.sent();
            assert!(sent.iter().all(|segment| segment.flags.ace() == 5), "{flavour:?}: no CWR");
        }
        ace += 1;
        let segment = report(&tcp, 11_000, ace, 11_000);
        tcp.receives(segment).ssthresh(2000.0).sent();
        assert_eq!(tcp.sender.stats().marks, 11, "{flavour:?}");
    }
}

/// A loss while the window comes down for a mark takes nothing more from Reno, for which a mark is a loss. DCTCP and Prague, whose
/// share of marks has come down to an eighth after 32 rounds, give up little for the mark, and then half for the loss.
// Rule: A control whose marks take less than a loss answers a loss after a mark, too. [8257 3.5; recovery/prr/mod.rs]
#[test]
fn a_loss_after_a_mark_is_answered_where_marks_take_little() {
    for (congestion, of_mark) in
        [(Congestion::Reno, 0.5), (Congestion::Dctcp, 0.93), (Congestion::Prague, 0.93)]
    {
        let mut tcp = Client::start(&Settings { congestion, ..accurate(Flavour::Prr, 10) });
        let mut sent = tcp.sent().len() as u32;
        for round in 1..34 {
            let all = report(&tcp, sent * 1000, 6, 1000);
            sent += tcp.at(100 * round).receives(all).sent().len() as u32;
            // Prague paces.
            while tcp.sender.next_wakeup() < ms(100 * (round + 1)) {
                tcp.times_out();
                sent += tcp.sent().len() as u32;
            }
        }
        let before = tcp.sender.cwnd();
        let left = |tcp: &Client| tcp.sender.ssthresh() / before;
        let acked = sent - before as u32 / 1000 + 1;
        let marked = report(&tcp, acked * 1000, 7, 2000);
        tcp.at(3400).receives(marked).sent();
        assert!((left(&tcp) - of_mark).abs() < 0.04, "{congestion:?}: {} after a mark", left(&tcp));
        for end in 2..6 {
            let segment = tcp.report(acked * 1000, &[(acked + 1) * 1000..(acked + end) * 1000]);
            tcp.receives(Segment { flags: segment.flags.with_ace(7), ..segment }).sent();
        }
        tcp.losses(1);
        assert!((left(&tcp) - 0.5).abs() < 0.04, "{congestion:?}: {} after a loss", left(&tcp));
    }
}

/// Retransmissions and pure ACKs are ECN-capable, as in Linux; SYN and SYN-ACK are not.
// Rule: With accurate feedback, retransmissions and pure ACKs are ECN-capable. [state/marks.rs receiver.rs]
#[test]
fn all_but_control_packets_are_ecn_capable() {
    let mut tcp = Client::start(&accurate(Flavour::Prr, 4));
    tcp.sends_full(0..4).wakes_at(1000);
    let again = tcp.packets();
    assert_eq!((again.len(), again[0].ecn), (1, Ecn::Ect0));
    let mut tcp = Server::start(&Settings { ack_every: 1, ..accurate(Flavour::Prr, 4) });
    assert_eq!(tcp.data(0..1000).answering_packet().ecn, Ecn::Ect0);
}

/// Marks on ACKs are reported in the ACE field of data, and after three of them by an ACK of its own (section 3.2.2.5.1).
// Rule: Marked ACKs are reported, too. [9768 3.2.2.5.1; sender.rs]
#[test]
fn marked_acks_are_reported() {
    let mut tcp = Client::start_with(&accurate(Flavour::Prr, 10), Some(10_000));
    tcp.sends_full(0..10).at(100);
    for (n, sent) in (1..=6).zip([0, 0, 1, 0, 0, 1]) {
        let segment = report(&tcp, n * 1000, 5, 0);
        tcp.receives_with(segment, Ecn::Ce);
        let acks = tcp.packets();
        assert_eq!(acks.len(), sent, "after {n}");
        assert!(
            acks.iter().all(|ack| ack.segment().is_some_and(|ack| u32::from(ack.flags.ace()) == (5 + n) % 8))
        );
    }
    let mut tcp = Client::start(&accurate(Flavour::Prr, 4));
    tcp.sends_full(0..4).at(100);
    let segment = report(&tcp, 1000, 5, 0);
    assert_eq!(tcp.receives_with(segment, Ecn::Ce).sent()[0].flags.ace(), 6);
}

/// A first mark, and every second one after it, is acknowledged without delay.
// Rule: Marks are acknowledged early. [9768 3.2.2.5.1; ecn/received.rs]
#[test]
fn marks_are_not_delayed() {
    let mut tcp = Server::start(&Settings { ack_every: 8, ..accurate(Flavour::Prr, 4) });
    let mut receive = |n: u32, field: Ecn| {
        let segment = tcp.segment(n * 1000..(n + 1) * 1000);
        tcp.receives_with(segment, field);
    };
    receive(0, Ecn::Ect0);
    receive(1, Ecn::Ce);
    assert_eq!(tcp.answer().flags.ace(), 6);
    for (n, ace) in [(2, None), (3, Some(0)), (4, None), (5, Some(2))] {
        let segment = tcp.segment(n * 1000..(n + 1) * 1000);
        tcp.receives_marked(segment);
        match ace {
            Some(ace) => assert_eq!(tcp.answer().flags.ace(), ace),
            None => _ = tcp.is_silent(),
        }
    }
}
