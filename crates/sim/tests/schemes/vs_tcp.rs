//! Segment sizes of a VS-TCP sender, step by step (section IV-B of the paper). Sizes, windows and times are
//! calculated by hand; timestamps identify the segment that triggered an acknowledgement.

use std::ops::Range;

use lasthop_base::Bytes;
use lasthop_proto::scheme::{Scheme, Schemes};
use lasthop_proto::tcp::{Flags, Flavour, Segment, Settings, Timestamps, WindowSize};
use lasthop_testing::dialogue::{Client, Steps, settings};

/// A window of eight packets of 512 B.
const PACKETS: &str = "wireless = { window_counts = \"packets\", window = \"4416 B\" }\n";
/// A window of 4096 B of payload.
const PAYLOAD: &str = "wireless = { window = \"4096 B\" }\n";

fn tcp() -> Settings {
    Settings { packet_size: Bytes(552), ack_every: 1, ..settings(Flavour::NewReno, 1) }
}

fn schemes(parameters: &str) -> Schemes {
    toml::from_str(&format!("[vs-tcp]\n{parameters}")).expect("sound parameters")
}

/// The sender on the wireless part, with `bytes` to send; without a handshake it has begun at time zero.
fn start_with(parameters: &str, tcp: &Settings, bytes: Option<u64>) -> Client {
    let scheme = schemes(parameters).vs_tcp;
    assert_eq!(scheme.faults(tcp), []);
    let split = scheme.split(tcp).expect("it splits");
    Client::reacting_with(&split.wireless, bytes, scheme.reaction().expect("it reacts"))
}

/// The same without an end, and with parameters that stand before those of the window.
fn start(parameters: &str, window: &str) -> Client {
    start_with(&format!("{parameters}\n{window}"), &tcp(), None)
}

/// Steps of this scheme's conversations.
trait SizeSteps: Steps {
    /// The sizes of what was sent since it was last named.
    fn sizes(&mut self) -> Vec<u32> {
        self.client().sent().iter().map(|segment| segment.len).collect()
    }

    /// The segments' size is now this.
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

    /// Acknowledgements of one segment after another, of which `sizes` are those after each of them. Every
    /// segment in `unacknowledged` was sent by itself; what is sent in answer is as large as segments are by then.
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

/// Where eight segments of 512 B end.
fn eight() -> Vec<u32> {
    (1..=8).map(|n| n * 512).collect()
}

/// Method 1 with a window of eight packets: each acknowledgement brings an eighth of a step of 128 B. The window
/// is eight packets of whatever size.
#[test]
fn a_step_comes_with_a_window_of_acknowledgements() {
    let mut tcp = start("", PACKETS);
    tcp.cwnd(4096.0).has_mss(512);
    assert_eq!(tcp.sizes(), [512; 8]);
    let mut unacknowledged = eight();
    tcp.at(100).grows(&mut unacknowledged, &[528, 544, 560, 576, 592, 608, 624, 640]);
    tcp.cwnd(8.0 * 640.0).grows(&mut unacknowledged, &[656, 672]).cwnd(8.0 * 672.0);
}

/// With a window of payload, that of 4096 B is 4096/s packets of size s, and an acknowledgement brings s/32: 16,
/// then 16.5, then 17.015625, ... and sizes are cut to multiples of eight.
#[test]
fn a_window_of_payload_is_so_many_packets_as_go_into_it() {
    let mut tcp = start("", PAYLOAD);
    tcp.cwnd(4096.0);
    assert_eq!(tcp.sizes(), [512; 8]);
    tcp.at(100).ack(512).has_mss(528).sends_nothing().ack(1024).has_mss(544).sends(&["4096..4640"]);
    // 561.515625, 579.06298828125, 597.15870666...
    for (ack, mss) in [(1536, 560), (2048, 576), (2560, 592)] {
        tcp.ack(ack).has_mss(mss).cwnd(4096.0).sizes();
    }
}

/// The literal reading: a step with each acknowledgement, up to the largest size and no further.
#[test]
fn a_step_may_come_with_each_acknowledgement() {
    let mut tcp = start("growth = \"per-ack\"", PACKETS);
    tcp.sizes();
    tcp.at(100).grows(&mut eight(), &[640, 768, 896, 1024, 1024, 1024]);
    let mut tcp = start("growth = \"per-ack\"\nstep = \"100 B\"\nlargest_size = \"800 B\"", PACKETS);
    tcp.sizes();
    // 612, 712, and 812 is more than the largest.
    tcp.at(100).grows(&mut eight(), &[608, 712, 800, 800]);
}

/// A window of acknowledgements brings one step, however the window is filled: it stops at the largest size.
#[test]
fn growth_ends_at_the_largest_size() {
    let mut tcp = start("initial_size = \"1000 B\"", PACKETS);
    tcp.sizes();
    let mut unacknowledged = (1..=8).map(|n| n * 1000).collect();
    tcp.at(100).grows(&mut unacknowledged, &[1016, 1024, 1024]).cwnd(8.0 * 1024.0);
}

/// Method 1 halves with each loss, down to the smallest size. A loss is one however many duplicates it makes;
/// what is retransmitted is as large as segments are by then, and the window is so many of them.
#[test]
fn each_loss_halves_the_size() {
    let mut tcp = start("", PACKETS);
    assert_eq!(tcp.sizes(), [512; 8]);
    tcp.at(100).heard(0, 1).losses(1).has_mss(256).cwnd(2048.0);
    tcp.sends(&full(0..8, 256));
    (2..8).for_each(|older| _ = tcp.heard(0, older).has_mss(256).sends_nothing());
    tcp.at(200).heard(0, 100_003).losses(2).has_mss(128).cwnd(1024.0).sends(&full(0..8, 128));
    tcp.at(300).heard(0, 200_001).losses(3).has_mss(128).sends(&full(0..8, 128));
    // All that was lost is there, with what was kept: one acknowledgement, and an eighth of a step.
    tcp.at(400).heard(4096, 300_000).has_mss(144);
    assert_eq!(tcp.sizes(), [144; 8]);
}

/// Segments of `size`, one after another.
fn full(numbers: Range<u32>, size: u32) -> Vec<&'static str> {
    let texts = numbers.map(|n| format!("{}..{}", n * size, (n + 1) * size));
    texts.map(|text| &*text.leak()).collect()
}

/// A size that was halved is cut to a multiple of eight, and not below the smallest one.
#[test]
fn halves_are_cut_and_end_at_the_smallest_size() {
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
#[test]
fn a_timeout_is_a_loss() {
    for method in [1, 2] {
        let mut tcp = start(&format!("method = {method}"), PACKETS);
        tcp.sizes();
        // Method 2: one loss of five is more than 0.1, and 512 is at most half the largest: one step.
        let size = if method == 1 { 256 } else { 384 };
        tcp.wakes_at(1000).timeouts(1).has_mss(size).cwnd(f64::from(8 * size)).sends(&full(0..8, size));
        tcp.wakes_at(3000).timeouts(2).has_mss(size - 128);
        tcp.sizes();
    }
}

/// What acknowledges SYN is no segment that has arrived: the first data are of the initial size.
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

/// An acknowledgement of several segments is one packet of method 2's, and brings as much growth as of one.
#[test]
fn an_acknowledgement_counts_once() {
    let mut tcp = start("", PACKETS);
    tcp.sizes();
    tcp.at(100).ack(2048).has_mss(528).sizes();
    tcp.ack(2048).has_mss(528).ack(1024).has_mss(528).sends_nothing();
}

/// Method 2 by hand, with losses among the last five packets: one is 0.2, which is more than 0.1. Above half the
/// largest size it halves; at half and below it takes a step; it does so with each acknowledgement as well, while
/// the loss is among the last five, and grows again when it is not.
#[test]
fn method_2_follows_the_rate_of_losses() {
    let mut tcp = start("method = 2\ngrowth = \"per-ack\"\ninitial_size = \"1024 B\"", PACKETS);
    assert_eq!(tcp.sizes(), [1024; 8]);
    tcp.at(100).heard(0, 1).losses(1).has_mss(512).cwnd(4096.0).sends(&full(0..8, 512));
    // Lost, and three that were not: 512 is not above half of 1024.
    tcp.at(200);
    let mut after = |copies: &[(u32, u32, u32)]| {
        for &(ack, echo, size) in copies {
            tcp.heard(ack, echo).has_mss(size).losses(1).sizes();
        }
    };
    after(&[(512, 100_000, 384), (1024, 100_001, 256), (1536, 100_002, 128)]);
    // The fourth: the loss is the earliest of the five.
    after(&[(2048, 100_003, 128)]);
    // It is out: 0 is less than 0.1.
    after(&[(2560, 100_004, 256), (3072, 100_005, 384)]);
}

/// A size just above half the largest is halved, not taken a step from.
#[test]
fn method_2_halves_above_half_the_largest() {
    for (initial, after) in [(520, 256), (512, 384), (136, 128), (1024, 512)] {
        let mut tcp = start(&format!("method = 2\ninitial_size = \"{initial} B\""), PACKETS);
        tcp.sizes();
        // 520 is halved to 260, which is cut to 256.
        tcp.at(100).heard(0, 1).has_mss(after).sizes();
    }
    let parameters = "method = 2\ninitial_size = \"1024 B\"\nsmallest_size = \"600 B\"";
    let mut tcp = start(parameters, PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).has_mss(600).sizes();
}

/// As many losses as are wanted change nothing; one more does. With L_w = 5 and e_w = 0.2, one of five is just
/// what is wanted.
#[test]
fn method_2_keeps_its_size_at_the_wanted_rate() {
    let mut tcp = start("method = 2\ngrowth = \"per-ack\"\nwanted_loss = 0.2", PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).losses(1).has_mss(512).sizes();
    tcp.at(200).heard(512, 100_000).has_mss(512).sizes();
    // Two of five.
    tcp.heard(512, 100_002).losses(2).has_mss(384).sizes();
    // Lost, not, lost, not, not: two of five still; then the first is out.
    tcp.at(300).heard(1024, 200_000).has_mss(256).heard(1536, 200_001).has_mss(128).sizes();
    tcp.heard(2048, 200_002).has_mss(128).sizes();
    // Not, not, not, not and the second loss came before: none is left after one more.
    tcp.heard(2432, 200_003).has_mss(128).heard(2816, 200_004).has_mss(256).sizes();
}

/// The loss window is as long as it is said to be: with L_w = 1 a loss is forgotten by the next packet; with 20
/// one loss is 0.05, less than 0.1, and does not shrink anything.
#[test]
fn the_loss_window_is_a_parameter() {
    let mut tcp = start("method = 2\ngrowth = \"per-ack\"\nloss_window = 1", PACKETS);
    tcp.sizes();
    tcp.at(100).heard(0, 1).has_mss(384).sizes();
    tcp.at(200).heard(384, 100_000).has_mss(512).sizes();
    let mut tcp = start("method = 2\ngrowth = \"per-ack\"\nloss_window = 20", PACKETS);
    tcp.sizes();
    // Less than wanted, and so it grows, loss or not (section IV-B: whenever a loss occurs e_c and s are updated).
    tcp.at(100).heard(0, 1).losses(1).has_mss(640).sizes();
    // The second makes 0.1, which is what is wanted; the third makes more, and 640 is above half.
    tcp.at(200).heard(0, 100_001).losses(2).has_mss(640).sizes();
    tcp.at(300).heard(0, 200_001).losses(3).has_mss(320).sizes();
}

/// With selective repeat, what one arrival shows is one loss, and what is retransmitted is cut by the new
/// size.
#[test]
fn selective_repeat_takes_one_sign_for_one_loss() {
    let mut tcp = start("recovery = \"selective-repeat\"", PACKETS);
    tcp.sizes();
    tcp.at(100).heard_of(0, 2, &[1024..1536]).losses(1).has_mss(256);
    tcp.sends(&["0..256", "256..512", "512..768", "768..1024"]);
    tcp.heard_of(0, 3, &[1024..2048]).sends_nothing().losses(1).has_mss(256);
}

/// What the wireless part is: the scheme's recovery and sizes, and no congestion control; a window of packets
/// holds as many as it says, of the largest size. The rest is as on the wired part, or as `wireless` has it.
#[test]
fn the_wireless_part_is_as_the_scheme_says() {
    let of = |parameters: &str| schemes(parameters).vs_tcp.split(&tcp()).expect("it splits");
    let split = of(&format!("buffer = \"9 KB\"\n{PACKETS}"));
    assert_eq!((split.buffer, split.wireless.packet_size), (Bytes(9_000), Bytes(1064)));
    assert_eq!((split.wireless.window, split.wireless.window_payload()), (WindowSize::Packets(8), 8 * 1024));
    assert_eq!(split.wireless.flavour, Flavour::GoBackN);
    let split = of(&format!("recovery = \"selective-repeat\"\nlargest_size = \"600 B\"\n{PAYLOAD}"));
    assert_eq!((split.wireless.packet_size, split.wireless.window), (Bytes(640), Bytes(4096).into()));
    assert_eq!(split.wireless.flavour, Flavour::SelectiveRepeat);
    let plain = schemes("").metp.split(&tcp()).expect("it splits").wireless;
    let sized = Settings { packet_size: Bytes(1064), ..plain };
    assert_eq!(of("").wireless, sized);
}

/// What a file leaves out is as table 3 of the paper has it.
#[test]
fn what_a_file_leaves_out_is_the_papers_choice() {
    let stated = "method = 1\ninitial_size = \"512 B\"\nlargest_size = \"1024 B\"\nsmallest_size = \"128 B\"\n\
                  step = \"128 B\"\nwanted_loss = 0.1\nloss_window = 5\ngrowth = \"per-window\"\n\
                  recovery = \"go-back-n\"\nbuffer = \"64 KiB\"";
    assert_eq!(schemes(stated), Schemes::default());
}

/// Sizes at the ends of what is possible, and just beyond: each fault is said of one parameter, and once.
#[test]
fn sizes_are_multiples_of_eight_in_their_order() {
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

/// A window that holds no packet is told in the numbers that the file states: packets of the wired size, if it
/// counts these, and of the scheme's largest size otherwise.
#[test]
fn a_window_without_room_is_told_in_the_units_that_it_counts() {
    let fault = |wireless: &str| {
        let faults = schemes(&format!("wireless = {{ {wireless} }}")).vs_tcp.faults(&tcp());
        let [(key, problem)] = &faults[..] else { panic!("one fault, not {faults:?}") };
        assert_eq!(key, "wireless.window");
        problem.clone()
    };
    let expected = |packet: u64| format!("found 500 B, expected room for at least one packet of {packet} B");
    assert_eq!(fault("window = \"500 B\", window_counts = \"packets\""), expected(552));
    assert_eq!(fault("window = \"500 B\""), expected(1064));
    assert_eq!(
        schemes("wireless = { window = \"552 B\", window_counts = \"packets\" }").vs_tcp.faults(&tcp()),
        []
    );
}
