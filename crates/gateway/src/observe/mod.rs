//! The observer: the flows of both arms, as the headers of their packets show them.
//!
//! ```text
//! kernel: log of headers ──> flows by addresses ──> rows ──> file
//!                                                       └──> evidence ──> harm: the gateway stops helping
//! ```
//!
//! What opens a flow comes from the rule by which the kernel has chosen its arm, with the arm's name. With a tunnel, the function
//! tells the arm by which the tunnel chooses it.

mod file;
mod track;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lasthop_wire::{IpPacket, Transport};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde_json::json;

use crate::arms::Arms;
use crate::config::Config;
use crate::counters::Counters;
use crate::flow::{Flow, Opening};
use crate::kernel::log::{Log, Logged, real_time_ns};
use crate::kernel::nftables::{HELPED_SYN, UNHELPED_SYN};
use crate::log;
use crate::policy::{Help, Policy};
use crate::report::rows::{Arm, End, FlowRow, Line, Settings};
use crate::report::{Evidence, OBSERVED_S};
use file::Rows;
use track::Track;

/// How long a flow is observed.
const OBSERVED: Duration = Duration::from_secs(OBSERVED_S as u64);

/// The largest number of flows that begin within the time of one observation and are observed. Further ones are not, of
/// either arm. This bounds the memory of the observer and of the evidence, where flows wait for others of their time.
const FLOWS: usize = 1 << 16;

/// The largest length of a packet that its header can state, of either version of IP.
const LARGEST_PACKET: usize = 40 + u16::MAX as usize;

/// How often it is looked what has ended.
const TICK_LENGTH: Duration = Duration::from_secs(1);
const TICK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The largest step of the real-time clock that does not make the times of flows worthless.
const STEP_NS: u64 = 100_000_000;

/// The evidence of a running gateway, for those who ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Evidence>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Evidence> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes sure that flows can be written, and read by root alone, if the file of a gateway says so.
pub(crate) fn check_file(config: &Config) -> io::Result<()> {
    config.gateway.flows.as_deref().map_or(Ok(()), Rows::prepare)
}

/// What the observer is told.
#[derive(Debug)]
enum Request {
    /// Use another file's settings, and begin anew; then answer.
    Reload(Box<Config>, Sender<()>),
    /// End at once.
    End,
}

/// The observer's thread.
#[derive(Debug)]
pub(crate) struct Observer {
    requests: Sender<Request>,
    bell: OwnedFd,
    evidence: Shared,
    thread: JoinHandle<()>,
}

impl Observer {
    /// Begins to observe what `log` reports. With `is_helping`, flows of the helped arm are helped.
    pub(crate) fn start(
        mut log: Log,
        config: &Config,
        is_helping: bool,
        evidence: Shared,
        counters: Arc<Counters>,
    ) -> io::Result<Observer> {
        let rows = config.gateway.flows.as_deref().map(Rows::open).transpose()?;
        if let Some(path) = &config.gateway.flows {
            *evidence.lock() = Evidence::read(path)?;
        }
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let rung = bell.try_clone()?;
        let (requests, received) = mpsc::channel();
        let mut flows = Flows {
            all: HashMap::new(),
            order: VecDeque::new(),
            policy: Policy::new(config),
            arms: Arms::of(config)?,
            config: config.clone(),
            clock: Clock::default(),
            next: 0,
            is_helping,
            rows,
            unwritten: None,
            evidence: evidence.clone(),
            counters,
        };
        flows.note(Line::Start(flows.settings()));
        let thread = thread::Builder::new().name(String::from("observer")).spawn(move || {
            if let Err(error) = flows.run(&mut log, &rung, &received) {
                log::event("observer has ended", json!({"error": error.to_string()}));
            }
        })?;
        Ok(Observer { requests, bell, evidence, thread })
    }

    /// Gives it the settings of a file that was read again. When this returns, a stop by harm is over.
    pub(crate) fn reload(&self, config: &Config) {
        let (done, answer) = mpsc::channel();
        let is_told = self.requests.send(Request::Reload(Box::new(config.clone()), done)).is_ok();
        self.ring();
        if !is_told || answer.recv().is_err() {
            // It has ended by an error, and what it found no longer counts.
            *self.evidence.lock() = Evidence::default();
        }
    }

    /// Ends it, so that a successor can observe.
    pub(crate) fn end(self) {
        let _ = self.requests.send(Request::End);
        self.ring();
        let _ = self.thread.join();
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

/// A flow with what was known when it opened.
#[derive(Clone, Debug)]
struct Observed {
    number: u64,
    began_s: f64,
    class: String,
    arm: Arm,
    unhelped: f64,
    coin: bool,
    track: Track,
}

/// The clock of flows: the kernel's stamps, less the steps by which the real-time clock was set.
#[derive(Clone, Copy, Debug)]
struct Clock {
    epoch: Instant,
    /// What the real-time clock is ahead of the time since `epoch`.
    offset_ns: u64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { epoch: Instant::now(), offset_ns: real_time_ns() }
    }
}

impl Clock {
    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    fn of_stamp(&self, stamp_ns: u64) -> u64 {
        stamp_ns.saturating_sub(self.offset_ns)
    }

    /// Follows the real-time clock. Returns whether it was set.
    fn follow(&mut self) -> bool {
        let offset_ns = real_time_ns().saturating_sub(self.now_ns());
        offset_ns.abs_diff(std::mem::replace(&mut self.offset_ns, offset_ns)) > STEP_NS
    }
}

/// All flows.
#[derive(Debug)]
struct Flows {
    all: HashMap<Flow, Observed>,
    /// Those that began within the time of one observation, in the order of their beginnings, with their numbers.
    order: VecDeque<(u64, Flow, u64)>,
    policy: Policy,
    /// Who chooses arms, if not the kernel.
    arms: Option<Arms>,
    config: Config,
    clock: Clock,
    next: u64,
    is_helping: bool,
    rows: Option<Rows>,
    /// Since when, or since which further attempt, rows could not be written.
    unwritten: Option<Instant>,
    evidence: Shared,
    counters: Arc<Counters>,
}

impl Flows {
    fn run(&mut self, log: &mut Log, bell: &OwnedFd, requests: &Receiver<Request>) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        let mut noted = Instant::now();
        loop {
            let mut ready = [PollFd::new(&*log, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
            match poll(&mut ready, Some(&TICK)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if ready[1].revents().contains(PollFlags::IN) {
                let _ = rustix::io::read(bell, &mut [0; 8]);
                while let Ok(request) = requests.try_recv() {
                    match request {
                        Request::End => return Ok(()),
                        Request::Reload(config, done) => {
                            self.policy = Policy::new(&config);
                            self.arms = Arms::of(&config)?;
                            self.config = *config;
                            self.note(Line::Reload(self.settings()));
                            // The gateway waits, unless it has ended.
                            let _ = done.send(());
                        }
                    }
                }
            }
            for _ in 0..256 {
                if !log.receive(&mut buffer, |logged| self.take(&logged))? {
                    break;
                }
            }
            if noted.elapsed() >= TICK_LENGTH {
                noted = Instant::now();
                self.tick();
            }
        }
    }

    /// Ends what has been observed for long enough, and looks for harm.
    fn tick(&mut self) {
        if self.clock.follow() {
            self.all.clear();
            self.order.clear();
            self.note(Line::Clock(self.settings()));
        }
        let now_ns = self.clock.now_ns();
        while let Some((began_ns, flow, number)) = self.order.front().copied() {
            if now_ns.saturating_sub(began_ns) < OBSERVED.as_nanos() as u64 {
                break;
            }
            self.order.pop_front();
            if self.all.get(&flow).is_some_and(|observed| observed.number == number) {
                self.finish(&flow);
            }
        }
        self.counters.watching.set(self.all.len() as u64);
        // The log has said why it cannot be.
        let _ = self.write_again();
        let shows_harm = {
            let mut evidence = self.evidence.lock();
            evidence.advance(seconds(real_time_ns()));
            evidence.shows_harm(self.config.gateway.harm_error.get())
        };
        if shows_harm {
            self.note(Line::Stop { time_s: seconds(real_time_ns()) });
            let verdict = self.evidence.lock().report().verdict;
            log::event("stopped by harm", json!({"verdict": verdict, "remedy": "reload to help again"}));
        }
    }

    /// What flows get.
    fn settings(&self) -> Settings {
        Settings {
            time_s: seconds(real_time_ns()),
            scheme: self.config.help(),
            is_helping: self.is_helping,
            keys: self.config.effects(),
        }
    }

    /// Adds a line to the evidence and to the file.
    fn note(&mut self, line: Line) {
        let stopped_s = {
            let mut evidence = self.evidence.lock();
            evidence.add(&line);
            evidence.stopped_s()
        };
        if let Some(rows) = &mut self.rows
            && let Err(error) = rows.append(&line, stopped_s)
        {
            self.counters.failures.one();
            log::event("flows are no longer written", json!({"error": error.to_string()}));
            self.rows = None;
            self.unwritten = Some(Instant::now());
        }
    }

    /// Tries again to write flows, some time after that failed, such as on a full disk.
    fn write_again(&mut self) -> io::Result<()> {
        const PAUSE: Duration = Duration::from_secs(60);
        let is_due = self.unwritten.is_some_and(|since| since.elapsed() >= PAUSE);
        let Some(path) = self.config.gateway.flows.as_deref().filter(|_| is_due) else { return Ok(()) };
        self.unwritten = Some(Instant::now());
        let stopped_s = self.evidence.lock().stopped_s();
        let mut rows = Rows::open(path)?;
        rows.append(&Line::Start(self.settings()), stopped_s)?;
        if let Some(time_s) = stopped_s {
            rows.append(&Line::Stop { time_s }, None)?;
        }
        (self.rows, self.unwritten) = (Some(rows), None);
        log::event("flows are written again", json!({}));
        Ok(())
    }

    /// Takes a packet that the kernel reports.
    fn take(&mut self, logged: &Logged<'_>) {
        if logged.lost > 0 {
            // Of each flow under way, what is missing may be data, or its end.
            self.counters.unreported.add(u64::from(logged.lost));
            self.all.clear();
        }
        match logged.prefix {
            HELPED_SYN => self.open(logged, Arm::Helped),
            UNHELPED_SYN => self.open(logged, Arm::Unhelped),
            _ => self.follow(logged),
        }
    }

    fn open(&mut self, logged: &Logged<'_>, arm: Arm) {
        let Some(opening) = Opening::parse(logged.bytes) else { return };
        if matches!(self.policy.help(&opening), Help::None(_)) {
            return;
        }
        let Flow { client, server } = opening.flow;
        let share = self.config.gateway.unhelped_permille();
        let arm = match &self.arms {
            Some(arms) if arms.is_unhelped([client, server], share as u16) => Arm::Unhelped,
            _ => arm,
        };
        let began_ns = self.clock.of_stamp(logged.at_ns);
        if let Some(known) = self.all.get(&opening.flow) {
            if known.track.may_resend(opening.seq) {
                return;
            }
            self.finish(&opening.flow);
        }
        if self.order.len() >= FLOWS {
            self.counters.unwatched.one();
            return;
        }
        self.counters.watched.one();
        let is_behind = self.config.radio_of(logged.interface).is_some();
        let mut coin = [0];
        // Without random numbers it is no fair one, and comparisons among unhelped flows mean nothing.
        let _ = rustix::rand::getrandom(&mut coin[..], rustix::rand::GetRandomFlags::empty());
        self.next += 1;
        self.order.push_back((began_ns, opening.flow, self.next));
        let observed = Observed {
            number: self.next,
            began_s: seconds(logged.at_ns),
            class: self.policy.class(&opening),
            arm,
            unhelped: f64::from(self.config.gateway.unhelped_permille()) / 1000.0,
            coin: coin[0] % 2 == 1,
            track: Track::new(began_ns, opening.seq, if is_behind { End::Client } else { End::Server }),
        };
        self.all.insert(opening.flow, observed);
    }

    fn follow(&mut self, logged: &Logged<'_>) {
        let packet = IpPacket::parse_captured(logged.bytes, LARGEST_PACKET);
        // What lies in a super-packet without a length, the next packet and the acknowledgements tell.
        let Some(packet) = packet.ok().filter(|packet| !packet.without_length) else { return };
        let Transport::Tcp(tcp) = &packet.transport else { return };
        let source = SocketAddr::new(packet.ip.src, tcp.header.src_port);
        let destination = SocketAddr::new(packet.ip.dst, tcp.header.dst_port);
        let forwards = Flow { client: source, server: destination };
        let backwards = Flow { client: destination, server: source };
        let (flow, from) = match self.all.contains_key(&forwards) {
            true => (forwards, End::Client),
            false => (backwards, End::Server),
        };
        let Some(observed) = self.all.get_mut(&flow) else { return };
        let now_ns = self.clock.of_stamp(logged.at_ns);
        match logged.is_leaving {
            true => observed.track.sent(from, tcp, now_ns),
            false => observed.track.received(from, tcp, now_ns),
        }
        if observed.track.has_ended() {
            self.finish(&flow);
        }
    }

    /// Ends the observation of a flow.
    fn finish(&mut self, flow: &Flow) {
        let Some(observed) = self.all.remove(flow) else { return };
        let now_ns = self.clock.now_ns();
        let Observed { began_s, class, arm, unhelped, coin, track, .. } = observed;
        let row = FlowRow {
            began_s,
            ended_s: seconds(real_time_ns()),
            client: flow.client,
            server: flow.server,
            class,
            arm,
            unhelped,
            coin,
            outcome: track.outcome(now_ns),
            first_byte_s: track.first_byte_ns().map(seconds),
            active_s: track.active_ns().map(seconds),
            bytes_to_client: track.delivered_to(End::Client),
            bytes_to_server: track.delivered_to(End::Server),
            behind: track.behind,
            wired_rtt_s: track.wired_rtt_ns().map(seconds),
            radio_rtt_s: track.radio_rtt_ns().map(seconds),
            sent_bytes: track.sent_bytes,
            retransmitted_bytes: track.retransmitted_bytes,
            repaired_bytes: track.repaired_bytes,
        };
        self.note(Line::Flow(Box::new(row)));
    }
}

/// Nanoseconds as seconds, to a microsecond.
fn seconds(nanos: u64) -> f64 {
    (nanos / 1000) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use lasthop_proto::tcp::{Flags, Segment, SeqNum};
    use lasthop_proto::{Dscp, Ecn};
    use lasthop_wire::{Ip, TcpHeader, write};

    use super::*;

    fn flows() -> Flows {
        let text = "[gateway]\nradio = [\"radio0\"]\nunhelped = 0.5";
        let config = Config::parse(text, "gateway.toml").unwrap_or_else(|error| panic!("{error}"));
        Flows {
            all: HashMap::new(),
            order: VecDeque::new(),
            policy: Policy::new(&config),
            arms: None,
            config,
            clock: Clock::default(),
            next: 0,
            is_helping: true,
            rows: None,
            unwritten: None,
            evidence: Shared::default(),
            counters: Arc::default(),
        }
    }

    /// A packet of the client with this number.
    fn packet(client: u32, flags: Flags) -> Vec<u8> {
        let [_, a, b, c] = client.to_be_bytes();
        let ip = Ip {
            src: [10, a, b, c].into(),
            dst: [192, 0, 2, 1].into(),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            hop_limit: 64,
            identification: 0,
            dont_fragment: true,
        };
        let segment = Segment { seq: SeqNum(5), flags, ..Segment::default() };
        let header = TcpHeader { segment, src_port: 1024, dst_port: 443, ..TcpHeader::default() };
        write::tcp(&ip, &header, &[]).expect("a packet")
    }

    fn logged<'a>(prefix: &'a str, bytes: &'a [u8]) -> Logged<'a> {
        Logged { prefix, is_leaving: false, interface: 0, at_ns: real_time_ns(), bytes, lost: 0 }
    }

    #[test]
    fn flows_that_end_at_once_take_no_more_memory_than_others() {
        let mut flows = flows();
        for client in 0..FLOWS as u32 + 10 {
            flows.take(&logged(HELPED_SYN, &packet(client, Flags::SYN)));
            flows.take(&logged("", &packet(client, Flags::RST)));
        }
        flows.tick();
        assert_eq!((flows.all.len(), flows.order.len()), (0, FLOWS));
        assert_eq!((flows.counters.watched.get(), flows.counters.unwatched.get()), (FLOWS as u64, 10));
    }

    #[test]
    fn flows_are_written_again_when_the_disk_has_room() {
        let path = std::env::temp_dir().join(format!("lasthop-full-{}.jsonl", std::process::id()));
        std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
        let mut flows = flows();
        flows.rows = Some(Rows::open(&path).expect("a file"));
        flows.config.gateway.flows = Some(path.clone());
        flows.note(Line::Clock(flows.settings()));
        assert_eq!((flows.rows.is_some(), flows.counters.failures.get()), (false, 1));
        let mut written = |is_due: bool| {
            if is_due {
                flows.unwritten = Instant::now().checked_sub(Duration::from_secs(60));
            }
            flows.tick();
            flows.rows.is_some()
        };
        assert_eq!([written(true), written(false)], [false; 2]);
        std::fs::remove_file(&path).expect("a link");
        assert_eq!([written(false), written(true)], [false, true]);
        let text = std::fs::read_to_string(&path).expect("a file");
        assert!(matches!(serde_json::from_str(&text), Ok(Line::Start(_))), "{text}");
        std::fs::remove_file(&path).expect("a file");
    }

    #[test]
    fn flows_of_which_reports_were_lost_are_left_out() {
        let mut flows = flows();
        flows.take(&logged(HELPED_SYN, &packet(1, Flags::SYN)));
        flows.take(&Logged { lost: 3, ..logged(HELPED_SYN, &packet(2, Flags::SYN)) });
        assert_eq!((flows.all.len(), flows.counters.unreported.get()), (1, 3));
        for client in [1, 2] {
            flows.take(&logged("", &packet(client, Flags::RST)));
        }
        let evidence = flows.evidence.lock();
        let clients: Vec<_> = evidence.latest().map(|row| row.client.ip().to_string()).collect();
        assert_eq!(clients, ["10.0.0.2"]);
    }
}
