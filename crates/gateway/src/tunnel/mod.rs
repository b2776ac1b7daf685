//! The tunnel to another gateway: a thread between its interface and a socket.
//!
//! ```text
//! routes ──> interface ──> class of each packet ──> lasthop-tunnel ──> socket ──> the other gateway
//! hosts  <── interface <────────────────────────── lasthop-tunnel <── socket <──┘
//! ```
//!
//! The routes are there while the other gateway answers. Otherwise, and when this process ends, packets take the routes that
//! they have without the tunnel.

mod batch;
mod carrier;
mod classes;
mod doubt;
mod keeper;
mod ports;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use lasthop_tunnel::Key;
use rustix::event::{EventfdFlags, eventfd};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Serialize;
use serde_json::json;

use self::carrier::Carrier;
use crate::config::{Config, SchemeName, TunnelScheme};
use crate::kernel::tunnel_routes::TunnelRoutes;
use crate::{arms, log, observe};

/// What is known of a running tunnel, for those who ask.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Status {
    interface: String,
    /// The largest packet that enters it.
    mtu: u16,
    /// Whether packets of that size have arrived at the other end.
    is_mtu_confirmed: bool,
    peer: Option<SocketAddr>,
    /// Whether packets go through it.
    pub(crate) is_up: bool,
    rtt_s: Option<f64>,
    /// The share of the latest datagrams from here that were lost, once known.
    loss: Option<f64>,
    /// The share of flows without help.
    unhelped_share: f64,
    /// Each class with a scheme, and that scheme.
    classes: BTreeMap<String, &'static str>,
    pub(crate) counters: BTreeMap<&'static str, u64>,
}

/// The place of the status; empty without a tunnel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board(Arc<Mutex<Option<Status>>>);

impl Board {
    pub(crate) fn read(&self) -> Option<Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, status: Option<Status>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

/// A running tunnel.
#[derive(Debug)]
pub(crate) struct Tunnel {
    key: Key,
    must_end: Arc<AtomicBool>,
    bell: OwnedFd,
    thread: Option<JoinHandle<()>>,
    board: Board,
}

impl Tunnel {
    /// Begins to carry packets, if the file has a tunnel.
    ///
    /// # Errors
    /// If its key cannot be read, its port or the name of its interface is taken, or the kernel lacks something.
    pub(crate) fn start(
        config: &Config,
        evidence: &observe::Shared,
        board: &Board,
    ) -> io::Result<Option<Tunnel>> {
        let (Some(key), Some(routes)) = (arms::key_of(config)?, TunnelRoutes::of(config)) else {
            return Ok(None);
        };
        for scheme in TunnelScheme::ALL.into_iter().filter(|scheme| config.uses(SchemeName::Tunnel(*scheme)))
        {
            let name = SchemeName::Tunnel(scheme).name();
            log::event("caveat", json!({"scheme": name, "caveat": scheme.caveat()}));
        }
        if let Some(caveat) = arms::key_caveat(config) {
            log::event("caveat", json!({"caveat": caveat}));
        }
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let must_end = Arc::new(AtomicBool::new(false));
        let mut carrier = Carrier::open(config, key.clone(), routes, evidence.clone(), board.clone())?;
        let (rung, ends) = (bell.try_clone()?, Arc::clone(&must_end));
        let thread = thread::Builder::new().name(String::from("tunnel")).spawn(move || {
            carrier.run(&rung, &ends);
        })?;
        Ok(Some(Tunnel { key, must_end, bell, thread: Some(thread), board: board.clone() }))
    }
}

impl Tunnel {
    /// The key that it was started with.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }
}

impl Drop for Tunnel {
    /// Ends it. Its interface and the routes are gone when this returns.
    fn drop(&mut self) {
        self.must_end.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It has logged what was wrong.
            let _ = thread.join();
        }
        self.board.write(None);
    }
}

/// Removes the rules of a file's tunnel, as far as they are there.
pub(crate) fn remove_rules(config: &Config) -> io::Result<()> {
    TunnelRoutes::of(config).map_or(Ok(()), |routes| routes.remove())
}

/// A new key.
pub(crate) fn new_key() -> io::Result<Key> {
    random().map(Key::new)
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    // Of up to 256 bytes, all are there.
    getrandom(&mut bytes[..], GetRandomFlags::empty())?;
    Ok(bytes)
}
