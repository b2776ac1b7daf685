//! Forward error correction across packets.
//!
//! **What it does.** A tunnel over the wireless link. Its entrance sends each packet on at once and counts it into a
//! block. After `k` packets, or `wait` after the first of them, it closes the block with repair packets: `n - k` after `k`
//! packets, the same share, rounded up, after fewer. Its exit recovers the lost packets of a block as soon as any `k` of
//! the `n` have arrived, as a Reed-Solomon code permits. It passes packets on in order: those behind a gap wait until
//! the gap is repaired or given up. A gap is given up when a block at least
//! `interleave` later is complete, or after `hold`.
//! **Source.** FECFRAME (RFC 6363) and its systematic Reed-Solomon code (RFC 6865); the tunnels UDPspeeder and tinyfecVPN,
//! and WFB-ng for video from drones.
//! **Parameters.**
//! - `k`, `n`: source packets in a block, and packets in all. 8 of 12, as in WFB-ng.
//! - `interleave`: number of blocks between which successive packets alternate, so that a burst of losses is spread over
//!   them; 1.
//! - `wait`: how long a block waits for its packets; `"auto"`. That is as long as the link takes for a block of 1,500 B packets,
//!   and at least 10 ms. A shorter time means smaller blocks, hence more repair packets.
//! - `in_order`: whether packets are passed on in order; otherwise as they come, so that a repaired loss looks like
//!   reordering to TCP. True.
//! - `hold`: how long a packet waits behind a gap; `"auto"`: twice as long as the link takes for all packets of a block, and
//!   at least 100 ms.
//! - `directions`: `"both"`, `"down"` (towards the mobile host) or `"up"`.
//! - `header`: bytes that the tunnel adds to each packet. 36 B: IPv4 and UDP, and 8 B for the code, as UDPspeeder has. A
//!   repair packet is as long as the longest packet of its block, with 2 B for its length. Where the sum exceeds what
//!   the link sends in one frame, reduce `tcp.packet_size`, as one reduces the MTU of a tunnel.
//!
//! **Differences from the sources.** Blocks are formed for each mobile host. UDPspeeder's entrance may also split and merge
//! packets to equal lengths; here they remain as they are (its mode 1). It sends all `n - k` repair packets after fewer than
//! `k` packets, too. It passes packets on as they come; WFB-ng in order, without a limit in time. Sliding windows (RFC
//! 8681) are not modelled. The outer header has the ECN field of the packet (RFC 6040); repair packets are not ECN-capable, and
//! a mark on a packet that is lost is lost. It has the default DSCP, as sockets of such tunnels have, so that nothing overtakes
//! in the tunnel; a queue for each flow takes the tunnel for one flow, and behind a gap all flows wait.

mod decoder;
mod encoder;

use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

use self::decoder::Decoder;
use self::encoder::Encoder;
use super::{Deployment, Installer, LinkEnd, Scheme};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{HostId, Packet};
use crate::tcp::Settings;

/// Length of a full packet, for the times that depend on the link.
const FULL_PACKET: Bytes = Bytes(1_500);

/// The shortest default of `wait`. UDPspeeder has 8 ms.
const MIN_WAIT: Duration = Duration::from_millis(10);

/// The shortest default of `hold`: several packets of others, or attempts of an ARQ, fit into it.
const MIN_HOLD: Duration = Duration::from_millis(100);

/// Forward error correction across packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PacketFec {
    /// Source packets in a block.
    pub k: u8,
    /// Packets in a block.
    pub n: u8,
    /// Number of blocks between which successive packets alternate.
    pub interleave: u8,
    /// How long a block waits for its packets; `None`, in files `"auto"`, for a time that depends on the link.
    #[serde(with = "auto")]
    pub wait: Option<Duration>,
    /// Whether packets are passed on in order.
    pub in_order: bool,
    /// How long a packet waits behind a gap; `None`, in files `"auto"`, for one that depends on the link.
    #[serde(with = "auto")]
    pub hold: Option<Duration>,
    /// Which packets are protected.
    pub directions: Directions,
    /// Bytes added to each packet.
    pub header: Bytes,
}

/// Directions of a wireless link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Both.
    Both,
    /// Towards the mobile host.
    Down,
    /// From the mobile host.
    Up,
}

impl Default for PacketFec {
    fn default() -> PacketFec {
        PacketFec {
            k: 8,
            n: 12,
            interleave: 1,
            wait: None,
            in_order: true,
            hold: None,
            directions: Directions::Both,
            header: Bytes(36),
        }
    }
}

impl PacketFec {
    /// The number of repair packets of a block with this number of source packets.
    fn repairs(&self, sources: u8) -> u8 {
        let spare = u32::from(self.n - self.k);
        (u32::from(sources) * spare).div_ceil(u32::from(self.k)) as u8
    }

    /// How long a block waits for its packets if the link has this rate.
    fn wait(&self, rate: BitRate) -> Duration {
        self.wait.unwrap_or_else(|| MIN_WAIT.max(self.time_for(self.k, rate)))
    }

    /// How long packets wait behind a gap if the link has this rate.
    fn hold(&self, rate: BitRate) -> Duration {
        self.hold.unwrap_or_else(|| MIN_HOLD.max(self.time_for(self.n, rate) * 2))
    }

    /// How long a link of this rate takes for so many full packets of each block that is open.
    fn time_for(&self, packets: u8, rate: BitRate) -> Duration {
        rate.time_for(FULL_PACKET + self.header) * (u64::from(packets) * u64::from(self.interleave))
    }

    fn protects_from(&self, end: LinkEnd) -> bool {
        match self.directions {
            Directions::Both => true,
            Directions::Down => end == LinkEnd::BaseStation,
            Directions::Up => end == LinkEnd::MobileHost,
        }
    }
}

impl Scheme for PacketFec {
    fn name(&self) -> &'static str {
        "packet-fec"
    }

    fn summary(&self) -> &'static str {
        "a tunnel over the link adds repair packets, from which its exit recovers lost packets"
    }

    fn source(&self) -> &'static str {
        "RFC 6363, RFC 6865, UDPspeeder"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "both ends of the wireless link",
            products: Some("UDPspeeder, tinyfecVPN, WFB-ng"),
            cost: "repair packets take bandwidth whether anything is lost or not; packets wait behind a loss",
            reads_tcp: false,
            variants: &[
                &[("k", "8"), ("n", "10"), ("interleave", "1")],
                &[("k", "8"), ("n", "12"), ("interleave", "1")],
                &[("k", "8"), ("n", "12"), ("interleave", "4")],
            ],
        })
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let fault = |key: &str, problem: String| (String::from(key), problem);
        let mut faults = Vec::new();
        if self.k == 0 {
            faults.push(fault("k", String::from("found 0, expected at least 1")));
        }
        if self.n < self.k {
            faults.push(fault("n", alloc::format!("found {}, expected at least k = {}", self.n, self.k)));
        }
        if self.interleave == 0 {
            faults.push(fault("interleave", String::from("found 0, expected at least 1")));
        }
        for (key, time) in [("wait", self.wait), ("hold", self.hold)] {
            if time == Some(Duration::ZERO) {
                faults.push(fault(key, String::from("found 0 s, expected more than zero")));
            }
        }
        faults
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.tunnel(|site| Agent {
            end: site.end,
            encoder: self.protects_from(site.end).then(|| Encoder::new(self, site)),
            decoder: Decoder::new(self, site),
        });
    }
}

/// A duration, or `"auto"`.
mod auto {
    use core::fmt;

    use lasthop_base::Duration;
    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => time.serialize(to),
            None => to.serialize_str("auto"),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        struct Stated;
        impl Visitor<'_> for Stated {
            type Value = Option<Duration>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"20 ms\", or \"auto\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Option<Duration>, E> {
                if text == "auto" { Ok(None) } else { text.parse().map(Some).map_err(E::custom) }
            }
        }
        from.deserialize_any(Stated)
    }
}

/// The mobile host of a packet that enters or leaves a wireless link: its destination if it comes from the base station.
fn mobile_host(packet: &Packet, from: LinkEnd) -> HostId {
    match from {
        LinkEnd::BaseStation => packet.dst,
        LinkEnd::MobileHost => packet.src,
    }
}

/// An end of the tunnel: the entrance of one direction and the exit of the other.
#[derive(Debug)]
struct Agent {
    end: LinkEnd,
    /// `None` if the direction is not protected.
    encoder: Option<Encoder>,
    decoder: Decoder,
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        match (port, &mut self.encoder) {
            (Port::WIRED, Some(encoder)) => encoder.receive(now, packet, mobile_host(packet, self.end), out),
            (Port::WIRED, None) => out.send(Port::RADIO, *packet),
            _ => self.decoder.receive(now, packet, out),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        if let Some(encoder) = &mut self.encoder {
            encoder.close_until(now, out);
        }
        self.decoder.give_up_until(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let close = self.encoder.as_ref().map_or(Time::NEVER, Encoder::deadline);
        close.min(self.decoder.deadline())
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        match signal {
            Signal::Encoded(encoded) => self.decoder.learn(encoded),
            Signal::Lost(packet) => self.decoder.note_lost(now, packet, out),
            _ => {}
        }
    }

    fn hears(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    /// Totals of the entrance: source packets and repair packets sent. Totals of the exit: packets recovered; lost and not
    /// recoverable; given up; passed on late, after they were given up; and packets of the code that came when nothing of
    /// their block was missing. Levels: packets that have not arrived, and packets that wait behind a gap, with their peak.
    fn count(&self, tally: &mut dyn Tally) {
        let (sources, repairs) = self.encoder.as_ref().map_or((0, 0), Encoder::sent);
        tally.total("source_packets", sources);
        tally.total("repair_packets", repairs);
        self.decoder.count(tally);
    }
}
