//! An ARQ for the wireless link.
//!
//! **What it does.** The wireless link retransmits lost units, by the ARQ of the scenario or, for links
//! without one, by that of this scheme. Alone it is `local-recovery` for every scenario; it lets any other scheme
//! run over a link that recovers losses: `"snoop + arq"`.
//! **Source.** RFC 3366 (link ARQ); selective repeat as in `arq/selective_repeat.rs`.
//! **Parameters.** `protocol`: the ARQ of links for which the scenario has none; selective repeat with the
//! defaults of `[radio.arq.selective-repeat]`.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gateways::gateways_at_both_ends;
use super::{ArqUse, Deployment, Installer, Products, Scheme};
use crate::arq::{Config, selective_repeat};
use crate::tcp::Settings;

/// An ARQ for links without one.
///
/// ```toml
/// [scheme.arq.protocol.stop-and-wait]
/// retransmissions = 7
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Arq {
    /// The ARQ for wireless links without one: a table `stop-and-wait`, `selective-repeat`, `status-window`
    /// or `rlp`. Links with an ARQ in either direction keep it.
    pub protocol: Config,
}

impl Default for Arq {
    fn default() -> Arq {
        Arq { protocol: Config::SelectiveRepeat(selective_repeat::Params::default()) }
    }
}

impl Scheme for Arq {
    fn name(&self) -> &'static str {
        "arq"
    }

    fn summary(&self) -> &'static str {
        "the wireless link retransmits lost units, even if the scenario has no ARQ"
    }

    fn source(&self) -> &'static str {
        "RFC 3366"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "both ends of the wireless link",
            products: Some(Products {
                names: "lasthop gateway at both ends; retries of Wi-Fi, acknowledged mode of RLC",
                owner: "a Linux box at each end of the wireless link: yours, with a server beyond it that you run. Retries of the \
                        link itself are those of the access point and the adapter, yours at home; of LTE, 5G and satellites \
                        they are the operator's, not yours to change",
                commands: gateways_at_both_ends!(
                    "arq",
                    [],
                    ["# or, where the link is Wi-Fi, at both ends", "iw phy PHY set retry short 15 long 15"]
                ),
                note: "PEER is the address of the other end, which one of the two must state; NETWORK what lies behind it, or \
                       0.0.0.0/0. Losses that a measurement of packets sees lie above the retries that the link has already: \
                       they are the frames that those gave up. Some drivers ignore the limit of iw",
            }),
            cost: "air time and delay that varies, for all traffic of the link",
            variants: &[&[]],
        })
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let found = match self.protocol {
            Config::None => Some(("protocol".into(), String::from("found \"none\", expected an ARQ"))),
            _ => self
                .protocol
                .validate()
                .err()
                .map(|invalid| (format!("protocol.{}", invalid.field), String::from(invalid.problem))),
        };
        found.map_or_else(Vec::new, |fault| vec![fault])
    }

    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Supplied(self.protocol));
    }
}
