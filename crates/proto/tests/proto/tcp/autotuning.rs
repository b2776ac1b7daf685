//! Auto-tuning of the receive window, against Linux and by hand.

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::tcp::{
    Connection, Flags, Flavour, Profile, Receiver, Segment, SeqNum, Settings, Timestamps,
};
use lasthop_proto::{Body, Component, Dscp, Ecn, Effect, Handle, Out, Packet, Port};

const MSS: u32 = 1448;
/// The window at the start: 64 KiB in whole segments.
const FIRST: u32 = 45 * MSS;
/// Room of the first buffer of 128 KiB. A segment of 1448 B takes a buffer of 2048 B and a descriptor of 256 B, so that
/// 160/256 of the memory are payload.
const FIRST_ROOM: u32 = 131_072 * 160 / 256;
/// Payload in place of which a segment takes memory until it is read.
const TAKEN: u32 = 2304 * 160 / 256;
const ISS: u32 = u32::MAX;

fn settings() -> Settings {
    Settings {
        window: Bytes(6 << 20).into(),
        window_autotuning: true,
        iss: ISS,
        close: false,
        ..Profile::Linux.settings()
    }
    .with_mss(MSS)
}

/// A receiver that is fed by hand. The clock counts microseconds, and data begin at sequence number zero.
struct Host {
    receiver: Receiver,
    now: Time,
}

impl Host {
    /// A receiver whose connection is established after `at_us`.
    fn new(settings: &Settings, at_us: u64) -> Host {
        let receiver = Receiver::new(Connection::default(), settings);
        let mut host = Host { receiver, now: Time::ZERO };
        host.at(at_us).receives(ISS, 0, Flags::SYN, 0);
        host
    }

    fn at(&mut self, at_us: u64) -> &mut Host {
        self.now = Time::ZERO + Duration::from_micros(at_us);
        self
    }

    /// The acknowledgements that `action` sends.
    fn drive(&mut self, action: impl FnOnce(&mut Receiver, Time, &mut Out)) -> Vec<Segment> {
        let mut out = Out::default();
        action(&mut self.receiver, self.now, &mut out);
        let effects = std::iter::from_fn(|| out.take());
        let sent = effects.filter_map(|(_, effect)| match effect {
            Effect::Send(_, Packet { body: Body::Tcp(segment), .. }) => Some(segment),
            _ => None,
        });
        sent.collect()
    }

    /// Full segment number `number` arrives, counted from zero, with the echo of a timestamp.
    fn data(&mut self, number: u32, echo: u32) -> Vec<Segment> {
        self.bytes(number * MSS, MSS, echo)
    }

    fn bytes(&mut self, seq: u32, len: u32, echo: u32) -> Vec<Segment> {
        self.receives(seq, len, Flags::ACK, echo)
    }

    fn receives(&mut self, seq: u32, len: u32, flags: Flags, echo: u32) -> Vec<Segment> {
        let Connection { src, dst, flow } = Connection::default();
        let segment = Segment {
            seq: SeqNum(seq),
            ack: SeqNum(0),
            len,
            wnd: 1000,
            flags,
            timestamps: self.receiver.settings().timestamps.then_some(Timestamps { value: 1, echo }),
            ..Segment::default()
        };
        let (size, body) = (Bytes(u64::from(len) + 52), Body::Tcp(segment));
        let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE);
        let packet = Packet { src, dst, flow, size, dscp, ecn, handle, body };
        self.drive(|receiver, now, out| receiver.receive(now, &packet, Port::ONLY, out))
    }

    fn window(&self) -> u32 {
        self.receiver.window()
    }
}

/// Feeds a receiver with what arrived at a Linux host, and compares the number and the window of every acknowledgement.
///
/// A file has the start of a download by Linux 6.18.44 over 8 Mb/s and 150 ms, as captured at the host, up to the first
/// loss. Times are in microseconds of the host's clock, and timestamps in milliseconds. `push` is data with PSH, which
/// Linux acknowledges once they are read. The scale of its windows is 10, and they are rounded up. Before the first
/// segment, Linux offers 44 segments of 1460 bytes, and has to open the window by three segments in fewer steps.
fn replay(capture: &str) {
    let mut lines = capture.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let number = |text: &str| text.parse::<u32>().expect("a number");
    let established = lines.next().expect("the handshake");
    let mut host = Host::new(&settings(), number(established[1]).into());
    let (mut arrived, mut ours, mut linux) = (0, Vec::new(), Vec::new());
    for line in lines {
        if line[0] == "ack" {
            linux.push((number(line[1]), number(line[2])));
            continue;
        }
        let mut acks = host.at(number(line[1]).into()).data(arrived, number(line[2]) * 1000);
        arrived += 1;
        if line[0] == "push" && acks.is_empty() {
            acks = host.drive(|receiver, now, out| receiver.acknowledge_received(now, out));
        }
        ours.extend(acks.iter().map(|ack| (ack.ack.0 / MSS, ack.wnd.next_multiple_of(1 << 10))));
    }
    assert!(arrived == 330 && linux.len() >= 280, "the capture is complete");
    for (index, (ours, linux)) in ours.iter().zip(&linux).enumerate() {
        let slack = if index < 3 { 1 << 10 } else { 0 };
        assert_eq!(ours.0, linux.0, "acknowledgement {index}");
        assert!(ours.1 == linux.1 || ours.1 == linux.1 + slack, "window {index}: {ours:?}, Linux {linux:?}");
    }
    assert!(ours.len().abs_diff(linux.len()) <= 1);
}

// Rule: Auto-tuning of the receive window and its quick acknowledgements, as in Linux 6.18: 579
// acknowledgements and windows of two captures. [receiver/autotuning.rs]
#[test]
fn acknowledgements_and_windows_are_those_of_linux() {
    replay(include_str!("autotuning/linux-a.csv"));
    replay(include_str!("autotuning/linux-b.csv"));
}

/// Each segment opens the window by two, up to the room of the first buffer less the segment itself. Each that opens it
/// is acknowledged at once and costs no quick acknowledgement; 16 quick ones follow.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn the_window_opens_by_two_segments_per_segment() {
    let mut host = Host::new(&settings(), 0);
    assert_eq!(host.window(), FIRST);
    let windows: Vec<u32> = (0..22).flat_map(|number| host.data(number, 0)).map(|ack| ack.wnd).collect();
    let expected = (1..=22).map(|number| (FIRST + 2 * MSS * number).min(FIRST_ROOM - TAKEN));
    assert_eq!(windows, expected.collect::<Vec<_>>());
    assert!(host.data(22, 0).is_empty());
    assert_eq!(host.data(23, 0).len(), 1);
}

/// The room becomes twice what was read in a round trip, and by four times the relative increase more: from 10 segments to
/// 20, six times 20 segments. A round trip of 100 ms is known from timestamps.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn the_room_follows_what_is_read_in_a_round_trip() {
    let mut host = Host::new(&settings(), 0);
    // Ten segments in the first round trip are expected anyway.
    (0..10).for_each(|number| drop(host.at(100_000).data(number, 1000)));
    // The first of them ended a round trip, and the next begins with the second.
    (10..20).for_each(|number| drop(host.at(150_000).data(number, 60_000)));
    assert_eq!(host.window(), FIRST_ROOM - TAKEN);
    // Twenty have been read since then: now the room grows.
    (20..22).for_each(|number| drop(host.at(200_000).data(number, 100_000)));
    assert_eq!(host.window(), FIRST_ROOM - TAKEN + 2 * MSS);
    (22..60).for_each(|number| drop(host.at(200_001).data(number, 100_000)));
    assert_eq!(host.window(), 6 * 20 * MSS - TAKEN);
}

/// Without timestamps, a round trip is the time in which a full window arrives.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn without_timestamps_a_window_of_data_is_timed() {
    let mut host = Host::new(&Settings { timestamps: false, ..settings() }.with_mss(MSS), 0);
    (0..200).for_each(|number| drop(host.at(u64::from(number) * 1000).data(number, 0)));
    assert!(host.window() > FIRST_ROOM, "{}", host.window());
    // So is it while the round-trip time is less than a tick of the timestamps.
    let mut near = Host::new(&settings(), 0);
    (0..200).for_each(|number| drop(near.at(u64::from(number) * 1000).data(number, number * 1000)));
    assert_eq!(near.window(), host.window());
    // The same data all at once say nothing about the round-trip time.
    let mut burst = Host::new(&Settings { timestamps: false, ..settings() }.with_mss(MSS), 0);
    (0..40).for_each(|number| drop(burst.data(number, 0)));
    assert_eq!(burst.window(), FIRST_ROOM - TAKEN);
}

/// The window stops at the setting `window`.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn the_largest_window_is_a_setting() {
    let most = 100 * MSS;
    let mut host = Host::new(&Settings { window: Bytes(most.into()).into(), ..settings() }, 0);
    (0..2000).for_each(|number| {
        drop(host.at(u64::from(number) * 1000).data(number, number.saturating_sub(60) * 1000))
    });
    assert_eq!(host.window(), most - TAKEN);
}

/// Segments of less than 128 bytes do not open the window, and are acknowledged as without auto-tuning. Longer ones open it
/// by two full segments, however short.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn tiny_segments_do_not_open_the_window() {
    let mut host = Host::new(&Settings { quick_acks: 0, ..settings() }, 0);
    host.data(0, 0);
    let opened = host.window();
    assert!(host.bytes(MSS, 127, 0).is_empty());
    assert_eq!(host.window(), opened);
    assert_eq!(host.bytes(MSS + 127, 128, 0).len(), 1);
    assert_eq!(host.window(), opened + 2 * MSS);
    assert_eq!(host.bytes(MSS + 255, TAKEN, 0).len(), 1);
    assert_eq!(host.window(), opened + 4 * MSS);
}

/// Segments beyond a gap open the window if SACK reports them: by two segments each, A duplicate
/// does not.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn segments_beyond_a_gap_open_the_window() {
    let without = Settings { flavour: Flavour::NewReno, ..settings() };
    let with = Settings { flavour: Flavour::Sack, ..settings() };
    for (settings, expected) in [(without, FIRST + 2 * MSS), (with, FIRST + 4 * MSS)] {
        let mut host = Host::new(&settings, 0);
        host.data(0, 0);
        host.data(2, 0);
        assert_eq!(host.window(), expected);
        host.data(2, 0);
        assert_eq!(host.window(), expected, "by a duplicate");
    }
}

/// What an application has not read takes room and does not count as read.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn unread_data_take_room() {
    let mut host = Host::new(&settings(), 0);
    host.receiver.pause();
    (0..7).for_each(|number| drop(host.at(u64::from(number) * 1000).data(number, 1000)));
    // With four segments in the buffer, the window has opened as far as the others leave room.
    let opened = FIRST_ROOM - 4 * MSS;
    assert_eq!(host.window(), opened - 7 * MSS);
    (7..40).for_each(|number| drop(host.at(u64::from(number) * 1000).data(number, 1000)));
    assert_eq!(host.receiver.unread(), u64::from(40 * MSS));
    assert_eq!(host.window(), opened - 40 * MSS);
}

/// Of what an application reads in a round trip, the backlog that it leaves is subtracted: 24 segments less 15 are
/// no more than the ten expected at first.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn a_backlog_is_subtracted_from_what_is_read() {
    for (backlog, grows) in [(15, false), (4, true)] {
        let mut host = Host::new(&settings(), 0);
        host.receiver.pause();
        host.at(100_000).data(0, 1000);
        (1..23 + backlog).for_each(|number| drop(host.at(150_000).data(number, 60_000)));
        let read = |host: &mut Host, segments: u64| {
            host.drive(|receiver, now, out| {
                receiver.read(now, segments * u64::from(MSS), out);
            });
        };
        read(&mut host, 24);
        host.at(200_000).data(23 + backlog, 100_000);
        for number in 24 + backlog..34 + backlog {
            read(&mut host, 100);
            host.at(200_001).data(number, 100_000);
        }
        read(&mut host, 100);
        assert_eq!(host.window() > FIRST_ROOM, grows, "{}", host.window());
    }
}

/// A window of at most 64 KiB is not tuned, as if auto-tuning were off.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn small_windows_are_fixed() {
    let fixed = Settings { window: Bytes(65_536).into(), ..settings() };
    let mut host = Host::new(&fixed, 0);
    let mut off = Host::new(&Settings { window_autotuning: false, ..fixed.clone() }, 0);
    for number in 0..100 {
        let at_us = u64::from(number) * 1000;
        assert_eq!(host.at(at_us).data(number, 1000), off.at(at_us).data(number, 1000));
        assert_eq!(host.window(), 65_536);
    }
}

/// Whatever arrives, the right edge of the window never moves left, and the window stays within its bounds.
// Rule: as acknowledgements_and_windows_are_those_of_linux
#[test]
fn any_arrivals_keep_the_window_within_its_bounds() {
    let mut streams = Streams::new(1, 0).stream("autotuning");
    for _ in 0..300 {
        any_arrivals(&mut streams);
    }
}

fn any_arrivals(random: &mut Stream) {
    let most = 65_537 + random.below(1 << 22) as u32;
    let mut host = Host::new(&Settings { window: Bytes(most.into()).into(), ..settings() }, 0);
    if random.below(2) == 0 {
        host.receiver.pause();
    }
    let (mut now, mut edge) = (0, SeqNum(0) + FIRST);
    for _ in 0..300 {
        now += random.below(20_000);
        let echo = match random.below(3) {
            0 => random.below(1 << 32) as u32,
            1 => 0,
            _ => (now as u32).wrapping_sub(random.below(200_000) as u32),
        };
        let next = host.receiver.rcv_nxt();
        let offset = [0, 0, 0, MSS, 10 * MSS][random.below(5) as usize];
        let seq = if random.below(20) == 0 { next - MSS } else { next + offset };
        let acks = host.at(now).bytes(seq.0, 1 + random.below(u64::from(MSS)) as u32, echo);
        if random.below(4) == 0 {
            let most = random.below(1 << 18);
            host.drive(|receiver, now, out| {
                receiver.read(now, most, out);
            });
        }
        for ack in acks {
            assert!(ack.ack + ack.wnd >= edge, "the right edge moves left");
            assert!(ack.wnd <= most);
            edge = ack.ack + ack.wnd;
        }
    }
}
