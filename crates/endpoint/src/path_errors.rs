//! ICMP errors about a connection (RFC 1122 section 4.2.3.9, RFC 1191, RFC 5927).

use std::net::SocketAddr;

use lasthop_proto::tcp::SeqNum;
use lasthop_wire::Icmp;

/// Lower bound of the path MTU accepted over IPv4, as in Linux, so that forged errors cannot shrink segments further.
const LEAST_MTU_V4: u32 = 552;
/// The smallest MTU of IPv6 (RFC 8200 section 5).
const LEAST_MTU_V6: u32 = 1280;

/// An ICMP error about a segment that we sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathError {
    /// A packet exceeded the path MTU, in bytes.
    TooBig { mtu: u32 },
    /// The protocol or the port is unreachable: a hard error of RFC 1122 section 4.2.3.9.
    Unreachable,
}

/// The error about a segment from `local` to `remote`, and the sequence number of the segment. `None` for other messages,
/// and for soft errors, which are transient.
pub(crate) fn of(icmp: &Icmp<'_>, local: SocketAddr, remote: SocketAddr) -> Option<(PathError, SeqNum)> {
    let quote = icmp.quote()?;
    let (src_port, dst_port) = quote.ports?;
    let is_ours = (quote.src, src_port) == (local.ip(), local.port())
        && (quote.dst, dst_port) == (remote.ip(), remote.port());
    let seq = quote.seq.filter(|_| is_ours)?;
    let least = if icmp.v6 { LEAST_MTU_V6 } else { LEAST_MTU_V4 };
    let error = match (icmp.next_hop_mtu(), icmp.v6, icmp.code.kind, icmp.code.code) {
        (Some(mtu), ..) => PathError::TooBig { mtu: Some(mtu).filter(|&mtu| mtu >= least)? },
        (None, false, 3, 2 | 3) | (None, true, 1, 4) => PathError::Unreachable,
        _ => return None,
    };
    Some((error, seq))
}
