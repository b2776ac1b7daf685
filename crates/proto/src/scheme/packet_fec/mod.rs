//! Forward error correction across packets.
//!
//! **What it does.** A tunnel over the wireless link. The ingress forwards each packet immediately and adds it to a block.
//! The block closes after `k` packets, or `wait` after its first packet, and the ingress then sends its repair packets:
//! `n - k` for a full block, the same ratio, rounded up, for a shorter one. The egress recovers the lost packets of a block
//! as soon as any `k` of its `n` packets have arrived, as with a Reed-Solomon code. It delivers packets in order: packets
//! behind a gap wait until the gap is repaired or given up. A gap is given up when a block at least `interleave` blocks
//! later is complete, or after `hold`.
//! **Source.** FECFRAME (RFC 6363) and its systematic Reed-Solomon code (RFC 6865); the tunnels UDPspeeder and tinyfecVPN,
//! and WFB-ng for video from drones.
//! **Parameters.**
//! - `k`, `n`: source packets per block, and source plus repair packets per block. Default 8 and 12, as in WFB-ng.
//! - `interleave`: number of open blocks; successive packets go to successive blocks, which spreads a burst of losses.
//!   Default 1.
//! - `wait`: maximum time for which a block stays open. `"auto"`, the default, is the transmission time of a block of
//!   1,500 B packets, at least 10 ms. Shorter times make smaller blocks, hence more repair packets.
//! - `in_order`: whether the egress delivers packets in order. If false, it delivers them as they arrive, and a repaired
//!   loss looks like reordering to TCP. Default true.
//! - `hold`: maximum time for which a packet waits behind a gap. `"auto"`, the default, is twice the transmission time of
//!   all packets of a block, at least 100 ms.
//! - `directions`: `"both"` (default), `"down"` (towards the mobile host) or `"up"`.
//! - `header`: bytes that the tunnel adds to each packet. Default 36 B: IPv4, UDP, and 8 B for the code, as in UDPspeeder.
//!   A repair packet has the length of the longest packet in its block, plus 2 B for the length field. If the total
//!   exceeds the link's MTU, reduce `tcp.packet_size`, as for any tunnel.
//!
//! **Differences from the sources.** Blocks are formed per mobile host. UDPspeeder can also split and merge packets to
//! equal lengths; here packets keep their boundaries (its mode 1). It sends all `n - k` repair packets even for a short
//! block, and delivers packets as they arrive; WFB-ng delivers in order, without a time limit. Sliding-window codes (RFC
//! 8681) are not modelled. The outer header copies the ECN field of the packet (RFC 6040). Repair packets are not
//! ECN-capable, and a CE mark on a lost packet is lost. The outer DSCP is the default, as for UDP sockets, so packets are
//! not reordered by priority; a per-flow queue sees the tunnel as one flow, and a gap delays all flows.

mod decoder;
mod encoder;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use lasthop_base::{BitRate, Bytes, Duration, Time, inline_schema, number, schema};
use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use self::decoder::Decoder;
use self::encoder::{Encoder, LENGTH_FIELD};
use super::directions::Directions;
use super::gateways::gateways_at_both_ends;
use super::{Deployment, Installer, LinkEnd, Products, Scheme, Site};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{HostId, Packet};
use crate::tcp::Settings;

/// Packet length from which the `"auto"` times are computed.
const FULL_PACKET: Bytes = Bytes(1_500);

/// Lower bound of `wait = "auto"`. UDPspeeder's default is 8 ms.
const MIN_WAIT: Duration = Duration::from_millis(10);

/// Lower bound of `hold = "auto"`: leaves time for cross traffic and for ARQ attempts.
const MIN_HOLD: Duration = Duration::from_millis(100);

/// Forward error correction across packets.
///
/// A k-of-n erasure code across packets, in both directions of each wireless link. It must be last in a
/// combination, such as `"snoop + packet-fec"`, since other agents cannot see packets in its tunnel. Schemes
/// that need the losses of individual packets, such as `ebsn`, cannot be combined with it. A per-flow queue,
/// such as `fq-codel`, treats the tunnel as one flow.
///
/// A full packet with the header exceeds an MTU of 1,500 B. If the link has an `mtu`, reduce `packet_size` in
/// `[tcp]`, like the MTU of a real tunnel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacketFec {
    /// Source packets per block, 1 to 255.
    pub k: u8,
    /// Source and repair packets per block, `k` to 255. WFB-ng's default is 8 of 12, the example of
    /// UDPspeeder 20 of 30.
    pub n: u8,
    /// Number of open blocks, 1 to 255. Successive packets go to successive blocks, which spreads a burst of
    /// losses.
    pub interleave: u8,
    /// Maximum time for which a block stays open: by default the transmission time of a block, at least 10
    /// ms. A block that closes early gets the same ratio of repair packets, rounded up. Source packets are
    /// forwarded immediately.
    #[serde(with = "Auto")]
    pub wait: Option<Duration>,
    /// Whether the egress delivers packets in order.
    pub in_order: bool,
    /// Maximum wait of packets behind a gap: by default twice the transmission time of all packets of a
    /// block, at least 100 ms.
    #[serde(with = "Auto")]
    pub hold: Option<Duration>,
    /// `"both"`, `"down"` (towards the mobile host) or `"up"`.
    pub directions: Directions,
    /// Bytes added to each packet.
    pub header: Bytes,
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
    /// Number of blocks behind the latest one for which the egress keeps state.
    pub const REMEMBERED: u32 = 256;

    /// The number of repair packets for a block of `sources` source packets.
    fn repairs(&self, sources: u8) -> u8 {
        let spare = u32::from(self.n - self.k);
        (u32::from(sources) * spare).div_ceil(u32::from(self.k)) as u8
    }

    /// Maximum time for which a block stays open on a link of `rate`.
    fn wait(&self, rate: BitRate) -> Duration {
        self.wait.unwrap_or_else(|| MIN_WAIT.max(self.time_for(self.k, rate)))
    }

    /// Maximum time for which packets wait behind a gap on a link of `rate`.
    pub fn hold(&self, rate: BitRate) -> Duration {
        self.hold.unwrap_or_else(|| MIN_HOLD.max(self.time_for(self.n, rate) * 2))
    }

    /// Transmission time of `packets` full packets of each open block.
    fn time_for(&self, packets: u8, rate: BitRate) -> Duration {
        rate.time_for(FULL_PACKET + self.header) * (u64::from(packets) * u64::from(self.interleave))
    }

    /// An end of the tunnel, at one end of the wireless link.
    pub fn end(&self, site: &Site<'_>) -> TunnelEnd {
        TunnelEnd {
            end: site.end,
            encoder: self.directions.include_from(site.end).then(|| Encoder::new(self, site)),
            decoder: Decoder::new(self, site),
        }
    }
}

impl Scheme for PacketFec {
    fn name(&self) -> &'static str {
        "packet-fec"
    }

    fn summary(&self) -> &'static str {
        "a tunnel over the link adds repair packets, from which its far end recovers lost packets"
    }

    fn source(&self) -> &'static str {
        "RFC 6363, RFC 6865, UDPspeeder"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "both ends of the wireless link",
            products: Some(Products {
                names: "lasthop gateway at both ends; tinyfecVPN, UDPspeeder, WFB-ng",
                owner: "a Linux box at each end of the wireless link: yours, with a server beyond it that you run",
                commands: gateways_at_both_ends!(
                    "packet-fec",
                    [
                        "rate = \"RATE\"",
                        "",
                        "[scheme.packet-fec]",
                        "k = {k}",
                        "n = {n}",
                        "interleave = {interleave}",
                    ],
                    []
                ),
                note: "PEER is the address of the other end, which one of the two must state; NETWORK what lies behind it, or \
                       0.0.0.0/0; RATE the link's towards the other end, such as 20 Mbps; `lasthop gateway report` then \
                       shows what it gains over the tenth of the flows that it leaves alone",
            }),
            cost: "repair packets take bandwidth whether anything is lost or not; packets wait behind a loss",
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

    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.tunnel(self.directions, self.header + LENGTH_FIELD, |site| self.end(site));
    }
}

/// A duration, or `"auto"`.
struct Auto;

impl Auto {
    fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => time.serialize(to),
            None => to.serialize_str("auto"),
        }
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        struct DurationOrAuto;
        impl<'de> Visitor<'de> for DurationOrAuto {
            type Value = Option<Duration>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"20 ms\", or \"auto\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Option<Duration>, E> {
                if text == "auto" { Ok(None) } else { text.parse().map(Some).map_err(E::custom) }
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                number: D,
            ) -> Result<Option<Duration>, D::Error> {
                number::read(number).map(Some)
            }
        }
        from.deserialize_any(DurationOrAuto)
    }
}

inline_schema!(Auto, |generator| schema::any([
    generator.subschema_for::<Duration>(),
    schema::words(&["auto"]),
]));

/// The mobile host of a packet on a wireless link: its destination if sent from the base station, else its source.
fn mobile_host(packet: &Packet, from: LinkEnd) -> HostId {
    match from {
        LinkEnd::BaseStation => packet.dst,
        LinkEnd::MobileHost => packet.src,
    }
}

/// One end of the tunnel: the ingress of one direction and the egress of the other.
///
/// Packets that it is to protect enter by [`Port::WIRED`]. For each, it signals [`Encoded`](crate::Encoded) and sends a
/// [`Coded`](crate::Coded) packet by [`Port::RADIO`]; repair packets follow when a block closes. The other end needs the
/// signals in their order: in a simulation it watches this one, and over a real link they are inferred from headers.
#[derive(Debug)]
pub struct TunnelEnd {
    end: LinkEnd,
    /// `None` if the direction is not protected.
    encoder: Option<Encoder>,
    decoder: Decoder,
}

impl TunnelEnd {
    /// Changes the number of source and repair packets of full blocks that close from now on. At least `k` are sent.
    pub fn set_n(&mut self, n: u8) {
        if let Some(encoder) = &mut self.encoder {
            encoder.set_n(n);
        }
    }
}

impl Component for TunnelEnd {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        match (port, &mut self.encoder) {
            (Port::WIRED, Some(encoder)) => encoder.receive(now, packet, mobile_host(packet, self.end), out),
            (Port::WIRED, None) => out.send(Port::RADIO, *packet),
            _ => self.decoder.receive(now, packet, out),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        if let Some(encoder) = &mut self.encoder {
            encoder.close_expired(now, out);
        }
        self.decoder.give_up_expired(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let close = self.encoder.as_ref().map_or(Time::NEVER, Encoder::deadline);
        close.min(self.decoder.deadline())
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        match signal {
            Signal::Encoded(encoded) => self.decoder.on_encoded(encoded),
            Signal::Lost(packet) => self.decoder.on_lost(now, packet, out),
            _ => {}
        }
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.decoder.kept(visit);
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    /// Totals of the ingress: source and repair packets sent. Totals of the egress: packets recovered; lost beyond
    /// recovery; given up; delivered after they were given up; and packets that arrived when nothing of their block was
    /// missing. Levels: packets that have not arrived, and packets that wait behind a gap, with their peak.
    fn count(&self, tally: &mut dyn Tally) {
        let (sources, repairs) = self.encoder.as_ref().map_or((0, 0), Encoder::sent);
        tally.total("source_packets", sources);
        tally.total("repair_packets", repairs);
        self.decoder.count(tally);
    }
}
