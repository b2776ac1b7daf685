//! Frames of capture files: pcap and pcapng in either byte order.

pub(crate) mod block;
mod pcap;
mod pcapng;

use std::fmt;

use lasthop_wire::LinkType;

use crate::MAX_PACKETS;
use crate::left_out::LeftOut;

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Time since 1970.
    pub(crate) time_ns: i64,
    /// Index of its interface among those of all sections.
    pub(crate) interface: usize,
    /// Its link type; `None` if it is not supported.
    pub(crate) link_type: Option<LinkType>,
    /// Length of the whole frame.
    pub(crate) original_len: u32,
    /// The stored bytes.
    pub(crate) bytes: &'a [u8],
}

/// What a file holds besides frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// LINKTYPE of each interface, of all sections.
    pub(crate) link_types: Vec<u32>,
    /// Number of frames.
    pub(crate) frames: usize,
    /// Frames dropped by the capturing host, according to the file's statistics.
    pub(crate) dropped: u64,
    /// Frames without a timestamp, which are left out.
    pub(crate) untimed: usize,
    /// Whether the file is cut off, or has inconsistent records, which are left out.
    pub(crate) damaged: bool,
    /// Whether the file has more than [`MAX_PACKETS`] frames; those beyond are left out.
    pub(crate) full: bool,
}

/// The reason why a file is not a capture of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The file ends within its header.
    DamagedHeader,
    /// The file is neither pcap nor pcapng.
    NotACapture,
    /// The file has no frames.
    NoFrames,
    /// The frames have no times.
    Untimed,
    /// No interface has a supported link type.
    LinkType {
        /// The smallest LINKTYPE in the file.
        number: u32,
    },
    /// No frame has a TCP or UDP packet.
    NoTransport {
        /// What most frames have.
        left_out: Option<LeftOut>,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReadError::DamagedHeader => "the capture's header is damaged",
            ReadError::NotACapture => {
                "not a capture: the header does not have the magic number of pcap or pcapng"
            }
            ReadError::NoFrames => "the capture has no packets",
            ReadError::Untimed => {
                "the packets have no times (simple packet blocks): losses under TCP and rates cannot be told; \
                 capture with `tcpdump -i wlan0 -s 128 -w capture.pcap`"
            }
            ReadError::LinkType { number } => {
                let mut names = LinkType::ALL.map(LinkType::name).to_vec();
                names.dedup();
                let last = names.pop().expect("there are link types");
                let names = names.join(", ");
                let found = match number {
                    189 | 220 | 249 => " (USB)",
                    187 | 201 | 251 | 254..=256 | 272 => " (Bluetooth)",
                    195 | 215 | 230 | 283 => " (IEEE 802.15.4)",
                    227 => " (CAN)",
                    247 => " (InfiniBand)",
                    252 => " (what Wireshark exported, without packets)",
                    253 => " (netlink)",
                    _ => "",
                };
                return write!(f, "unsupported link type {number}{found}; expected {names} or {last}");
            }
            ReadError::NoTransport { left_out } => {
                f.write_str("no TCP or UDP packets over IPv4 or IPv6 in this capture")?;
                return left_out.map_or(Ok(()), |left_out| write!(f, ": its packets are {left_out}"));
            }
        })
    }
}

impl std::error::Error for ReadError {}

/// Reads the frames of a file in their order, up to the first damaged record.
pub(crate) fn read<'a>(file: &'a [u8], each: impl FnMut(Frame<'a>)) -> Result<Contents, ReadError> {
    let mut reader = Reader { contents: Contents::default(), each };
    if pcapng::is_section(file) {
        reader.read_pcapng(file);
    } else {
        reader.read_pcap(file)?;
    }
    Ok(reader.contents)
}

/// The state of reading a file.
struct Reader<F> {
    contents: Contents,
    each: F,
}

impl<'a, F: FnMut(Frame<'a>)> Reader<F> {
    /// Whether there is room for another frame; otherwise the file counts as full.
    fn has_room(&mut self) -> bool {
        self.contents.full = self.contents.frames == MAX_PACKETS;
        !self.contents.full
    }

    fn frame(&mut self, frame: Frame<'a>) {
        self.contents.frames += 1;
        (self.each)(frame);
    }
}

/// The byte order of numbers in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The number at `at`; `None` beyond the end.
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self == ByteOrder::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    }
}
