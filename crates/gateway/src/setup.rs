//! What is set up in the kernel for a file: listeners, rules, routes, the log of headers.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use serde_json::json;

use crate::agents;
use crate::config::{Config, Tcp};
use crate::counters::Counters;
use crate::kernel::Marks;
use crate::kernel::log::Log;
use crate::kernel::nftables::{Parameters, Rules};
use crate::kernel::routes::Routes;
use crate::kernel::socket;
use crate::log;
use crate::observe::{Observer, Shared};

/// The side of the gateway at which a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Before the radio.
    Wired,
    /// Behind the radio.
    Radio,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Wired, Side::Radio];

    pub(crate) fn other(self) -> Side {
        match self {
            Side::Wired => Side::Radio,
            Side::Radio => Side::Wired,
        }
    }

    /// The port of its listener.
    pub(crate) fn port(self, config: &Config) -> u16 {
        config.gateway.port + u16::from(self == Side::Radio)
    }

    /// TCP towards it.
    pub(crate) fn tcp(self, config: &Config) -> Tcp {
        match self {
            Side::Wired => config.wired_tcp(),
            Side::Radio => config.wireless_tcp(),
        }
    }
}

/// A socket that listens for the clients of one side and one version of IP.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) side: Side,
    pub(crate) is_ipv4: bool,
}

/// The observer, if flows are to be observed, and the kernel has a log of headers.
pub(crate) fn observer_of(
    config: &Config,
    is_observing: bool,
    evidence: &Shared,
    counters: &Arc<Counters>,
) -> io::Result<Option<Observer>> {
    if !config.gateway.is_observed() {
        return Ok(None);
    }
    match Log::open(config.gateway.number) {
        Ok(log) => {
            Observer::start(log, config, !is_observing, evidence.clone(), Arc::clone(counters)).map(Some)
        }
        Err(error) => {
            let remedy = "the kernel needs nfnetlink_log; help goes on without a report";
            log::event("not observing", json!({"error": error.to_string(), "remedy": remedy}));
            Ok(None)
        }
    }
}

/// The rules of a file; those by which flows are observed only with `is_observed`, if they are to be.
pub(crate) fn rules_of(config: &Config, seed: u32, is_observed: bool) -> Rules {
    let Config { gateway, .. } = config;
    let (bumps, radios) = (agents::bumps(config), config.radios());
    Rules::new(&Parameters {
        radio: &radios,
        marks: Marks::new(gateway.mark_bit),
        number: gateway.number,
        ports: Side::BOTH.map(|side| side.port(config)),
        // With a tunnel, both gateways must know the arm of a flow.
        unhelped: if config.tunnel.is_some() { 0 } else { gateway.unhelped_permille() },
        seed,
        observed: if is_observed && gateway.is_observed() { gateway.observed_permille() } else { 0 },
        bumps: &bumps,
    })
}

/// The rules by which the flows with agents of a file are diverted, in the language of nft(8).
pub(crate) fn diversions_of(config: &Config) -> String {
    let (marks, size) = (Marks::new(config.gateway.mark_bit), agents::set_size(config));
    let bumps = agents::bumps(config);
    let each = config.gateway.radio.iter().zip(&bumps).enumerate();
    each.map(|(number, (radio, bump))| Rules::diversion(number, radio, marks, (bump, 0), size).text())
        .collect()
}

/// The routes of a file.
pub(crate) fn routes_of(config: &Config) -> Routes {
    Routes { marks: Marks::new(config.gateway.mark_bit), table: config.gateway.number }
}

/// A listener for each side and version of IP; for IPv4 alone, if the kernel has no other.
pub(crate) fn open_listeners(config: &Config, marks: Marks) -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for is_ipv4 in [true, false] {
        for side in Side::BOTH {
            let port = side.port(config);
            match socket::listener(is_ipv4, port, marks.to_client(), &side.tcp(config)) {
                Ok(socket) => listeners.push(Listener { socket: socket.into(), side, is_ipv4 }),
                Err(error) if !is_ipv4 && error.raw_os_error() == Some(nix::libc::EAFNOSUPPORT) => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("port {port}: {error}"))),
            }
        }
    }
    Ok(listeners)
}

/// The listeners of a predecessor, which had the same port.
pub(crate) fn inherited_listeners(sockets: Vec<OwnedFd>, config: &Config) -> io::Result<Vec<Listener>> {
    let each = sockets.into_iter().map(|socket| {
        let socket = TcpListener::from(socket);
        let address = socket.local_addr()?;
        let side = Side::BOTH.into_iter().find(|side| side.port(config) == address.port());
        let side = side
            .ok_or_else(|| io::Error::other("the running gateway has another gateway.port; stop it first"))?;
        Ok(Listener { socket, side, is_ipv4: address.is_ipv4() })
    });
    each.collect()
}

pub(crate) fn random_seed() -> io::Result<u32> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes))
}
