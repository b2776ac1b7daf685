//! Changes of single fields of a packet, in place, with the checksums that cover them.

use lasthop_proto::tcp::{Flags, SackBlocks, SeqNum, Timestamps};
use lasthop_proto::{Dscp, Ecn};

use crate::checksum::replace_word;
use crate::error::{Error, be16};
use crate::ip::IpPacket;
use crate::tcp::option;

/// Sets the ECN field.
///
/// # Errors
/// If the packet cannot be read.
pub fn set_ecn(bytes: &mut [u8], ecn: Ecn) -> Result<(), Error> {
    set_traffic_class(bytes, 0b11, ecn.bits())
}

/// Sets the DSCP field.
///
/// # Errors
/// If the packet cannot be read.
pub fn set_dscp(bytes: &mut [u8], dscp: Dscp) -> Result<(), Error> {
    set_traffic_class(bytes, 0xfc, dscp.get() << 2)
}

/// Sets the bits of `mask` in the octet with DSCP and ECN.
fn set_traffic_class(bytes: &mut [u8], mask: u8, value: u8) -> Result<(), Error> {
    let is_v4 = IpPacket::parse(bytes)?.ip.src.is_ipv4();
    let first = be16(bytes, 0);
    // IPv4: version and header length, then the octet with DSCP and ECN. IPv6: the octet begins four bits later.
    let (shift, checksum_at) = if is_v4 { (0, Some(10)) } else { (4, None) };
    let new = first & !(u16::from(mask) << shift) | u16::from(value) << shift;
    replace_word(bytes, 0, checksum_at, new);
    Ok(())
}

/// Sets the control bits of a TCP segment, with the reserved ones. Other packets are unchanged.
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

/// Sets the sequence number and the acknowledgement number of a TCP segment. Other packets are unchanged.
///
/// # Errors
/// If the packet cannot be read.
pub fn set_tcp_numbers(bytes: &mut [u8], seq: SeqNum, ack: SeqNum) -> Result<(), Error> {
    let packet = IpPacket::parse(bytes)?;
    if packet.tcp().is_some() {
        let at = packet.header_len;
        replace(bytes, at + 4, at + 16, &seq.0.to_be_bytes());
        replace(bytes, at + 8, at + 16, &ack.0.to_be_bytes());
    }
    Ok(())
}

/// Sets the window field of a TCP segment. Other packets are unchanged.
///
/// # Errors
/// If the packet cannot be read.
pub fn set_tcp_window(bytes: &mut [u8], window: u16) -> Result<(), Error> {
    let packet = IpPacket::parse(bytes)?;
    if packet.tcp().is_some() {
        let at = packet.header_len;
        replace(bytes, at + 14, at + 16, &window.to_be_bytes());
    }
    Ok(())
}

/// Sets the timestamps of a TCP segment that has the option. Other packets are unchanged.
///
/// # Errors
/// If the packet cannot be read.
pub fn set_tcp_timestamps(bytes: &mut [u8], timestamps: Timestamps) -> Result<(), Error> {
    let packet = IpPacket::parse(bytes)?;
    let Some(tcp) = packet.tcp() else { return Ok(()) };
    let header = packet.header_len;
    let places = option::places(&bytes[header..header + tcp.header_len], option::TIMESTAMPS);
    let places: Vec<_> = places.filter(|place| place.len() == 10).collect();
    for place in places {
        replace(bytes, header + place.start + 2, header + 16, &timestamps.value.to_be_bytes());
        replace(bytes, header + place.start + 6, header + 16, &timestamps.echo.to_be_bytes());
    }
    Ok(())
}

/// Sets the SACK blocks of a TCP segment, at most as many as it had; the last ones are omitted (RFC 2018
/// section 3: the first is the most recent). With fewer blocks, the rest of the option is padded. Other
/// packets are unchanged.
///
/// # Errors
/// If the packet cannot be read.
pub fn set_tcp_sack(bytes: &mut [u8], sack: &SackBlocks) -> Result<(), Error> {
    let packet = IpPacket::parse(bytes)?;
    let Some(tcp) = packet.tcp() else { return Ok(()) };
    let header = packet.header_len;
    let places: Vec<_> = option::places(&bytes[header..header + tcp.header_len], option::SACK).collect();
    let mut blocks = sack.iter();
    for place in places {
        let room = (place.len() - 2) / 8;
        let kept: Vec<_> = blocks.by_ref().take(room).collect();
        let mut option = vec![option::NOP; place.len()];
        if !kept.is_empty() {
            option[..2].copy_from_slice(&[option::SACK, 2 + 8 * kept.len() as u8]);
        }
        for (to, block) in option[2..].chunks_exact_mut(8).zip(kept) {
            to[..4].copy_from_slice(&block.start.0.to_be_bytes());
            to[4..].copy_from_slice(&block.end.0.to_be_bytes());
        }
        replace(bytes, header + place.start, header + 16, &option);
    }
    Ok(())
}

/// Lowers the maximum segment size in the options of a SYN to `largest`. Other packets are unchanged.
///
/// # Errors
/// If the packet cannot be read.
pub fn clamp_tcp_mss(bytes: &mut [u8], largest: u16) -> Result<(), Error> {
    let packet = IpPacket::parse(bytes)?;
    let Some(tcp) = packet.tcp().filter(|tcp| tcp.header.segment.flags.has(Flags::SYN)) else {
        return Ok(());
    };
    let header = packet.header_len;
    let places = option::places(&bytes[header..header + tcp.header_len], option::MSS);
    let places: Vec<_> = places.filter(|place| place.len() == 4).collect();
    for place in places {
        let at = header + place.start + 2;
        if be16(bytes, at) > largest {
            replace(bytes, at, header + 16, &largest.to_be_bytes());
        }
    }
    Ok(())
}

/// Replaces the bytes from `at` on, and updates the checksum at `checksum_at`. Options may begin at odd
/// offsets.
fn replace(bytes: &mut [u8], at: usize, checksum_at: usize, new: &[u8]) {
    for (at, &byte) in (at..).zip(new) {
        let word = at & !1;
        let mut octets = [bytes[word], bytes[word + 1]];
        octets[at - word] = byte;
        replace_word(bytes, word, Some(checksum_at), u16::from_be_bytes(octets));
    }
}
