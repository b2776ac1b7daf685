//! Changes of single fields of a packet, in place, with the checksums that cover them.

use lasthop_proto::Ecn;
use lasthop_proto::tcp::Flags;

use crate::checksum::replace_word;
use crate::error::{Error, be16};
use crate::ip::IpPacket;

/// Sets the ECN field.
///
/// # Errors
/// If the packet cannot be read.
pub fn set_ecn(bytes: &mut [u8], ecn: Ecn) -> Result<(), Error> {
    let is_v4 = IpPacket::parse(bytes)?.ip.src.is_ipv4();
    let first = be16(bytes, 0);
    // IPv4: version and header length, then the octet with DSCP and ECN. IPv6: the octet begins four bits later.
    let (shift, checksum_at) = if is_v4 { (0, Some(10)) } else { (4, None) };
    let new = first & !(0b11 << shift) | u16::from(ecn.bits()) << shift;
    replace_word(bytes, 0, checksum_at, new);
    Ok(())
}

/// Sets the control bits of a TCP segment, with the reserved ones. Other packets stay as they are.
///
/// # Errors
/// If the packet cannot be read.
pub fn set_tcp_flags(bytes: &mut [u8], flags: Flags) -> Result<(), Error> {
    let packet = IpPacket::parse(bytes)?;
    if packet.tcp().is_none() {
        return Ok(());
    }
    let at = packet.header_len;
    let new = be16(bytes, at + 12) & 0xf000 | flags.0 & 0x0fff;
    replace_word(bytes, at + 12, Some(at + 16), new);
    Ok(())
}
