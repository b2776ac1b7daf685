//! Split connections between sockets of this host, beside a model of what each end must see.
//!
//! The model: an end reads what the other one has written, byte for byte and in order; an end of its data after all of them, if
//! the other one has ended its direction, and then only; a reset if the other one has reset, and then only. What is not read stops
//! who writes. A world counts only together with the others: each named event must have happened.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use lasthop_base::{Stream, Streams};

use super::*;

/// Bytes between the two parts, and in the buffers of each socket, as far as the kernel goes.
const BUFFER: usize = 64 << 10;

/// What an end does of itself, and what it has seen.
#[derive(Debug, Default)]
struct End {
    socket: Option<TcpStream>,
    written: u64,
    has_ended: bool,
    has_reset: bool,
    read: u64,
    saw_end: bool,
    saw_reset: bool,
    /// Whether the other end has reset before this one had ended, and so before all was over.
    must_see_reset: bool,
}

#[derive(Debug)]
struct Conversation {
    key: u64,
    ends: [End; 2],
}

fn byte(key: u64, end: usize, at: u64) -> u8 {
    ((at ^ key << 33 ^ (end as u64) << 63).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

struct World {
    draw: Stream,
    listener: TcpListener,
    connections: Connections,
    conversations: Vec<Conversation>,
    events: BTreeMap<&'static str, u64>,
    next: u64,
}

impl World {
    fn new(draw: Stream) -> World {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
        let inbox = Arc::new(Inbox { mail: Mutex::default(), bell, load: AtomicUsize::new(0) });
        World {
            draw,
            listener: TcpListener::bind("127.0.0.1:0").expect("a port"),
            connections: Connections::new(inbox, BUFFER, Arc::default()).expect("an epoll"),
            conversations: Vec::new(),
            events: BTreeMap::new(),
            next: 0,
        }
    }

    fn count(&mut self, event: &'static str) {
        *self.events.entry(event).or_default() += 1;
    }

    /// Two ends of a connection.
    fn pair(&self) -> [TcpStream; 2] {
        let one = TcpStream::connect(self.listener.local_addr().expect("a port")).expect("a connection");
        let (other, _) = self.listener.accept().expect("a connection");
        [one, other].map(|stream| {
            stream.set_nonblocking(true).expect("a socket");
            sockopt::set_socket_send_buffer_size(&stream, BUFFER).expect("a socket");
            sockopt::set_socket_recv_buffer_size(&stream, BUFFER).expect("a socket");
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket");
            stream
        })
    }

    fn open(&mut self) {
        let ([client, own_client], [server, own_server]) = (self.pair(), self.pair());
        let is_reused = !self.connections.free.is_empty();
        let split = Split { client: own_client.into(), server: own_server.into() };
        self.connections.inbox.load.fetch_add(1, Ordering::Relaxed);
        self.connections.counters.open.one();
        self.connections.inbox.mail.lock().expect("no panic").splits.push(split);
        rustix::io::write(&self.connections.inbox.bell, &1u64.to_ne_bytes()).expect("it rings");
        let ends = [client, server].map(|socket| End { socket: Some(socket), ..End::default() });
        self.next += 1;
        self.conversations.push(Conversation { key: self.next, ends });
        self.count(if is_reused { "opened in the place of another" } else { "opened" });
    }

    /// Lets the splits do what they can.
    fn work(&mut self) {
        let mut events = Vec::with_capacity(64);
        loop {
            self.connections.turn(&mut events, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("an epoll");
            if events.is_empty() && self.connections.ready.is_empty() {
                return;
            }
        }
    }

    /// Writes until that is stopped, since the other end does not read.
    fn fill(&mut self, index: usize, end: usize) {
        // Far more than the buffers of four sockets and a pipe have.
        const MOST: u64 = 64 << 20;
        let stops = "stopped by who does not read";
        let (before, stopped) =
            (self.conversations[index].ends[end].written, self.events.get(stops).copied());
        loop {
            let written = self.conversations[index].ends[end].written;
            self.write(index, end, 120_000);
            self.work();
            let now = &self.conversations[index].ends[end];
            if self.events.get(stops).copied() != stopped || now.saw_reset || now.written == written {
                return;
            }
            assert!(written - before < MOST, "it takes what nobody reads");
        }
    }

    fn write(&mut self, index: usize, end: usize, len: u64) {
        let conversation = &mut self.conversations[index];
        let key = conversation.key;
        let peer_has_ended = conversation.ends[1 - end].has_ended;
        let End { socket: Some(socket), written, has_ended: false, .. } = &mut conversation.ends[end] else {
            return;
        };
        let data: Vec<u8> = (*written..*written + len).map(|at| byte(key, end, at)).collect();
        match socket.write(&data) {
            Ok(taken) => {
                *written += taken as u64;
                if peer_has_ended {
                    self.count("data after the end of the other direction");
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.count("stopped by who does not read"),
            Err(_) => self.expect_reset(index, end),
        }
    }

    fn read(&mut self, index: usize, end: usize, len: usize) {
        let conversation = &mut self.conversations[index];
        let (key, [client, server]) = (conversation.key, &mut conversation.ends);
        let (own, other) = if end == 0 { (client, server) } else { (server, client) };
        let Some(socket) = own.socket.as_mut().filter(|_| !own.saw_end && !own.saw_reset) else { return };
        let mut buffer = vec![0; len.max(1)];
        match socket.read(&mut buffer) {
            Ok(0) => {
                assert!(other.has_ended, "an end that the other one has not made");
                assert_eq!(own.read, other.written, "an end before all data");
                own.saw_end = true;
                self.count("an end was carried over");
            }
            Ok(len) => {
                for got in &buffer[..len] {
                    assert_eq!(*got, byte(key, 1 - end, own.read), "at {}", own.read);
                    own.read += 1;
                }
                assert!(own.read <= other.written);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.expect_reset(index, end),
        }
    }

    fn expect_reset(&mut self, index: usize, end: usize) {
        let [own, other] = [end, 1 - end].map(|end| &self.conversations[index].ends[end]);
        assert!(other.has_reset, "a reset that the other one has not sent");
        if !own.saw_reset {
            let own = &mut self.conversations[index].ends[end];
            own.saw_reset = true;
            let event = match own.saw_end {
                true => "a reset after an end was carried over",
                false => "a reset was carried over",
            };
            self.count(event);
        }
    }

    /// After the end of the data, reads do not tell of a reset.
    fn look_for_reset(&mut self, index: usize, end: usize) {
        let own = &self.conversations[index].ends[end];
        let Some(socket) = own.socket.as_ref().filter(|_| own.saw_end && !own.saw_reset) else { return };
        if socket.take_error().expect("a socket").is_some() {
            self.expect_reset(index, end);
        }
    }

    fn end(&mut self, index: usize, end: usize) {
        let own = &mut self.conversations[index].ends[end];
        if let Some(socket) = own.socket.as_ref().filter(|_| !own.has_ended && !own.saw_reset) {
            // An end that was reset, and does not know it yet, cannot.
            own.has_ended = socket.shutdown(Shutdown::Write).is_ok();
            if own.has_ended {
                self.count("a direction was ended");
            }
        }
    }

    fn reset(&mut self, index: usize, end: usize) {
        let [client, server] = &mut self.conversations[index].ends;
        let (own, other) = if end == 0 { (client, server) } else { (server, client) };
        if own.socket.is_some() && other.socket.is_some() {
            let under_way = own.written > other.read;
            (own.socket, own.has_reset) = (None, true);
            other.must_see_reset = !other.has_ended;
            self.count(if under_way { "reset with data under way" } else { "reset" });
        }
    }

    fn step(&mut self) {
        let index = self.draw.below(self.conversations.len().max(1) as u64) as usize;
        let (end, len) = (self.draw.below(2) as usize, self.draw.below(120_000));
        match self.draw.below(100) {
            _ if self.conversations.is_empty() => self.open(),
            0..=5 if self.conversations.len() < 12 => self.open(),
            6..=49 => self.write(index, end, len),
            50..=90 => self.read(index, end, len as usize),
            91..=94 => self.end(index, end),
            95 => self.reset(index, end),
            96 => self.fill(index, end),
            97 => {
                // Mostly, the other one then has read all, and its end.
                self.end(index, end);
                for _ in 0..20 {
                    self.work();
                    self.read(index, 1 - end, 60_000);
                }
                self.reset(index, end);
            }
            _ => self.finish(index),
        }
        self.work();
    }

    /// Brings a conversation to its end, which must be the one of the model.
    fn finish(&mut self, index: usize) {
        let end = Instant::now() + Duration::from_secs(10);
        for side in 0..2 {
            let own = &mut self.conversations[index].ends[side];
            if let Some(socket) = own.socket.as_ref().filter(|_| !own.has_ended) {
                own.has_ended = socket.shutdown(Shutdown::Write).is_ok();
            }
        }
        loop {
            self.work();
            (0..2).for_each(|side| self.read(index, side, 60_000));
            (0..2).for_each(|side| self.look_for_reset(index, side));
            let is_over =
                |side: &End| side.socket.is_none() || side.saw_reset || side.saw_end && !side.must_see_reset;
            if self.conversations[index].ends.iter().all(is_over) {
                break;
            }
            assert!(Instant::now() < end, "{:?}", self.conversations[index]);
        }
        let conversation = self.conversations.swap_remove(index);
        if conversation.ends.iter().all(|end| end.saw_end) {
            self.count("closed in order");
        }
    }
}

#[test]
fn each_end_sees_what_the_other_one_does() {
    let worlds = std::env::var("LASTHOP_SPLIT_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    let mut events: BTreeMap<&'static str, u64> = BTreeMap::new();
    for number in 0..worlds {
        let mut world = World::new(Streams::new(31, number).stream("splits"));
        (0..600).for_each(|_| world.step());
        while !world.conversations.is_empty() {
            world.finish(0);
        }
        world.work();
        let counters = &world.connections.counters;
        let [open, reset, closed] =
            [&counters.open, &counters.reset, &counters.closed].map(|each| each.get());
        assert_eq!((open, reset + closed), (0, world.next), "{reset} {closed}");
        assert_eq!(world.connections.free.len(), world.connections.all.len());
        for (event, times) in world.events {
            *events.entry(event).or_default() += times;
        }
    }
    println!("{events:?}");
    for event in [
        "a direction was ended",
        "a reset after an end was carried over",
        "a reset was carried over",
        "an end was carried over",
        "closed in order",
        "data after the end of the other direction",
        "opened",
        "opened in the place of another",
        "reset",
        "reset with data under way",
        "stopped by who does not read",
    ] {
        assert!(events.get(event).is_some_and(|times| *times >= (worlds / 2).max(1)), "{event}: {events:?}");
    }
}
