//! Segment sizes of a VS-TCP sender, step by step (section IV-B of the paper). Sizes, windows and times are
//! calculated by hand; timestamps identify the segment that triggered an acknowledgement.

use std::ops::Range;

use lasthop_base::Bytes;
use lasthop_proto::scheme::{Need, Scheme, Schemes};
use lasthop_proto::tcp::{Flags, Flavour, Segment, Settings, Timestamps, WindowSize};
use lasthop_testing::dialogue::{Client, Steps, settings};
use lasthop_testing::schemes::{installed, schemes_of};

/// A window of eight packets of 512 B.
const PACKETS: &str = "wireless = { window_counts = \"packets\", window = \"4416 B\" }\n";
/// A window of 4096 B of payload.
const PAYLOAD: &str = "wireless = { window = \"4096 B\" }\n";

fn tcp() -> Settings {
    Settings { packet_size: Bytes(552), ack_every: 1, ..settings(Flavour::NewReno, 1) }
}

fn schemes(parameters: &str) -> Schemes {
    schemes_of(&format!("[vs-tcp]\n{parameters}"))
}

/// The sender of the wireless part, with `bytes` to send; without a handshake it starts at time zero.
fn start_with(parameters: &str, tcp: &Settings, bytes: Option<u64>) -> Client {
    let schemes = schemes(parameters);
    assert_eq!(schemes.vs_tcp.faults(tcp), []);
    let scheme = installed(&schemes, "vs-tcp");
    let split = scheme.split(tcp).expect("it splits");
    Client::installed(&split.wireless, bytes, scheme.reactions())
}

/// An unbounded transfer; `parameters` precede those of the window. A loss counts once, and the size grows per window unless
/// they say otherwise.
fn start(parameters: &str, window: &str) -> Client {
    let growth = if parameters.contains("growth") { "" } else { "growth = \"per-window\"" };
    start_with(&format!("{parameters}\n{growth}\nlosses = \"segments\"\n{window}"), &tcp(), None)
}

/// Scheme-specific steps of a conversation.
trait SizeSteps: Steps {
    /// Sizes of the segments sent since the last call.
    fn sizes(&mut self) -> Vec<u32> {
        self.client().sent().iter().map(|segment| segment.len).collect()
    }

    /// Asserts the current segment size.
    fn has_mss(&mut self, bytes: u32) -> &mut Client {
        struct Mss(f64);
        impl lasthop_proto::Probe for Mss {
            fn value(&mut self, name: &'static str, value: f64) {
                if name == "mss_bytes" {
                    self.0 = value;
                }
            }
        }
        let mut mss = Mss(0.0);
        lasthop_proto::Component::show(&self.client().sender, &mut mss);
        assert_eq!(mss.0, f64::from(bytes), "size of segments");
        self.client()
    }

    /// Acknowledges one segment at a time; `sizes` are the segment sizes after each acknowledgement. Each
    /// segment in `unacknowledged` was sent on its own; replies have the current size.
    fn grows(&mut self, unacknowledged: &mut Vec<u32>, sizes: &[u32]) -> &mut Client {
        for &size in sizes {
            let end = unacknowledged.remove(0);
            self.client().ack(end).has_mss(size);
            let mut next = unacknowledged.last().copied().unwrap_or(end);
            for sent in self.sizes() {
                assert_eq!(sent, size, "as large as segments are by now");
                next += sent;
                unacknowledged.push(next);
            }
        }
        self.client()
    }
}

impl SizeSteps for Client {}

/// The ends of eight segments of 512 B.
fn eight() -> Vec<u32> {
    (1..=8).map(|n| n * 512).collect()
}

/// Method 1 with a window of eight packets: each acknowledgement adds an eighth of the step of 128 B. The
/// window is eight packets of any size.
// Rule: A step per window of ACKs, or per ACK, up to the largest size. [IV-B.1; ../scheme/vs_tcp.rs]
#[test]
fn the_size_grows_by_one_step_per_window() {
    let mut tcp = start("", PACKETS);
    tcp.cwnd(4096.0).has_mss(512);
    assert_eq!(tcp.sizes(), [512; 8]);
    let mut unacknowledged = eight();
    tcp.at(100).grows(&mut unacknowledged, &[528, 544, 560, 576, 592, 608, 624, 640]);
    tcp.cwnd(8.0 * 640.0).grows(&mut unacknowledged, &[656, 672]).cwnd(8.0 * 672.0);
}

/// A window of 4096 B of payload is 4096/s packets of size s, so an acknowledgement adds s/32: 16, then 16.5,
/// then 17.015625, ... Sizes are rounded down to multiples of eight.
// Rule: as the_size_grows_by_one_step_per_window
#[test]
fn a_payload_window_is_converted_to_packets() {
    let mut tcp = start("", PAYLOAD);
    tcp.cwnd(4096.0);
    assert_eq!(tcp.sizes(), [512; 8]);
    tcp.at(100).ack(512).has_mss(528).sends_nothing().ack(1024).has_mss(544).sends(&["4096..4640"]);
    // 561.515625, 579.06298828125, 597.15870666...
    for (ack, mss) in [(1536, 560), (2048, 576), (2560, 592)] {
        tcp.ack(ack).has_mss(mss).cwnd(4096.0).sizes();
    }
}

/// Method 1 as printed, the default: every duplicate ACK halves the size, every acknowledgement of new data adds a step, and
/// a timeout halves it once.
// Rule: Method 1: each duplicate ACK and each timeout halves the size, each ACK adds a step. [IV-B.1; ../scheme/vs_tcp.rs]
#[test]
fn each_duplicate_halves_and_each_acknowledgement_adds_a_step() {
    let settings = tcp();
    let mut tcp = start_with(&format!("initial_size = \"1024 B\"\n{PACKETS}"), &settings, None);
    assert_eq!(tcp.sizes(), [1024; 8]);
    tcp.at(100).heard(0, 1).losses(1).has_mss(512).sends(&full(0..8, 512));
    for (older, size) in [(2, 256), (3, 128), (4, 128)] {
        tcp.heard(0, older).losses(1).has_mss(size).sends_nothing();
    }
    for (number, size) in [(0, 256), (1, 384), (2, 512)] {
        tcp.at(200).heard(512 * (number + 1), 100_000 + number).has_mss(size).losses(1).sizes();
    }
    let mut tcp = start_with(PACKETS, &settings, None);
    tcp.sizes();
    tcp.wakes_at(1000).timeouts(1).has_mss(256);
}

/// One step per acknowledgement, up to the largest size.
// Rule: as each_duplicate_halves_and_each_acknowledgement_adds_a_step
#[test]
fn growth_per_acknowledgement_ends_at_the_largest_size() {
    let mut tcp = start("growth = \"per-ack\"", PACKETS);
    tcp.sizes();
    tcp.at(100).grows(&mut eight(), &[640, 768, 896, 1024, 1024, 1024]);
    let mut tcp = start("growth = \"per-ack\"\nstep = \"100 B\"\nlargest_size = \"800 B\"", PACKETS);
    tcp.sizes();
    // 612, 712, and 812 is more than the largest.
    tcp.at(100).grows(&mut eight(), &[608, 712, 800, 800]);
}

/// One step per window of acknowledgements, for any window; growth stops at the largest size.
// Rule: as the_size_grows_by_one_step_per_window
#[test]
fn growth_ends_at_the_largest_size() {
    let mut tcp = start("initial_size = \"1000 B\"", PACKETS);
    tcp.sizes();
    let mut unacknowledged = (1..=8).map(|n| n * 1000).collect();
    tcp.at(100).grows(&mut unacknowledged, &[1016, 1024, 1024]).cwnd(8.0 * 1024.0);
}

/// Method 1 halves the size on each loss, down to the smallest. Duplicates of one loss count once;
/// retransmissions have the current size, and the window counts packets of that size.
// Rule: Method 1: each loss halves the size, down to the smallest. [IV-B.1; ../scheme/vs_tcp.rs]
#[test]
fn method_1_halves_the_size_on_each_loss() {
    let mut tcp = start("", PACKETS);
    assert_eq!(tcp.sizes(), [512; 8]);
    tcp.at(100).heard(0, 1).losses(1).has_mss(256).cwnd(2048.0);
    tcp.sends(&full(0..8, 256));
    (2..8).for_each(|older| _ = tcp.heard(0, older).has_mss(256).sends_nothing());
    tcp.at(200).heard(0, 100_003).losses(2).has_mss(128).cwnd(1024.0).sends(&full(0..8, 128));
    tcp.at(300).heard(0, 200_001).losses(3).has_mss(128).sends(&full(0..8, 128));
    // The gap is filled: one cumulative acknowledgement, and an eighth of a step.
    tcp.at(400).heard(4096, 300_000).has_mss(144);
    assert_eq!(tcp.sizes(), [144; 8]);
}

/// Consecutive segments of `size`.
fn full(numbers: Range<u32>, size: u32) -> Vec<&'static str> {
    let texts = numbers.map(|n| format!("{}..{}", n * size, (n + 1) * size));
    texts.map(|text| &*text.leak()).collect()
}

/// A halved size is rounded down to a multiple of eight, and not below the smallest size.
// Rule: as method_1_halves_the_size_on_each_loss
#[test]
fn halved_sizes_are_rounded_down_and_bounded() {
    let mut tcp = start("initial_size = \"600 B\"", PACKETS);
    assert_eq!(tcp.sizes(), [600; 8]);
    // 300, 150, and 75 is less than 128.
    for (time, echo, size) in [(100, 1, 296), (200, 100_001, 144), (300, 200_001, 128), (400, 300_001, 128)] {
        tcp.at(time).heard(0, echo).has_mss(size).cwnd(f64::from(8 * size)).sends(&full(0..8, size));
    }
    let mut tcp = start("smallest_size = \"512 B\"", PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).losses(1).has_mss(512).sends(&full(0..8, 512));
}

/// A timeout is a loss like any other.
// Rule: as method_1_halves_the_size_on_each_loss
#[test]
fn a_timeout_is_a_loss() {
    for method in [1, 2] {
        let mut tcp = start(&format!("method = {method}"), PACKETS);
        tcp.sizes();
        // Method 2: one loss of five exceeds 0.1, and 512 is at most half the largest size: one step down.
        let size = if method == 1 { 256 } else { 384 };
        tcp.wakes_at(1000).timeouts(1).has_mss(size).cwnd(f64::from(8 * size)).sends(&full(0..8, size));
        tcp.wakes_at(3000).timeouts(2).has_mss(size - 128);
        tcp.sizes();
    }
}

/// The acknowledgement of SYN does not count as a segment: the first data have the initial size.
// Rule: as the_size_grows_by_one_step_per_window
#[test]
fn the_first_size_is_the_initial_one() {
    for growth in ["per-ack", "per-window"] {
        for method in [1, 2] {
            let parameters = format!("method = {method}\ngrowth = \"{growth}\"\n{PACKETS}");
            let settings = Settings { handshake: true, ..tcp() };
            let mut tcp = start_with(&parameters, &settings, None);
            tcp.sends(&["SYN"]).wakes_at(1000).sends(&["SYN"]).has_mss(512).at(1100);
            let answer = tcp.syn_ack_segment();
            assert!(answer.flags.has(Flags::SYN));
            let timestamps = Some(Timestamps { value: 0, echo: 1_000_000 });
            tcp.receives(Segment { timestamps, ..answer }).has_mss(512);
            assert_eq!(tcp.sizes(), [512; 8]);
        }
    }
}

/// A cumulative acknowledgement is one packet in method 2, and one growth increment.
// Rule: as the_size_grows_by_one_step_per_window
#[test]
fn a_cumulative_acknowledgement_counts_once() {
    let mut tcp = start("", PACKETS);
    tcp.sizes();
    tcp.at(100).ack(2048).has_mss(528).sizes();
    tcp.ack(2048).has_mss(528).ack(1024).has_mss(528).sends_nothing();
}

/// Method 2 by hand, with the loss rate over the last five packets: one loss is 0.2, above 0.1. A size above
/// half the largest is halved; otherwise it is reduced by a step, also on each acknowledgement while the loss
/// is among the last five; afterwards it grows.
// Rule: Method 2: the loss rate over the last packets moves the size. [IV-B.1; ../scheme/vs_tcp.rs]
#[test]
fn method_2_follows_the_loss_rate() {
    let mut tcp = start("method = 2\ngrowth = \"per-ack\"\ninitial_size = \"1024 B\"", PACKETS);
    assert_eq!(tcp.sizes(), [1024; 8]);
    tcp.at(100).heard(0, 1).losses(1).has_mss(512).cwnd(4096.0).sends(&full(0..8, 512));
    // One loss and three deliveries: 512 is not above half of 1024.
    tcp.at(200);
    let mut after = |copies: &[(u32, u32, u32)]| {
        for &(ack, echo, size) in copies {
            tcp.heard(ack, echo).has_mss(size).losses(1).sizes();
        }
    };
    after(&[(512, 100_000, 384), (1024, 100_001, 256), (1536, 100_002, 128)]);
    // The fourth delivery: the loss is the oldest of the five.
    after(&[(2048, 100_003, 128)]);
    // The loss has left the window: 0 is less than 0.1.
    after(&[(2560, 100_004, 256), (3072, 100_005, 384)]);
}

/// A size just above half the largest is halved, not reduced by a step.
// Rule: as method_2_follows_the_loss_rate
#[test]
fn method_2_halves_sizes_above_half_the_largest() {
    for (initial, after) in [(520, 256), (512, 384), (136, 128), (1024, 512)] {
        let mut tcp = start(&format!("method = 2\ninitial_size = \"{initial} B\""), PACKETS);
        tcp.sizes();
        // 520 is halved to 260, rounded down to 256.
        tcp.at(100).heard(0, 1).has_mss(after).sizes();
    }
    let parameters = "method = 2\ninitial_size = \"1024 B\"\nsmallest_size = \"600 B\"";
    let mut tcp = start(parameters, PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).has_mss(600).sizes();
}

/// At the target loss rate the size is unchanged; one more loss reduces it. With L_w = 5 and e_w = 0.2, one
/// loss of five is the target.
// Rule: as method_2_follows_the_loss_rate
#[test]
fn method_2_keeps_the_size_at_the_target_loss_rate() {
    let mut tcp = start("method = 2\ngrowth = \"per-ack\"\nwanted_loss = 0.2", PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).losses(1).has_mss(512).sizes();
    tcp.at(200).heard(512, 100_000).has_mss(512).sizes();
    // Two losses of five.
    tcp.heard(512, 100_002).losses(2).has_mss(384).sizes();
    // L, D, L, D, D: still two of five; then the first leaves the window.
    tcp.at(300).heard(1024, 200_000).has_mss(256).heard(1536, 200_001).has_mss(128).sizes();
    tcp.heard(2048, 200_002).has_mss(128).sizes();
    // Four deliveries follow the second loss; after one more none is left.
    tcp.heard(2432, 200_003).has_mss(128).heard(2816, 200_004).has_mss(256).sizes();
}

/// With L_w = 1 a loss is forgotten at the next packet; with 20, one loss is 0.05, below 0.1, and does not
/// reduce the size.
// Rule: as method_2_follows_the_loss_rate
#[test]
fn the_loss_window_is_a_parameter() {
    let mut tcp = start("method = 2\ngrowth = \"per-ack\"\nloss_window = 1", PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).has_mss(384).sizes();
    tcp.at(200).heard(384, 100_000).has_mss(512).sizes();
    let mut tcp = start("method = 2\ngrowth = \"per-ack\"\nloss_window = 20", PACKETS);
    tcp.sizes();
    // Below the target, so the size grows even on a loss (section IV-B: e_c and s are updated on each loss).
    tcp.at(100).heard(0, 1).losses(1).has_mss(640).sizes();
    // The second loss reaches the target of 0.1; the third exceeds it, and 640 is above half.
    tcp.at(200).heard(0, 100_001).losses(2).has_mss(640).sizes();
    tcp.at(300).heard(0, 200_001).losses(3).has_mss(320).sizes();
}

/// The low-pass filter by hand: with L_w = 5 each packet has a weight of a third. A loss is 1/3, then 2/9 and
/// 4/27; with the third delivery, 8/81 is below 0.1. The average takes five deliveries.
// Rule: as method_2_follows_the_loss_rate
#[test]
fn a_low_pass_filter_is_an_option() {
    let parameters = "method = 2\ngrowth = \"per-ack\"\ninitial_size = \"1024 B\"\nloss_rate = \"low-pass\"";
    let mut tcp = start(parameters, PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).losses(1).has_mss(512).sizes();
    tcp.at(200);
    for (number, size) in (1..).zip([384, 256, 384, 512, 640]) {
        tcp.heard(512 * number, 99_999 + number).has_mss(size).losses(1).sizes();
    }
    // 1 of one packet, then 0: as with the average of one.
    let mut tcp = start(&format!("{parameters}\nloss_window = 1"), PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).has_mss(512).sizes();
    tcp.at(200).heard(512, 100_000).has_mss(640).sizes();
    // 20 packets: a loss is 2/21, below 0.1, and the second 0.1814, above.
    let mut tcp = start(&format!("{parameters}\nloss_window = 20"), PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).losses(1).has_mss(1024).sizes();
    tcp.at(200).heard(0, 100_001).losses(2).has_mss(512).sizes();
}

/// With selective repeat one arrival indicates at most one loss, and retransmissions have the new size.
// Rule: as method_1_halves_the_size_on_each_loss
#[test]
fn selective_repeat_counts_one_loss_per_arrival() {
    let mut tcp = start("recovery = \"selective-repeat\"", PACKETS);
    tcp.sizes();
    tcp.at(100).heard_of(0, 2, &[1024..1536]).losses(1).has_mss(256);
    tcp.sends(&["0..256", "256..512", "512..768", "768..1024"]);
    tcp.heard_of(0, 3, &[1024..2048]).sends_nothing().losses(1).has_mss(256);
}

/// The wireless part has the scheme's recovery and sizes and no congestion control; a window of packets holds
/// that many of the largest size. Other settings are those of the wired part, or of `wireless`.
// Rule: The wireless part, and the defaults of its parameters. [V-A, table 3; ../scheme/vs_tcp.rs]
#[test]
fn the_wireless_part_has_the_schemes_settings() {
    let of = |parameters: &str| installed(&schemes(parameters), "vs-tcp").split(&tcp()).expect("it splits");
    let split = of(&format!("buffer = \"9 KB\"\n{PACKETS}"));
    assert_eq!((split.buffer, split.wireless.packet_size), (Bytes(9_000), Bytes(1076)));
    assert_eq!((split.wireless.window, split.wireless.window_payload()), (WindowSize::Packets(8), 8 * 1024));
    assert_eq!(split.wireless.flavour, Flavour::GoBackN);
    let split = of(&format!("recovery = \"selective-repeat\"\nlargest_size = \"600 B\"\n{PAYLOAD}"));
    assert_eq!((split.wireless.packet_size, split.wireless.window), (Bytes(652), Bytes(4096).into()));
    assert_eq!(split.wireless.flavour, Flavour::SelectiveRepeat);
    let plain = installed(&schemes(""), "metp").split(&tcp()).expect("it splits").wireless;
    assert_eq!(of("").wireless, plain.with_mss(1024));
}

/// Omitted parameters have the values of the paper's table 3.
// Rule: as the_wireless_part_has_the_schemes_settings
#[test]
fn omitted_parameters_default_to_the_paper() {
    let stated = "method = 1\ninitial_size = \"512 B\"\nlargest_size = \"1024 B\"\nsmallest_size = \"128 B\"\n\
                  step = \"128 B\"\nwanted_loss = 0.1\nloss_window = 5\nloss_rate = \"average\"\ngrowth = \"per-ack\"\n\
                  losses = \"duplicates\"\nrecovery = \"go-back-n\"\nbuffer = \"64 KiB\"";
    assert_eq!(schemes(stated), Schemes::default());
}

/// Sizes at and beyond the limits: each fault names one parameter, once.
// Rule: as the_wireless_part_has_the_schemes_settings
#[test]
fn invalid_sizes_are_rejected() {
    let keys = |parameters: &str| -> Vec<String> {
        schemes(parameters).vs_tcp.faults(&tcp()).into_iter().map(|(key, _)| key).collect()
    };
    let none: [&str; 0] = [];
    assert_eq!(keys("smallest_size = \"8 B\""), none);
    for wrong in ["0 B", "4 B", "12 B", "100 B"] {
        assert_eq!(keys(&format!("smallest_size = \"{wrong}\"")), ["smallest_size"], "{wrong}");
    }
    let one_size = "smallest_size = \"512 B\"\nlargest_size = \"512 B\"\n";
    assert_eq!(keys(one_size), none);
    assert_eq!(keys(&format!("{one_size}initial_size = \"520 B\"")), ["initial_size"]);
    assert_eq!(keys("smallest_size = \"600 B\"\nlargest_size = \"512 B\""), ["largest_size"]);
    assert_eq!(keys("initial_size = \"1032 B\""), ["initial_size"]);
    assert_eq!(keys("step = \"0 B\""), ["step"]);
}

/// A window below one packet is reported in the unit of the file: packets of the wired size, or of the
/// scheme's largest size.
// Rule: as the_wireless_part_has_the_schemes_settings
#[test]
fn a_window_below_one_packet_is_rejected_in_its_own_unit() {
    let fault = |wireless: &str| {
        let faults = schemes(&format!("wireless = {{ {wireless} }}")).vs_tcp.faults(&tcp());
        let [(key, problem)] = &faults[..] else { panic!("one fault, not {faults:?}") };
        assert_eq!(key, "wireless.window");
        problem.clone()
    };
    let expected = |packet: u64| format!("found 500 B, expected room for at least one packet of {packet} B");
    assert_eq!(fault("window = \"500 B\", window_counts = \"packets\""), expected(552));
    assert_eq!(fault("window = \"500 B\""), expected(1076));
    assert_eq!(
        schemes("wireless = { window = \"552 B\", window_counts = \"packets\" }").vs_tcp.faults(&tcp()),
        []
    );
}

/// Without a split, a loss counts that another scheme ascribes to the link: three marked duplicates of ELN halve the size and
/// leave the window. Three unmarked ones are congestion, and leave the size to grow. The lost segment is repaired whole, also
/// if an earlier hole has halved the size, and each hole counts once, so that no timeout follows.
// Rule: With `split = false`, losses that another scheme calls corruption control the size. [VI; ../scheme/vs_tcp.rs]
#[test]
fn end_to_end_another_scheme_tells_the_losses_of_the_link() {
    const ELN: Flags = Flags(0x200);
    let schemes = schemes("split = false\nlargest_size = \"512 B\"");
    for (flavour, mark) in
        [(Flavour::NewReno, ELN), (Flavour::Reno, ELN), (Flavour::NewReno, Flags::default())]
    {
        let settings = Settings { packet_size: Bytes(552), ..settings(flavour, 8) };
        assert_eq!(schemes.vs_tcp.faults(&settings), []);
        let combined = installed(&schemes, "eln + vs-tcp");
        assert!(combined.split(&settings).is_none());
        let mut tcp = Client::installed(&settings, None, combined.reactions());
        assert_eq!(tcp.sizes(), [512; 8]);
        let mut duplicate = |ack: u32| {
            let segment = tcp.report(ack, &[]);
            tcp.at(100).receives(Segment { flags: segment.flags | mark, ..segment });
            tcp.sizes().first().copied()
        };
        let (is_marked, repairs_more) = (mark == ELN, flavour == Flavour::NewReno);
        assert_eq!([duplicate(0), duplicate(0), duplicate(0)], [None, None, Some(512)]);
        // NewReno repairs the second hole at once: 256 B and a step are halved to 192 B, once for both acknowledgements.
        if repairs_more {
            assert_eq!(duplicate(512), Some(512));
            duplicate(512);
        }
        tcp.losses(1).ssthresh(if is_marked { f64::INFINITY } else { 2048.0 });
        let size = [512, 256, 192][usize::from(is_marked) + usize::from(is_marked && repairs_more)];
        let grown = 512.min(size + 128);
        tcp.ack(4096).has_mss(grown).timeouts(0);
        assert!(tcp.sizes().iter().all(|sent| *sent == grown));
    }
}

/// Losses by the queue that a scheme ascribes to the link would make ever more and smaller packets for it.
// Rule: as end_to_end_another_scheme_tells_the_losses_of_the_link
#[test]
fn end_to_end_the_queue_may_not_drop() {
    let needs_room = |parameters: &str, names: &str| {
        let schemes = schemes_of(parameters);
        let combination = schemes.combination(names).expect("they go together");
        combination.needs().any(|need| need == Need::Room)
    };
    let whole = "[vs-tcp]\nsplit = false\n";
    for names in ["lhack + vs-tcp", "vs-tcp + lhack", "i-tcp + lhack + vs-tcp"] {
        assert!(needs_room(whole, names), "{names}");
        assert!(!needs_room(&format!("{whole}[lhack]\nlast_hop = false"), names), "{names}");
    }
    // ELN knows the losses of the link, and all those of a part of its own count anyway.
    assert!(!needs_room(whole, "eln + vs-tcp") && !needs_room("", "lhack + vs-tcp"));
}

/// Without a split there is no wireless part, and a segment is not larger than the source's packets.
// Rule: as end_to_end_another_scheme_tells_the_losses_of_the_link
#[test]
fn end_to_end_settings_of_a_split_are_rejected() {
    let keys = |parameters: &str| -> Vec<String> {
        let faults = schemes(&format!("split = false\n{parameters}")).vs_tcp.faults(&tcp());
        faults.into_iter().map(|(key, _)| key).collect()
    };
    assert_eq!(keys(""), ["largest_size"]);
    assert_eq!(keys("largest_size = \"512 B\""), [""; 0]);
    for stated in ["recovery = \"selective-repeat\"", "buffer = \"9 KB\"", PACKETS.trim()] {
        let key = stated.split(' ').next().expect("a key");
        assert_eq!(keys(&format!("largest_size = \"512 B\"\n{stated}")), [key]);
    }
}
