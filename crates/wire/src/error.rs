use std::fmt;

use etherparse::err::LenError;

/// The reason why an IP packet cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end within a header.
    Truncated {
        /// The header.
        header: &'static str,
        /// Number of bytes needed.
        needed: usize,
        /// Number of bytes present.
        found: usize,
    },
    /// A header contradicts itself or the length of the frame.
    Malformed {
        /// The header.
        header: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// The frame carries a protocol other than IP.
    NotIp {
        /// Its EtherType, service access point (LLC) or PPP protocol, or the address family of a BSD loopback frame.
        protocol: u32,
    },
    /// The frame carries no data: it manages the link, or is empty.
    NoData {
        /// The link.
        link: &'static str,
    },
    /// The contents of the frame are encrypted.
    Encrypted {
        /// The protocol that encrypts them.
        by: &'static str,
    },
    /// The packet's length does not fit its length field.
    TooLong {
        /// Length of the packet in bytes.
        len: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::Truncated { header, needed, found } => {
                write!(f, "the {header} header is cut off: it needs {needed} bytes, and {found} are there")
            }
            Error::Malformed { header, problem } => write!(f, "malformed {header} header: {problem}"),
            Error::NotIp { protocol } => {
                let name = match protocol {
                    0x0042 => " (spanning tree)",
                    0x0806 => " (ARP)",
                    0x8863 | 0x8864 => " (PPPoE)",
                    0x8847 | 0x8848 => " (MPLS)",
                    0x888e => " (EAPOL)",
                    0x8892 => " (PROFINET)",
                    0x88cc => " (LLDP)",
                    0x88f7 => " (PTP)",
                    0x4305 => " (B.A.T.M.A.N.)",
                    _ => "",
                };
                write!(f, "not an IP packet: protocol {protocol:#06x}{name}")
            }
            Error::NoData { link } => write!(f, "the {link} frame carries no data"),
            Error::Encrypted { by } => write!(f, "the packet is encrypted by {by}"),
            Error::TooLong { len } => {
                write!(f, "a packet of {len} bytes; at most 65,535 fit its length field")
            }
        }
    }
}

impl std::error::Error for Error {}

/// The error of a library that a header is cut off.
pub(crate) fn cut_off(header: &'static str, error: &LenError) -> Error {
    Error::Truncated { header, needed: error.required_len, found: error.len }
}

/// The first `needed` bytes of a header.
pub(crate) fn header<'a>(bytes: &'a [u8], header: &'static str, needed: usize) -> Result<&'a [u8], Error> {
    bytes.get(..needed).ok_or(Error::Truncated { header, needed, found: bytes.len() })
}

/// The big-endian word at `at`, which must be within `bytes`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The big-endian number at `at`, which must be within `bytes`.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
