//! What the kernel's packet filter has counted for the gateway, and what others have in it.

use std::collections::BTreeMap;
use std::io;

use nix::sys::socket::SockProtocol;

use super::netlink::{DUMP, Message, Netlink, attribute, attributes, number};
use super::nftables::{INET, SUBSYSTEM, TABLE};

const GET_CHAIN: u8 = 4;
const GET_RULE: u8 = 7;

/// Netfilter's numbers of hooks.
const PREROUTING: u32 = 0;
const INPUT: u32 = 1;
const FORWARD: u32 = 2;

/// The packets that the gateway's rules with names have counted, by name.
///
/// # Errors
/// If the kernel does not answer.
pub(crate) fn counts() -> io::Result<BTreeMap<String, u64>> {
    let mut counts = BTreeMap::new();
    let request = Message::netfilter(SUBSYSTEM, GET_RULE, DUMP, INET, 0).text(1, TABLE);
    Netlink::open(SockProtocol::NetlinkNetFilter)?.list(request, |body| {
        let rule = body.get(4..).unwrap_or_default();
        let Some(name) = attribute(rule, 7) else { return };
        let list = attributes(attribute(rule, 4).unwrap_or_default());
        let packets = list.filter_map(|(_, expression)| {
            let is_counter = attribute(expression, 1)? == b"counter\0";
            let data = attribute(expression, 2).filter(|_| is_counter)?;
            attribute(data, 2)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
        });
        *counts.entry(String::from_utf8_lossy(name).into_owned()).or_default() += packets.sum::<u64>();
    })?;
    Ok(counts)
}

/// The chains of others that filter what is for this host, as nft(8) names them.
///
/// # Errors
/// If the kernel does not answer.
pub(crate) fn input_chains() -> io::Result<Vec<String>> {
    chains(&[(INPUT, "filter")])
}

/// The chains of others that decide which packets are forwarded, and where to.
///
/// # Errors
/// If the kernel does not answer.
pub(crate) fn forwarding_chains() -> io::Result<Vec<String>> {
    chains(&[(FORWARD, "filter"), (PREROUTING, "nat")])
}

/// The chains of others at these hooks with these types, unless they only accept.
fn chains(wanted: &[(u32, &str)]) -> io::Result<Vec<String>> {
    const ACCEPT: u32 = 1;
    let mut chains = Vec::new();
    let request = Message::netfilter(SUBSYSTEM, GET_CHAIN, DUMP, 0, 0);
    Netlink::open(SockProtocol::NetlinkNetFilter)?.list(request, |body| {
        let family = match body.first() {
            Some(&INET) => "inet",
            Some(2) => "ip",
            Some(10) => "ip6",
            _ => return,
        };
        let chain = body.get(4..).unwrap_or_default();
        let text = |kind| {
            let text = attribute(chain, kind).unwrap_or_default();
            String::from_utf8_lossy(text.strip_suffix(&[0]).unwrap_or(text)).into_owned()
        };
        let hook = attribute(chain, 4).and_then(|hook| attribute(hook, 1)).and_then(number);
        let [policy, rules] = [5, 6].map(|kind| attribute(chain, kind).and_then(number));
        let is_empty = policy == Some(ACCEPT) && rules == Some(0);
        let (table, name, kind) = (text(1), text(3), text(7));
        let is_wanted = wanted.iter().any(|&(number, name)| hook == Some(number) && kind == name);
        if is_wanted && table != TABLE && !is_empty {
            chains.push(format!("{family} {table} {name}"));
        }
    })?;
    Ok(chains)
}
