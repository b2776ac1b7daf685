//! Internet checksums (RFC 1071): verification, repair, and updates (RFC 1624).

use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;

use crate::error::{Error, be16};
use crate::ip::{IpPacket, Transport};

/// The state of a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It fits the packet.
    Correct,
    /// It does not fit the packet.
    Wrong,
    /// Only the pseudo-header is summed; the network card was to complete it (checksum offload).
    Partial,
    /// The protocol has no checksum, or the sender omitted it.
    Absent,
    /// Some of the covered bytes are missing, in a fragment or a truncated capture.
    Unverifiable,
}

/// A transport protocol's checksum.
struct Field {
    /// Offset of the field in the packet.
    at: usize,
    /// End of the covered bytes, which start after the IP header.
    end: usize,
    /// The pseudo-header, if the protocol includes it.
    pseudo: Option<Sum16BitWords>,
    /// Whether 0 stands for "no checksum".
    may_be_absent: bool,
    is_udp: bool,
}

impl IpPacket<'_> {
    /// The state of the IPv4 header's checksum; IPv6 has none.
    pub fn header_checksum(&self) -> Checksum {
        match self.ip.src {
            IpAddr::V6(_) => Checksum::Absent,
            IpAddr::V4(_) => verdict(sum(&self.bytes[..self.header_len]) == 0),
        }
    }

    /// The state of the checksum of TCP, UDP or ICMP.
    pub fn transport_checksum(&self) -> Checksum {
        let Some(field) = self.transport_field() else { return Checksum::Absent };
        if self.is_cut() || self.fragment.is_some() {
            return Checksum::Unverifiable;
        }
        let stored = be16(self.bytes, field.at);
        if field.may_be_absent && stored == 0 {
            return Checksum::Absent;
        }
        let pseudo = field.pseudo.clone().unwrap_or_default();
        if pseudo.add_slice(&self.bytes[self.header_len..field.end]).ones_complement() == 0 {
            return Checksum::Correct;
        }
        // A card adds to the sum in the field.
        let is_partial = field.pseudo.is_some_and(|pseudo| stored == !pseudo.ones_complement().to_be());
        if is_partial { Checksum::Partial } else { Checksum::Wrong }
    }

    fn transport_field(&self) -> Option<Field> {
        let is_v4 = self.ip.src.is_ipv4();
        let whole = self.len - self.header_len;
        let (offset, len, has_pseudo_header) = match &self.transport {
            Transport::Tcp(_) => (16, whole, true),
            // The packet may be longer than the datagram.
            Transport::Udp(udp) => (6, 8 + udp.payload_len as usize, true),
            Transport::Icmp(_) => (2, whole, !is_v4),
            _ => return None,
        };
        let is_udp = matches!(self.transport, Transport::Udp(_));
        Some(Field {
            at: self.header_len + offset,
            end: self.header_len + len,
            pseudo: has_pseudo_header.then(|| self.pseudo_header(len as u32)),
            may_be_absent: is_udp && is_v4,
            is_udp,
        })
    }

    fn pseudo_header(&self, len: u32) -> Sum16BitWords {
        let addresses = match (self.ip.src, self.ip.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                Sum16BitWords::new().add_4bytes(src.octets()).add_4bytes(dst.octets())
            }
            (src, dst) => {
                let octets = |address| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                Sum16BitWords::new().add_16bytes(octets(src)).add_16bytes(octets(dst))
            }
        };
        addresses.add_2bytes(len_word(len)).add_2bytes([0, self.protocol])
    }
}

/// Both halves of a length in one word: a super-packet can have more than 16 bits.
fn len_word(len: u32) -> [u8; 2] {
    let folded = (len & 0xffff) + (len >> 16);
    ((folded & 0xffff) as u16 + (folded >> 16) as u16).to_be_bytes()
}

fn verdict(fits: bool) -> Checksum {
    if fits { Checksum::Correct } else { Checksum::Wrong }
}

fn sum(bytes: &[u8]) -> u16 {
    Sum16BitWords::new().add_slice(bytes).ones_complement()
}

/// Recomputes the checksums of a whole packet. An omitted UDP checksum stays omitted in IPv4.
///
/// # Errors
/// If the packet cannot be read.
pub fn repair(bytes: &mut [u8]) -> Result<(), Error> {
    repair_before(bytes, 0)
}

/// As [`repair`], of a packet that continues with `zeros` bytes, all zero, after `bytes`.
pub(crate) fn repair_before(bytes: &mut [u8], zeros: usize) -> Result<(), Error> {
    let packet = IpPacket::parse_captured(bytes, bytes.len() + zeros)?;
    let (header_len, is_v4) = (packet.header_len, packet.ip.src.is_ipv4());
    let is_fragment = packet.fragment.is_some();
    let field = packet.transport_field();
    if is_v4 {
        repair_header(&mut bytes[..header_len]);
    }
    let Some(field) = field.filter(|_| !is_fragment) else { return Ok(()) };
    if field.may_be_absent && be16(bytes, field.at) == 0 {
        return Ok(());
    }
    bytes[field.at..field.at + 2].fill(0);
    let total = field.pseudo.unwrap_or_default().add_slice(&bytes[header_len..field.end.min(bytes.len())]);
    let repaired =
        if field.is_udp { total.to_ones_complement_with_no_zero() } else { total.ones_complement() };
    store(bytes, field.at, repaired);
    Ok(())
}

/// Recomputes the checksum of an IPv4 header.
fn repair_header(header: &mut [u8]) {
    header[10..12].fill(0);
    let repaired = sum(header);
    store(header, 10, repaired);
}

/// Leaves the transport's checksum of a whole packet to a network card: its field gets the sum of the pseudo-header. The
/// checksum of an IPv4 header is recomputed.
pub(crate) fn leave_to_card(bytes: &mut [u8]) -> Result<(), Error> {
    let packet = IpPacket::parse(bytes)?;
    let (header_len, is_v4) = (packet.header_len, packet.ip.src.is_ipv4());
    let field = packet.transport_field();
    if is_v4 {
        repair_header(&mut bytes[..header_len]);
    }
    if let Some(Field { at, pseudo: Some(pseudo), .. }) = field {
        store(bytes, at, !pseudo.ones_complement());
    }
    Ok(())
}

/// Completes the checksum that a sender left to its network card: over the bytes from `start` on, into the field at
/// `at`, which has the sum of the pseudo-header.
///
/// # Errors
/// If the field is not within the covered bytes.
pub fn complete(bytes: &mut [u8], start: usize, at: usize) -> Result<(), Error> {
    let needed = at.saturating_add(2);
    if start > at || needed > bytes.len() {
        return Err(Error::Truncated { header: "transport", needed, found: bytes.len() });
    }
    let total = Sum16BitWords::new().add_slice(&bytes[start..]);
    store(bytes, at, total.to_ones_complement_with_no_zero());
    Ok(())
}

/// etherparse sums words in the byte order of the machine.
fn store(bytes: &mut [u8], at: usize, checksum: u16) {
    bytes[at..at + 2].copy_from_slice(&checksum.to_ne_bytes());
}

/// Replaces the word at `at` and updates the checksum at `checksum_at` that covers it (RFC 1624 equation 3).
pub(crate) fn replace_word(bytes: &mut [u8], at: usize, checksum_at: Option<usize>, new: u16) {
    let old = be16(bytes, at);
    bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    let Some(checksum_at) = checksum_at else { return };
    let total = u32::from(!be16(bytes, checksum_at)) + u32::from(!old) + u32::from(new);
    let folded = (total & 0xffff) + (total >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    bytes[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
}
