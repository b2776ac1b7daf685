//! Split connections in virtual time: hosts with our TCP, real packets, the network of a scenario.

use std::net::SocketAddr;

use lasthop_base::{Duration, Streams};
use lasthop_endpoint::{Config, End, Endpoint, Outgoing, StateName, refuse};
use lasthop_proto::tcp::{Profile, Settings};
use lasthop_scenario::{Emulation, EmulationCounters, Observe, Scenario, Side};

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
    others: Vec<(Side, Vec<u8>)>,
    /// TCP packets that hosts received.
    received: [u64; 2],
    /// A digest of all received packets.
    digest: u64,
}

impl Lab {
    fn new(scenario: &Scenario, scheme: &str, run: u64) -> Lab {
        let mut emulation = scenario.emulate(scheme, 1, run).unwrap_or_else(|error| panic!("{error}"));
        let frames = SharedFrames::default();
        emulation.split(|site| Box::new(BaseStation::new(site, frames.clone())));
        let connections =
            emulation.has_agents().then(|| Connections::new(emulation.lanes(), emulation.splits()));
        let (talks, others) = (Vec::new(), Vec::new());
        Lab { now: Time::ZERO, emulation, frames, connections, talks, others, received: [0; 2], digest: 0 }
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
        let frame = [&[0; ETHERNET], bytes].concat();
        let entered = self.frames.lock().insert(&frame, 0, entering, scale).entered;
        self.emulation.enter(side, lane, &entered);
    }

    fn leave(&mut self) {
        let mut received = Vec::new();
        for carried in self.emulation.take() {
            let Ok(side) = carried.outcome else { continue };
            let mut frames = self.frames.lock();
            let frame = frames.get(carried.packet.handle).expect("its bytes are kept");
            let mut bytes = frame.bytes[ETHERNET..].to_vec();
            if is_changed(frame, &carried.packet) {
                change(&mut bytes, frame, &carried.packet).expect("well-formed");
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
        let Some(segment) = Incoming::of(&packet) else { return self.others.push((side, bytes)) };
        self.received[side as usize] += 1;
        let ends = self.talks.iter_mut().map(|ends| &mut ends[side as usize].endpoint);
        let found = ends.into_iter().find(|end| end.is_for(&segment));
        match found {
            Some(end) => end.receive(self.now, &segment),
            None => {
                if let Some(reset) = refuse(&segment) {
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
        let left: usize = self.emulation.held().0;
        assert_eq!(self.frames.lock().len(), left, "all other bytes are returned");
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

/// The same run, simulated and with real packets.
#[test]
fn a_split_is_as_fast_as_simulated() {
    for loss in ["0.01", "0.03"] {
        let scenario = read(&LAST_MILE.replace("0.01", loss));
        let [mut live, mut simulated] = [0.0; 2];
        for run in 0..4 {
            live += measured(&scenario, "i-tcp", run, 30).0 / 4e6;
            let run = scenario.run("i-tcp", 1, run, Observe::default()).expect("valid");
            simulated += run.metrics.connections.throughput_bps / 4e6;
        }
        println!("{loss}: live {live:.3} Mb/s, simulated {simulated:.3} Mb/s");
        assert!((live / simulated - 1.0).abs() < 0.03, "{loss}: {live} {simulated}");
    }
}
