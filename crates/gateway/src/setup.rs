//! What is set up in the kernel for a file: listeners, rules, routes, the log of headers.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::SockProtocol;
use serde_json::json;

use crate::agents;
use crate::config::{Clients, Config, SchemeName, Tcp};
use crate::counters::Counters;
use crate::kernel::Marks;
use crate::kernel::filter;
use crate::kernel::links;
use crate::kernel::log::Log;
use crate::kernel::netlink::Netlink;
use crate::kernel::nftables::{self, Parameters, Rules};
use crate::kernel::queue::Queue;
use crate::kernel::routes::Routes;
use crate::kernel::socket;
use crate::log;
use crate::observe::{Observer, Shared};

/// The side of the gateway at which a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Checks that the kernel takes the packets of servers, which have the mark of this host's own, for what they are: with
/// `src_valid_mark`, the filter of reverse paths looks for their sources by that mark, finds this host, and drops them.
pub(crate) fn check_reverse_paths(config: &Config) -> io::Result<()> {
    if !config.uses(SchemeName::ITcp) {
        return Ok(());
    }
    let setting = |interface: &str, name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{interface}/{name}")).ok();
        text.and_then(|text| text.trim().parse::<u8>().ok()).unwrap_or(0)
    };
    let effective = |interface: &str, name: &str| setting(interface, name).max(setting("all", name));
    let interfaces = std::fs::read_dir("/proc/sys/net/ipv4/conf")?.flatten();
    for name in interfaces.filter_map(|entry| entry.file_name().into_string().ok()) {
        let is_own = ["lo", "all", "default"].contains(&name.as_str());
        if !is_own && effective(&name, "src_valid_mark") > 0 && effective(&name, "rp_filter") > 0 {
            return Err(io::Error::other(format!(
                "net.ipv4.conf: {name} has both src_valid_mark and rp_filter, by which the kernel drops the packets of the \
                 servers of split connections; set one of them to 0, for \"all\" as well"
            )));
        }
    }
    Ok(())
}

/// The rules of a file; those by which flows are observed only with `is_observed`, if they are to be. With `is_observing`, no
/// flow is held, so that those of both arms open alike.
pub(crate) fn rules_of(config: &Config, seed: u32, is_observed: bool, is_observing: bool) -> Rules {
    let Config { gateway, .. } = config;
    let (bumps, radios) = (agents::bumps(config), config.radios());
    let tunnel = config.tunnel.as_ref().filter(|_| !is_observing);
    Rules::new(&Parameters {
        radio: &radios,
        clients: [Clients::Radio, Clients::Wired].map(|each| gateway.clients.contains(&each)),
        marks: Marks::new(gateway.mark_bit),
        number: gateway.number,
        holds: !is_observing,
        ports: Side::BOTH.map(|side| side.port(config)),
        // With a tunnel, both gateways must know the arm of a flow.
        unhelped: if config.tunnel.is_some() { 0 } else { gateway.unhelped_permille() },
        seed,
        observed: if is_observed && gateway.is_observed() { gateway.observed_permille() } else { 0 },
        patience: tunnel.map(|tunnel| Duration::from_nanos(tunnel.patience.as_nanos())),
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

/// The chains of the firewall that splits must not bypass, and would.
pub(crate) fn bypassed_chains(config: &Config) -> Vec<String> {
    match config.gateway.bypass_firewall || !config.uses(SchemeName::ITcp) {
        true => Vec::new(),
        false => filter::forwarding_chains().unwrap_or_default(),
    }
}

/// The problem that splits would bypass the firewall, and the remedies.
pub(crate) fn bypass_fault(config: &Config) -> Option<String> {
    let chains = bypassed_chains(config);
    (!chains.is_empty()).then(|| {
        format!(
            "split connections would bypass the firewall ({}), which decides what is forwarded; to allow that, state \
             gateway.bypass_firewall = true, and gateway.clients for the side whose hosts may open connections; or state \
             gateway.scheme = \"snoop\", whose flows are forwarded",
            chains.join(", ")
        )
    })
}

/// The radios that are ports of bridges: the kernel then knows their packets by the bridge.
pub(crate) fn bridge_caveats(config: &Config) -> Vec<String> {
    let caveat = |radio: &String| {
        let bridge = links::bridge_of(radio)?;
        let remedy = format!("state \"{bridge}\", or take {radio} out of it");
        Some(format!(
            "gateway.radio: {radio} is a port of the bridge {bridge}, whose flows are not helped; {remedy}"
        ))
    };
    config.gateway.radio.iter().filter_map(caveat).collect()
}

/// The routes of a file.
pub(crate) fn routes_of(config: &Config) -> Routes {
    Routes { marks: Marks::new(config.gateway.mark_bit), table: config.gateway.number }
}

/// Checks that no process has the packet filter's rules, or the queue of a file: not all gateways have its control socket.
///
/// # Errors
/// If one has.
pub(crate) fn check_unowned(config: &Config) -> io::Result<()> {
    let owned = nftables::claim(&mut Netlink::open(SockProtocol::NetlinkNetFilter)?)
        .and_then(|()| Queue::open(config.gateway.number, 1).map(drop));
    match owned {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ResourceBusy) =>
        {
            let remedy = "stop it, which removes all by itself";
            Err(io::Error::new(error.kind(), format!("a gateway runs ({error}); {remedy}")))
        }
        // A kernel that lacks something runs none.
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observation_holds_no_flow_of_either_arm() {
        let text = "[gateway]\nradio = [\"radio0\"]\nunhelped = 0.5";
        let config = Config::parse(text, "gateway.toml").unwrap_or_else(|error| panic!("{error}"));
        let rules = |is_observing| rules_of(&config, 7, true, is_observing).text();
        let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let (helping, observing) = (lines(rules(false)), lines(rules(true)));
        let differing: Vec<_> = helping.iter().zip(&observing).filter(|(one, other)| one != other).collect();
        assert_eq!(helping.len(), observing.len());
        let [(held, passed)] = differing[..] else { panic!("{differing:?}") };
        assert!(held.contains("queue flags") && passed.trim() == "counter accept", "{held} {passed}");
        assert!(!observing.iter().any(|line| line.contains("queue flags")));
    }
}
