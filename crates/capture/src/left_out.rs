//! Why a frame has no TCP or UDP packet that is read.

use std::fmt;

use lasthop_wire::Error;

/// What a frame has in place of a TCP or UDP packet that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftOut {
    /// A header that the capture cut off.
    Cut,
    /// A header that contradicts itself.
    Malformed,
    /// A fragment of an IP packet.
    Fragment,
    /// A packet of another IP protocol.
    Protocol(u8),
    /// A packet other than IP, with its number as in [`Error::NotIp`].
    NotIp(u32),
    /// A frame without data.
    NoData,
    /// Contents encrypted by a protocol.
    Encrypted(&'static str),
}

impl LeftOut {
    /// The reason of an error in a frame of which the capture stored a part, or all.
    pub(crate) fn of(error: Error, is_cut: bool) -> LeftOut {
        // Longer ones are those of a frame of another link type.
        const LONGEST_HEADERS: usize = 256;
        match error {
            Error::Truncated { needed, .. } if is_cut && needed <= LONGEST_HEADERS => LeftOut::Cut,
            Error::NotIp { protocol } => LeftOut::NotIp(protocol),
            Error::NoData { .. } => LeftOut::NoData,
            Error::Encrypted { by } => LeftOut::Encrypted(by),
            _ => LeftOut::Malformed,
        }
    }

    /// Whether hosts and links send such frames beside the packets of a transfer.
    pub fn is_by_nature(self) -> bool {
        const ICMP: LeftOut = LeftOut::Protocol(1);
        const IGMP: LeftOut = LeftOut::Protocol(2);
        const ICMP_V6: LeftOut = LeftOut::Protocol(58);
        const SPANNING_TREE: u32 = 0x42;
        const ARP: u32 = 0x0806;
        const LLDP: u32 = 0x88cc;
        matches!(self, LeftOut::NoData | ICMP | IGMP | ICMP_V6 | LeftOut::NotIp(SPANNING_TREE | ARP | LLDP))
    }
}

/// What the packets are, and what to do about it.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            LeftOut::Cut => "cut off within their headers; store 128 bytes of each: `tcpdump -s 128`",
            LeftOut::Malformed => "damaged, or not of the link type that the file states; capture with `tcpdump -i wlan0 -s 128 -w capture.pcap`",
            LeftOut::Fragment => {
                "fragments of IP packets, which have no ports; capture before they are fragmented, or with a \
                 smaller MTU"
            }
            LeftOut::Protocol(50) => {
                "encrypted by IPsec (ESP); capture at an end of the tunnel, on its interface"
            }
            LeftOut::Protocol(47) => "GRE without IP in it",
            LeftOut::Protocol(1 | 58) => "ICMP; the output of `ping -D -O -i 0.02 HOST` can be read",
            LeftOut::Protocol(132) => "SCTP, which is not supported",
            LeftOut::Protocol(protocol) => return write!(f, "of IP protocol {protocol}, most of them"),
            LeftOut::NotIp(protocol) => {
                let error = Error::NotIp { protocol }.to_string();
                let found = error.trim_start_matches("not an IP packet: ");
                return write!(f, "not IP, most of them of {found}");
            }
            LeftOut::NoData => {
                "802.11 frames without data, such as beacons; a monitor interface hears data on its channel \
                 only. Capture on the wireless interface itself: `tcpdump -i wlan0 -s 128 -w capture.pcap`"
            }
            LeftOut::Encrypted("Wi-Fi") => {
                "encrypted by Wi-Fi (WPA); capture on the wireless interface itself, without monitor mode: \
                 `tcpdump -i wlan0 -s 128 -w capture.pcap`, or decrypt them with airdecap-ng"
            }
            LeftOut::Encrypted(by) => {
                return write!(
                    f,
                    "encrypted by {by}; capture on the inner interface, where packets are plain"
                );
            }
        })
    }
}
