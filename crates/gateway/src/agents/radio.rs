//! The thread of one radio: its bump, its set of flows, and its interface, which may go and come.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lasthop_base::{BitRate, Duration, Streams};
use lasthop_live::Interface;
use lasthop_live::bump::{Admission, Admitted, BumpCounters, BumpDriver, FirstPacket, RadioFlow};
use lasthop_proto::scheme::{LinkEnd, Schemes, Site};
use lasthop_proto::tcp::SeqNum;
use nix::sys::socket::SockProtocol;
use serde_json::json;

use super::{Shared, lock};
use crate::config::AGENTS;
use crate::kernel::Marks;
use crate::kernel::heartbeat::Heartbeat;
use crate::kernel::links::{Link, Pair};
use crate::kernel::netlink::Netlink;
use crate::kernel::nftables::{self, Rules};
use crate::log;

/// How often interfaces are looked for, and counters are told.
const TICK: Duration = Duration::from_secs(1);

/// The rate of a radio of which nothing is known, for agents that ask how long a packet takes at least.
const UNKNOWN_RATE: u64 = 100_000_000_000;

/// One radio.
pub(super) struct Radio {
    number: usize,
    name: String,
    marks: Marks,
    /// The largest number of flows in the set.
    size: u32,
    schemes: Schemes,
    pair: Pair,
    /// The number of the pair's outer end, 0 if the pair is to be made anew.
    outer: u32,
    driver: Option<BumpDriver>,
    /// While flows are diverted.
    heartbeat: Option<Heartbeat<Interface>>,
    /// The number of the radio's interface, 0 while it is not there, or nothing is diverted.
    index: u32,
    /// Whether something has failed, and nothing is diverted until it works again.
    has_failed: bool,
    /// What was told of its counters.
    counted: BumpCounters,
    shared: Arc<Shared>,
}

impl Radio {
    /// Makes the pair of interfaces.
    ///
    /// # Errors
    /// If another gateway has agents at this radio, or the kernel makes no such pair.
    pub(super) fn new(
        number: usize,
        name: &str,
        marks: Marks,
        size: u32,
        schemes: Schemes,
        shared: Arc<Shared>,
    ) -> io::Result<Radio> {
        let pair = Pair::of(number);
        // Before it could take away the pair of another gateway.
        nftables::claim_diversion(&mut Netlink::open(SockProtocol::NetlinkNetFilter)?, number)?;
        let outer = pair.make()?;
        Ok(Radio {
            number,
            name: name.to_owned(),
            marks,
            size,
            schemes,
            pair,
            outer,
            driver: None,
            heartbeat: None,
            index: 0,
            has_failed: false,
            counted: BumpCounters::default(),
            shared,
        })
    }

    /// Diverts flows at the radio's interface, if that is there: at first, and when it, or the pair, has gone and come.
    pub(super) fn set_up(&mut self) -> io::Result<()> {
        let Pair { outer, inner } = &self.pair;
        let [radio, outer, inner] = Link::find([&self.name, outer, inner])?;
        let is_whole = outer.is_some_and(|outer| outer.index == self.outer && outer.is_up)
            && inner.is_some_and(|inner| inner.is_up);
        // One without a hardware address is refused below.
        let index = radio.map_or_else(|| index_of(&self.name), |radio| radio.index);
        if index == self.index && is_whole {
            if let (Some(driver), Some(radio)) = (&mut self.driver, radio) {
                driver.set_radio_address(radio.address);
            }
            return Ok(());
        }
        // Packets take their usual way meanwhile. A former table belongs to a socket, and ends with it.
        *lock(&self.shared.sets[self.number]) = None;
        let was_there = std::mem::take(&mut self.index) != 0;
        if index == 0 {
            if was_there {
                log::event("the radio is gone", json!({"radio": self.name}));
            }
            return Ok(());
        }
        let exit = open_exit(&self.name, self.marks)?;
        if !is_whole {
            self.outer = self.pair.make()?;
        }
        let [radio, outer] = Link::find([&self.name, &self.pair.outer])?;
        let (Some(radio), Some(outer)) = (radio, outer) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "an interface has gone"));
        };
        match &mut self.driver {
            Some(driver) => {
                driver.replace_radio(exit, radio.address);
                if !is_whole {
                    driver.replace_inner(Interface::open_port(&self.pair.inner)?.with_ring(), outer.address);
                }
            }
            None => {
                let inner = Interface::open_port(&self.pair.inner)?.with_ring();
                self.driver = Some(BumpDriver::new(inner, outer.address, (exit, radio.address)));
            }
        }
        self.divert_all()?;
        self.index = index;
        log::event("agents", json!({"radio": self.name, "interface": self.pair.outer}));
        Ok(())
    }

    /// Tells the kernel to divert flows, those with agents from now on.
    fn divert_all(&mut self) -> io::Result<()> {
        let mut owner = Netlink::open(SockProtocol::NetlinkNetFilter)?;
        let bump = (self.pair.outer.as_str(), self.outer);
        Rules::diversion(self.number, &self.name, self.marks, bump, self.size).install(&mut owner)?;
        let flows: Vec<[SocketAddr; 2]> = self
            .driver
            .iter()
            .flat_map(|driver| driver.bump().flows().map(|flow| [flow.mobile, flow.fixed]))
            .collect();
        nftables::divert(&mut owner, self.number, &flows, true)?;
        let mut heartbeat = Heartbeat::of_radio(&self.name, self.marks)?;
        heartbeat.beat(Instant::now());
        self.heartbeat = Some(heartbeat);
        *lock(&self.shared.sets[self.number]) = Some(owner);
        Ok(())
    }

    /// Works until it is told to end. If something fails, flows go on without agents until it works again.
    pub(super) fn run(mut self, bell: &OwnedFd) {
        while !self.shared.must_end.load(Ordering::Relaxed) {
            match self.turn(bell) {
                Ok(()) => self.has_failed = false,
                Err(error) => self.suspend(&error),
            }
        }
    }

    /// Diverts nothing, until all is made anew.
    fn suspend(&mut self, error: &io::Error) {
        *lock(&self.shared.sets[self.number]) = None;
        (self.index, self.outer) = (0, 0);
        if !std::mem::replace(&mut self.has_failed, true) {
            self.shared.counters.failures.one();
            let meaning =
                "flows over this radio go on without agents until this works; it is tried every second";
            log::event(
                "agents have failed",
                json!({"radio": self.name, "error": error.to_string(), "meaning": meaning}),
            );
        }
    }

    fn turn(&mut self, bell: &OwnedFd) -> io::Result<()> {
        let Radio { number, schemes, driver, shared, name, has_failed, heartbeat, .. } = self;
        let end = Instant::now() + std::time::Duration::from_nanos(TICK.as_nanos());
        let mut admission = OfRadio { number: *number, name, schemes, shared };
        while !shared.must_end.load(Ordering::Relaxed) {
            let now = Instant::now();
            let mut left = end.saturating_duration_since(now);
            if left.is_zero() {
                break;
            }
            if let Some(heartbeat) = heartbeat {
                if now >= heartbeat.next() {
                    heartbeat.beat(now);
                }
                left = left.min(heartbeat.next().saturating_duration_since(now));
            }
            match driver {
                Some(driver) if !*has_failed => {
                    let longest = Duration::from_nanos(left.as_nanos() as u64);
                    driver.turn(bell.as_fd(), longest, &mut admission)?;
                }
                _ => std::thread::sleep(left.min(std::time::Duration::from_millis(100))),
            }
        }
        shared.expire(Instant::now());
        if let Some(driver) = driver {
            let counters = driver.bump().counters();
            let before = std::mem::replace(&mut self.counted, counters.clone());
            shared.counters.agent_packets.add(counters.packets - before.packets);
            shared.counters.suppressed.add(counters.suppressed - before.suppressed);
            shared.counters.strays.add(counters.strays - before.strays);
            shared.counters.add_schemes(&before.schemes, &counters.schemes);
        }
        self.set_up()
    }
}

impl Drop for Radio {
    /// Ends the diversion, and then what it leads to.
    fn drop(&mut self) {
        if let Some(mut owner) = lock(&self.shared.sets[self.number]).take() {
            let _ = nftables::remove_diversion(&mut owner, self.number);
        }
        let _ = self.pair.remove();
    }
}

/// Which flows get agents at a radio.
struct OfRadio<'a> {
    number: usize,
    name: &'a str,
    schemes: &'a Schemes,
    shared: &'a Shared,
}

impl Admission for OfRadio<'_> {
    fn admit(&mut self, packet: &FirstPacket) -> Option<Admitted> {
        let found = {
            let mut pending = lock(&self.shared.pending);
            let each = pending.get_mut(packet.opened_by.0)?;
            let found = *each;
            // From now on the bump says when it ends.
            each.diverted = None;
            found
        };
        let [source, destination] = packet.ends;
        let flow = match packet.is_opening == found.mobile_opens {
            true => RadioFlow { mobile: source, fixed: destination },
            false => RadioFlow { mobile: destination, fixed: source },
        };
        if !found.mobile_opens && self.shared.divert(self.number, &[flow], true).is_err() {
            self.shared.counters.failures.one();
            return None;
        }
        let scheme = AGENTS[found.scheme].name;
        let combination = self.schemes.combination(scheme).ok()?;
        let rate = BitRate::from_bps(UNKNOWN_RATE)?;
        let site = Site {
            end: LinkEnd::BaseStation,
            is_router: false,
            node: "gateway",
            station: None,
            link: self.name,
            rate,
            delay: Duration::ZERO,
            arriving_rate: rate,
            hosts: None,
            peers: &[],
            streams: Streams::new(0, 0),
        };
        let count = combination.agents(LinkEnd::BaseStation).count();
        let agents = (0..count).map(|number| combination.agent(number, &site)).collect();
        self.shared.flows.fetch_add(1, Ordering::Relaxed);
        self.shared.counters.given_agents.one();
        self.shared.counters.with_agents.one();
        Some(Admitted { flow, scheme, agents, mobile_opens: found.mobile_opens, scale: found.scale })
    }

    fn settle(&mut self, opened_by: SeqNum) {
        lock(&self.shared.pending).remove(opened_by.0);
    }

    fn dismiss(&mut self, flows: &[RadioFlow]) {
        self.shared.release(self.number, flows);
        for _ in flows {
            self.shared.flows.fetch_sub(1, Ordering::Relaxed);
            self.shared.counters.with_agents.less_one();
        }
    }
}

/// Opens the interface of a radio for packets that agents have passed.
///
/// # Errors
/// If it is not there, or has no Ethernet frames.
pub(super) fn open_exit(name: &str, marks: Marks) -> io::Result<Interface> {
    Interface::open_exit(name, marks.passed_agents()).map_err(|error| {
        let remedy = "agents need Ethernet frames, as of a modem or a wireless card in its usual mode; the nearest is \"i-tcp\"";
        match error.kind() {
            io::ErrorKind::Unsupported => io::Error::new(error.kind(), format!("{error}; {remedy}")),
            _ => error,
        }
    })
}

/// The number of an interface, 0 if it is not there.
pub(super) fn index_of(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).unwrap_or(0)
}
