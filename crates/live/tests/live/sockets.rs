//! The emulator between two pairs of sockets, which need no privileges.

use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lasthop_base::{Stream, Streams};
use lasthop_live::{Emulation, Emulator, Interface, Report, Settings, SideReport};
use lasthop_proto::tcp::{Flags, Segment, SeqNum, Timestamps};
use lasthop_proto::{Dscp, Ecn};
use lasthop_scenario::Scenario;
use lasthop_wire::{Checksum, Ip, IpPacket, LinkType, TcpHeader, Transport, checksum, write};

const SCENARIO: &str = r#"
schemes = ["basic"]
[transfer]
size = "unlimited"
[wired]
rate = "10 Mbps"
delay = "30 ms"
queue = "50 packets"
[radio]
rate = "10 Mbps"
delay = "0 s"
queue = "50 packets"
"#;

/// The hosts at both ends.
struct Hosts {
    source: UnixDatagram,
    destination: UnixDatagram,
}

impl Hosts {
    fn receive(socket: &UnixDatagram) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 1 << 17];
        let len = socket.recv(&mut buffer).ok()?;
        buffer.truncate(len);
        Some(buffer)
    }
}

/// Emulates `text` while `hosts` talk.
fn emulate<T>(text: &str, capture: Option<[PathBuf; 2]>, talk: impl FnOnce(&Hosts) -> T) -> (T, Report) {
    emulate_scheme("basic", text, capture, talk)
}

/// The same with a scheme.
fn emulate_scheme<T>(
    scheme: &str,
    text: &str,
    capture: Option<[PathBuf; 2]>,
    talk: impl FnOnce(&Hosts) -> T,
) -> (T, Report) {
    emulate_with(scheme, text, Settings { capture, ..Settings::default() }, talk)
}

/// The same with settings; packets may wait for 200 ms.
fn emulate_with<T>(
    scheme: &str,
    text: &str,
    settings: Settings,
    talk: impl FnOnce(&Hosts) -> T,
) -> (T, Report) {
    emulate_watched(scheme, text, settings, || {}, talk)
}

/// The same; the emulator's thread calls `watch` about fifty times a second.
fn emulate_watched<T>(
    scheme: &str,
    text: &str,
    settings: Settings,
    watch: impl Fn() + Sync,
    talk: impl FnOnce(&Hosts) -> T,
) -> (T, Report) {
    let scenario =
        Scenario::parse(text, "test.toml", &[] as &[&str]).unwrap_or_else(|error| panic!("{error}"));
    let emulation = Emulation::new(&scenario, scheme, 1, 0).unwrap_or_else(|error| panic!("{error}"));
    let (source, ours) = UnixDatagram::pair().expect("a pair");
    let (destination, theirs) = UnixDatagram::pair().expect("a pair");
    for socket in [&source, &destination] {
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    }
    let interfaces = [ours, theirs].map(|socket| Interface::new(socket.into()).expect("a datagram socket"));
    let longest_wait = lasthop_base::Duration::from_millis(200);
    let settings = Settings { longest_wait, ..settings };
    let mut emulator = Emulator::new(emulation, interfaces, settings).expect("a new file");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            let keep_going = || {
                watch();
                !stop.load(Ordering::Relaxed)
            };
            emulator.run(keep_going).expect("it runs");
            emulator.finish().expect("it ends")
        });
        let said = talk(&Hosts { source, destination });
        stop.store(true, Ordering::Relaxed);
        (said, running.join().expect("no panic"))
    })
}

fn ip(host: u8, peer: u8, ecn: Ecn) -> Ip {
    let address = |host| IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
    Ip {
        src: address(host),
        dst: address(peer),
        dscp: Dscp::DEFAULT,
        ecn,
        hop_limit: 64,
        identification: 7,
        dont_fragment: true,
    }
}

fn frame(packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x08, 0x00][..], packet].concat()
}

fn datagram(len: usize) -> Vec<u8> {
    frame(&write::udp(&ip(1, 2, Ecn::NotEct), (9, 9), &vec![5; len]).expect("short enough"))
}

#[test]
fn packets_arrive_unchanged_and_as_late_as_the_links_say() {
    let paths = ["source", "destination"]
        .map(|end| std::env::temp_dir().join(format!("lasthop-live-{}-{end}.pcapng", std::process::id())));
    let (delays, report) = emulate(SCENARIO, Some(paths.clone()), |hosts| {
        let sizes = [0, 1, 1000, 1472, 20];
        sizes.map(|len| {
            let sent = datagram(len);
            let begin = Instant::now();
            hosts.source.send(&sent).expect("room");
            assert_eq!(Hosts::receive(&hosts.destination).expect("it arrives"), sent);
            let there = begin.elapsed();
            hosts.destination.send(&sent).expect("room");
            assert_eq!(Hosts::receive(&hosts.source).expect("it arrives"), sent);
            (len, there)
        })
    });
    for (len, delay) in delays {
        let least = 30e-3 + 2.0 * (28 + len) as f64 * 8.0 / 10e6;
        // A machine under load may be late, but nothing arrives early.
        assert!(delay.as_secs_f64() > least, "{len}: {delay:?}");
        assert!(delay.as_secs_f64() < least + 0.3, "{len}: {delay:?}");
    }
    let [source, destination] = &report.ends;
    assert_eq!((source.host.as_str(), destination.host.as_str()), ("fixed", "mobile"));
    for end in &report.ends {
        assert_eq!((end.sent_packets, end.received_packets), (5, 5));
        assert_eq!(end.sent_bytes, 5 * 28 + 2493);
        assert_eq!(end.received_bytes, end.sent_bytes);
    }
    assert_eq!((report.lost_packets, report.overload_drops, report.in_network_packets), (0, 0, 0));
    let late = report.lateness;
    assert!(late.p50_s > 0.0 && late.p50_s <= late.p99_s && late.p99_s <= late.max_s, "{late:?}");
    // Of deadlines on the wrong side of the beginning, packets would be twice their time late, half of them 0.3 s.
    assert!(late.p50_s < 0.15, "{late:?}");
    assert!(report.duration_s > 0.3 && report.duration_s < 3.0);

    for path in paths {
        let packets = captured(&path);
        assert_eq!(packets.len(), 10);
        assert!(packets.iter().all(|(_, comment)| comment.is_none()));
    }
}

/// A thread that is stopped for a while lets what has come meanwhile enter in order of arrival, and at the times of arrival.
#[test]
fn packets_that_waited_keep_their_order_and_distances() {
    const DISTANCE: Duration = Duration::from_millis(2);
    let stalls = AtomicBool::new(false);
    let watch = || {
        if stalls.swap(false, Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(60));
        }
    };
    let settings = Settings { record_lateness: true, ..Settings::default() };
    let ((), report) = emulate_watched("basic", SCENARIO, settings, watch, |hosts| {
        hosts.source.send(&datagram(20)).expect("room");
        thread::sleep(Duration::from_millis(50));
        stalls.store(true, Ordering::Relaxed);
        for _ in 0..20 {
            for socket in [&hosts.source, &hosts.destination] {
                socket.send(&datagram(20)).expect("room");
                thread::sleep(DISTANCE);
            }
        }
        thread::sleep(Duration::from_millis(100));
    });
    assert_eq!(report.overload_drops, 0);
    let packets = report.packets.expect("a record");
    let (entered, ends) = (&packets.entered_s[1..], &packets.end[1..]);
    assert_eq!(ends.len(), 40);
    assert!(ends.chunks_exact(2).all(|pair| pair == [1, 0]), "{ends:?}");
    // A packet whose sender is stopped between its timestamp and its queue enters late.
    let near = entered.windows(2).filter(|pair| pair[1] - pair[0] < 0.9 * DISTANCE.as_secs_f64()).count();
    assert!(near <= 2, "{entered:?}");
}

/// The packets of a capture, with their comments; the file is removed.
fn captured(path: &PathBuf) -> Vec<(Vec<u8>, Option<String>)> {
    let bytes = std::fs::read(path).expect("the capture");
    std::fs::remove_file(path).expect("it is there");
    let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("a whole block")) as usize;
    let (mut packets, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let (kind, end) = (word(at), at + word(at + 4));
        if kind == 6 {
            let after = at + 28 + word(at + 20);
            let frame = bytes[at + 28..after].to_vec();
            IpPacket::from_frame(LinkType::ETHERNET, &frame, frame.len()).expect("an IP packet");
            // The only option is a comment.
            let option = after.next_multiple_of(4);
            let comment = (option < end - 4).then(|| {
                let len = word(option) >> 16;
                String::from_utf8(bytes[option + 4..option + 4 + len].to_vec()).expect("text")
            });
            packets.push((frame, comment));
        }
        at = end;
    }
    packets
}

/// Losses are messages that quote the packet.
#[test]
fn a_capture_has_the_losses() {
    let paths = ["a", "b"]
        .map(|end| std::env::temp_dir().join(format!("lasthop-losses-{}-{end}.pcapng", std::process::id())));
    let lossy = SCENARIO.replace("[radio]\n", "[radio]\nchannel.frame-loss.loss = 1.0\n");
    let ((), report) = emulate(&lossy, Some(paths.clone()), |hosts| {
        hosts.source.send(&datagram(600)).expect("room");
        thread::sleep(Duration::from_millis(150));
    });
    assert_eq!(report.lost_packets, 1);
    let [source, destination] = paths.map(|path| captured(&path));
    assert_eq!((source.len(), destination.len()), (2, 0));
    assert_eq!(source[0], (datagram(600), None));
    assert_eq!(source[1].1.as_deref(), Some("lost on base-mobile: corrupted on the air"));
    let message = IpPacket::from_frame(LinkType::ETHERNET, &source[1].0, source[1].0.len()).expect("IP");
    let Transport::Icmp(icmp) = message.transport else { panic!("a message") };
    let quote = icmp.quote().expect("it quotes");
    assert_eq!((quote.src, quote.ports), (ip(1, 2, Ecn::NotEct).src, Some((9, 9))));
}

/// A frame with a VLAN tag.
fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0x00, 0x00, 0x2a], &frame[12..]].concat()
}

/// A datagram whose checksum the network card was to complete: the sum of the pseudo-header alone.
fn partial() -> Vec<u8> {
    let mut bytes = datagram(7);
    let pseudo: u16 = (10 << 8) + 1 + (10 << 8) + 2 + 17 + 15;
    bytes[40..42].copy_from_slice(&pseudo.to_be_bytes());
    assert_eq!(IpPacket::parse(&bytes[14..]).expect("well-formed").transport_checksum(), Checksum::Partial);
    bytes
}

/// A wire carries every protocol, each frame unchanged and at the links' pace; IP packets are as before.
#[test]
fn a_wire_carries_frames_of_all_protocols() {
    let paths = ["wire-a", "wire-b"]
        .map(|end| std::env::temp_dir().join(format!("lasthop-{}-{end}.pcapng", std::process::id())));
    let arp = [&[0xff; 6][..], &[2; 6], &[0x08, 0x06], &[7; 28]].concat();
    let lldp = [&[1, 0x80, 0xc2, 0, 0, 0x0e][..], &[2; 6], &[0x88, 0xcc], &[9; 80]].concat();
    let mut multicast = datagram(30);
    multicast[30] = 224;
    checksum::repair(&mut multicast[14..]).expect("well-formed");
    let padded = [&datagram(3)[..], &[0; 20]].concat();
    let largest = tagged(&datagram(1472));
    let frames = [arp, lldp, multicast, padded, largest, tagged(&tagged(&datagram(9)))];
    let settings = Settings { whole_frames: true, capture: Some(paths.clone()), ..Settings::default() };
    let ((), report) = emulate_with("basic", SCENARIO, settings, |hosts| {
        for frame in &frames {
            let begin = Instant::now();
            hosts.source.send(frame).expect("room");
            assert_eq!(&Hosts::receive(&hosts.destination).expect("it arrives"), frame);
            let least = 30e-3 + 2.0 * (frame.len() - 34) as f64 * 8.0 / 10e6;
            assert!(begin.elapsed().as_secs_f64() > least, "{frame:?}");
        }
        hosts.source.send(&datagram(1473)).expect("room");
        hosts.source.send(&[0; 14]).expect("room");
        hosts.destination.send(&partial()).expect("room");
        let completed = Hosts::receive(&hosts.source).expect("it arrives");
        let packet = IpPacket::parse(&completed[14..]).expect("well-formed");
        assert_eq!(packet.transport_checksum(), Checksum::Correct);
    });
    assert_eq!((report.unforwarded.oversized, report.unforwarded.not_ip), (1, 1));
    assert_eq!((report.unforwarded.link_local, report.overload_drops), (0, 0));
    assert_eq!((report.ends[1].received_packets, report.ends[0].received_packets), (6, 1));
    for path in &paths {
        std::fs::remove_file(path).expect("it was written");
    }

    // A lost frame of another protocol is in the capture as it was.
    let lossy = SCENARIO.replace("[radio]\n", "[radio]\nchannel.frame-loss.loss = 1.0\n");
    let settings = Settings { whole_frames: true, capture: Some(paths.clone()), ..Settings::default() };
    let ((), report) = emulate_with("basic", &lossy, settings, |hosts| {
        hosts.source.send(&frames[0]).expect("room");
        hosts.source.send(&frames[4]).expect("room");
        thread::sleep(Duration::from_millis(150));
    });
    assert_eq!(report.lost_packets, 2);
    let [source, _] = paths.map(|path| std::fs::read(path).expect("it was written"));
    let twice = |frame: &[u8]| source.windows(frame.len()).filter(|window| *window == frame).count() == 2;
    assert!(twice(&frames[0]) && twice(&frames[4]));
}

/// The trace and the metrics of a scripted connection over a link that loses every second packet or so.
#[test]
fn connections_are_traced_by_the_definitions_of_a_simulation() {
    let lossy = SCENARIO.replace("[radio]\n", "[radio]\nchannel.frame-loss.loss = 0.5\n");
    let settings = Settings { trace: true, record_lateness: true, ..Settings::default() };
    let start = SeqNum(u32::MAX - 1500);
    let data = |number: u32| {
        let segment = Segment { seq: start + 1 + 500 * number, flags: Flags::ACK, ..Segment::default() };
        tcp(true, true, segment, &[number as u8; 500])
    };
    let ((), report) = emulate_with("basic", &lossy, settings, |hosts| {
        let syn = Segment { seq: start, flags: Flags::SYN, ..Segment::default() };
        hosts.source.send(&tcp(true, true, syn, &[])).expect("room");
        for number in 0..10 {
            // Each until it arrives; the destination acknowledges it once.
            while {
                hosts.source.send(&data(number)).expect("room");
                !std::iter::from_fn(|| Hosts::receive(&hosts.destination)).any(|bytes| bytes == data(number))
            } {}
            let ack = start + 501 + 500 * number;
            let segment = Segment { seq: SeqNum(77), ack, flags: Flags::ACK, ..Segment::default() };
            hosts.destination.send(&tcp(true, false, segment, &[])).expect("room");
        }
        thread::sleep(Duration::from_millis(100));
    });
    let ([metrics], [trace]) = (&report.connections[..], &report.traces[..]) else { panic!("{report:?}") };
    assert_eq!(trace.name, "10.0.0.1.1000-10.0.0.2.2000");
    assert_eq!((metrics.source.as_str(), metrics.destination.as_str()), ("10.0.0.1:1000", "10.0.0.2:2000"));
    let events = &trace.events;
    let count = |name: &str| events.event.iter().filter(|event| **event == name).count() as u64;
    assert_eq!(metrics.delivered_bytes, 5_000);
    let lost = count("lost") + count("ack-lost");
    assert_eq!((count("ack-sent"), metrics.acks_sent), (10, 10));
    assert_eq!(count("ack-received"), report.ends[0].received_packets);
    assert_eq!((count("sent"), metrics.segments_sent), (metrics.segments_sent, report.ends[0].sent_packets));
    assert_eq!((lost, metrics.lost_on_air), (report.lost_packets, report.lost_packets));
    assert!(count("lost") > 0 && count("ack-lost") > 0, "the seed has losses");
    assert_eq!(count("delivered"), report.ends[1].received_packets);
    assert_eq!(metrics.retransmitted_segments, metrics.segments_sent - 11);
    assert_eq!(metrics.retransmitted_bytes, 540 * metrics.retransmitted_segments);
    let goodput = 10.0 / (metrics.segments_sent - 1) as f64;
    assert!((metrics.goodput.expect("data") - goodput).abs() < 1e-12 && !metrics.finished);
    // Rows of one packet number: sent, lost or delivered, in turn; its transmissions are counted from 1.
    for number in 0..10 {
        let rows: Vec<_> = (0..events.event.len())
            .filter(|&row| events.packet[row] == number && !events.event[row].starts_with("ack"))
            .map(|row| (events.event[row], events.transmission[row], events.size_bytes[row]))
            .collect();
        let last = rows.len() as i64 / 2;
        for (at, row) in rows.iter().enumerate() {
            let transmission = at as i64 / 2 + 1;
            let event = match (at % 2, transmission == last) {
                (0, _) => "sent",
                (_, false) => "lost",
                (_, true) => "delivered",
            };
            assert_eq!(*row, (event, transmission, 540), "{number}: {rows:?}");
        }
    }
    let acks = (0..events.event.len()).filter(|&row| events.event[row] == "ack-sent");
    assert!(acks.map(|row| events.packet[row]).eq(1..=10));

    let late = report.packets.expect("recorded");
    let received: u64 = report.ends.iter().map(|end| end.received_packets).sum();
    assert_eq!(late.time_s.len() as u64, received);
    let max = late.late_s.iter().copied().fold(0.0, f64::max);
    assert!((max - report.lateness.max_s).abs() < 0.01 * max);
    let delays = late.time_s.iter().zip(&late.entered_s).map(|(left, entered)| left - entered);
    assert!(delays.zip(&late.size_bytes).all(|(delay, size)| {
        let least = 30e-3 + 2.0 * *size as f64 * 8.0 / 10e6;
        delay > least - 1e-9
    }));
}

#[test]
fn what_is_not_for_the_other_end_stays_out() {
    let ((), report) = emulate(SCENARIO, None, |hosts| {
        let arp = [&[0xff; 12][..], &[0x08, 0x06], &[0; 28]].concat();
        let to = |last| write::udp(&ip(1, last, Ecn::NotEct), (9, 9), &[]).expect("short enough");
        let mut multicast = to(2);
        multicast[16] = 224;
        let mut broadcast = to(2);
        broadcast[16..20].fill(255);
        let frames = [arp, vec![], vec![1; 13], frame(&multicast), frame(&broadcast), datagram(1473)];
        for frame in frames.into_iter().chain([tagged(&partial()), tagged(&tagged(&partial()))]) {
            hosts.source.send(&frame).expect("room");
        }
        let last = datagram(3);
        hosts.source.send(&last).expect("room");
        assert_eq!(Hosts::receive(&hosts.destination).expect("it arrives"), last);
    });
    let not = report.unforwarded;
    assert_eq!((not.not_ip, not.link_local, not.oversized), (5, 2, 1));
    assert_eq!(report.ends[0].sent_packets, 1);
}

/// A checksum that the network card was to complete is completed; a wrong one stays wrong.
#[test]
fn offloaded_checksums_are_completed() {
    let segment = Segment { flags: Flags::ACK, ..Segment::default() };
    let header = TcpHeader { segment, ..TcpHeader::default() };
    let right = write::tcp(&ip(1, 2, Ecn::Ect0), &header, b"payload").expect("short enough");
    let with = |checksum: u16| {
        let mut bytes = right.clone();
        bytes[36..38].copy_from_slice(&checksum.to_be_bytes());
        bytes
    };
    let pseudo = (10 << 8) + 1 + (10 << 8) + 2 + 6 + 27;
    assert_eq!(IpPacket::parse(&with(pseudo)).expect("well-formed").transport_checksum(), Checksum::Partial);
    let ((), _) = emulate(SCENARIO, None, |hosts| {
        hosts.source.send(&frame(&with(pseudo))).expect("room");
        assert_eq!(Hosts::receive(&hosts.destination).expect("it arrives"), frame(&right));
        hosts.source.send(&frame(&with(0x1234))).expect("room");
        assert_eq!(Hosts::receive(&hosts.destination).expect("it arrives"), frame(&with(0x1234)));
    });
}

#[test]
fn full_queues_drop_and_marks_are_written() {
    let marking = SCENARIO.replacen(
        "queue = \"50 packets\"",
        "queue.codel = { limit = \"30 packets\", target = \"1 ms\", interval = \"5 ms\", ecn = true }",
        1,
    );
    let slow = marking.replacen("10 Mbps", "1 Mbps", 1);
    let (received, report) = emulate(&slow, None, |hosts| {
        let packet = write::udp(&ip(1, 2, Ecn::Ect0), (9, 9), &[5; 472]).expect("short enough");
        for _ in 0..60 {
            hosts.source.send(&frame(&packet)).expect("room");
        }
        let mut ecns = Vec::new();
        while let Some(bytes) = Hosts::receive(&hosts.destination) {
            let packet = IpPacket::parse(&bytes[14..]).expect("well-formed");
            assert_eq!(packet.header_checksum(), Checksum::Correct);
            assert_eq!(packet.transport_checksum(), Checksum::Correct);
            ecns.push(packet.ip.ecn);
        }
        ecns
    });
    let marked = received.iter().filter(|ecn| **ecn == Ecn::Ce).count() as u64;
    assert!(marked > 0 && received.iter().all(|ecn| matches!(ecn, Ecn::Ce | Ecn::Ect0)));
    assert_eq!(report.marked_packets, marked);
    let wired = report.links.iter().find(|each| each.link == "fixed-base").expect("a wired link");
    assert!(wired.queue_drops > 10, "{wired:?}");
    assert_eq!(report.lost_packets + received.len() as u64, 60);
    assert_eq!(report.lost_packets, wired.queue_drops + wired.aqm_drops);
}

/// Packets for a host that has ended do not count as overload.
#[test]
fn a_host_may_end_first() {
    let ((), report) = emulate(SCENARIO, None, |hosts| {
        hosts.source.send(&datagram(3)).expect("room");
        Hosts::receive(&hosts.destination).expect("it arrives");
        hosts.source.send(&datagram(4)).expect("room");
        hosts.destination.shutdown(std::net::Shutdown::Both).expect("it is open");
        thread::sleep(Duration::from_millis(150));
    });
    assert_eq!((report.undelivered_packets, report.overload_drops), (1, 0));
    assert_eq!(report.ends[1].received_packets, 1);
}

/// Random and mutated frames from both ends never stop it.
#[test]
fn hostile_frames_do_no_harm() {
    let mut random = Streams::new(9, 0).stream("frames");
    let ((), report) = emulate(SCENARIO, None, |hosts| {
        for _ in 0..5_000 {
            let mut bytes = datagram(random.below(60) as usize);
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                bytes[at] = random.below(256) as u8;
            }
            if random.bernoulli(0.3) {
                bytes.truncate(1 + random.below(bytes.len() as u64) as usize);
            }
            let host = if random.bernoulli(0.5) { &hosts.source } else { &hosts.destination };
            host.send(&bytes).expect("room");
        }
        // What arrived makes room.
        for socket in [&hosts.source, &hosts.destination] {
            socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
            while Hosts::receive(socket).is_some() {}
        }
        hosts.source.send(&datagram(3)).expect("room");
        assert_eq!(Hosts::receive(&hosts.destination).expect("it arrives"), datagram(3));
    });
    let sent: u64 = report.ends.iter().map(|end| end.sent_packets).sum();
    let received: u64 = report.ends.iter().map(|end| end.received_packets).sum();
    assert!(sent > 100, "{sent}");
    assert_eq!(sent, received + report.lost_packets + report.overload_drops + report.in_network_packets);
}

/// A segment between port 1000 of the source and port 2000 of the destination, in a frame.
fn tcp(is_v4: bool, from_source: bool, segment: Segment, payload: &[u8]) -> Vec<u8> {
    let (mut hosts, mut ports) = ([1, 2], [1000, 2000]);
    hosts.rotate_left(usize::from(!from_source));
    ports.rotate_left(usize::from(!from_source));
    let address = |host: u8| match is_v4 {
        true => IpAddr::from([10, 0, 0, host]),
        false => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host.into()]),
    };
    let ip = Ip { src: address(hosts[0]), dst: address(hosts[1]), ..ip(1, 2, Ecn::Ect0) };
    let header = TcpHeader { src_port: ports[0], dst_port: ports[1], segment, ..TcpHeader::default() };
    let packet = write::tcp(&ip, &header, payload).expect("short enough");
    let kind = if is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1], &kind[..], &packet].concat()
}

/// Snoop at the base station: the second of three segments was lost, says the destination. It gets a
/// copy, and the source never hears of it. Over the wrap of sequence numbers, with IPv4 and IPv6.
#[test]
fn snoop_repairs_what_the_destination_lacks() {
    let paths = ["snoop-a", "snoop-b"]
        .map(|end| std::env::temp_dir().join(format!("lasthop-{}-{end}.pcapng", std::process::id())));
    for is_v4 in [true, false] {
        let start = SeqNum(u32::MAX - 599);
        let data = |number: u32| {
            let (seq, timestamps) = (start + 500 * number, Some(Timestamps { value: number, echo: 0 }));
            let segment = Segment { seq, flags: Flags::ACK, timestamps, ..Segment::default() };
            tcp(is_v4, true, segment, &[number as u8; 500])
        };
        let ack = |id: u32| {
            let (ack, timestamps) = (start + 500, Some(Timestamps { value: id, echo: 0 }));
            let segment = Segment { ack, wnd: 500, flags: Flags::ACK, timestamps, ..Segment::default() };
            tcp(is_v4, false, segment, &[])
        };
        let ((), report) = emulate_scheme("snoop", SCENARIO, Some(paths.clone()), |hosts| {
            for number in 0..3 {
                hosts.source.send(&data(number)).expect("room");
                assert_eq!(Hosts::receive(&hosts.destination).expect("it arrives"), data(number));
            }
            hosts.destination.send(&ack(1)).expect("room");
            assert_eq!(Hosts::receive(&hosts.source).expect("it arrives"), ack(1));
            hosts.destination.send(&ack(2)).expect("room");
            let copy = Hosts::receive(&hosts.destination).expect("a copy");
            let packet = IpPacket::parse(&copy[14..]).expect("well-formed");
            assert_eq!(packet.transport_checksum(), Checksum::Correct);
            assert_ne!(packet.header_checksum(), Checksum::Wrong);
            let original = data(1);
            let original = IpPacket::parse(&original[14..]).expect("well-formed");
            assert_eq!(packet.ip, Ip { dscp: Dscp::EXPEDITED, ..original.ip });
            assert_eq!(packet.bytes[packet.header_len..], original.bytes[original.header_len..]);
            // The connection ends, and nothing is kept.
            let reset = tcp(is_v4, true, Segment { flags: Flags::RST, ..Segment::default() }, &[]);
            hosts.source.send(&reset).expect("room");
            assert_eq!(Hosts::receive(&hosts.destination).expect("it arrives"), reset);
        });
        assert_eq!(
            (report.ends[0].received_packets, report.suppressed_packets, report.lost_packets),
            (1, 1, 0)
        );
        assert_eq!(
            (report.ends[1].received_packets, report.marked_packets, report.opaque_packets),
            (5, 0, 0)
        );
        assert_eq!((report.in_network_packets, report.kept_packets), (0, 0));
        let counter = |name: &str| report.schemes[&format!("snoop.{name}")];
        assert_eq!((counter("local_retransmissions"), counter("suppressed_dupacks")), (1, 1));
        let [source, destination] = paths.each_ref().map(captured);
        // What the source has sent and received, and the loss; the copy is at the other end.
        assert_eq!((source.len(), destination.len()), (6, 7));
        assert_eq!(source[4].1.as_deref(), Some("suppressed by snoop at base"));
    }
}

/// A segment with a wrong checksum is carried, but is no evidence for an agent.
#[test]
fn agents_do_not_believe_wrong_checksums() {
    let mut wrong = tcp(true, true, Segment { flags: Flags::ACK, ..Segment::default() }, &[7; 100]);
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    let ((), report) = emulate_scheme("snoop", SCENARIO, None, |hosts| {
        hosts.source.send(&wrong).expect("room");
        assert_eq!(Hosts::receive(&hosts.destination).expect("it arrives"), wrong);
    });
    assert_eq!((report.opaque_packets, report.schemes["snoop.cached_segments"]), (1, 0));
}

/// The byte of a stream at a place.
fn byte(port: u16, at: u32) -> u8 {
    ((at ^ u32::from(port) << 8).wrapping_mul(0x9e37_79b9) >> 24) as u8
}

/// Segments with wild numbers on many connections never stop agents, no segment has bytes of another,
/// and all packets are accounted for.
#[test]
fn hostile_segments_do_no_harm_with_agents_in_place() {
    let fast = SCENARIO.replace("10 Mbps", "1 Gbps").replace("30 ms", "1 ms");
    let lossy = fast.replace("[radio]\n", "[radio]\nchannel.frame-loss.loss = 0.05\n");
    for scheme in ["snoop", "wtcp-timestamps", "packet-fec", "snoop + arq"] {
        let mut random = Streams::new(9, 0).stream(scheme);
        let check = |hosts: &UnixDatagram| {
            let Some(bytes) = Hosts::receive(hosts) else { return false };
            let packet = IpPacket::from_frame(LinkType::ETHERNET, &bytes, bytes.len()).expect("IP");
            let tcp = packet.tcp().expect("a segment");
            assert_eq!(packet.transport_checksum(), Checksum::Correct);
            let (port, seq) = (tcp.header.src_port ^ tcp.header.dst_port, tcp.header.segment.seq);
            let is_right = (0..).zip(tcp.payload).all(|(at, &is)| is == byte(port, (seq + at).0));
            assert!(is_right, "{scheme}: {packet:?}");
            true
        };
        let ((), report) = emulate_scheme(scheme, &lossy, None, |hosts| {
            let mut seqs = vec![0u32; 2_000];
            for _ in 0..100 {
                for _ in 0..20 {
                    let from_source = random.bernoulli(0.5);
                    // More than there are lanes, but most often one of a few.
                    let connections = if random.bernoulli(0.3) { 1_000 } else { 3 };
                    let number = random.below(connections) as usize;
                    let next = SeqNum(seqs[2 * number + usize::from(from_source)]);
                    let wild = |random: &mut Stream, near: SeqNum| match random.below(8) {
                        0 => SeqNum(random.below(1 << 32) as u32),
                        1 => near - random.below(5_000) as u32,
                        2 => near + random.below(5_000) as u32,
                        _ => near,
                    };
                    let seq = wild(&mut random, next);
                    let len = [0, 0, 100, 1000][random.below(4) as usize];
                    let other = SeqNum(seqs[2 * number + usize::from(!from_source)]);
                    let flags =
                        if random.bernoulli(0.02) { random.below(1 << 8) as u16 } else { Flags::ACK.0 };
                    let segment = Segment {
                        seq,
                        ack: wild(&mut random, other),
                        wnd: random.below(1 << 16) as u32,
                        flags: Flags(flags),
                        timestamps: random
                            .bernoulli(0.5)
                            .then(|| Timestamps { value: random.below(1 << 32) as u32, echo: 0 }),
                        ..Segment::default()
                    };
                    seqs[2 * number + usize::from(from_source)] = (next + len).0;
                    let mut ports = [1000 + number as u16, 2000];
                    let port = ports[0] ^ ports[1];
                    let payload: Vec<u8> = (0..len).map(|at| byte(port, (seq + at).0)).collect();
                    ports.rotate_left(usize::from(!from_source));
                    let mut bytes = tcp(random.bernoulli(0.9), from_source, segment, &payload);
                    let at = if bytes[12] == 0x08 { 34 } else { 54 };
                    bytes[at..at + 2].copy_from_slice(&ports[0].to_be_bytes());
                    bytes[at + 2..at + 4].copy_from_slice(&ports[1].to_be_bytes());
                    checksum::repair(&mut bytes[14..]).expect("well-formed");
                    let host = if from_source { &hosts.source } else { &hosts.destination };
                    host.send(&bytes).expect("room");
                }
                for socket in [&hosts.source, &hosts.destination] {
                    socket.set_nonblocking(true).expect("an option");
                    while check(socket) {}
                    socket.set_nonblocking(false).expect("an option");
                }
            }
            for socket in [&hosts.source, &hosts.destination] {
                while check(socket) {}
            }
        });
        let sum = |count: fn(&SideReport) -> u64| report.ends.iter().map(count).sum::<u64>();
        let counter = |name: &str| report.schemes.get(name).copied().unwrap_or(0);
        let copies = counter("snoop.local_retransmissions") + counter("snoop.answered_segments");
        let ended = sum(|end| end.received_packets)
            + report.lost_packets
            + report.suppressed_packets
            + report.overload_drops
            + report.in_network_packets;
        assert_eq!(sum(|end| end.sent_packets), 2_000);
        assert!(report.opaque_packets > 0 || scheme == "packet-fec", "{scheme}: {report:?}");
        match scheme {
            "snoop" | "snoop + arq" => {
                assert_eq!(ended, 2_000 + copies, "{scheme}: {report:?}");
                assert!(counter("snoop.local_retransmissions") > 10, "{report:?}");
            }
            "wtcp-timestamps" => assert!(counter("wtcp-timestamps.local_retransmissions") > 10, "{report:?}"),
            _ => assert!(counter("packet-fec.recovered_packets") > 50, "{report:?}"),
        }
    }
}

#[test]
fn a_capture_that_cannot_be_written_is_reported() {
    let scenario =
        Scenario::parse(SCENARIO, "test.toml", &[] as &[&str]).unwrap_or_else(|error| panic!("{error}"));
    let emulation = Emulation::new(&scenario, "basic", 1, 0).unwrap_or_else(|error| panic!("{error}"));
    let (a, b) = UnixDatagram::pair().expect("a pair");
    let interfaces = [a, b].map(|socket| Interface::new(socket.into()).expect("a datagram socket"));
    let capture = Some(["x", "y"].map(|name| PathBuf::from(format!("/nowhere/{name}.pcapng"))));
    let longest_wait = lasthop_base::Duration::from_millis(200);
    assert!(
        Emulator::new(
            emulation,
            interfaces,
            Settings { mtu: 1500, longest_wait, capture, ..Settings::default() }
        )
        .is_err()
    );
    let error = Interface::open("no-such-device").expect_err("there is none");
    assert_eq!(error.to_string(), "there is no network interface no-such-device");
}
