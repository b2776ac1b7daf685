//! Split connections in virtual time: hosts with our TCP, real packets, the network of a scenario.

use std::net::{IpAddr, SocketAddr};

use crate::emulation::{Emulation, EmulationCounters, Side};
use lasthop_base::{Duration, Stream, Streams};
use lasthop_endpoint::{Config, End, Endpoint, Outgoing, StateName, refuse};
use lasthop_experiment::{Experiment, Observe};
use lasthop_proto::tcp::{Flags, Profile, Segment, SeqNum, Settings};
use lasthop_proto::{Ecn, NoticeCode};
use lasthop_scenario::Scenario;
use lasthop_wire::{Ip, TcpHeader, write};

use super::*;
use crate::connections::Connections;

const LAST_MILE: &str = r#"
schemes = ["basic", "i-tcp"]
sender = "linux"
limit = "30 s"
[transfer]
size = "unlimited"
[wired]
rate = "1 Gbps"
delay = "29 ms"
[radio]
rate = "10 Mbps"
delay = "1 ms"
queue = "50 packets"
channel.frame-loss.loss = 0.01
[radio.uplink]
rate = "1 Gbps"
channel = "perfect"
"#;

fn read(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", &[] as &[&str]).unwrap_or_else(|error| panic!("{error}"))
}

fn address(side: Side, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side as u8 + 1], port))
}

/// The Ethernet header of frames from the host at `side`.
fn header(side: Side) -> [u8; ETHERNET] {
    let (from, to) = (side as u8 + 1, 2 - side as u8);
    [2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 0x08, 0x00]
}

/// One end of a conversation: writes a pattern and checks that of the other end.
struct Application {
    endpoint: Endpoint,
    key: u64,
    to_send: u64,
    written: u64,
    read: u64,
    /// Whether it does not close its direction.
    stays_open: bool,
}

fn byte(key: u64, at: u64) -> u8 {
    ((at ^ key << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Application {
    fn new(endpoint: Endpoint, key: u64, to_send: u64) -> Application {
        Application { endpoint, key, to_send, written: 0, read: 0, stays_open: false }
    }

    fn act(&mut self, now: Time, peer: u64) {
        let len = (self.to_send - self.written).min(self.endpoint.writable() as u64);
        let bytes: Vec<u8> = (self.written..self.written + len).map(|at| byte(self.key, at)).collect();
        self.written += self.endpoint.send(now, &bytes) as u64;
        let is_waiting = matches!(self.endpoint.state(), StateName::Listen | StateName::SynSent);
        if self.written == self.to_send && !is_waiting && !self.stays_open {
            self.endpoint.shutdown(now);
        }
        let mut buffer = vec![0; self.endpoint.readable()];
        self.endpoint.read(now, &mut buffer);
        for got in buffer {
            assert_eq!(got, byte(peer, self.read), "at {} of the stream {peer}", self.read);
            self.read += 1;
        }
    }
}

/// The network between two hosts.
struct Lab {
    now: Time,
    emulation: Emulation,
    frames: SharedFrames,
    connections: Option<Connections>,
    /// Conversations: the end at the source, and the one at the destination.
    talks: Vec<[Application; 2]>,
    /// Packets that are not TCP, with the side where they arrived.
    others: Vec<(usize, Vec<u8>)>,
    /// TCP packets that hosts received.
    received: [u64; 2],
    /// Payload sizes of the segments with data that the destination received, and the last of them.
    sizes: Vec<usize>,
    last: Option<Vec<u8>>,
    /// TCP packets to ports of no conversation.
    strays: Vec<Vec<u8>>,
    /// A digest of all received packets.
    digest: u64,
}

impl Lab {
    fn new(scenario: &Scenario, scheme: &str, run: u64) -> Lab {
        let mut emulation =
            Emulation::new(scenario, scheme, 1, run).unwrap_or_else(|error| panic!("{error}"));
        let frames = SharedFrames::default();
        emulation.split(|site| Box::new(BaseStation::new(site, frames.clone())));
        let connections =
            emulation.has_agents().then(|| Connections::new(emulation.lanes(), emulation.splits()));
        let (talks, others) = (Vec::new(), Vec::new());
        Lab {
            now: Time::ZERO,
            emulation,
            frames,
            connections,
            talks,
            others,
            received: [0; 2],
            sizes: Vec::new(),
            last: None,
            strays: Vec::new(),
            digest: 0,
        }
    }

    /// A conversation that the host at `opener` begins now.
    fn talk(&mut self, opener: Side, settings: &Settings, sizes: [u64; 2]) {
        let number = self.talks.len() as u64;
        let port = 1000 + number as u16;
        let config = Config { settings: settings.clone(), ..Config::default() };
        let end = |side: Side| {
            let (here, there) = (address(side, port), address(Side::BOTH[1 - side as usize], port));
            let secret = Secret::draw(&mut Streams::new(number, side as u64).stream("secret"));
            let endpoint = match side == opener {
                true => Endpoint::connect(self.now, config.clone(), here, there, secret),
                false => Endpoint::listen(config.clone(), here, secret),
            };
            Application::new(endpoint, 2 * number + side as u64, sizes[side as usize])
        };
        self.talks.push(Side::BOTH.map(end));
    }

    /// Runs until `until`, or until nothing is left to do.
    fn run(&mut self, until: Time) {
        loop {
            self.leave();
            self.act();
            if self.emulation.has_carried() {
                continue;
            }
            let ends = self.talks.iter().flatten().map(|end| end.endpoint.next_wakeup());
            let next = ends.fold(self.emulation.next_wakeup(), Time::min);
            if next >= until {
                self.now = if next == Time::NEVER { self.now } else { until };
                return;
            }
            self.now = next.max(self.now);
            self.emulation.advance(self.now);
            for end in self.talks.iter_mut().flatten() {
                end.endpoint.wake(self.now);
            }
        }
    }

    fn act(&mut self) {
        for number in 0..self.talks.len() {
            for side in Side::BOTH {
                let end = &mut self.talks[number][side as usize];
                let peer = end.key ^ 1;
                end.act(self.now, peer);
                while let Some(packet) = self.talks[number][side as usize].endpoint.poll() {
                    self.send(side, &packet);
                }
            }
        }
    }

    fn send(&mut self, side: Side, packet: &Outgoing) {
        self.enter(side, &packet.to_bytes().expect("short enough"));
    }

    fn enter(&mut self, side: Side, bytes: &[u8]) {
        let packet = IpPacket::parse(bytes).expect("well-formed");
        let mut entering = Entering {
            handle: Handle::NONE,
            size: Bytes(bytes.len() as u64),
            dscp: packet.ip.dscp,
            ecn: packet.ip.ecn,
            segment: None,
        };
        let (mut lane, mut scale) = (0, 0);
        if let Some(connections) = &mut self.connections
            && let Some(tcp) = packet.tcp()
        {
            (lane, scale) = connections.find(self.now, side, &packet, &tcp.header).expect("a lane");
            entering.segment = Some(segments::read(&tcp.header, scale));
        }
        let frame = [&header(side)[..], bytes].concat();
        let origin = Origin { at: self.now, side, connection: None };
        let entered = self.frames.lock().insert(&frame, 0, entering, scale, origin).entered;
        self.emulation.enter(side, lane, &entered);
    }

    fn leave(&mut self) {
        let mut received = Vec::new();
        for carried in self.emulation.take() {
            let Ok(side) = carried.outcome else { continue };
            let mut frames = self.frames.lock();
            let frame = frames.get(carried.packet.handle).expect("its bytes are kept");
            let from = Side::BOTH[1 - side as usize];
            assert_eq!(frame.bytes[..ETHERNET], header(from), "it looks as if the other host had sent it");
            let mut bytes = frame.bytes[ETHERNET..].to_vec();
            if frame.is_changed(&carried.packet) {
                frame.change(&mut bytes, &carried.packet).expect("well-formed");
            }
            for &word in &bytes {
                self.digest = (self.digest ^ u64::from(word)).wrapping_mul(0x0100_0000_01b3);
            }
            self.digest ^= carried.time.as_nanos();
            received.push((side, bytes));
        }
        let Lab { emulation, frames, .. } = self;
        emulation.take_unused(false, |handle| frames.lock().remove(handle));
        for (side, bytes) in received {
            self.deliver(side, bytes);
        }
    }

    fn deliver(&mut self, side: Side, bytes: Vec<u8>) {
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        assert_ne!(packet.transport_checksum(), Checksum::Wrong);
        let Some(segment) = Incoming::of(&packet) else { return self.others.push((side as usize, bytes)) };
        self.received[side as usize] += 1;
        if side == Side::Destination && !segment.payload.is_empty() {
            self.sizes.push(segment.payload.len());
            self.last = Some(bytes.clone());
        }
        let ends = self.talks.iter_mut().map(|ends| &mut ends[side as usize].endpoint);
        let found = ends.into_iter().find(|end| end.is_for(&segment));
        match found {
            Some(end) => end.receive(self.now, &segment),
            None => {
                let reset = refuse(&segment).filter(|reset| reset.remote.port() < 2_000);
                self.strays.push(bytes.clone());
                if let Some(reset) = reset {
                    self.send(side, &reset);
                }
            }
        }
    }

    fn assert_complete(&self) {
        for [a, b] in &self.talks {
            assert_eq!((a.read, b.read), (b.to_send, a.to_send));
        }
    }

    fn finish(mut self) -> EmulationCounters {
        let Lab { emulation, frames, .. } = &mut self;
        emulation.take_unused(true, |handle| frames.lock().remove(handle));
        // An agent may have sent a packet several times.
        let (copies, kept) = self.emulation.held();
        assert!(self.frames.lock().len() <= copies + kept, "all other bytes are returned");
        self.emulation.finish()
    }
}

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Goodput of an unlimited download in bits per second.
fn measured(scenario: &Scenario, scheme: &str, run: u64, until: u64) -> (f64, EmulationCounters) {
    let mut lab = Lab::new(scenario, scheme, run);
    lab.talk(Side::Source, &Profile::Linux.settings(), [1 << 40, 0]);
    lab.talks[0][1].stays_open = true;
    lab.run(seconds(until));
    let read = lab.talks[0][1].read;
    (read as f64 * 8.0 / until as f64, lab.finish())
}

#[test]
fn a_split_carries_every_byte_and_counts() {
    let lossy = LAST_MILE.replace("channel = \"perfect\"", "channel.frame-loss.loss = 0.01");
    for (opener, scheme) in [(Side::Source, "i-tcp"), (Side::Destination, "i-tcp")] {
        let mut lab = Lab::new(&read(&lossy), scheme, 3);
        lab.talk(opener, &Profile::Linux.settings(), [3_000_000, 1_000_000]);
        lab.run(seconds(200));
        lab.assert_complete();
        let ends = lab.talks[0].each_ref().map(|end| end.endpoint.end());
        assert_eq!(ends, [Some(End::Closed); 2]);
        let counters = lab.finish();
        let count = |name: &str| counters.schemes[&format!("i-tcp.{name}")];
        assert_eq!((count("connections"), count("open_connections"), count("reset_connections")), (1, 0, 0));
        assert_eq!((count("refused_connections"), count("acknowledged_undelivered_bytes")), (0, 0));
        assert!((30_000..=65_536).contains(&count("held_bytes_peak")), "{counters:?}");
    }
}

/// The same input gives the same packets at the same times.
#[test]
fn emulations_of_a_split_are_reproducible() {
    let digest = || {
        let mut lab = Lab::new(&read(LAST_MILE), "i-tcp", 5);
        for opener in Side::BOTH {
            lab.talk(opener, &Profile::LinuxBbr.settings(), [300_000, 200_000]);
        }
        lab.run(seconds(20));
        lab.assert_complete();
        (lab.digest, lab.finish())
    };
    assert_eq!(digest(), digest());
}

/// Snoop repairs losses between the proxy and the mobile host, and EBSN notifies the proxy.
#[test]
fn agents_act_on_the_wireless_part() {
    let scenario = read(LAST_MILE);
    let (snooped, counters) = measured(&scenario, "i-tcp + snoop", 0, 20);
    assert!(snooped > 7e6, "{snooped}");
    assert!(counters.schemes["snoop.local_retransmissions"] > 50, "{counters:?}");
    assert_eq!((counters.schemes["i-tcp.connections"], counters.schemes["i-tcp.wrong_checksums"]), (1, 0));

    let noisy = LAST_MILE.replace("[radio]\n", "[radio]\narq.stop-and-wait.backoff.fixed = \"1 ms\"\n");
    let (notified, counters) = measured(&read(&noisy.replace("0.01", "0.2")), "i-tcp + ebsn", 0, 20);
    assert!(counters.schemes["ebsn.notices_sent"] > 500, "{counters:?}");
    assert!(notified > 2e6, "{notified}");
}

/// Connections of more than one lane at a time, as agents need them.
#[test]
fn many_connections_share_a_base_station_with_agents() {
    let mut lab = Lab::new(&read(LAST_MILE), "i-tcp + snoop", 1);
    for number in 0..100 {
        lab.talk(Side::BOTH[number % 2], &Profile::Linux.settings(), [20_000, 10_000]);
    }
    lab.run(seconds(60));
    lab.assert_complete();
    let counters = lab.finish();
    assert_eq!((counters.schemes["i-tcp.connections"], counters.schemes["i-tcp.open_connections"]), (100, 0));
}

/// Sizes of the data segments that a host receives, in order of time, and goodput.
fn sizes(scenario: &Scenario, scheme: &str) -> (Vec<usize>, f64) {
    let mut lab = Lab::new(scenario, scheme, 0);
    lab.talk(Side::Source, &Profile::Linux.settings(), [1 << 40, 0]);
    lab.talks[0][1].stays_open = true;
    let mut sizes = Vec::new();
    for step in 1..1_000 {
        lab.run(Time::from_nanos(step * 10_000_000));
        sizes.append(&mut lab.sizes);
    }
    (sizes, lab.talks[0][1].read as f64 * 8.0 / 10.0)
}

/// Without congestion control, and with segments whose size follows the losses: on the wireless part only.
#[test]
fn reactions_and_settings_apply_to_the_wireless_part() {
    let selective = format!(
        "{}[scheme]\nmetp.recovery = \"selective-repeat\"\nvs-tcp.recovery = \"selective-repeat\"\n",
        LAST_MILE.replace("0.01", "0.1")
    );
    let scenario = read(&selective);
    let (metp, fast) = sizes(&scenario, "metp");
    let (vs_tcp, _) = sizes(&scenario, "vs-tcp");
    let (i_tcp, slow) = sizes(&scenario, "i-tcp");
    assert!(metp.iter().chain(&i_tcp).max() == Some(&1_448), "full segments");
    assert!(fast > 2.0 * slow && fast > 5e6, "{fast} {slow}");
    // Sizes are multiples of 8, at most that of the scheme.
    assert!(vs_tcp.iter().all(|&size| size <= 1_024), "{:?}", vs_tcp.iter().max());
    let mean = vs_tcp.iter().sum::<usize>() / vs_tcp.len();
    assert!((100..800).contains(&mean), "{mean}");
    // A host with a small MSS never gets more.
    let small = Settings { packet_size: Bytes(576), ..Profile::Linux.settings() };
    let mut lab = Lab::new(&read(&selective.replace("loss = 0.1", "loss = 0.0")), "vs-tcp", 0);
    lab.talk(Side::Source, &small, [500_000, 0]);
    lab.run(seconds(30));
    lab.assert_complete();
    assert!(lab.sizes.iter().all(|&size| size <= 576 - 52), "{:?}", lab.sizes.iter().max());
}

fn ip(from: Side) -> Ip {
    let [src, dst] = [from as u8 + 1, 2 - from as u8].map(|host| IpAddr::from([10, 0, 0, host]));
    let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
    Ip { src, dst, dscp, ecn, hop_limit: 61, identification: 7, dont_fragment: true }
}

#[test]
fn what_is_not_tcp_passes_and_path_errors_are_for_the_proxy() {
    let mut lab = Lab::new(&read(&LAST_MILE.replace("0.01", "0.0")), "i-tcp", 0);
    let datagram = write::udp(&ip(Side::Source), (5, 6), b"hello").expect("short enough");
    let echo =
        write::icmp(&ip(Side::Destination), NoticeCode { kind: 8, code: 0 }, 9, b"ping").expect("short");
    let mut fragment = write::tcp(&ip(Side::Source), &TcpHeader::default(), &[1; 64]).expect("short enough");
    // More fragments follow.
    fragment[6] = 0x20;
    lasthop_wire::checksum::repair(&mut fragment).expect("well-formed");
    lab.enter(Side::Source, &datagram);
    lab.enter(Side::Destination, &echo);
    lab.enter(Side::Source, &fragment);
    lab.run(seconds(1));
    let mut passed: Vec<_> = lab.others.drain(..).collect();
    passed.sort();
    let mut expected = vec![(1, datagram), (0, echo), (1, fragment)];
    expected.sort();
    assert_eq!(passed, expected);

    lab.talk(Side::Source, &Profile::Linux.settings(), [2_000_000, 0]);
    lab.run(Time::from_nanos(1_500_000_000));
    let largest = |lab: &mut Lab| lab.sizes.drain(..).max();
    assert_eq!(largest(&mut lab), Some(1_448));
    // A router of the mobile host reports a smaller MTU, and quotes a segment that the proxy has in flight.
    let last = lab.last.clone().expect("data have arrived");
    let packet = IpPacket::parse(&last).expect("well-formed");
    let mut quoted = packet.bytes[..28].to_vec();
    let seq = packet.tcp().expect("a segment").header.segment.seq + 1_448;
    quoted[24..28].copy_from_slice(&seq.0.to_be_bytes());
    let needed = NoticeCode { kind: 3, code: 4 };
    let message = write::icmp(&ip(Side::Destination), needed, 800, &quoted).expect("short enough");
    lab.enter(Side::Destination, &message);
    lab.run(Time::from_nanos(1_600_000_000));
    lab.sizes.clear();
    lab.run(seconds(30));
    assert_eq!(largest(&mut lab), Some(800 - 52));
    assert!(lab.others.is_empty(), "the message is for the proxy");
    // One about another connection is for the host.
    quoted[20] ^= 1;
    let message = write::icmp(&ip(Side::Destination), needed, 800, &quoted).expect("short enough");
    lab.enter(Side::Destination, &message);
    lab.run(seconds(31));
    assert_eq!(lab.others, [(0, message)]);
    lab.assert_complete();
}

/// A segment with a wrong checksum ends at the proxy, since its numbers mean nothing on the other part.
#[test]
fn segments_with_a_wrong_checksum_are_dropped() {
    let mut lab = Lab::new(&read(LAST_MILE), "i-tcp", 0);
    let segment = Segment { flags: Flags::SYN, ..Segment::default() };
    let header = TcpHeader { src_port: 1, dst_port: 2, segment, ..TcpHeader::default() };
    let mut bytes = write::tcp(&ip(Side::Source), &header, &[]).expect("short enough");
    bytes[36] ^= 1;
    lab.enter(Side::Source, &bytes);
    lab.run(seconds(5));
    assert_eq!(lab.received, [0, 0]);
    let counters = lab.finish();
    assert_eq!((counters.schemes["i-tcp.wrong_checksums"], counters.schemes["i-tcp.connections"]), (1, 0));
}

/// Simulated traffic shares the links with the parts of real connections.
#[test]
fn simulated_traffic_goes_on_beside_a_split() {
    let busy = format!(
        "{LAST_MILE}[traffic.probe]\nfrom = \"fixed\"\nto = \"mobile\"\npacket_size = \"1500 B\"\nlaw.constant.rate = \"5 Mbps\"\n"
    );
    let (alone, _) = measured(&read(LAST_MILE), "i-tcp", 0, 10);
    let (beside, _) = measured(&read(&busy), "i-tcp", 0, 10);
    assert!(alone > 7.5e6 && beside < 5e6 && beside > 2e6, "{alone} {beside}");
}

/// Another connection of the scenario is simulated, and split by the same scheme: its pace depends on the buffer.
#[test]
fn simulated_connections_are_split_beside_real_ones() {
    let pairs = LAST_MILE.replace("[transfer]", "[topology.dumbbell]\npairs = 2\n[transfer]")
        + "[connection.real]\nfrom = \"S1\"\nto = \"D1\"\n[connection.simulated]\nfrom = \"S2\"\nto = \"D2\"\n";
    let sent = |buffer: &str| {
        let mut lab = Lab::new(&read(&format!("{pairs}[scheme]\ni-tcp.buffer = \"{buffer}\"\n")), "i-tcp", 0);
        lab.talk(Side::Source, &Profile::Linux.settings(), [100_000, 100_000]);
        lab.run(seconds(20));
        lab.assert_complete();
        assert_eq!(lab.emulation.simulated_flows(), 1);
        let counters = lab.finish();
        assert_eq!(counters.schemes["i-tcp.connections"], 1);
        let link = counters.links.iter().find(|each| each.link == "right-D2").expect("there is a link");
        link.link_attempts.expect("it is wireless")
    };
    let (small, large) = (sent("3 KB"), sent("64 KiB"));
    assert!(small > 200 && large > 5 * small, "{small} {large}");
}

/// Segments with any numbers on many connections never stop the base station, and all bytes are returned.
#[test]
fn hostile_segments_do_no_harm_to_a_base_station() {
    let inputs = std::env::var("LASTHOP_FUZZ_INPUTS").map_or(20_000, |text| text.parse().expect("a number"));
    let fast = LAST_MILE.replace("10 Mbps", "100 Mbps").replace("29 ms", "2 ms");
    for scheme in ["i-tcp", "i-tcp + snoop", "i-tcp + wtcp-timestamps"] {
        let mut random = Streams::new(8, 0).stream(scheme);
        let mut lab = Lab::new(&read(&fast), scheme, 0);
        // One honest conversation beside them.
        lab.talk(Side::Source, &Profile::Linux.settings(), [50_000, 50_000]);
        let mut next = [[(SeqNum(0), SeqNum(0)); 2]; 40];
        for _ in 0..inputs {
            let bytes = hostile(&mut random, &next);
            let side = if bytes[15] == 1 { Side::Source } else { Side::Destination };
            lab.enter(side, &bytes);
            let gap = if random.bernoulli(0.001) { 60_000_000_000 } else { random.below(2_000_000) };
            lab.run(lab.now + Duration::from_nanos(gap));
            // The attacker's own kernel does not answer.
            for received in lab.strays.drain(..) {
                let packet = IpPacket::parse(&received).expect("well-formed");
                let header = packet.tcp().expect("a segment").header;
                let to_source = received[19] == 1;
                let port = if to_source { header.dst_port } else { header.src_port };
                let ends = &mut next[usize::from(port) % 40];
                let end = header.segment.seq + packet.tcp().map_or(0, |tcp| tcp.payload.len() as u32);
                let opens = u32::from(header.segment.flags.has(Flags::SYN));
                ends[usize::from(!to_source)] = (header.segment.ack, end + opens);
            }
        }
        lab.run(lab.now + Duration::from_secs(3_000));
        let [a, b] = &lab.talks[0];
        assert_eq!((a.read, b.read), (50_000, 50_000), "{scheme}");
        let counters = lab.finish();
        let count = |name: &str| counters.schemes[&format!("i-tcp.{name}")];
        assert!(count("connections") > 20 && count("foreign_segments") > 50, "{counters:?}");
        assert!(count("held_bytes_peak") <= 65_536 && count("open_connections") <= 1_024, "{counters:?}");
    }
}

/// A segment of one of 40 connections, most often with the numbers that the proxy expects from a host.
fn hostile(random: &mut Stream, next: &[[(SeqNum, SeqNum); 2]; 40]) -> Vec<u8> {
    let number = random.below(40) as usize;
    let from = Side::BOTH[random.below(2) as usize];
    let (seq, ack) = next[number][from as usize];
    let wild = |random: &mut Stream, near: SeqNum| match random.below(8) {
        0 => SeqNum(random.below(1 << 32) as u32),
        1 => near + random.below(70_000) as u32,
        2 => near - random.below(70_000) as u32,
        _ => near,
    };
    let flags = match random.below(12) {
        0 => Flags(random.below(1 << 9) as u16),
        1 | 2 => Flags::SYN,
        3 => Flags::SYN | Flags::ACK,
        4 => Flags::FIN | Flags::ACK,
        5 if random.bernoulli(0.2) => Flags::RST,
        _ => Flags::ACK,
    };
    let (seq, ack) = (wild(random, seq), wild(random, ack));
    let segment = Segment { seq, ack, wnd: random.below(1 << 16) as u32, flags, ..Segment::default() };
    let (own, other) = (40 * 50 + number as u16, 40 * 60 + number as u16);
    let (src_port, dst_port) = if from == Side::Source { (own, other) } else { (other, own) };
    let opens = flags.has(Flags::SYN);
    let header = TcpHeader {
        src_port,
        dst_port,
        segment,
        mss: opens.then(|| random.below(1 << 16) as u16),
        window_scale: (opens && random.bernoulli(0.5)).then(|| random.below(15) as u8),
        sack_permitted: opens && random.bernoulli(0.5),
        ..TcpHeader::default()
    };
    let payload = vec![3; [0, 0, 10, 1_000][random.below(4) as usize]];
    write::tcp(&ip(from), &header, &payload).expect("short enough")
}

/// The same runs, simulated and with real packets.
#[test]
fn a_split_is_as_fast_as_simulated() {
    let agrees = |scheme: &str, scenario: &Scenario, runs: u64, within: f64| {
        let [mut live, mut simulated] = [0.0; 2];
        for run in 0..runs {
            live += measured(scenario, scheme, run, 30).0 / runs as f64;
            let run = scenario.run(scheme, 1, run, Observe::default()).expect("valid");
            simulated += run.metrics.connections.throughput_bps / runs as f64;
        }
        println!("{scheme}: live {live:.0} b/s, simulated {simulated:.0} b/s");
        assert!((live / simulated - 1.0).abs() < within, "{scheme}: {live} {simulated}");
    };
    for loss in ["0.01", "0.03"] {
        agrees("i-tcp", &read(&LAST_MILE.replace("0.01", loss)), 4, 0.005);
    }
    // RACK stands in for its recovery.
    let metp =
        format!("{}[scheme]\nmetp.recovery = \"selective-repeat\"\n", LAST_MILE.replace("0.01", "0.1"));
    agrees("metp", &read(&metp), 8, 0.05);
}
