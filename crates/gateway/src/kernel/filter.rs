//! What the kernel's packet filter has counted for the gateway, and what others have in it.

use std::collections::BTreeMap;
use std::io;

use nix::sys::socket::SockProtocol;

use super::netlink::{DUMP, Message, Netlink, attribute, attributes, number};
use super::nftables::{INET, SUBSYSTEM, TABLE};

const GET_CHAIN: u8 = 4;
const GET_RULE: u8 = 7;

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
    const INPUT: u32 = 1;
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
        if hook == Some(INPUT) && kind == "filter" && table != TABLE && !is_empty {
            chains.push(format!("{family} {table} {name}"));
        }
    })?;
    Ok(chains)
}
