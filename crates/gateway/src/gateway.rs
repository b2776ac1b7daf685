//! The gateway: one thread that opens connections, and workers that carry their data.

mod firewall;
mod reload;
mod succession;
mod syn;
mod upkeep;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use nix::sys::socket::SockProtocol;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use serde_json::json;

use crate::agents::{Agents, Refusal};
use crate::arms::Arms;
use crate::config::Config;
use crate::counters::Counters;
use crate::doors::{Doors, Way};
use crate::flow::Flow;
use crate::kernel::Marks;
use crate::kernel::heartbeat::{BY_GATEWAY, Heartbeat};
use crate::kernel::netlink::Netlink;
use crate::kernel::nftables::{self, Rules};
use crate::kernel::queue::{Held, Queue, Verdict};
use crate::kernel::socket;
use crate::log;
use crate::notify::Manager;
use crate::observe::{Observer, Shared};
use crate::openings::{Full, Opening, Openings, Stage};
use crate::policy::{Help, Policy, Reason};
use crate::setup::{
    Listener, Side, bypass_fault, inherited_listeners, observer_of, open_listeners, random_seed, routes_of,
    rules_of,
};
use crate::shaper::{Shaped, Shaper};
use crate::split::Split;
use crate::split::worker::Worker;
use crate::tunnel::{Board, Tunnel};
use syn::Syn;
use upkeep::Upkeep;

/// What the kernel keeps for the gateway, and a successor takes over.
#[derive(Debug)]
pub(crate) struct Inheritance {
    /// The owner of the rules.
    pub(crate) rules: OwnedFd,
    /// The queue of opening connections.
    pub(crate) queue: OwnedFd,
    /// In the order in which they were made.
    pub(crate) listeners: Vec<OwnedFd>,
    /// The key of the hash that chooses the flows to leave alone, so that they stay the same ones.
    pub(crate) seed: u32,
    /// When it was asked for: the former owner's heartbeats have gone on at least until then.
    pub(crate) asked: Instant,
}

/// What the gateway is told while it runs.
#[derive(Debug)]
pub(crate) enum Command {
    /// Use another file's settings.
    Reload(Box<Config>, mpsc::Sender<io::Result<()>>),
    /// Give everything to a successor, and once it is told that the successor has it, carry the established connections to
    /// their end. If it is not told, go on.
    HandOver(mpsc::Sender<io::Result<Inheritance>>, Receiver<()>),
    /// End at once.
    Stop,
}

/// Numbers of events: those of openings follow.
const QUEUE: u64 = 0;
const COMMANDS: u64 = 1;
const LISTENERS: u64 = 2;
const OPENINGS: u64 = 16;

/// The gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    config: Config,
    policy: Policy,
    marks: Marks,
    rules: Netlink,
    /// Those that the kernel has from this process, as far as it knows.
    installed: Option<Rules>,
    seed: u32,
    queue: Queue,
    /// For what is read from the queue.
    buffer: Vec<u8>,
    listeners: Vec<Listener>,
    /// The radios that have the kernel's numbers of interfaces, if any, as of the last second.
    interfaces: HashMap<u32, Option<usize>>,
    openings: Openings,
    doors: Doors,
    /// Whether splits bypass no firewall, or may.
    may_split: bool,
    workers: Vec<Worker>,
    /// `None` if no flow may have agents.
    agents: Option<Agents>,
    tunnel: Option<Tunnel>,
    shaper: Option<Shaper>,
    /// Who chooses the flows that are left alone, if that is not the kernel.
    arms: Option<Arms>,
    counters: Arc<Counters>,
    epoll: OwnedFd,
    commands: Receiver<Command>,
    bell: OwnedFd,
    is_observing: bool,
    /// Whether harm was found is known here alone.
    evidence: Shared,
    board: Board,
    shaped: Shaped,
    observer: Option<Observer>,
    room: Room,
    upkeep: Upkeep,
    heartbeat: Heartbeat<UdpSocket>,
}

/// What the process has room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// The connections for which it has descriptors.
    pub(crate) connections: u32,
    /// The threads that carry data.
    pub(crate) threads: usize,
}

/// Why the gateway's first thread has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was told to.
    Stopped,
    /// A successor has taken over.
    HandedOver,
}

impl Gateway {
    /// Sets everything up: from then on connections are split. While observing, all flows are left alone. No more
    /// connections are split than there is room for, whatever the file says.
    ///
    /// `bell` is an eventfd that rings when there are commands.
    pub(crate) fn start(
        config: Config,
        inheritance: Option<Inheritance>,
        is_observing: bool,
        room: Room,
        (counters, evidence, board, shaped): (Arc<Counters>, Shared, Board, Shaped),
        (commands, bell): (Receiver<Command>, OwnedFd),
    ) -> io::Result<Gateway> {
        if let Some(fault) = bypass_fault(&config).filter(|_| !is_observing) {
            return Err(io::Error::other(fault));
        }
        let marks = Marks::new(config.gateway.mark_bit);
        let number = config.gateway.number;
        let has_predecessor = inheritance.is_some();
        let (rules, queue, listeners, seed, beaten) = match inheritance {
            Some(Inheritance { rules, queue, listeners, seed, asked }) => (
                Netlink::from(rules),
                Queue::inherited(queue, number),
                inherited_listeners(listeners, &config)?,
                seed,
                asked,
            ),
            None => {
                let rules = Netlink::open(SockProtocol::NetlinkNetFilter)?;
                let queue = Queue::open(number, config.gateway.opening)?;
                (rules, queue, open_listeners(&config, marks)?, random_seed()?, Instant::now())
            }
        };
        routes_of(&config).install()?;
        let observer = observer_of(&config, is_observing, &evidence, &counters)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &queue, EventData::new_u64(QUEUE), EventFlags::IN)?;
        epoll::add(&epoll, &bell, EventData::new_u64(COMMANDS), EventFlags::IN)?;
        for (index, listener) in listeners.iter().enumerate() {
            epoll::add(
                &epoll,
                &listener.socket,
                EventData::new_u64(LISTENERS + index as u64),
                EventFlags::IN,
            )?;
        }
        let limits = &config.gateway;
        let hold = Duration::from_nanos(limits.hold.as_nanos());
        let openings = Openings::new(OPENINGS, limits.opening, limits.opening_per_host, hold);
        let mut gateway = Gateway {
            policy: Policy::new(&config),
            marks,
            rules,
            installed: None,
            seed,
            queue,
            buffer: vec![0; 1 << 16],
            listeners,
            interfaces: HashMap::new(),
            openings,
            doors: Doors::new(firewall::has_firewall()),
            may_split: true,
            workers: Vec::new(),
            agents: None,
            tunnel: None,
            shaper: None,
            arms: Arms::of(&config)?,
            counters,
            epoll,
            commands,
            bell,
            is_observing,
            evidence,
            board,
            shaped,
            observer,
            room,
            upkeep: Upkeep::new(),
            heartbeat: Heartbeat::new(marks, BY_GATEWAY, beaten)?,
            config,
        };
        // Without its predecessor, others rely on this one.
        gateway.agents = if has_predecessor { gateway.agents_if_possible() } else { gateway.new_agents()? };
        gateway.tunnel = gateway.new_tunnel()?;
        gateway.shaper = gateway.new_shaper()?;
        gateway.configure()?;
        Ok(gateway)
    }

    /// The agents of the file's settings, if it has any.
    fn new_agents(&self) -> io::Result<Option<Agents>> {
        let has_agents = self.config.has_agents() && !self.is_observing;
        has_agents.then(|| Agents::start(&self.config, self.marks, &self.counters)).transpose()
    }

    /// The tunnel of the file's settings, if it has one.
    fn new_tunnel(&self) -> io::Result<Option<Tunnel>> {
        match self.is_observing {
            true => Ok(None),
            false => Tunnel::start(&self.config, &self.evidence, &self.board),
        }
    }

    /// The queues before the radios, if the file has any.
    fn new_shaper(&self) -> io::Result<Option<Shaper>> {
        if self.is_observing { Ok(None) } else { Shaper::start(&self.config, &self.shaped) }
    }

    /// The agents, unless they cannot start: the gateway then goes on without.
    fn agents_if_possible(&self) -> Option<Agents> {
        self.new_agents().unwrap_or_else(|error| {
            self.counters.failures.one();
            let meaning = "flows go on without agents; reload the file to try again";
            log::event("agents have failed", json!({"error": error.to_string(), "meaning": meaning}));
            None
        })
    }

    /// Gives the kernel the rules of the file and its settings of TCP.
    fn configure(&mut self) -> io::Result<()> {
        for listener in &self.listeners {
            socket::configure(&listener.socket, listener.is_ipv4, &listener.side.tcp(&self.config))?;
        }
        if self.upkeep.has_rules() {
            // If this process has stood still, it goes on from here.
            self.beat()?;
            self.count(Instant::now())?;
        }
        let is_observed = self.observer.is_some();
        let rules = rules_of(&self.config, self.seed, is_observed, self.is_observing);
        if self.installed.as_ref() != Some(&rules) {
            // The kernel drops what it holds for rules that are replaced. After a successor has left, clients ask again.
            if self.installed.is_some() {
                for opening in self.openings.take_connecting() {
                    self.counters.passed_by_reload.one();
                    self.release(opening)?;
                }
                let passed = self.pass_held()?;
                self.counters.passed_by_reload.add(passed);
            }
            rules.install(&mut self.rules)?;
            self.installed = Some(rules);
            self.count_anew();
        }
        self.beat()
    }

    /// Works until it is told to end, and tells the service manager that it does.
    pub(crate) fn run(&mut self, manager: &Manager) -> io::Result<End> {
        let buffer = self.config.scheme.i_tcp.buffer.0 as usize;
        for number in 0..self.room.threads {
            self.workers.push(Worker::start(number, buffer, Arc::clone(&self.counters))?);
        }
        let mut events: Vec<Event> = Vec::with_capacity(256);
        loop {
            let next = self.upkeep.next.min(self.heartbeat.next());
            let next = self.openings.next_deadline().map_or(next, |deadline| deadline.min(next));
            let wait = next.saturating_duration_since(Instant::now());
            let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let now = Instant::now();
            if now >= self.heartbeat.next() {
                self.beat()?;
            }
            for event in &events {
                match event.data.u64() {
                    QUEUE => {
                        self.read_queue(now)?;
                    }
                    COMMANDS => {
                        if let Some(end) = self.obey()? {
                            return Ok(end);
                        }
                    }
                    number if number < OPENINGS => self.accept((number - LISTENERS) as usize, now),
                    number => self.connected(number, now)?,
                }
            }
            while let Some(opening) = self.openings.expire(now) {
                self.give_up(opening)?;
            }
            self.counters.opening.set(self.openings.len() as u64);
            self.look(now, manager)?;
        }
    }

    /// Reads SYNs that the kernel holds. Returns whether these were all.
    fn read_queue(&mut self, now: Instant) -> io::Result<bool> {
        let (mut held, mut more) = (Vec::new(), true);
        // No more at a time than would keep clients waiting whose servers have answered.
        for _ in 0..64 {
            let each = |packet: Held<'_>| held.push((packet.id, packet.mark, Syn::of(&packet)));
            more = self.queue.receive(&mut self.buffer, each)?;
            if !more {
                break;
            }
        }
        self.upkeep.read(held.len() as u64);
        for (id, mark, syn) in held {
            let verdict = match syn {
                // Its client may have asked again, and reached the server.
                _ if self.heartbeat.pause(Instant::now()).is_some() => {
                    self.counters.passed_by_stall.one();
                    Some(Verdict::Pass(mark))
                }
                Some(syn) => self.open(&syn, now),
                None => Some(Verdict::Pass(mark)),
            };
            if let Some(verdict) = verdict {
                self.queue.decide(id, verdict)?;
            }
        }
        Ok(!more)
    }

    /// Begins to open a flow. Returns what becomes of its SYN, if that is known at once and was not told already.
    fn open(&mut self, syn: &Syn, now: Instant) -> Option<Verdict> {
        let Syn { id, mark, interface, opening, .. } = syn;
        let (id, mark) = (*id, *mark);
        let pass = Some(Verdict::Pass(mark));
        let side = self.side_of(*interface);
        let door = (side, opening.flow.server.is_ipv4(), opening.flow.server.port());
        match self.openings.find(&opening.flow) {
            // One such SYN is held already.
            Some((_, Stage::Connecting { .. })) => return Some(Verdict::Drop),
            Some((number, Stage::Answering)) => match self.way(door, syn, now) {
                Way::Open => {
                    let repeats = self.openings.repeated(number);
                    self.answer_again(door, (id, mark), repeats, now);
                    return None;
                }
                Way::Trial => return None,
                Way::Closed => {
                    self.openings.remove(number);
                    self.counters.passed_by_firewall.one();
                    return pass;
                }
            },
            None => self.counters.flows.one(),
        }
        let help = self.policy.help(opening);
        let Flow { client, server } = opening.flow;
        let share = self.config.gateway.unhelped_permille() as u16;
        match help {
            _ if self.arms.as_ref().is_some_and(|arms| arms.is_unhelped([client, server], share)) => {
                self.counters.unhelped.one();
                return pass;
            }
            Help::None(Reason::Rule) => {
                self.counters.passed_by_rule.one();
                return pass;
            }
            Help::None(Reason::Obstacle) => {
                self.counters.passed_by_obstacle.one();
                return pass;
            }
            _ if self.is_observing => {
                self.counters.observed.one();
                return pass;
            }
            _ if self.evidence.lock().stopped_s().is_some() => {
                self.counters.passed_by_harm.one();
                return pass;
            }
            Help::Tunnel => {
                self.counters.tunnelled.one();
                return pass;
            }
            Help::Agents(scheme) => {
                let mark = self.give_agents(syn, scheme, now);
                return Some(Verdict::Pass(mark));
            }
            Help::Split if !self.may_split => {
                self.counters.passed_by_firewall.one();
                return pass;
            }
            Help::Split => {}
        }
        let most = self.config.gateway.connections.min(self.room.connections);
        let is_full = self.counters.open.get() + self.openings.len() as u64 >= u64::from(most);
        match self.openings.admit(&opening.flow, now) {
            Err(Full::Silent) => {
                self.counters.passed_by_silence.one();
                return pass;
            }
            Err(Full::Limit) => {
                self.counters.passed_by_limit.one();
                return pass;
            }
            Ok(()) if is_full => {
                self.counters.passed_by_limit.one();
                return pass;
            }
            Ok(()) => {}
        }
        match self.way(door, syn, now) {
            Way::Open => {}
            Way::Trial => return None,
            Way::Closed => {
                self.counters.passed_by_firewall.one();
                return pass;
            }
        }
        let tcp = side.other().tcp(&self.config);
        match socket::connect(client, server, opening.dscp, self.marks.to_server(), &tcp) {
            Ok(socket) => {
                let number = self.openings.add(opening.flow, socket, id, mark, now);
                let opening = self.openings.get(number)?;
                if epoll::add(&self.epoll, &opening.server, EventData::new_u64(number), EventFlags::OUT)
                    .is_err()
                {
                    self.openings.remove(number);
                    self.counters.failures.one();
                    return pass;
                }
                None
            }
            Err(error) => {
                match error.kind() {
                    io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                        self.counters.refused.one()
                    }
                    _ => self.counters.failures.one(),
                }
                pass
            }
        }
    }

    /// Lets a flow have agents; returns the mark of the packet that opens it.
    fn give_agents(&mut self, syn: &Syn, scheme: usize, now: Instant) -> u32 {
        let &Syn { mark, interface, ref opening, .. } = syn;
        // Agents are before radios, and not before the tunnel.
        let radio = self.radio_of(interface);
        if radio.is_some_and(|radio| radio >= self.config.gateway.radio.len()) {
            self.counters.passed_by_rule.one();
            return mark;
        }
        let admitted = self.agents.as_ref().map(|agents| agents.admit(opening, scheme, radio, now));
        match admitted {
            Some(Ok(())) if radio.is_none() => mark & !self.marks.mask() | self.marks.for_agents(),
            Some(Ok(())) => mark,
            Some(Err(Refusal::Limit)) => {
                self.counters.passed_by_limit.one();
                mark
            }
            Some(Err(Refusal::Failure)) | None => {
                self.counters.failures.one();
                mark
            }
        }
    }

    /// The radio, by its place in the file, that has this number of an interface.
    fn radio_of(&mut self, interface: u32) -> Option<usize> {
        *self.interfaces.entry(interface).or_insert_with(|| self.config.radio_of(interface))
    }

    /// The side from which a packet came.
    fn side_of(&mut self, interface: u32) -> Side {
        if self.radio_of(interface).is_some() { Side::Radio } else { Side::Wired }
    }

    /// The mark of a SYN that goes to the listener.
    fn to_listener(&self, mark: u32) -> u32 {
        mark & !self.marks.mask() | self.marks.local()
    }

    /// Lets the SYN with this mark come to the listener, which answers it.
    fn answer(&mut self, mark: u32) -> Verdict {
        self.upkeep.told(1);
        Verdict::Pass(self.to_listener(mark))
    }

    /// A server has answered or refused.
    fn connected(&mut self, number: u64, now: Instant) -> io::Result<()> {
        let Some(opening) = self.openings.get(number) else { return Ok(()) };
        let Stage::Connecting { held, mark } = opening.stage else { return Ok(()) };
        let is_open = socket::outcome(&opening.server).is_ok();
        if is_open {
            // Until the connection has a worker, its data wait in the socket.
            epoll::delete(&self.epoll, &opening.server)?;
            self.openings.answered(number, now);
            let verdict = self.answer(mark);
            return self.queue.decide(held, verdict);
        }
        self.counters.refused.one();
        self.openings.remove(number);
        self.queue.decide(held, Verdict::Pass(mark))
    }

    /// The time of an opening is over.
    fn give_up(&mut self, opening: Opening) -> io::Result<()> {
        match opening.stage {
            Stage::Connecting { .. } => self.counters.passed_by_silence.one(),
            Stage::Answering => self.counters.abandoned.one(),
        }
        self.release(opening)
    }

    /// Closes the part towards the server, and lets the client's SYN pass if it is still held.
    fn release(&mut self, Opening { server, stage, .. }: Opening) -> io::Result<()> {
        // Closed first, so that the server's late answer is the client's.
        drop(server);
        match stage {
            Stage::Connecting { held, mark } => self.queue.decide(held, Verdict::Pass(mark)),
            Stage::Answering => Ok(()),
        }
    }

    /// Accepts the clients that have completed the handshake.
    fn accept(&mut self, index: usize, now: Instant) {
        while let Some(listener) = self.listeners.get(index) {
            let (client, address) = match socket::accept(&listener.socket) {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => continue,
                    _ => {
                        self.counters.failures.one();
                        return;
                    }
                },
            };
            let flow = rustix::net::getsockname(&client)
                .and_then(SocketAddr::try_from)
                .map(|server| Flow { client: address, server });
            let found = flow.ok().and_then(|flow| self.openings.find(&flow));
            // Without its other part, the connection is reset when it is dropped here.
            let Some((number, Stage::Answering)) = found else { continue };
            let Some(opening) = self.openings.remove(number) else { continue };
            let door = (listener.side, listener.is_ipv4, opening.server_port());
            self.note_heard(door, now);
            let Some(worker) = self.workers.iter().min_by_key(|worker| worker.load()) else { continue };
            self.counters.split.one();
            self.counters.open.one();
            worker.give(Split { client, server: opening.server });
        }
    }

    /// Does what it is told. Returns why it ends, if it does.
    fn obey(&mut self) -> io::Result<Option<End>> {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Stop => return Ok(Some(End::Stopped)),
                Command::Reload(config, reply) => {
                    // Whoever asked may be gone.
                    let _ = reply.send(self.reload(*config));
                }
                Command::HandOver(reply, given) => {
                    let _ = reply.send(self.bequeath());
                    if given.recv().is_ok() {
                        return Ok(Some(End::HandedOver));
                    }
                    self.resume()?;
                }
            }
        }
        Ok(None)
    }

    /// Removes the rules and the routes. Split connections end with the process.
    pub(crate) fn remove(mut self) -> io::Result<()> {
        (self.agents, self.tunnel, self.shaper) = (None, None, None);
        nftables::remove(&mut self.rules)?;
        routes_of(&self.config).remove()
    }
}
