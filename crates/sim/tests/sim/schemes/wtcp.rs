//! WTCP: the receiver that sets the rate, and the paced source, by hand.

use lasthop_base::{Duration, Time};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{
    Congestion, EcnMode, Flavour, SackBlock, SackBlocks, Segment, SeqNum, Settings, Timestamps,
};
use lasthop_proto::{Component, Ecn};
use lasthop_testing::dialogue::{Client, MSS, Server, settings};
use lasthop_testing::schemes::{installed, schemes_of};

fn tcp() -> Settings {
    Settings { timestamps: true, ack_every: 1, ..settings(Flavour::Prr, 10) }.with_mss(MSS)
}

/// A receiver that decides after every four packets.
fn receiver() -> Server {
    let schemes = schemes_of("[wtcp]\nepoch = 4");
    Server::installed(&tcp(), installed(&schemes, "wtcp").receiver_reactions())
}

/// A source at 0 ms; its first two segments are sent back to back, whatever the initial window.
fn source() -> Client {
    let schemes = Schemes::default();
    let mut tcp = Client::installed(&tcp(), None, installed(&schemes, "wtcp").reactions());
    tcp.sends_full(0..2);
    tcp
}

/// Segment number `number` arrives at `at` ms and was sent at `sent` ms. Returns the blocks of its acknowledgement.
fn arrives(tcp: &mut Server, number: u32, at: u64, sent: u32) -> Vec<SackBlock> {
    tcp.at(at).data_ts(number * MSS..(number + 1) * MSS, sent * 1_000).answer().sack.to_vec()
}

/// The rate of an acknowledgement without other blocks.
fn rate(tcp: &mut Server, number: u32, at: u64, sent: u32) -> Option<u32> {
    match arrives(tcp, number, at, sent)[..] {
        [] => None,
        [block] => {
            assert_eq!(block.start, block.end, "an empty block");
            Some(block.start.0)
        }
        ref blocks => panic!("{blocks:?}"),
    }
}

/// The acknowledgement of `offset` with a rate in bytes per second.
fn with_rate(tcp: &Client, offset: u32, rate: u32, blocks: &[std::ops::Range<u32>]) -> Segment {
    let mut sack = SackBlocks::default();
    tcp.report(offset, blocks).sack.iter().for_each(|block| sack.push(*block));
    sack.push(SackBlock { start: SeqNum(rate), end: SeqNum(rate) });
    Segment { sack, ..tcp.bare_ack(offset) }
}

/// 1,000 B in 250 ms; segments of later pairs are not.
// Rule: The first two segments are sent back to back; the time between their arrivals gives the first rate.
// [../scheme/wtcp/receiver.rs ../scheme/wtcp/sender.rs]
#[test]
fn a_packet_pair_sets_the_first_rate() {
    let mut tcp = receiver();
    assert_eq!(rate(&mut tcp, 0, 1_000, 0), None);
    assert_eq!(rate(&mut tcp, 1, 1_250, 0), Some(4_000));
    assert_eq!(rate(&mut tcp, 2, 1_300, 1), Some(4_000));
}

/// Four packets, each 250 ms after the one before it, raise the rate by 5 % of the first one. If they arrive 400 ms apart, a
/// queue grows: a ratio of 1.6 leaves 0.75 / 1.6 of the rate.
// Rule: The rate grows by a constant in each epoch, and is reduced if arrivals are farther apart than
// departures. [../scheme/wtcp/receiver.rs]
#[test]
fn the_rate_follows_the_spacing_of_packets() {
    let mut tcp = receiver();
    arrives(&mut tcp, 0, 1_000, 0);
    arrives(&mut tcp, 1, 1_250, 0);
    for (index, expected) in [(0, 4_000), (1, 4_000), (2, 4_000), (3, 4_200)] {
        assert_eq!(
            rate(&mut tcp, 2 + index, 1_500 + 250 * u64::from(index), 250 + 250 * index),
            Some(expected)
        );
    }
    for (index, expected) in [(0, 4_200), (1, 4_200), (2, 4_200), (3, 1_969)] {
        let (at, sent) = (2_650 + 400 * u64::from(index), 1_250 + 250 * index);
        assert_eq!(rate(&mut tcp, 6 + index, at, sent), Some(expected));
    }
}

/// A gap of one segment in an epoch is random; one of three is not. The rate takes the place of the oldest block.
// Rule: Losses reduce the rate only if they are more than usual; the rate is an empty SACK block, which takes
// the place of the oldest one. [../scheme/wtcp/receiver.rs]
#[test]
fn random_losses_leave_the_rate() {
    let mut tcp = receiver();
    arrives(&mut tcp, 0, 1_000, 0);
    arrives(&mut tcp, 1, 1_250, 0);
    let mut last = Vec::new();
    for (index, number) in [3, 4, 5, 6].into_iter().enumerate() {
        last = arrives(&mut tcp, number, 1_500 + 250 * index as u64, 250 + 250 * index as u32);
    }
    assert_eq!((last.len(), last[1].start.0), (2, 4_200));
    for (index, number) in [8, 10, 12, 14].into_iter().enumerate() {
        last = arrives(&mut tcp, number, 2_500 + 250 * index as u64, 1_250 + 250 * index as u32);
    }
    // Two blocks and the rate, after a quarter less.
    assert_eq!((last.len(), last[2].start.0, last[2].end.0), (3, 3_150, 3_150));
    assert_eq!(last[0].end.0.wrapping_sub(last[0].start.0), MSS);
}

/// With two counters two blocks fit, with three one, the rate among them.
// Rule: The counters of accurate ECN leave room for a block beside the rate, or give way. [../scheme/wtcp/mod.rs]
#[test]
fn the_rate_leaves_the_counters_of_marks() {
    let schemes = schemes_of("[wtcp]\nepoch = 4");
    let settings = Settings { ecn: EcnMode::Accurate, ..tcp() };
    let mut tcp = Server::installed(&settings, installed(&schemes, "wtcp").receiver_reactions());
    arrives(&mut tcp, 0, 1_000, 0);
    for (index, (number, field, blocks, marked)) in (0..).zip([
        (1, Ecn::Ce, 1, Some(1_000)),
        (3, Ecn::Ce, 2, Some(2_000)),
        // The older one of two blocks gives way.
        (5, Ecn::Ect0, 2, Some(2_000)),
        (2, Ecn::Ect0, 2, Some(2_000)),
        // Beside three counters there is room for one block.
        (4, Ecn::Ect1, 1, Some(2_000)),
        (7, Ecn::Ce, 2, None),
    ]) {
        let timestamps = Some(Timestamps { value: 250_000 * index, echo: 0 });
        let segment = Segment { timestamps, ..tcp.segment(number * MSS..(number + 1) * MSS) };
        let at = 1_250 + 250 * u64::from(index);
        let sack = tcp.at(at).receives_with(segment, field).answer().sack;
        let found = (sack.len(), sack.ecn_counters().and_then(|option| option.ce()));
        assert_eq!(found, (blocks, marked), "segment {number}");
        let rate = sack.last().expect("the rate");
        assert_eq!(rate.start, rate.end);
    }
}

/// A packet that others have overtaken, and one without timestamps, say nothing about the path.
// Rule: as the_rate_follows_the_spacing_of_packets
#[test]
fn overtaken_packets_do_not_count() {
    let mut tcp = receiver();
    arrives(&mut tcp, 1, 1_000, 100);
    // Sent before, arrives later.
    assert_eq!(rate(&mut tcp, 0, 1_100, 50), None);
    let segment = tcp.segment(2 * MSS..3 * MSS);
    tcp.at(1_150).receives(segment);
    assert!(tcp.answer().sack.is_empty());
    assert_eq!(rate(&mut tcp, 3, 1_500, 100), Some(2_000), "500 ms after segment 1");
}

/// 4,000 B/s: a segment each 250 ms, whatever the window.
// Rule: The source is paced at the rate; losses neither reduce it nor the window. [../scheme/wtcp/sender.rs
// state.rs]
#[test]
fn the_source_is_paced_at_the_rate() {
    let mut tcp = source();
    let ack = with_rate(&tcp, 1_000, 4_000, &[]);
    tcp.at(100).receives(ack).sends_full(2..3);
    tcp.at(110).ack(2_000).sends_nothing();
    tcp.wakes_at(350).sends_full(3..4);
    let ack = with_rate(&tcp, 3_000, 2_000, &[]);
    tcp.at(450).receives(ack).sends_nothing();
    tcp.wakes_at(600).sends_full(4..5);
    tcp.at(650).ack(4_000).sends_nothing();
    // The next ones are 500 ms apart.
    tcp.at(700).ack(5_000).sends_nothing();
    tcp.wakes_at(1_100).sends_full(5..6);
}

/// A loss is repaired at the rate, and changes neither window nor rate.
// Rule: as the_source_is_paced_at_the_rate
#[test]
fn losses_do_not_slow_the_source_down() {
    let mut tcp = source();
    let ack = with_rate(&tcp, 2_000, 20_000, &[]);
    tcp.at(100).receives(ack).sends_full(2..3);
    for number in 3..8u32 {
        tcp.wakes_at(50 * u64::from(number)).sends_full(number..number + 1);
    }
    // Segment 2 is lost: the next departure repairs it, and with each report more follow.
    let ack = with_rate(&tcp, 2_000, 20_000, &[3_000..4_000]);
    tcp.at(365).receives(ack).sends_nothing();
    tcp.wakes_at(400).sends(&["2000..3000"]).timeouts(0);
    let ack = with_rate(&tcp, 2_000, 20_000, &[3_000..5_000]);
    tcp.at(415).receives(ack).sends_nothing();
    tcp.wakes_at(450).sends_full(8..9);
}

/// Without acknowledgements the source stops and probes, each time after the same silence, and never times out.
// Rule: Without acknowledgements the source stops and probes, each time after the same silence.
// [../scheme/wtcp/sender.rs]
#[test]
fn a_blackout_is_probed_without_backoff() {
    let mut tcp = source();
    let ack = with_rate(&tcp, 2_000, 4_000, &[]);
    tcp.at(100).receives(ack).sends_full(2..3);
    tcp.at(200).ack(3_000).sends_nothing();
    let (mut last, mut probes) = (Time::ZERO, Vec::new());
    while probes.len() < 8 {
        last = tcp.sender.next_wakeup();
        tcp.wakes_at_time(last);
        for segment in tcp.sent() {
            if segment.seq == tcp.sender.snd_una() && tcp.sender.stats().requested_segments > 0 {
                probes.push(last);
            }
        }
    }
    let silences: Vec<Duration> = probes.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(silences.iter().all(|silence| *silence == silences[0]), "{silences:?}");
    assert_eq!((tcp.sender.stats().timeouts, tcp.sender.rtt().backoff()), (0, 1));
    // During the blackout, nothing but probes is sent, at most one new segment each 250 ms before it.
    let outstanding = tcp.sender.flight_size();
    assert!(outstanding <= 4 * MSS, "{outstanding} B outstanding");
    // The first acknowledgement resumes at the rate, counted from the last probe.
    let ack = with_rate(&tcp, 3_000 + outstanding, 4_000, &[]);
    tcp.at_time(last + Duration::from_millis(10)).receives(ack).sends_nothing();
    tcp.wakes_at_time(last + Duration::from_millis(250));
    assert_eq!(tcp.sent().len(), 1);
}

/// A source without the scheme ignores the rate.
// Rule: Other sources ignore the rate; sources that cannot be paced are refused. [../scheme/wtcp/mod.rs]
#[test]
fn an_empty_block_reports_nothing_to_other_sources() {
    let reported = |block: bool| {
        let mut tcp = Client::start(&tcp());
        tcp.sends_full(0..10);
        let ack = if block { with_rate(&tcp, 1_000, 5_000, &[]) } else { tcp.bare_ack(1_000) };
        tcp.at(100).receives(ack);
        (tcp.sent(), tcp.sender.cwnd(), tcp.sender.reported().count(), tcp.sender.dupacks())
    };
    assert_eq!(reported(true), reported(false));
}

// Rule: as an_empty_block_reports_nothing_to_other_sources
#[test]
fn sources_that_cannot_be_paced_are_refused() {
    let schemes = Schemes::default();
    let mismatch =
        |settings: Settings| installed(&schemes, "wtcp").mismatch(&settings).map(|(_, reason)| reason);
    assert_eq!(mismatch(tcp()), None);
    for (settings, remedy) in [
        (Settings { flavour: Flavour::NewReno, ..tcp() }, "flavour = \"prr\""),
        (Settings { timestamps: false, ..tcp() }, "timestamps = true"),
        (Settings { congestion: Congestion::Bbr, ..tcp() }, "congestion = \"reno\""),
    ] {
        assert!(mismatch(settings).expect("a reason").contains(remedy));
    }
    for (keys, wrong) in [
        ("epoch = 1", "epoch"),
        ("congested = 1", "congested"),
        ("increase = 0", "increase"),
        ("decrease = 1", "decrease"),
        ("deviations = -1", "deviations"),
        ("congested = nan", "congested"),
    ] {
        let schemes = schemes_of(&format!("[wtcp]\n{keys}"));
        let combination = installed(&schemes, "wtcp");
        let faults: Vec<_> = combination.faults(&tcp()).map(|(_, key, _)| key).collect();
        assert_eq!(faults, [wrong]);
    }
}
