//! Settings of QUIC connections in a scenario, common to all stacks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use lasthop_base::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::application::SERVER_FLIGHT;

/// Settings of the connections whose sender is a QUIC stack. Both ends have the same.
///
/// ```toml
/// sender = "quinn-cubic"
///
/// [quic]
/// mtu = "1452 B"
/// mtu_discovery = true
/// tick = "1 ms"
/// ```
///
/// The handshake and the packets have the sizes of TLS 1.3, without cryptography unless `tls` is set. Packets are ECN-capable, as those of the
/// stacks are: a queue may mark them. A connection without packets for 30 s is given up; the client of an application connects
/// again for the requests without response, or for the next one.
///
/// The destination of a transfer is the client: it connects at the start, and the source, which is the server, sends the
/// data on one stream. An application has one connection with a stream for each request, at most 100 of them at a time; so has a
/// shell for each keystroke, unless `one_stream` is set. Of the responses that are ready, the server sends that to the earliest request first (RFC 9218 section 10). What was lost delays
/// no other stream. While the user thinks, the client sends a packet every 15 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Settings {
    /// Largest UDP payload. With IP and UDP headers of 28 bytes, the default makes packets of 1,500 bytes, as those of TCP.
    pub mtu: Bytes,
    /// Whether the ends begin with payloads of 1,200 bytes and discover that `mtu` passes (RFC 8899). Otherwise they know it.
    pub mtu_discovery: bool,
    /// Flow-control window of a stream. The sender buffers eight times as much. The default is quinn's, for 100 Mb/s and
    /// 100 ms.
    pub window: Bytes,
    /// The number of later packets whose acknowledgement declares a packet lost (RFC 9002 section 6.1.1), 3 to 1,000. With more,
    /// packets may arrive late without harm, and losses are detected later.
    #[schemars(range(min = *Settings::PACKET_THRESHOLDS.start(), max = *Settings::PACKET_THRESHOLDS.end()))]
    pub packet_threshold: u32,
    /// Packets per acknowledgement, 1 to 1,000. With another number than 2, or another `ack_delay`, the sender asks the receiver for
    /// it (draft-ietf-quic-ack-frequency), and for an acknowledgement at once only of packets that are `packet_threshold` - 1 out of
    /// order. More than 2 spare the uplink, or the air that both directions share.
    #[schemars(range(min = 1, max = Settings::MOST_PER_ACK))]
    pub ack_every: u32,
    /// Longest delay of an acknowledgement; quinn asks for no more than a round trip or 25 ms,
    /// whichever is longer.
    pub ack_delay: Duration,
    /// Largest number of datagrams that one call to the stack returns, as with segmentation offload. Pacing spaces batches.
    /// Ends that leave at the rate of a control (`quinn-linux-bbr`, `quinn-linux-bbr3`) send one at a time.
    #[schemars(range(min = 1, max = Settings::MOST_BATCH))]
    pub batch: u32,
    /// Timers expire at multiples of this: 1 ms with quinn's usual runtime. By default they are exact.
    pub tick: Duration,
    /// Size of the server's handshake messages, most of it the chain of certificates; the default is that of TLS over TCP.
    /// Until the client's address is validated (RFC 9000 section 8.1), quinn sends no datagram after 3,600 bytes: with the
    /// default `mtu`, more than 4.2 kB take another round trip. Compressed certificates (RFC 8879) have 2 to 3 kB.
    pub handshake: Bytes,
    /// Whether an earlier session is resumed, without certificates: the client's first requests leave with its first packets
    /// (0-RTT, RFC 9001 section 4.6), and the server answers at once. Transfers start as without.
    pub zero_rtt: bool,
    /// Whether an application has one stream for all of its requests, as a shell of SSH has: a loss then delays what follows, as
    /// over TCP.
    pub one_stream: bool,
    /// Whether packets are protected by TLS 1.3, of rustls with TLS_AES_128_GCM_SHA256, X25519 and Ed25519. Captures then have the
    /// bytes of real packets and the secrets for them, by which Wireshark shows what is in them; traces lack their numbers. Sizes
    /// are those of the messages that rustls writes, with a certificate as long as `handshake` asks for, and one ticket if
    /// `zero_rtt` is set. A packet costs several times as much processor time.
    pub tls: bool,
}

impl Settings {
    /// Headers of IPv4 and UDP.
    pub const HEADERS: Bytes = Bytes(28);

    /// The smallest datagram that a path must carry (RFC 9000 section 14).
    pub const LEAST_MTU: Bytes = Bytes(1200);

    /// The size of a packet with such a payload, as of a client's first one (RFC 9000 section 14.1).
    pub const LEAST_PACKET: Bytes = Bytes(Settings::LEAST_MTU.0 + Settings::HEADERS.0);

    /// That of jumbo frames. quinn begins with a window of 12,000 bytes, which no datagram of that size or more would ever leave.
    const MOST_MTU: Bytes = Bytes(9000);

    const MOST_WINDOW: Bytes = Bytes(1 << 30);

    /// A lower threshold than that of RFC 9002 takes usual reordering for losses.
    const PACKET_THRESHOLDS: RangeInclusive<u32> = 3..=1_000;

    const MOST_PER_ACK: u32 = 1_000;

    /// quinn's own upper bound is 10.
    const MOST_BATCH: u32 = 64;

    /// The size of a full packet.
    pub fn packet_size(&self) -> Bytes {
        self.mtu + Settings::HEADERS
    }

    /// Invalid settings: the key of each, and what was found and expected.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let bytes = |key, found: Bytes, least: Bytes, most: Bytes| {
            let is_valid = (least..=most).contains(&found);
            (!is_valid).then(|| (key, format!("found \"{found}\", expected from \"{least}\" to \"{most}\"")))
        };
        let batch = (self.batch == 0 || self.batch > Settings::MOST_BATCH).then(|| {
            ("batch", format!("found {}, expected from 1 to {} datagrams", self.batch, Settings::MOST_BATCH))
        });
        let packets = Settings::PACKET_THRESHOLDS;
        let (least, most) = (packets.start(), packets.end());
        let threshold = (!packets.contains(&self.packet_threshold)).then(|| {
            let found = self.packet_threshold;
            ("packet_threshold", format!("found {found}, expected from {least} to {most} packets"))
        });
        let ack_every = (self.ack_every == 0 || self.ack_every > Settings::MOST_PER_ACK).then(|| {
            (
                "ack_every",
                format!("found {}, expected from 1 to {} packets", self.ack_every, Settings::MOST_PER_ACK),
            )
        });
        let delays = Duration::from_millis(1)..=Duration::from_secs(1);
        let ack_delay = (!delays.contains(&self.ack_delay)).then(|| {
            ("ack_delay", format!("found \"{}\", expected from \"1 ms\" to \"1 s\"", self.ack_delay))
        });
        let longest = Duration::from_millis(100);
        let tick = (self.tick > longest)
            .then(|| ("tick", format!("found \"{}\", expected at most \"{longest}\"", self.tick)));
        let why = ", since quinn begins with a window of 12 KB, which must hold more than a datagram";
        let mtu = bytes("mtu", self.mtu, Settings::LEAST_MTU, Settings::MOST_MTU)
            .map(|(key, problem)| (key, if self.mtu > Settings::MOST_MTU { problem + why } else { problem }));
        let sizes = [
            mtu,
            bytes("window", self.window, Bytes(2 * self.mtu.0), Settings::MOST_WINDOW),
            bytes("handshake", self.handshake, Bytes(200), Bytes(60_000)),
        ];
        sizes.into_iter().chain([threshold, ack_every, ack_delay, batch, tick]).flatten().collect()
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mtu: Bytes(1472),
            mtu_discovery: false,
            window: Bytes(1_250_000),
            packet_threshold: 3,
            ack_every: 2,
            ack_delay: Duration::from_millis(25),
            batch: 10,
            tick: Duration::ZERO,
            handshake: SERVER_FLIGHT,
            zero_rtt: false,
            one_stream: false,
            tls: false,
        }
    }
}
