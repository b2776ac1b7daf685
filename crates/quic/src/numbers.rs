//! The numbers of packets in datagrams, which headers do not hide without TLS.

/// What takes the place of the tag of a packet with this number.
pub(crate) fn tag_of(packet: u64) -> [u8; 16] {
    u128::from(packet).to_be_bytes()
}

/// The number in the tag at the end of a packet; `None` if the end is none.
fn number_in(packet: &[u8]) -> Option<u64> {
    u64::try_from(u128::from_be_bytes(*packet.last_chunk()?)).ok()
}

/// The number of the packet with application data in a datagram (0-RTT or 1-RTT, which share a number space; RFC 9000 section 12.3);
/// `None` if there is none, as in most datagrams of a handshake, and for bytes that are no packets.
pub(crate) fn packet_number(mut datagram: &[u8]) -> Option<u64> {
    const LONG: u8 = 0x80;
    loop {
        let (&first, mut rest) = datagram.split_first()?;
        // quinn hides the other fixed bit (RFC 9287).
        if first & LONG == 0 {
            return number_in(datagram);
        }
        // Section 17.2: the version, which is 0 in what has no number, and two connection ids.
        take(&mut rest, 4).filter(|version| *version != [0; 4])?;
        for _ in 0..2 {
            let length = take(&mut rest, 1)?[0];
            take(&mut rest, length.into())?;
        }
        let kind = first >> 4 & 3;
        match kind {
            INITIAL => {
                let token = variable(&mut rest)?;
                take(&mut rest, token)?;
            }
            RETRY => return None,
            _ => {}
        }
        let length = variable(&mut rest)?;
        let packet = take(&mut rest, length)?;
        if kind == ZERO_RTT {
            return number_in(packet);
        }
        datagram = rest;
    }
}

/// Kinds of long headers.
const INITIAL: u8 = 0;
const ZERO_RTT: u8 = 1;
const RETRY: u8 = 3;

/// Takes `length` bytes from the front.
fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Takes a number of variable length (RFC 9000 section 16).
fn variable(bytes: &mut &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let taken = take(bytes, 1 << (first >> 6))?;
    let more = taken[1..].iter();
    usize::try_from(more.fold(u64::from(first & 0x3f), |number, byte| number << 8 | u64::from(*byte))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with a long header of this kind, or with a short one, and this number.
    fn packet(kind: Option<u8>, number: u64) -> Vec<u8> {
        let body = [&[0; 9][..], &u128::from(number).to_be_bytes()].concat();
        let Some(kind) = kind else { return [&[0x43][..], &body].concat() };
        let token: &[u8] = if kind == INITIAL { &[2, 7, 7] } else { &[] };
        let ids = [8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
        [&[0xc0 | kind << 4, 0, 0, 0, 1][..], &ids, token, &[0x40, body.len() as u8], &body].concat()
    }

    #[test]
    fn numbers_are_those_of_the_packet_with_application_data() {
        let handshake = 2;
        assert_eq!(packet_number(&packet(None, 5_000_000_000)), Some(5_000_000_000));
        let all = [packet(Some(INITIAL), 1), packet(Some(handshake), 2), packet(None, 3)];
        assert_eq!(packet_number(&all.concat()), Some(3));
        let early = packet(Some(ZERO_RTT), 4);
        assert_eq!(packet_number(&[&all[0][..], &early].concat()), Some(4));
        assert_eq!(packet_number(&all[..2].concat()), None);
        assert_eq!(packet_number(&packet(Some(RETRY), 4)), None);
        assert_eq!(packet_number(&packet(None, 7)[..15]), None, "too short for a tag");
        assert_eq!(packet_number(&[&[0x43][..], &[1; 30]].concat()), None, "protection that is not ours");
        (0..early.len()).for_each(|length| assert_eq!(packet_number(&early[..length]), None));
    }
}
