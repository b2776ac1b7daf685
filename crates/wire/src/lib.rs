//! Real packets: from bytes to typed headers and back.
//!
//! [`IpPacket::parse`] reads IPv4 and IPv6 with extension headers, TCP with its options, UDP, and ICMP errors with
//! the packet that they quote; [`LinkType`] finds the IP packet in a captured frame. [`mod@write`] is the inverse.
//! [`edit`] changes fields of a packet in place, and [`checksum`] verifies and repairs it.
//!
//! ```text
//! frame ──> LinkType ──> IpPacket ──> Transport: Tcp, Udp, Icmp (quotes another IpPacket)
//!                           ^                 │
//! bytes <── write <─────────┴─────────────────┘
//! ```
//!
//! All input is hostile: no input panics, and work is linear in its length.
//!
//! ```
//! use lasthop_wire::{IpPacket, LinkType, Transport};
//!
//! // A pure ACK with two SACK blocks, as captured on Ethernet.
//! let frame = [
//!     0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00, // Ethernet, IPv4
//!     0x45, 0, 0, 0x3c, 0, 1, 0x40, 0, 64, 6, 0x26, 0xb9, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
//!     0x13, 0x89, 0xc0, 0, 0, 0, 0, 1, 0, 0, 3, 0xe8, 0xa0, 0x10, 0x02, 0, 0, 0, 0, 0, // TCP
//!     1, 1, 5, 18, 0, 0, 0x0f, 0xa0, 0, 0, 0x13, 0x88, 0, 0, 0x07, 0xd0, 0, 0, 0x0b, 0xb8, // SACK
//! ];
//! let link_type = LinkType::from_pcap(1).expect("Ethernet");
//! let packet = IpPacket::from_frame(link_type, &frame, frame.len())?;
//! let Transport::Tcp(tcp) = packet.transport else { panic!("a TCP segment") };
//! assert_eq!((tcp.header.segment.ack.0, tcp.header.segment.sack.len()), (1000, 2));
//! # Ok::<(), lasthop_wire::Error>(())
//! ```
//!
//! Libraries: etherparse reads and writes the headers. Its iterator over TCP options ends at the first unknown kind,
//! and that of smoltcp keeps three SACK blocks of four, so options are read here. Tests compare all three.

pub mod checksum;
pub mod edit;
mod encapsulation;
mod error;
mod icmp;
mod ip;
mod link;
pub mod offload;
mod rtp;
mod tcp;
mod tunnel;
pub mod virtio;
mod wifi;
pub mod write;

pub use checksum::Checksum;
pub use encapsulation::Framed;
pub use error::Error;
pub use icmp::{Icmp, Quote};
pub use ip::{Fragment, Ip, IpPacket, Transport, Udp};
pub use link::LinkType;
pub use rtp::Rtp;
pub use tcp::{Tcp, TcpHeader};
pub use tunnel::Tunnelled;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
