//! 802.11 frames of a monitor interface.

use crate::encapsulation::{Framed, llc};
use crate::error::{Error, be16, be32, header};

const NAME: &str = "802.11";

/// The packet in a data frame (IEEE 802.11-2020 section 9.3.2), the first one if it has several.
pub(crate) fn data(frame: &[u8]) -> Result<Framed<'_>, Error> {
    const DATA: u8 = 0x08;
    const EMPTY: u8 = 0x40;
    const WITH_QOS: u8 = 0x80;
    const FOUR_ADDRESSES: u8 = 0x03;
    const MORE_FRAGMENTS: u8 = 0x04;
    const PROTECTED: u8 = 0x40;
    const ORDER: u8 = 0x80;
    const A_MSDU: u8 = 0x80;
    let &[kind, flags] = header(frame, NAME, 2)? else { unreachable!("two bytes") };
    if kind & 0x0f != DATA || kind & EMPTY != 0 {
        return Err(Error::NoData { link: NAME });
    }
    if flags & PROTECTED != 0 {
        return Err(Error::Encrypted { by: "Wi-Fi" });
    }
    let has_qos = kind & WITH_QOS != 0;
    let mut len = if flags & FOUR_ADDRESSES == FOUR_ADDRESSES { 30 } else { 24 };
    let mut is_aggregated = false;
    if has_qos {
        is_aggregated = header(frame, NAME, len + 2)?[len] & A_MSDU != 0;
        len += if flags & ORDER != 0 { 6 } else { 2 };
    }
    let fragment = be16(header(frame, NAME, len)?, 22).swap_bytes() & 0x0f;
    if flags & MORE_FRAGMENTS != 0 || fragment > 0 {
        return Err(Error::Malformed { header: NAME, problem: "a fragment of a packet" });
    }
    if is_aggregated {
        return subframe(&frame[len..]);
    }
    // Some cards pad the header to four bytes.
    let padded = frame.get(len..len + 5) == Some(&[0, 0, 0xaa, 0xaa, 0x03]);
    contents(&frame[len + 2 * usize::from(padded)..], &[])
}

/// The packet in the first subframe of an A-MSDU: addresses, length, contents, and padding to four bytes.
pub(crate) fn subframe(bytes: &[u8]) -> Result<Framed<'_>, Error> {
    const HEADER: usize = 14;
    let end = HEADER + usize::from(be16(header(bytes, "A-MSDU", HEADER)?, 12));
    let aggregated = bytes.get(end.next_multiple_of(4)..).unwrap_or_default();
    // What is shorter than a header is the check sequence.
    let aggregated = if aggregated.len() > HEADER { aggregated } else { &[] };
    contents(&bytes[HEADER..end.min(bytes.len())], aggregated)
}

fn contents<'a>(bytes: &'a [u8], aggregated: &'a [u8]) -> Result<Framed<'a>, Error> {
    let (protocol, bytes) = llc(bytes)?;
    Ok(Framed { aggregated, ..Framed::new(protocol, bytes) })
}

/// A header of little-endian fields that states its length.
pub(crate) fn radiotap(frame: &[u8]) -> Result<Framed<'_>, Error> {
    let len = usize::from(be16(header(frame, "radiotap", 4)?, 2).swap_bytes());
    behind(frame, "radiotap", len)
}

/// The header of AVS, which is big-endian and begins with a version, or that of Prism, little-endian on most hosts.
pub(crate) fn prism(frame: &[u8]) -> Result<Framed<'_>, Error> {
    const PRISM: usize = 144;
    let fields = header(frame, "Prism", 8)?;
    let is_avs = be32(fields, 0) & 0xffff_f000 == 0x8021_1000;
    behind(frame, "Prism", if is_avs { be32(fields, 4) as usize } else { PRISM })
}

fn behind<'a>(frame: &'a [u8], name: &'static str, len: usize) -> Result<Framed<'a>, Error> {
    header(frame, name, len)?;
    data(&frame[len..])
}
