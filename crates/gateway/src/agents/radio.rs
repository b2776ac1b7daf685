//! The thread of one radio: its bump, its set of flows, and its interface, which may go and come.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use lasthop_base::{BitRate, Duration, Streams};
use lasthop_live::Interface;
use lasthop_live::bump::{Admission, Admitted, BumpCounters, BumpDriver, FirstPacket, RadioFlow};
use lasthop_proto::scheme::{LinkEnd, Schemes, Site};
use lasthop_proto::tcp::SeqNum;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockProtocol;
use serde_json::json;

use super::{Shared, lock};
use crate::config::AGENTS;
use crate::kernel::Marks;
use crate::kernel::links::Pair;
use crate::kernel::netlink::Netlink;
use crate::kernel::nftables::{self, Rules};
use crate::log;

/// How often the radio's interface is looked for, and counters are told.
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
    /// The number of the pair's outer end.
    outer: u32,
    driver: Option<BumpDriver>,
    /// The number of the radio's interface, 0 while it is not there.
    index: u32,
    /// What was told of its counters.
    counted: BumpCounters,
    shared: Arc<Shared>,
}

impl Radio {
    /// Makes the pair of interfaces.
    pub(super) fn new(
        number: usize,
        name: &str,
        marks: Marks,
        size: u32,
        schemes: Schemes,
        shared: Arc<Shared>,
    ) -> io::Result<Radio> {
        let pair = Pair::of(number);
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
            index: 0,
            counted: BumpCounters::default(),
            shared,
        })
    }

    /// Diverts flows at the radio's interface, if that is there: at first, and when it has come back.
    pub(super) fn set_up(&mut self) -> io::Result<()> {
        let index = nix::net::if_::if_nametoindex(self.name.as_str()).unwrap_or(0);
        if index == self.index {
            return Ok(());
        }
        self.index = index;
        if index == 0 {
            *lock(&self.shared.sets[self.number]) = None;
            log::event("the radio is gone", json!({"radio": self.name}));
            return Ok(());
        }
        let exit = Interface::open_exit(&self.name, self.marks.passed_agents()).map_err(|error| {
            let remedy = "agents need Ethernet frames, as of a modem or a wireless card in its usual mode; the nearest is \"i-tcp\"";
            match error.kind() {
                io::ErrorKind::Unsupported => io::Error::new(error.kind(), format!("{error}; {remedy}")),
                _ => error,
            }
        })?;
        match &mut self.driver {
            Some(driver) => driver.replace_radio(exit),
            None => {
                let inner = Interface::open_port(&self.pair.inner)?.with_ring();
                self.driver = Some(BumpDriver::new(inner, exit, hardware_address(&self.pair.outer)?));
            }
        }
        let mut owner = Netlink::open(SockProtocol::NetlinkNetFilter)?;
        let bump = (self.pair.outer.as_str(), self.outer);
        // A former table belongs to a socket, and ends with it.
        *lock(&self.shared.sets[self.number]) = None;
        Rules::diversion(self.number, &self.name, self.marks, bump, self.size).install(&mut owner)?;
        *lock(&self.shared.sets[self.number]) = Some(owner);
        let flows: Vec<RadioFlow> =
            self.driver.iter().flat_map(|driver| driver.bump().flows().copied()).collect();
        if !flows.is_empty() {
            self.shared.divert(self.number, &flows, true)?;
        }
        log::event("agents", json!({"radio": self.name, "interface": self.pair.outer}));
        Ok(())
    }

    /// Works until it is told to end. If something fails, flows go on without agents.
    pub(super) fn run(mut self, bell: &OwnedFd) {
        while !self.shared.must_end.load(Ordering::Relaxed) {
            if let Err(error) = self.turn(bell) {
                self.shared.counters.failures.one();
                let meaning = "flows over this radio go on without agents";
                log::event(
                    "agents have ended",
                    json!({"radio": self.name, "error": error.to_string(), "meaning": meaning}),
                );
                return;
            }
        }
    }

    fn turn(&mut self, bell: &OwnedFd) -> io::Result<()> {
        let Radio { number, schemes, driver, shared, name, .. } = self;
        let end = Instant::now() + std::time::Duration::from_nanos(TICK.as_nanos());
        let mut admission = OfRadio { number: *number, name, schemes, shared };
        while Instant::now() < end && !shared.must_end.load(Ordering::Relaxed) {
            match driver {
                Some(driver) => driver.turn(bell.as_fd(), TICK, &mut admission)?,
                None => std::thread::sleep(std::time::Duration::from_millis(100)),
            }
        }
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

/// The hardware address of an interface.
fn hardware_address(name: &str) -> io::Result<[u8; 6]> {
    let link = getifaddrs()?.filter(|each| each.interface_name == name);
    let address = link.filter_map(|each| each.address?.as_link_addr()?.addr()).next();
    address.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {name}")))
}
