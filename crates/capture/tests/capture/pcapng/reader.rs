//! A reader of pcapng files.

use etherparse::checksum::Sum16BitWords;
use etherparse::{Icmpv4Header, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, UdpHeader};

/// A pcapng file of one little-endian section, as the format's draft describes it.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) records: Vec<Record>,
}

#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) link_type: u16,
    pub(crate) snap_len: u32,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) resolution: u8,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) interface: u32,
    pub(crate) ticks: u64,
    pub(crate) original_len: u32,
    pub(crate) captured: Vec<u8>,
    pub(crate) comment: Option<String>,
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The first option with this code.
pub(crate) fn option(mut options: &[u8], code: u16) -> Option<&[u8]> {
    while !options.is_empty() {
        let (found, len) = (u16_at(options, 0), usize::from(u16_at(options, 2)));
        if found == code {
            return Some(&options[4..4 + len]);
        }
        options = &options[4 + len.next_multiple_of(4)..];
    }
    None
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl File {
    pub(crate) fn parse(mut bytes: &[u8]) -> File {
        let mut file = File::default();
        while !bytes.is_empty() {
            let len = u32_at(bytes, 4) as usize;
            assert_eq!(u32_at(bytes, len - 4) as usize, len, "a block says its length twice");
            file.add(u32_at(bytes, 0), &bytes[8..len - 4]);
            bytes = &bytes[len..];
        }
        file
    }

    pub(crate) fn add(&mut self, kind: u32, body: &[u8]) {
        match kind {
            0x0a0d_0d0a => assert_eq!(u32_at(body, 0), 0x1a2b_3c4d, "the byte order"),
            1 => self.interfaces.push(Interface {
                link_type: u16_at(body, 0),
                snap_len: u32_at(body, 4),
                name: text(option(&body[8..], 2).unwrap()),
                description: text(option(&body[8..], 3).unwrap()),
                resolution: option(&body[8..], 9).unwrap()[0],
            }),
            6 => {
                let captured = u32_at(body, 12) as usize;
                self.records.push(Record {
                    interface: u32_at(body, 0),
                    ticks: u64::from(u32_at(body, 4)) << 32 | u64::from(u32_at(body, 8)),
                    original_len: u32_at(body, 16),
                    captured: body[20..20 + captured].to_vec(),
                    comment: option(&body[20 + captured.next_multiple_of(4)..], 1).map(text),
                });
            }
            other => panic!("a block of unknown kind {other}"),
        }
    }
}

impl Record {
    /// The IP header, with verified checksum and length, and the payload.
    pub(crate) fn ip(&self) -> (Ipv4Header, &[u8]) {
        let (ip, rest) = Ipv4Header::from_slice(&self.captured).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(u32::from(ip.total_len), self.original_len);
        assert_eq!(ip.time_to_live, 64);
        (ip, rest)
    }

    /// The TCP header, its checksum verified over a payload of zeros, and the payload length.
    pub(crate) fn tcp(&self) -> (TcpHeader, usize) {
        let (ip, rest) = self.ip();
        let (tcp, rest) = TcpHeader::from_slice(rest).unwrap();
        assert!(rest.is_empty(), "no payload is captured");
        let len = self.original_len as usize - self.captured.len();
        assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &vec![0; len]).unwrap());
        (tcp, len)
    }

    /// The UDP header, its checksum verified over a payload of zeros.
    pub(crate) fn udp(&self) -> UdpHeader {
        let (ip, rest) = self.ip();
        assert_eq!(ip.protocol, IpNumber::UDP);
        let (udp, rest) = UdpHeader::from_slice(rest).unwrap();
        assert!(rest.is_empty(), "no payload is captured");
        let payload = vec![0; self.original_len as usize - self.captured.len()];
        assert_eq!(usize::from(udp.length), UdpHeader::LEN + payload.len());
        assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, &payload).unwrap());
        udp
    }

    /// The ICMP header, its checksum verified, and the quoted header and data.
    pub(crate) fn icmp(&self) -> (Icmpv4Header, Ipv4Header, &[u8]) {
        let (_, message) = self.ip();
        assert_eq!(Sum16BitWords::new().add_slice(message).ones_complement(), 0);
        let (icmp, quote) = Icmpv4Header::from_slice(message).unwrap();
        let (ip, data) = Ipv4Header::from_slice(quote).unwrap();
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        (icmp, ip, data)
    }
}

pub(crate) fn options(tcp: &TcpHeader) -> Vec<TcpOptionElement> {
    let all = tcp.options_iterator().map(Result::unwrap);
    all.filter(|option| *option != TcpOptionElement::Noop).collect()
}
