//! The outer headers of datagrams: between which ends, and how the path treats them.

use std::net::{IpAddr, SocketAddr};

use lasthop_proto::{Dscp, Ecn};
use lasthop_wire::edit;

/// The ends of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The other end.
    pub peer: SocketAddr,
    /// The address of this one, if it is not left to the routes.
    pub local: Option<IpAddr>,
}

/// From wherever routes lead.
impl From<SocketAddr> for Ends {
    fn from(peer: SocketAddr) -> Ends {
        Ends { peer, local: None }
    }
}

/// The octet of DSCP and ECN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tos {
    /// The forwarding that a packet asks for.
    pub dscp: Dscp,
    /// Whether queues may mark it, or have.
    pub ecn: Ecn,
}

impl Tos {
    /// That of an IP packet; the default for what is none.
    pub fn of(packet: &[u8]) -> Tos {
        match packet {
            [first, second, ..] if first >> 4 == 4 => Tos::from(*second),
            [first, second, ..] if first >> 4 == 6 => Tos::from(first << 4 | second >> 4),
            _ => Tos::default(),
        }
    }

    /// The octet.
    pub fn octet(self) -> u8 {
        self.dscp.get() << 2 | self.ecn.bits()
    }
}

impl From<u8> for Tos {
    fn from(octet: u8) -> Tos {
        Tos { dscp: Dscp::new(octet >> 2), ecn: Ecn::from_bits(octet) }
    }
}

/// What becomes of a packet that leaves the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// It has the ECN with which it has entered.
    Kept,
    /// It has that of its datagram.
    Marked,
    /// It is to be dropped: a queue has marked the datagram, and the ends of the packet know no marks.
    Unmarkable,
}

/// Gives a packet the mark of the datagram that has carried it (RFC 6040 section 4.2).
pub fn decapsulate(packet: &mut [u8], outer: Ecn) -> Marking {
    let inner = Tos::of(packet).ecn;
    let mark = match (inner, outer) {
        (Ecn::NotEct, Ecn::Ce) => return Marking::Unmarkable,
        (Ecn::Ect0 | Ecn::Ect1, Ecn::Ce) => Ecn::Ce,
        (Ecn::Ect0, Ecn::Ect1) => Ecn::Ect1,
        _ => return Marking::Kept,
    };
    match edit::set_ecn(packet, mark) {
        Ok(()) => Marking::Marked,
        // What cannot be read, the kernel does not take.
        Err(_) => Marking::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of each version of IP.
    fn packets(tos: u8) -> [Vec<u8>; 2] {
        let mut ipv4 = vec![0x45, tos, 0, 20, 0, 0, 0, 0, 64, 59, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let sum: u32 = ipv4.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        ipv4[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut ipv6 = vec![0; 40];
        (ipv6[0], ipv6[1], ipv6[6], ipv6[23], ipv6[39]) = (0x60 | tos >> 4, tos << 4, 59, 1, 2);
        [ipv4, ipv6]
    }

    /// Figure 4 of RFC 6040.
    #[test]
    fn marks_of_the_path_reach_the_packets() {
        const DSCP: u8 = 46 << 2;
        let [not, ect0, ect1, ce] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        for (inner, expected) in [
            (not, [Some(not), Some(not), Some(not), None]),
            (ect0, [Some(ect0), Some(ect0), Some(ect1), Some(ce)]),
            (ect1, [Some(ect1), Some(ect1), Some(ect1), Some(ce)]),
            (ce, [Some(ce), Some(ce), Some(ce), Some(ce)]),
        ] {
            for (outer, expected) in [not, ect0, ect1, ce].into_iter().zip(expected) {
                for mut packet in packets(DSCP | inner.bits()) {
                    let before = packet.clone();
                    let marking = decapsulate(&mut packet, outer);
                    assert_eq!(marking == Marking::Unmarkable, expected.is_none(), "{inner:?} in {outer:?}");
                    let Some(expected) = expected else { continue };
                    assert_eq!(packet, packets(DSCP | expected.bits())[usize::from(before[0] >> 4 == 6)]);
                    assert_eq!(marking == Marking::Marked, packet != before, "{inner:?} in {outer:?}");
                    assert_eq!(Tos::of(&packet).octet(), DSCP | expected.bits());
                }
            }
        }
        assert_eq!(decapsulate(&mut [7, 7], ce), Marking::Unmarkable, "no packet");
    }
}
