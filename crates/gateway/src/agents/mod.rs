//! Agents on the packets of flows, before each radio.
//!
//! ```text
//! queue of SYNs ──> pending, by sequence number ──┐
//!                                                 v
//! kernel: SYNs with the mark, flows in a set ──> bump, a thread for each radio ──> radio's interface
//!              ^    arriving at the radio or leaving    │ flows that begin and end
//!              └────────────── set of flows <───────────┘
//! ```
//!
//! The kernel diverts flows right before the interface of the radio, where NAT is done and before queues, and right behind it
//! (netfilter's hooks of interfaces). All other packets never come here. The rules belong to a socket of this process: when it
//! ends, the kernel removes them, and packets take their usual way.

mod pending;
mod radio;

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use lasthop_live::bump::RadioFlow;
use rustix::event::{EventfdFlags, eventfd};
use serde_json::json;

use self::pending::{AllPending, Pending};
use self::radio::Radio;
use crate::config::{AGENTS, Config};
use crate::counters::Counters;
use crate::flow::Opening;
use crate::kernel::links::Pair;
use crate::kernel::netlink::Netlink;
use crate::kernel::{Marks, nftables};
use crate::log;

/// The names of the interfaces by which packets come back to the kernel.
pub(crate) fn bumps(config: &Config) -> Vec<String> {
    let radios = if config.has_agents() { config.gateway.radio.len() } else { 0 };
    (0..radios).map(|radio| Pair::of(radio).outer).collect()
}

/// The largest number of flows in the set of a radio.
pub(crate) fn set_size(config: &Config) -> u32 {
    config.gateway.connections.saturating_add(config.gateway.opening)
}

/// Removes the interfaces that a killed gateway has left.
pub(crate) fn remove_interfaces(config: &Config) -> io::Result<()> {
    (0..config.gateway.radio.len()).try_for_each(|radio| Pair::of(radio).remove())
}

/// Checks that agents can start, without touching those that run.
///
/// # Errors
/// If a radio's interface cannot have agents, or the kernel lacks something.
pub(crate) fn check(config: &Config) -> io::Result<()> {
    let marks = Marks::new(config.gateway.mark_bit);
    let radios = config.gateway.radio.iter().filter(|name| radio::index_of(name) != 0);
    radios.filter(|_| config.has_agents()).try_for_each(|name| {
        radio::open_exit(name, marks)?;
        nftables::check_diversion(name, marks)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    pending: Mutex<AllPending>,
    /// The owner of each radio's set of flows, while it is there.
    sets: Vec<Mutex<Option<Netlink>>>,
    /// Flows with agents.
    flows: AtomicU64,
    must_end: AtomicBool,
    counters: Arc<Counters>,
}

impl Shared {
    /// Forgets flows that nobody has answered, and diverts them no longer.
    fn expire(&self, now: Instant) {
        let over = lock(&self.pending).expire(now);
        for (radio, flow) in over {
            self.release(radio, &[flow]);
        }
    }

    /// Adds flows to the set of a radio, or removes them.
    fn divert(&self, radio: usize, flows: &[RadioFlow], is_added: bool) -> io::Result<()> {
        let ends: Vec<[SocketAddr; 2]> = flows.iter().map(|flow| [flow.mobile, flow.fixed]).collect();
        match &mut *lock(&self.sets[radio]) {
            Some(owner) => nftables::divert(owner, radio, &ends, is_added),
            None => Err(io::Error::new(io::ErrorKind::NotConnected, "the radio's interface is gone")),
        }
    }

    /// Removes flows from the set of a radio, as far as they are there.
    fn release(&self, radio: usize, flows: &[RadioFlow]) {
        if self.divert(radio, flows, false).is_err() {
            // One that is not there makes the kernel refuse all.
            for flow in flows {
                let _ = self.divert(radio, &[*flow], false);
            }
        }
    }
}

/// Why a flow gets no agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There are as many as the limits allow.
    Limit,
    /// The kernel has refused.
    Failure,
}

/// The agents before all radios.
#[derive(Debug)]
pub(crate) struct Agents {
    shared: Arc<Shared>,
    threads: Vec<(JoinHandle<()>, OwnedFd)>,
    most: u64,
    /// The largest number of flows in the set of a radio, which the kernel cannot change.
    size: u32,
}

impl Agents {
    /// Diverts flows from now on, those that are [admitted](Agents::admit).
    ///
    /// # Errors
    /// If a radio's interface cannot have agents, or the kernel lacks something. One that is not there is waited for.
    pub(crate) fn start(config: &Config, marks: Marks, counters: &Arc<Counters>) -> io::Result<Agents> {
        let limits = &config.gateway;
        let shared = Arc::new(Shared {
            pending: Mutex::new(AllPending::new(limits.opening, limits.opening_per_host)),
            sets: limits.radio.iter().map(|_| Mutex::default()).collect(),
            flows: AtomicU64::new(0),
            must_end: AtomicBool::new(false),
            counters: Arc::clone(counters),
        });
        log_caveats(config);
        let (most, size) = (u64::from(limits.connections), set_size(config));
        let mut agents = Agents { shared, threads: Vec::new(), most, size };
        for (number, name) in limits.radio.iter().enumerate() {
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let told = bell.try_clone()?;
            let shared = Arc::clone(&agents.shared);
            let mut radio = Radio::new(number, name, marks, size, config.scheme.registry(), shared)?;
            radio.set_up()?;
            let thread =
                thread::Builder::new().name(format!("agents{number}")).spawn(move || radio.run(&told))?;
            agents.threads.push((thread, bell));
        }
        Ok(agents)
    }

    /// Whether there is room for the flows that a file allows.
    pub(crate) fn has_room(&self, config: &Config) -> bool {
        set_size(config) <= self.size
    }

    /// Takes over the limits of a file that was read again.
    pub(crate) fn set_limits(&mut self, config: &Config) {
        self.most = u64::from(config.gateway.connections);
        lock(&self.shared.pending).set_limits(config.gateway.opening, config.gateway.opening_per_host);
    }

    /// Lets a flow have the agents of the scheme with this number, as soon as its first packet goes on. `radio` is the number
    /// of the radio from which that came; otherwise it must have the mark [`Marks::for_agents`].
    pub(crate) fn admit(
        &self,
        opening: &Opening,
        scheme: usize,
        radio: Option<usize>,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.shared.expire(now);
        let Shared { pending, flows, .. } = &*self.shared;
        let flow = RadioFlow { mobile: opening.flow.client, fixed: opening.flow.server };
        let mut pending = lock(pending);
        let diverted = radio.map(|radio| (radio, flow));
        let each = Pending {
            flow: opening.flow,
            scheme,
            scale: opening.window_scale,
            mobile_opens: radio.is_some(),
            diverted,
        };
        let is_full = flows.load(Ordering::Relaxed) + pending.len() as u64 >= self.most;
        let is_added = !is_full && pending.add(opening.seq.0, each, now);
        drop(pending);
        if !is_added {
            return Err(Refusal::Limit);
        }
        if let Some((radio, flow)) = diverted
            && self.shared.divert(radio, &[flow], true).is_err()
        {
            lock(&self.shared.pending).remove(opening.seq.0);
            return Err(Refusal::Failure);
        }
        Ok(())
    }
}

impl Drop for Agents {
    /// Ends the diversion. Flows go on without agents.
    fn drop(&mut self) {
        self.shared.must_end.store(true, Ordering::Relaxed);
        for (thread, bell) in self.threads.drain(..) {
            let _ = rustix::io::write(&bell, &1u64.to_ne_bytes());
            // It has logged what was wrong.
            let _ = thread.join();
        }
    }
}

/// Says for whom the schemes do nothing, or harm.
fn log_caveats(config: &Config) {
    for scheme in config.used_agents().into_iter().map(|number| AGENTS[number]) {
        log::event("caveat", json!({"scheme": scheme.name, "caveat": scheme.caveat}));
    }
}
