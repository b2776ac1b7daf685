//! Files in the format of pcap (draft-ietf-opsawg-pcap).

use lasthop_wire::LinkType;

use super::{ByteOrder, Frame, ReadError, Reader};

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Largest plausible number of stored bytes. No program captures longer frames; a larger number means damage.
const MAX_STORED: usize = 1 << 18;

/// Magic numbers, and the unit of the fractions of a second, in nanoseconds.
const MAGIC: [(u32, i64); 2] = [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)];

impl<'a, F: FnMut(Frame<'a>)> Reader<F> {
    pub(super) fn read_pcap(&mut self, file: &'a [u8]) -> Result<(), ReadError> {
        let header = file.get(..FILE_HEADER).ok_or(ReadError::DamagedHeader)?;
        let (order, unit_ns) = kind(header).ok_or(ReadError::NotACapture)?;
        // The upper half is about frame check sequences.
        let number = order.u32(header, 20).ok_or(ReadError::DamagedHeader)? & 0xffff;
        self.contents.link_types.push(number);
        let link_type = LinkType::from_pcap(number);
        let mut rest = &file[FILE_HEADER..];
        while !rest.is_empty() {
            let Some((frame, len)) = record(rest, order, unit_ns) else {
                self.contents.damaged = true;
                break;
            };
            if !self.has_room() {
                break;
            }
            self.frame(Frame { link_type, ..frame });
            rest = &rest[len..];
        }
        Ok(())
    }
}

fn kind(header: &[u8]) -> Option<(ByteOrder, i64)> {
    [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| {
        let magic = order.u32(header, 0)?;
        let (_, unit_ns) = MAGIC.into_iter().find(|(known, _)| *known == magic)?;
        Some((order, unit_ns))
    })
}

/// The first record, and its length; `None` if it is damaged or cut off.
fn record(bytes: &[u8], order: ByteOrder, unit_ns: i64) -> Option<(Frame<'_>, usize)> {
    let stored = usize::try_from(order.u32(bytes, 8)?).ok().filter(|&stored| stored <= MAX_STORED)?;
    let end = RECORD_HEADER + stored;
    let frame = Frame {
        time_ns: i64::from(order.u32(bytes, 0)?) * 1_000_000_000 + i64::from(order.u32(bytes, 4)?) * unit_ns,
        interface: 0,
        link_type: None,
        original_len: order.u32(bytes, 12)?,
        bytes: bytes.get(RECORD_HEADER..end)?,
    };
    Some((frame, end))
}
