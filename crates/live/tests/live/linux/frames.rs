//! Frames between packet sockets, as the kernel makes and passes them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use lasthop_base::{Duration, Stream, Streams};
use lasthop_endpoint::{Config, Endpoint, Secret};
use lasthop_live::{Driver, Emulation, Emulator, Interface, Link, Report, Settings, now};
use lasthop_proto::tcp::{Flags, Segment, SeqNum, Timestamps};
use lasthop_proto::{Dscp, Ecn};
use lasthop_ring::{Ring, Truncation};
use lasthop_scenario::Scenario;
use lasthop_wire::offload::{self, Cwr};
use lasthop_wire::{Checksum, Ip, IpPacket, TcpHeader, checksum, write};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, setsockopt};
use nix::{libc, setsockopt_impl, sockopt_impl};

use super::is_inside;

sockopt_impl!(
    /// Whether each frame is preceded by a virtio header.
    VirtioHeader, SetOnly, libc::SOL_PACKET, libc::PACKET_VNET_HDR, bool
);

/// The sum of the pseudo-header, where a sender leaves the rest of the checksum to a network card.
fn leave_checksum(packet: &mut [u8], protocol: u32, at: usize) {
    let (from, addresses) = if packet[0] >> 4 == 4 { (20, 12..20) } else { (40, 8..40) };
    let len = (packet.len() - from) as u32;
    let words = packet[addresses].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum::<u32>() + protocol + len;
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = ((folded & 0xffff) + (folded >> 16)) as u16;
    packet[at..at + 2].copy_from_slice(&folded.to_be_bytes());
}

/// A packet socket that is bound to a device.
fn packet_socket(device: &str) -> OwnedFd {
    let address = getifaddrs().expect("addresses").filter(|each| each.interface_name == device);
    let address = address.filter_map(|each| each.address?.as_link_addr().copied()).next().expect("a number");
    let flags = SockFlag::SOCK_CLOEXEC;
    let made = socket::socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll);
    let made = made.expect("a socket");
    socket::bind(made.as_raw_fd(), &address).expect("a device");
    made
}

/// A packet socket of the first device whose frames have a virtio header.
fn sending_socket() -> OwnedFd {
    let sending = packet_socket("e0");
    setsockopt(&sending, VirtioHeader, &true).expect("an option");
    sending
}

/// The kernel segments what a device cannot: its segments of a super-packet are ours, byte for byte.
#[test]
fn super_packets_are_cut_as_the_kernel_cuts_them() {
    if !is_inside("linux::frames::super_packets_are_cut_as_the_kernel_cuts_them") {
        return;
    }
    let status = Command::new("ip").args(["link", "set", "dev", "e0", "gso_max_size", "1500"]).status();
    assert!(status.expect("ip runs").success());
    let mut arriving = Interface::open("e1").expect("a device");
    let sending = sending_socket();

    let mut random = Streams::new(3, 0).stream("super-packets");
    let mut buffer = vec![0; 1 << 17];
    for number in 0..300 {
        let (is_v4, is_tcp) = (random.bernoulli(0.5), random.bernoulli(0.6));
        let address = |host: u16| match is_v4 {
            true => IpAddr::from([192, 0, 2, host as u8]),
            false => IpAddr::from([0xfd01, 0, 0, 0, 0, 0, 0, host]),
        };
        let ip = Ip {
            src: address(1),
            dst: address(2),
            dscp: Dscp::new(random.below(64) as u8),
            ecn: Ecn::from_bits(random.below(4) as u8),
            hop_limit: 1 + random.below(255) as u8,
            identification: if is_v4 { random.below(1 << 16) as u16 } else { 0 },
            dont_fragment: !is_v4 || random.bernoulli(0.5),
        };
        let size = 200 + random.below(1_200) as usize;
        let payload: Vec<u8> =
            (0..1_500 + random.below(20_000) as usize).map(|_| random.below(256) as u8).collect();
        // ACK, with any of FIN, PSH, ECE, CWR.
        let flags = Flags(0x10 | random.below(256) as u16 & 0xc9);
        let word = |random: &mut Stream| random.below(1 << 32) as u32;
        let segment = Segment {
            seq: SeqNum(word(&mut random)),
            ack: SeqNum(word(&mut random)),
            wnd: random.below(1 << 16) as u32,
            flags,
            timestamps: random.bernoulli(0.5).then_some(Timestamps { value: 5, echo: 6 }),
            ..Segment::default()
        };
        let header = TcpHeader { src_port: 9, dst_port: 99, segment, ..TcpHeader::default() };
        let mut whole = match is_tcp {
            true => write::tcp(&ip, &header, &payload),
            false => write::udp(&ip, (9, 99), &payload),
        }
        .expect("short enough");
        let packet = IpPacket::parse(&whole).expect("well-formed");
        let (start, offset) = (packet.header_len, if is_tcp { 16 } else { 6 });
        let header_len = start + packet.tcp().map_or(8, |tcp| tcp.header_len);
        let expected: Vec<_> =
            offload::segments(&packet, size, Cwr::FirstOnly).expect("TCP or UDP").collect();
        leave_checksum(&mut whole, if is_tcp { 6 } else { 17 }, start + offset);
        let kind = match (is_tcp, is_v4) {
            (true, true) => 1,
            (true, false) => 4,
            (false, _) => 5,
        } | if flags.has(Flags(0x80)) && is_tcp { 0x80 } else { 0 };
        let mut virtio = vec![1, kind];
        for word in [14 + header_len, size, 14 + start, offset] {
            virtio.extend_from_slice(&(word as u16).to_ne_bytes());
        }
        let ether_type = if is_v4 { [0x08, 0x00] } else { [0x86, 0xdd] };
        // For another host than the one behind the device.
        let frame = [&virtio[..], &[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8], &ether_type, &whole].concat();
        socket::send(sending.as_raw_fd(), &frame, MsgFlags::empty()).expect("room");

        let mut found = Vec::new();
        let until = now() + Duration::from_secs(5);
        while found.len() < expected.len() && now() < until {
            let Some(len) = Link::receive(&mut arriving, &mut buffer).expect("a device") else { continue };
            if buffer[..6] != [2, 0, 0, 0, 0, 9] {
                continue;
            }
            let mut bytes = buffer[14..len].to_vec();
            let packet = IpPacket::parse(&bytes).expect("well-formed");
            if packet.transport_checksum() == Checksum::Partial {
                checksum::repair(&mut bytes).expect("well-formed");
            }
            found.push(bytes);
        }
        assert!(found == expected, "{number}: {ip:?} {header:?} {size} {}", payload.len());
    }
}

const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];

const PLAIN: Ip = Ip {
    src: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    dst: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
    dscp: Dscp::DEFAULT,
    ecn: Ecn::NotEct,
    hop_limit: 9,
    identification: 0,
    dont_fragment: true,
};

/// A frame with a number: a datagram, or a super-packet of five that is longer than a slot of the ring.
fn numbered(number: u32) -> Vec<u8> {
    let is_long = number % 97 == 5;
    let payload = number.to_be_bytes().repeat(if is_long { 1_000 } else { 20 });
    let packet = write::udp(&PLAIN, (9, 99), &payload).expect("short enough");
    let (kind, words) = if is_long { (5, [14 + 28, 800, 14 + 20, 6]) } else { (0, [0; 4]) };
    let mut frame = vec![u8::from(is_long), kind];
    words.iter().for_each(|word: &u16| frame.extend_from_slice(&word.to_ne_bytes()));
    [&frame[..], &ADDRESSES, &[8, 0], &packet].concat()
}

/// In several rounds of the ring.
#[test]
fn all_frames_come_in_order_also_long_ones() {
    if !is_inside("linux::frames::all_frames_come_in_order_also_long_ones") {
        return;
    }
    let mut arriving = Interface::open("e1").expect("a device").with_ring();
    let sending = sending_socket();
    let mut buffer = vec![0; 1 << 17];
    let (mut next, count) = (0, 20_000);
    for number in 0..count {
        socket::send(sending.as_raw_fd(), &numbered(number), MsgFlags::empty()).expect("room");
        let until = now() + Duration::from_secs(5);
        // In turn a few and many wait.
        while next + [1, 300][number as usize / 1_000 % 2] <= number + 1 {
            assert!(now() < until, "{next}");
            let Some(len) = Link::receive(&mut arriving, &mut buffer).expect("a device") else { continue };
            if buffer[..12] == ADDRESSES {
                assert!(buffer[..len] == numbered(next)[10..], "{next}");
                next += 1;
            }
        }
    }
    assert!(next > count - 300);
}

/// Long frames wait in the queue of the socket. Parts of those for which it has no room are not taken for frames.
#[test]
fn long_frames_without_room_are_left_out() {
    if !is_inside("linux::frames::long_frames_without_room_are_left_out") {
        return;
    }
    let mut arriving = Interface::open("e1").expect("a device").with_ring();
    let sending = sending_socket();
    let count = 6_000;
    for number in 0..count {
        socket::send(sending.as_raw_fd(), &numbered(5 + 97 * number), MsgFlags::empty()).expect("room");
    }
    let (mut buffer, mut read, mut expected) = (vec![0; 1 << 17], 0, 0);
    let until = now() + Duration::from_millis(300);
    while now() < until {
        let Some(len) = Link::receive(&mut arriving, &mut buffer).expect("a device") else { continue };
        if buffer[..12] == ADDRESSES {
            let number = u32::from_be_bytes(buffer[42..46].try_into().expect("four bytes"));
            assert!(number >= expected && buffer[..len] == numbered(number)[10..], "{number} {len}");
            (read, expected) = (read + 1, number + 97);
        }
    }
    assert!(100 < read && read < count, "{read}");
}

/// A socket whose device is gone has an error, which ends every wait at once and comes before its frames.
#[test]
fn an_interface_that_is_gone_can_be_waited_for() {
    if !is_inside("linux::frames::an_interface_that_is_gone_can_be_waited_for") {
        return;
    }
    for has_ring in [false, true] {
        let arriving = Interface::open("e1").expect("a device");
        let mut arriving = if has_ring { arriving.with_ring() } else { arriving };
        let sending = sending_socket();
        for number in [5, 102] {
            socket::send(sending.as_raw_fd(), &numbered(number), MsgFlags::empty()).expect("room");
        }
        assert!(ip("link del e0"));
        let (mut buffer, mut found) = (vec![0; 1 << 17], Vec::new());
        for _ in 0..10 {
            while let Some(len) = Link::receive(&mut arriving, &mut buffer).expect("no failure") {
                found.extend((buffer[..12] == ADDRESSES).then(|| buffer[..len].to_vec()));
            }
        }
        assert!(found == [5, 102].map(|number| numbered(number)[10..].to_vec()), "{}", found.len());
        let secret = Secret::draw(&mut Streams::new(1, 0).stream("secret"));
        let local = SocketAddr::from(([10, 0, 0, 9], 1));
        let endpoint = Endpoint::listen(Config::default(), local, secret);
        let mut driver = Driver::new(endpoint, arriving, [[2; 6]; 2]);
        driver.turn(Duration::from_millis(20)).expect("no failure");
        let begin = now();
        driver.turn(Duration::from_millis(20)).expect("no failure");
        assert!(now().since(begin) >= Duration::from_millis(20));
        assert!(ip("link add e0 type veth peer name e1"));
        assert!(ip("link set dev e0 up") && ip("link set dev e1 up"));
    }
}

fn ip(command: &str) -> bool {
    Command::new("ip").args(command.split(' ')).status().expect("ip runs").success()
}

/// What an emulator carries that frames are waiting for, which `send` sends.
fn emulated(send: impl FnOnce()) -> Report {
    let link = "rate = \"10 Gbps\"\ndelay = \"1 ms\"\n";
    let text = format!("schemes = [\"basic\"]\n[transfer]\nsize = \"1 MB\"\n[wired]\n{link}[radio]\n{link}");
    let scenario = Scenario::parse(&text, "test.toml", &[] as &[&str]).expect("a scenario");
    let emulation = Emulation::new(&scenario, "basic", 1, 0).expect("a scenario of links");
    let interfaces = ["e1", "k1"].map(|name| Interface::open(name).expect("a device").with_ring());
    let settings = Settings { longest_wait: Duration::from_secs(10), ..Settings::default() };
    let mut emulator = Emulator::new(emulation, interfaces, settings).expect("no capture");
    send();
    let until = now() + Duration::from_millis(500);
    emulator.run(|| now() < until).expect("no failure");
    emulator.finish().expect("no capture")
}

/// Long frames wait in the queue of the socket.
#[test]
fn long_frames_without_room_are_counted_as_dropped() {
    if !is_inside("linux::frames::long_frames_without_room_are_counted_as_dropped") {
        return;
    }
    let count = 6_000;
    let sending = sending_socket();
    let report = emulated(|| {
        for number in 0..count {
            let frame = numbered(5 + 97 * number);
            socket::send(sending.as_raw_fd(), &frame, MsgFlags::empty()).expect("room");
        }
    });
    assert_eq!(report.unforwarded.oversized, 0);
    // Each has five datagrams.
    assert_eq!(report.ends[0].sent_packets, 5 * report.segmented_packets);
    assert!(report.segmented_packets > 100 && report.overload_drops > 100);
    assert_eq!(report.segmented_packets + report.overload_drops, u64::from(count));
}

/// The kernel describes a super-packet in a tunnel as if the packet within were the frame.
#[test]
fn super_packets_in_tunnels_are_refused() {
    if !is_inside("linux::frames::super_packets_in_tunnels_are_refused") {
        return;
    }
    assert!(ip("address add 192.0.2.1/24 dev e0"));
    assert!(ip("neigh add 192.0.2.2 lladdr 02:00:00:00:00:09 dev e0"));
    let tunnel = "type vxlan id 7 local 192.0.2.1 remote 192.0.2.2 dstport 4789 dev e0";
    if !ip(&format!("link add v0 {tunnel}")) {
        println!("skipped: this kernel has no VXLAN");
        return;
    }
    assert!(ip("link set dev v0 up"));
    let sending = packet_socket("v0");
    setsockopt(&sending, VirtioHeader, &true).expect("an option");
    let plain = numbered(5);
    let segment = Segment { flags: Flags(0x10), ..Segment::default() };
    let header = TcpHeader { src_port: 9, dst_port: 99, segment, ..TcpHeader::default() };
    let mut tcp = write::tcp(&PLAIN, &header, &[7; 4_000]).expect("short enough");
    leave_checksum(&mut tcp, 6, 20 + 16);
    let words = [14 + 40, 800, 14 + 20, 16].map(u16::to_ne_bytes).concat();
    let tcp = [&[1, 1], &words[..], &ADDRESSES, &[8, 0], &tcp].concat();
    let report = emulated(|| {
        for frame in [&tcp, &plain] {
            socket::send(sending.as_raw_fd(), frame, MsgFlags::empty()).expect("room");
        }
        socket::send(sending_socket().as_raw_fd(), &plain, MsgFlags::empty()).expect("room");
    });
    assert_eq!((report.unforwarded.oversized, report.segmented_packets), (2, 1), "{report:?}");
}

/// What has no room is counted, and what comes afterwards has room again.
#[test]
fn a_full_ring_counts_what_it_drops() {
    if !is_inside("linux::frames::a_full_ring_counts_what_it_drops") {
        return;
    }
    let (arriving, sending) = (packet_socket("e1"), sending_socket());
    let mut ring = Ring::new(&arriving).expect("a kernel with rings");
    let send = |number: u32| socket::send(sending.as_raw_fd(), &numbered(number), MsgFlags::empty());
    let (count, mut read) = (9_000, 0);
    for number in 0..count {
        send(number).expect("room");
    }
    let next = |ring: &mut Ring| {
        let number = |at: &[u8]| u32::from_be_bytes(at.try_into().expect("four bytes"));
        ring.read(|frame| {
            let is_ours = frame.bytes.len() > 46 && frame.bytes[..12] == ADDRESSES;
            is_ours.then(|| (number(&frame.bytes[42..46]), frame.truncation == Truncation::None))
        })
    };
    while let Some(frame) = next(&mut ring) {
        let Some((number, is_whole)) = frame else { continue };
        assert_eq!((number, is_whole), (read, number % 97 != 5));
        read += 1;
    }
    let dropped = Ring::dropped(&arriving).expect("a packet socket");
    // The kernel's own frames take part.
    assert!(read <= 8_192 && read > 8_000 && dropped >= count - read, "{read} {dropped}");
    assert_eq!(Ring::dropped(&arriving).expect("a packet socket"), 0);
    let real_time_ns = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let begin_ns = real_time_ns();
    send(count).expect("room");
    let until = now() + Duration::from_secs(5);
    let arrived_ns = loop {
        let found =
            ring.read(|frame| frame.bytes.ends_with(&count.to_be_bytes()).then_some(frame.arrived_ns));
        if let Some(arrived_ns) = found.flatten() {
            break arrived_ns;
        }
        assert!(now() < until);
    };
    assert!((begin_ns..=real_time_ns()).contains(&arrived_ns));
}

/// The kernel takes the VLAN tag out of a frame that it receives; a port of a wire puts it back. Frames that the host of
/// the port sends are not for the other port.
#[test]
fn a_port_reads_tags_and_no_frames_of_its_own_host() {
    if !is_inside("linux::frames::a_port_reads_tags_and_no_frames_of_its_own_host") {
        return;
    }
    let [mut port, mut plain] =
        [Interface::open_port("e1"), Interface::open("e1")].map(|it| it.expect("a device"));
    let mut host = Interface::open("e0").expect("a device");
    let packet = write::udp(&PLAIN, (9, 99), &[7; 100]).expect("short enough");
    let mut buffer = vec![0; 1 << 17];
    let mut next = |interface: &mut Interface| {
        let until = now() + Duration::from_secs(5);
        while now() < until {
            let Some(len) = Link::receive(interface, &mut buffer).expect("a device") else { continue };
            if buffer[..12] == ADDRESSES {
                return buffer[..len].to_vec();
            }
        }
        panic!("no frame");
    };
    for tags in [&[0x81, 0x00, 0x60, 0x07][..], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7], &[]] {
        let [tagged, untagged] = [tags, tags.get(4..).unwrap_or_default()]
            .map(|tags| [&ADDRESSES, tags, &[8, 0], &packet].concat());
        Link::send(&mut host, &tagged).expect("room");
        assert_eq!(next(&mut port), tagged);
        assert_eq!(next(&mut plain), untagged);
    }
    // Sent by this host over e1, read at the other end and by every packet socket but a port.
    let frame = [&ADDRESSES[..], &[8, 0], &packet].concat();
    let mut beside = Interface::open("e1").expect("a device");
    Link::send(&mut plain, &frame).expect("room");
    assert_eq!(next(&mut beside), frame);
    // Others are those of the kernel at the other end.
    while let Some(len) = Link::receive(&mut port, &mut buffer).expect("a device") {
        assert_ne!(buffer[..len], frame);
    }
}
