//! IPv4 and IPv6.

use std::net::IpAddr;

use etherparse::{
    IpAuthHeaderSlice, IpNumber, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice,
    Ipv6RawExtHeaderSlice, UdpHeaderSlice, err, ip_number,
};
use lasthop_proto::{Dscp, Ecn};

use crate::error::{Error, cut_off};
use crate::icmp::Icmp;
use crate::tcp::{Tcp, option};

/// Fields of an IP header that determine a packet's route and treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same version.
    pub dst: IpAddr,
    /// DSCP field.
    pub dscp: Dscp,
    /// ECN field.
    pub ecn: Ecn,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// Identification; 0 in IPv6, where only fragments have one.
    pub identification: u16,
    /// Whether routers must not fragment the packet; always in IPv6.
    pub dont_fragment: bool,
}

/// The position of a fragment in its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset of this fragment in bytes.
    pub offset: u32,
    /// Whether more fragments follow.
    pub more: bool,
    /// The identification that all fragments of a packet share.
    pub identification: u32,
}

/// An IP packet.
#[derive(Clone, Copy, Debug)]
pub struct IpPacket<'a> {
    /// Addresses and treatment.
    pub ip: Ip,
    /// Protocol after all extension headers (IANA protocol numbers).
    pub protocol: u8,
    /// Length of the IP header with its options or extension headers.
    pub header_len: usize,
    /// Length of the whole packet on the wire, in bytes.
    pub len: usize,
    /// Whether the length field is 0: a super-packet, to be segmented by the network card or assembled by it. Its
    /// length is then taken from the frame.
    pub without_length: bool,
    /// Set for fragments.
    pub fragment: Option<Fragment>,
    /// The protocol after the header.
    pub transport: Transport<'a>,
    /// The packet without the link's trailer; shorter than `len` if the capture cut it off.
    pub bytes: &'a [u8],
}

/// The contents of an IP packet.
#[derive(Clone, Copy, Debug)]
pub enum Transport<'a> {
    /// A TCP segment.
    Tcp(Tcp<'a>),
    /// A UDP datagram.
    Udp(Udp<'a>),
    /// An ICMP or ICMPv6 message.
    Icmp(Icmp<'a>),
    /// A later fragment, without a transport header.
    LaterFragment,
    /// Another protocol.
    Other,
    /// A header that cannot be read.
    Unreadable(Error),
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp<'a> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Length of the payload on the wire, in bytes.
    pub payload_len: u32,
    /// The payload as far as it was captured.
    pub payload: &'a [u8],
}

/// An IP header of either version.
struct Header<'a> {
    ip: Ip,
    protocol: IpNumber,
    len: usize,
    fragment: Option<Fragment>,
    /// Length of the packet according to the header; `None` if the field is 0.
    packet_len: Option<usize>,
    /// The bytes after the header.
    rest: &'a [u8],
}

impl<'a> IpPacket<'a> {
    /// Reads a whole packet, such as one from a network interface.
    ///
    /// # Errors
    /// If the IP header cannot be read. An unreadable header after it is [`Transport::Unreadable`].
    pub fn parse(bytes: &'a [u8]) -> Result<IpPacket<'a>, Error> {
        IpPacket::parse_captured(bytes, bytes.len())
    }

    /// Reads a packet that a capture may have truncated; `original_len` is the length of its frame without the link's
    /// header.
    ///
    /// # Errors
    /// As [`parse`](IpPacket::parse).
    pub fn parse_captured(bytes: &'a [u8], original_len: usize) -> Result<IpPacket<'a>, Error> {
        let original_len = original_len.max(bytes.len());
        let header = match bytes.first().map(|byte| byte >> 4) {
            Some(4) => ipv4(bytes)?,
            Some(6) => ipv6(bytes, original_len)?,
            Some(_) => {
                return Err(Error::Malformed { header: "IP", problem: "the version is neither 4 nor 6" });
            }
            None => return Err(Error::Truncated { header: "IP", needed: 20, found: 0 }),
        };
        let len = header.packet_len.unwrap_or(original_len);
        if len > original_len {
            return Err(Error::Malformed { header: "IP", problem: "the packet is longer than its frame" });
        }
        if len < header.len {
            return Err(Error::Malformed { header: "IP", problem: "the packet is shorter than its header" });
        }
        // A link's trailer is not part of the packet.
        let bytes = &bytes[..bytes.len().min(len)];
        let rest = &header.rest[..header.rest.len().min(len - header.len)];
        let rest_len = (len - header.len).try_into().unwrap_or(u32::MAX);
        let transport = match header.fragment {
            Some(Fragment { offset: 1.., .. }) => Ok(Transport::LaterFragment),
            _ => transport(header.protocol, rest, rest_len),
        };
        Ok(IpPacket {
            ip: header.ip,
            protocol: header.protocol.0,
            header_len: header.len,
            len,
            without_length: header.packet_len.is_none(),
            fragment: header.fragment,
            transport: transport.unwrap_or_else(Transport::Unreadable),
            bytes,
        })
    }

    /// Whether the capture cut the packet off.
    pub fn is_cut(&self) -> bool {
        self.bytes.len() < self.len
    }

    /// Whether the packet cannot have crossed a link with this MTU: segmentation or receive offload makes one packet of
    /// many (TSO, GSO, GRO). Its segment stands for several, and its checksums may be unset.
    pub fn is_super_packet(&self, mtu: usize) -> bool {
        self.without_length || self.len > mtu
    }

    /// The TCP segment, if the packet contains one.
    pub fn tcp(&self) -> Option<&Tcp<'a>> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }

    /// The kinds of the TCP options, without padding (IANA option kind numbers); none if the packet contains no TCP header.
    /// An invalid length ends them.
    pub fn tcp_option_kinds(&self) -> impl Iterator<Item = u8> {
        let end = self.tcp().map_or(0, |tcp| self.header_len + tcp.header_len);
        let header = self.bytes.get(self.header_len..end.min(self.bytes.len())).unwrap_or_default();
        option::all(header).map(|place| header[place.start])
    }
}

fn transport(protocol: IpNumber, rest: &[u8], rest_len: u32) -> Result<Transport<'_>, Error> {
    Ok(match protocol {
        ip_number::TCP => Transport::Tcp(Tcp::parse(rest, rest_len)?),
        ip_number::UDP => Transport::Udp(Udp::parse(rest, rest_len)?),
        ip_number::ICMP => Transport::Icmp(Icmp::parse(rest, false)?),
        ip_number::IPV6_ICMP => Transport::Icmp(Icmp::parse(rest, true)?),
        _ => Transport::Other,
    })
}

impl<'a> Udp<'a> {
    fn parse(bytes: &'a [u8], wire_len: u32) -> Result<Udp<'a>, Error> {
        let header = UdpHeaderSlice::from_slice(bytes).map_err(|error| cut_off("UDP", &error))?;
        // A super-packet has length 0, and a first fragment that of the whole datagram.
        let len = match u32::from(header.length()) {
            0 => wire_len,
            1..8 => return Err(Error::Malformed { header: "UDP", problem: "the length is less than 8" }),
            len => len.min(wire_len),
        };
        let payload = &bytes[8..bytes.len().min(len as usize)];
        Ok(Udp {
            src_port: header.source_port(),
            dst_port: header.destination_port(),
            payload_len: len - 8,
            payload,
        })
    }
}

fn ipv4(bytes: &[u8]) -> Result<Header<'_>, Error> {
    use err::ipv4::HeaderSliceError;
    let header = Ipv4HeaderSlice::from_slice(bytes).map_err(|error| match error {
        HeaderSliceError::Len(error) => cut_off("IPv4", &error),
        HeaderSliceError::Content(_) => {
            Error::Malformed { header: "IPv4", problem: "the header length is less than 20" }
        }
    })?;
    let len = header.slice().len();
    let identification = header.identification();
    Ok(Header {
        ip: Ip {
            src: header.source_addr().into(),
            dst: header.destination_addr().into(),
            dscp: Dscp::new(header.dcp().value()),
            ecn: Ecn::from_bits(header.ecn().value()),
            hop_limit: header.ttl(),
            identification,
            dont_fragment: header.dont_fragment(),
        },
        protocol: header.protocol(),
        len,
        fragment: header.is_fragmenting_payload().then(|| Fragment {
            offset: u32::from(header.fragments_offset().value()) * 8,
            more: header.more_fragments(),
            identification: identification.into(),
        }),
        packet_len: Some(header.total_len().into()).filter(|&len| len != 0),
        rest: &bytes[len..],
    })
}

fn ipv6(bytes: &[u8], original_len: usize) -> Result<Header<'_>, Error> {
    use err::ipv6::HeaderSliceError;
    const LEN: usize = 40;
    let header = Ipv6HeaderSlice::from_slice(bytes).map_err(|error| match error {
        HeaderSliceError::Len(error) => cut_off("IPv6", &error),
        HeaderSliceError::Content(_) => Error::Malformed { header: "IPv6", problem: "the version is not 6" },
    })?;
    let mut packet_len = Some(LEN + usize::from(header.payload_length()));
    if header.payload_length() == 0
        && header.next_header() != ip_number::IPV6_NO_NEXT_HEADER
        && original_len > LEN
    {
        packet_len = None;
    }
    let behind = &bytes[LEN..packet_len.unwrap_or(usize::MAX).min(bytes.len())];
    let extensions = extensions(header.next_header(), behind)?;
    Ok(Header {
        ip: Ip {
            src: header.source_addr().into(),
            dst: header.destination_addr().into(),
            dscp: Dscp::new(header.dscp().value()),
            ecn: Ecn::from_bits(header.ecn().value()),
            hop_limit: header.hop_limit(),
            identification: 0,
            dont_fragment: true,
        },
        protocol: extensions.protocol,
        len: LEN + behind.len() - extensions.rest.len(),
        fragment: extensions.fragment,
        packet_len,
        rest: extensions.rest,
    })
}

/// The parsed extension headers of IPv6.
struct Extensions<'a> {
    protocol: IpNumber,
    fragment: Option<Fragment>,
    rest: &'a [u8],
}

/// Skips extension headers (RFC 8200 section 4). Later fragments have none after the fragment header.
fn extensions(first: IpNumber, bytes: &[u8]) -> Result<Extensions<'_>, Error> {
    const NAME: &str = "IPv6 extension";
    let mut all = Extensions { protocol: first, fragment: None, rest: bytes };
    loop {
        let (next, len) = match all.protocol {
            ip_number::AUTH => {
                let header = IpAuthHeaderSlice::from_slice(all.rest).map_err(|error| match error {
                    err::ip_auth::HeaderSliceError::Len(error) => cut_off(NAME, &error),
                    err::ip_auth::HeaderSliceError::Content(_) => {
                        Error::Malformed { header: NAME, problem: "an authentication header without length" }
                    }
                })?;
                (header.next_header(), header.slice().len())
            }
            ip_number::IPV6_FRAG => {
                let header =
                    Ipv6FragmentHeaderSlice::from_slice(all.rest).map_err(|error| cut_off(NAME, &error))?;
                // A fragment with neither offset nor successor is a whole packet, an "atomic fragment" (RFC 6946).
                all.fragment = header.is_fragmenting_payload().then(|| Fragment {
                    offset: u32::from(header.fragment_offset().value()) * 8,
                    more: header.more_fragments(),
                    identification: header.identification(),
                });
                (header.next_header(), header.slice().len())
            }
            protocol if Ipv6RawExtHeaderSlice::header_type_supported(protocol) => {
                let header =
                    Ipv6RawExtHeaderSlice::from_slice(all.rest).map_err(|error| cut_off(NAME, &error))?;
                (header.next_header(), header.slice().len())
            }
            _ => return Ok(all),
        };
        all.protocol = next;
        all.rest = &all.rest[len..];
        if all.fragment.is_some_and(|fragment| fragment.offset > 0) {
            return Ok(all);
        }
    }
}
