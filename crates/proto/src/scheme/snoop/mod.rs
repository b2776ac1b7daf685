//! Snoop: local retransmission at the base station, guided by TCP's acknowledgements.
//!
//! **What it does.** The base station caches unacknowledged segments on their way to the mobile host. It
//! retransmits a segment when duplicate ACKs or a local timeout indicate its loss, and suppresses the
//! duplicates, so that the source notices neither. Losses before the base station remain the source's: duplicates
//! for segments that are not cached, or that the source has retransmitted, are forwarded. The ends need no
//! change, and the state is soft: a base station that forgets it does no harm.
//! **Source.** Balakrishnan, Seshan, Amir and Katz, MobiCom 1995, sections 3.1 and 4. Variants are compared in
//! Balakrishnan, Padmanabhan, Seshan and Katz, IEEE/ACM ToN 5(6), 1997, sections 3.2 and 4.5: LL-TCP-AWARE is Snoop
//! with `dupacks = 2`; LL, which does not hide duplicates from the source, has `suppress = false` and `min_timeout =
//! "200 ms"` as well. LL-SMART-TCP-AWARE and LL-SMART are the same with `selective = true`.
//!
//! **Parameters.**
//! - `dupacks`: number of duplicates that indicate a loss; 1 in 1995 and 2 in 1997.
//! - `suppress`: whether duplicates that a local retransmission answers are suppressed.
//! - `bursts`: whether the first new ACK after a retransmission causes the next retransmission at once if it covers
//!   less than what has arrived (1997, section 4.5). The duplicates before that ACK count. ns-2 lacks this rule.
//! - `selective`: whether the receiver's ACKs report the segment that caused them (as with the scheme `smart`; a
//!   receiver with SACK reports blocks). Every earlier segment that is not reported is then lost at once, and so is a
//!   copy when a segment sent after it is reported. `dupacks` and `bursts` have no effect.
//! - `expedite`: whether retransmissions get the code point of expedited forwarding, unless the segment has a code
//!   point already. A link's queue with priority serves them first, as in the paper.
//! - `min_timeout`: lower bound of the timeout of two smoothed round-trip times, 40 ms.
//! - `persist`: time without packets from either end after which the oldest segment is retransmitted, 200 ms.
//! - `initial`: both timeouts until the first sample of the round-trip time; 1 s, as of TCP (RFC 6298).
//! - `attempts`: maximum number of local retransmissions of a segment, 10 as in ns-2.
//! - `cache`: the high-water mark, maximum number of cached segments per connection; 1024 segments of 1460 B are
//!   1.5 MB, where the paper's windows are 64 KB.
//! - `connections`: maximum number of connections, 256.
//! - `idle`: idle time after which a connection is removed; 120 s, twice the smallest upper bound of the RTO that
//!   RFC 6298 permits.
//! - `transfer`: whether the cache moves with a moving host (see hand-offs).
//! - `encrypted`: the base station cannot read TCP headers, as with IPsec, and forwards packets unchanged.
//!
//! **Differences from the papers.**
//! - The papers state neither an initial timeout nor a maximum number of local retransmissions.
//! - The base station answers a segment that is acknowledged already, as in the paper. It forwards the segment
//!   instead if it may be a window probe or carry an acknowledgement of the mobile host's data.
//! - `persist` is at least twice the smallest round-trip time seen: on a slow link, 200 ms without packets are normal.
//! - A needless retransmission, by the source or by the base station, causes a duplicate ACK. In the paper this duplicate
//!   causes the next needless retransmission, which overtakes its queued original, and so on for as long as packets are
//!   queued. Here such duplicates are expected and suppressed. ns-2, without the rule for bursts, copies a segment for
//!   every second one.
//! - `bursts` takes the number of duplicates before a new ACK for the number of segments that have arrived, and not
//!   the segments that were sent: many of those may still be queued.
//! - The link's queue is the scenario's, drop-tail by default. Retransmissions then wait behind other packets.
//! - Segments are cached before they enter that queue, so a segment dropped by a full queue is recovered locally.
//!   ns-2 does not cache segments for a full queue.
//! - Only data to the mobile host are recovered.
//!
//! **Hand-offs.** While a moving host is elsewhere, the base station caches what passes, as in "Improving Reliable
//! Transport and Handoff Performance in Cellular Wireless Networks" (WINET 1995), but retransmits, answers and suppresses
//! nothing. With the scheme `multicast` all packets for the host pass, so that the cache mirrors that of the base station
//! at which the host is. The first acknowledgement after a hand-off removes what has arrived meanwhile; an
//! acknowledgement of data that have not passed removes the connection.
//!
//! With `transfer = true`, the base station that the host has reached requests the cache of the old one, which sends its
//! segments through the wired network, and forwards later segments (see `forwarding`). The new base station caches and
//! transmits them. The paper compares its multicast with such a transfer of state, which it attributes to other systems.

mod agent;
mod connection;

use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reports::Reports;
use super::{Deployment, Installer, Products, Scheme};
use crate::tcp::Settings;

/// Local retransmission at the base station.
///
/// The defaults are the protocol of 1995. `dupacks = 2` gives the protocol of 1997 (LL-TCP-AWARE), and
/// additionally `suppress = false` with `min_timeout = "200 ms"` its LL. With `selective = true` these are
/// its LL-SMART-TCP-AWARE and LL-SMART.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Snoop {
    /// Number of duplicate ACKs that indicate a loss on the air. Earlier ones are forwarded.
    pub dupacks: u32,
    /// Whether to suppress duplicate ACKs of losses that the base station repairs.
    pub suppress: bool,
    /// Whether the first new ACK after a local retransmission immediately triggers the next one, if it shows
    /// another gap.
    pub bursts: bool,
    /// Whether ACKs report the segment that triggered them, or have SACK blocks: every earlier segment not
    /// reported is retransmitted immediately. `dupacks` and `bursts` then have no effect.
    pub selective: bool,
    /// Whether local retransmissions have the Expedited Forwarding code point, so that a priority queue sends
    /// them first.
    pub expedite: bool,
    /// Lower bound of the local retransmission timeout, which is twice the smoothed round-trip time. The
    /// timer starts with the first retransmission triggered by duplicate ACKs.
    pub min_timeout: Duration,
    /// Time without packets from either end after which the oldest segment is retransmitted; at least twice
    /// the minimum round-trip time.
    pub persist: Duration,
    /// Both timeouts before the first round-trip sample.
    pub initial: Duration,
    /// Maximum number of local retransmissions of a segment, after which its duplicate ACKs are forwarded.
    pub attempts: u32,
    /// Maximum number of segments cached per connection. Beyond it, the highest ones are omitted.
    pub cache: u32,
    /// Maximum number of connections. A further one replaces the one idle for longest.
    pub connections: u32,
    /// Idle time after which a base station removes a connection.
    pub idle: Duration,
    /// Whether the cache of a base station moves to the next one of a moving host: the new base station
    /// requests it, and the old one sends the cached segments, and later packets, through the wired network.
    /// What is not cached before the request is lost. The base stations need wired paths to each other. Not
    /// with `multicast` or `forwarding`.
    pub transfer: bool,
    /// Whether TCP headers are encrypted: base stations then forward all packets unchanged.
    pub encrypted: bool,
}

impl Default for Snoop {
    fn default() -> Snoop {
        Snoop {
            dupacks: 1,
            suppress: true,
            bursts: true,
            selective: false,
            expedite: true,
            min_timeout: Duration::from_millis(40),
            persist: Duration::from_millis(200),
            initial: Duration::from_secs(1),
            attempts: 10,
            cache: 1024,
            connections: 256,
            idle: Duration::from_secs(120),
            transfer: false,
            encrypted: false,
        }
    }
}

impl Scheme for Snoop {
    fn name(&self) -> &'static str {
        "snoop"
    }

    fn summary(&self) -> &'static str {
        "the base station caches segments, retransmits lost ones and suppresses their duplicate ACKs"
    }

    fn source(&self) -> &'static str {
        "Balakrishnan et al., MobiCom 1995"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "base station",
            products: Some(Products {
                names: "lasthop gateway",
                owner: "a Linux box before the last hop that both directions pass: yours if you run the base station or the \
                        access router, else the operator's and not yours to change",
                commands: &[
                    "cat > gateway.toml <<'END'",
                    "[gateway]",
                    "radio = [\"RADIO\"]",
                    "scheme = \"snoop\"",
                    "unhelped = \"10%\"",
                    "END",
                    "lasthop gateway check gateway.toml",
                    "lasthop gateway run gateway.toml",
                ],
                note: "RADIO is the interface that faces the last hop, with Ethernet frames; `lasthop gateway report` then shows \
                       what it gains over the tenth of the flows that it leaves alone",
            }),
            cost: "must see TCP headers and both directions of a connection",
            variants: &[&[]],
        })
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let numbers = [
            ("dupacks", self.dupacks),
            ("attempts", self.attempts),
            ("cache", self.cache),
            ("connections", self.connections),
        ];
        let times = [
            ("min_timeout", self.min_timeout),
            ("persist", self.persist),
            ("initial", self.initial),
            ("idle", self.idle),
        ];
        let none = numbers.into_iter().filter(|&(_, number)| number == 0);
        let none = none.map(|(key, _)| (key, "found 0, expected at least 1"));
        let zero = times.into_iter().filter(|(_, time)| time.is_zero());
        let zero = zero.map(|(key, _)| (key, "found 0 s, expected more than zero"));
        none.chain(zero).map(|(key, fault)| (String::from(key), String::from(fault))).collect()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        if self.expedite {
            installer.expedites();
        }
        if self.transfer {
            installer.at_connected_base_stations(|site| agent::Agent::new(self, site));
        } else {
            installer.at_base_station(|site| agent::Agent::new(self, site));
        }
        if self.selective {
            installer.at_receiver(&[], Reports::default);
        }
    }
}
