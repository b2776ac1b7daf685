//! The endpoint and smoltcp, an independent TCP, over a network that loses and reorders packets as bytes.

use std::collections::{BTreeMap, VecDeque};

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_endpoint::{Config, End, Endpoint, Incoming, Secret, StateName};
use lasthop_proto::tcp::{Profile, Settings};
use lasthop_wire::{Checksum, IpPacket};
use smoltcp::iface::{self, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};

const MTU: usize = 1500;

/// The packets of smoltcp's network interface.
#[derive(Default)]
struct Line {
    arrived: VecDeque<Vec<u8>>,
    sent: Vec<Vec<u8>>,
}

struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Sent<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut bytes = vec![0; len];
        let result = write(&mut bytes);
        self.0.push(bytes);
        result
    }
}

impl Device for Line {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Arrived, Sent<'_>)> {
        let bytes = self.arrived.pop_front()?;
        Some((Arrived(bytes), Sent(&mut self.sent)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        (capabilities.medium, capabilities.max_transmission_unit) = (Medium::Ip, MTU);
        capabilities
    }
}

/// A host with smoltcp and one socket.
struct Smol {
    line: Line,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_nanos() / 1_000) as i64)
}

impl Smol {
    fn new(is_v4: bool, buffers: [usize; 2], stamps: bool) -> Smol {
        let mut line = Line::default();
        let mut interface =
            Interface::new(iface::Config::new(HardwareAddress::Ip), &mut line, instant(Time::ZERO));
        let address: IpCidr = if is_v4 { "10.0.0.2/24" } else { "fd00::2/64" }.parse().expect("an address");
        interface.update_ip_addrs(|addresses| addresses.push(address).expect("room"));
        let [receive, send] = buffers.map(|len| SocketBuffer::new(vec![0; len]));
        let mut sockets = SocketSet::new(Vec::new());
        let mut socket = Socket::new(receive, send);
        if stamps {
            socket.set_tsval_generator(Some(|| 1));
        }
        let socket = sockets.add(socket);
        Smol { line, interface, sockets, socket }
    }

    fn poll(&mut self, now: Time) {
        self.interface.poll(instant(now), &mut self.line, &mut self.sockets);
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
}

fn byte(seed: u64, index: u64) -> u8 {
    ((seed ^ index).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// What one side has written and read.
#[derive(Default)]
struct Progress {
    written: u64,
    read: u64,
}

struct World {
    now: Time,
    ours: Endpoint,
    theirs: Smol,
    /// Packets by arrival; true for those of the endpoint.
    in_flight: BTreeMap<(Time, u64), (bool, Vec<u8>)>,
    random: Stream,
    loss: f64,
    jitter: Duration,
    count: u64,
}

impl World {
    fn put(&mut self, is_ours: bool, bytes: Vec<u8>) {
        self.count += 1;
        if !self.random.bernoulli(self.loss) {
            let at = self.now + Duration::from_millis(10) + self.random.up_to(self.jitter);
            self.in_flight.insert((at, self.count), (is_ours, bytes));
        }
    }

    /// Lets both stacks act, and moves to the next event; false if there is none.
    fn step(&mut self) -> bool {
        self.theirs.poll(self.now);
        for bytes in std::mem::take(&mut self.theirs.line.sent) {
            self.put(false, bytes);
        }
        while let Some(packet) = self.ours.poll() {
            self.put(true, packet.to_bytes().expect("short enough"));
        }
        let timer = self.theirs.interface.poll_at(instant(self.now), &self.theirs.sockets);
        let timer = timer.map_or(Time::NEVER, |at| Time::from_nanos(at.total_micros() as u64 * 1_000));
        let arrival = self.in_flight.keys().next().map_or(Time::NEVER, |&(at, _)| at);
        let next = timer.min(arrival).min(self.ours.next_wakeup());
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        self.ours.wake(self.now);
        while let Some(entry) = self.in_flight.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (is_ours, bytes) = entry.remove();
            if is_ours {
                self.theirs.line.arrived.push_back(bytes);
            } else {
                let packet = IpPacket::parse(&bytes).expect("a packet");
                assert_eq!(packet.transport_checksum(), Checksum::Correct);
                self.ours.receive(self.now, &Incoming::of(&packet).expect("a segment"));
            }
        }
        self.theirs.poll(self.now);
        true
    }
}

/// Both ends write `len` bytes and close; all must arrive.
fn converse(seed: u64, len: u64, we_open: bool) {
    let mut random = Streams::new(seed, 0).stream("smoltcp");
    let is_v4 = random.bernoulli(0.5);
    let mut size = || 1 << (11 + random.below(7));
    let buffers = [size(), size()];
    let window = size() as u64;
    let mut theirs = Smol::new(is_v4, buffers, random.bernoulli(0.5));
    let [here, there] =
        if is_v4 { ["10.0.0.1:4000", "10.0.0.2:80"] } else { ["[fd00::1]:4000", "[fd00::2]:80"] }
            .map(|text| text.parse().expect("an address"));
    let profile = if random.bernoulli(0.7) { Profile::Linux } else { Profile::Rfc };
    let settings = Settings { window: Bytes(window.max(1500)).into(), ..profile.settings() };
    let config = Config { settings, nagle: random.bernoulli(0.5), ..Config::default() };
    let secret = Secret::draw(&mut random);
    let ours = if we_open {
        theirs.socket().listen(80).expect("a port");
        Endpoint::connect(Time::ZERO, config, here, there, secret)
    } else {
        let remote = smoltcp::wire::IpEndpoint::from(here);
        let socket = theirs.sockets.get_mut::<Socket<'_>>(theirs.socket);
        socket.connect(theirs.interface.context(), remote, 80).expect("an address");
        Endpoint::listen(config, here, secret)
    };
    let loss = if random.bernoulli(0.7) { random.uniform() * 0.05 } else { 0.0 };
    let jitter = if random.bernoulli(0.5) { Duration::from_millis(3) } else { Duration::ZERO };
    let in_flight = BTreeMap::new();
    let mut world = World { now: Time::ZERO, ours, theirs, in_flight, random, loss, jitter, count: 0 };
    let [mut our, mut their] = [Progress::default(), Progress::default()];
    loop {
        let now = world.now;
        let bytes: Vec<u8> = (our.written..len.min(our.written + 5000)).map(|at| byte(seed, at)).collect();
        our.written += world.ours.send(now, &bytes) as u64;
        if our.written == len
            && world.ours.state() != StateName::Listen
            && world.ours.state() != StateName::SynSent
        {
            world.ours.shutdown(now);
        }
        let mut buffer = [0; 3000];
        while world.ours.readable() > 0 {
            let count = world.ours.read(now, &mut buffer);
            for got in &buffer[..count] {
                assert_eq!(*got, byte(!seed, our.read), "seed {seed}");
                our.read += 1;
            }
        }
        let socket = world.theirs.socket();
        if socket.may_send() {
            let bytes: Vec<u8> =
                (their.written..len.min(their.written + 5000)).map(|at| byte(!seed, at)).collect();
            their.written += socket.send_slice(&bytes).expect("it may send") as u64;
            if their.written == len {
                socket.close();
            }
        }
        while socket.can_recv() {
            let count = socket.recv_slice(&mut buffer).expect("it may receive");
            for got in &buffer[..count] {
                assert_eq!(*got, byte(seed, their.read), "seed {seed}");
                their.read += 1;
            }
        }
        if !world.step() {
            break;
        }
        assert!(world.count < 100_000, "seed {seed} does not end");
    }
    assert_eq!((our.read, their.read), (len, len), "seed {seed}");
    assert_eq!(world.ours.end(), Some(End::Closed), "seed {seed}");
    assert_eq!(world.theirs.socket().state(), State::Closed, "seed {seed}");
}

// Rule: Streams to and from smoltcp, in both roles. []
#[test]
fn streams_to_and_from_smoltcp_arrive_intact() {
    for seed in 0..60 {
        converse(seed, [0, 1, 2000, 100_000][seed as usize % 4], seed % 8 < 4);
    }
}
