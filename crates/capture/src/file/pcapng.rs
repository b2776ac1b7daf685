//! Files in the format of pcapng (draft-ietf-opsawg-pcapng).

use lasthop_wire::LinkType;

use super::{ByteOrder, Frame, Reader, block};

/// Bytes of a block besides its body: type, and length twice.
const FRAME: usize = 12;

/// Bytes of a packet block's body before the packet.
const PACKET_HEADER: usize = 20;

/// The latest time that is read, in nanoseconds since 1970: in the year 2116.
const MAX_TIME_NS: i128 = 1 << 62;

/// An interface of the current section.
#[derive(Clone, Copy)]
struct Interface {
    /// Index among those of all sections.
    index: usize,
    link_type: Option<LinkType>,
    /// Timestamp units per second.
    units: u128,
    offset_s: i64,
}

/// Whether the bytes begin with a section.
pub(super) fn is_section(bytes: &[u8]) -> bool {
    ByteOrder::Little.u32(bytes, 0) == Some(block::SECTION)
}

impl<'a, F: FnMut(Frame<'a>)> Reader<F> {
    pub(super) fn read_pcapng(&mut self, file: &'a [u8]) {
        let mut rest = file;
        let mut order = ByteOrder::Little;
        let mut interfaces = Vec::new();
        while !rest.is_empty() {
            if is_section(rest) {
                let is_little = ByteOrder::Little.u32(rest, 8) == Some(block::BYTE_ORDER);
                order = if is_little { ByteOrder::Little } else { ByteOrder::Big };
                interfaces.clear();
            }
            let Some((kind, body)) = first_block(rest, order) else {
                self.contents.damaged = true;
                return;
            };
            if !self.has_room() {
                return;
            }
            self.block(kind, body, order, &mut interfaces);
            rest = &rest[FRAME + body.len()..];
        }
    }

    fn block(&mut self, kind: u32, body: &'a [u8], order: ByteOrder, interfaces: &mut Vec<Interface>) {
        match kind {
            block::INTERFACE => {
                let index = self.contents.link_types.len();
                let number = order.u16(body, 0).unwrap_or_default().into();
                self.contents.link_types.push(number);
                let link_type = LinkType::from_pcap(number);
                let described = Interface { index, link_type, units: 1_000_000, offset_s: 0 };
                interfaces.push(described.with_options(body.get(8..).unwrap_or_default(), order));
            }
            block::ENHANCED_PACKET | block::PACKET => match packet(kind, body, order, interfaces) {
                Some(frame) => self.frame(frame),
                None => self.contents.damaged = true,
            },
            block::SIMPLE_PACKET => self.contents.untimed += 1,
            block::STATISTICS => {
                for (code, value) in options(body.get(12..).unwrap_or_default(), order) {
                    if block::DROPPED.contains(&code) && value.len() == 8 {
                        let dropped = order.u64(value, 0).unwrap_or_default();
                        self.contents.dropped = self.contents.dropped.saturating_add(dropped);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Type and body of the first block; `None` if it is damaged or cut off.
fn first_block(bytes: &[u8], order: ByteOrder) -> Option<(u32, &[u8])> {
    let len = usize::try_from(order.u32(bytes, 4)?).ok()?;
    let body = bytes.get(8..len.checked_sub(4)?).filter(|_| len >= FRAME && len.is_multiple_of(4))?;
    // The length follows the body again.
    (len <= bytes.len()).then_some((order.u32(bytes, 0)?, body))
}

/// The packet of a block; `None` if the block is inconsistent.
fn packet<'a>(kind: u32, body: &'a [u8], order: ByteOrder, interfaces: &[Interface]) -> Option<Frame<'a>> {
    let number = if kind == block::PACKET { order.u16(body, 0)?.into() } else { order.u32(body, 0)? };
    let interface = interfaces.get(usize::try_from(number).ok()?)?;
    let ticks = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
    let stored = usize::try_from(order.u32(body, 12)?).ok()?;
    let bytes = body.get(PACKET_HEADER..)?.get(..stored)?;
    let elapsed_ns = (u128::from(ticks) * 1_000_000_000 / interface.units) as i128;
    let time_ns = elapsed_ns + i128::from(interface.offset_s) * 1_000_000_000;
    (0..MAX_TIME_NS).contains(&time_ns).then_some(Frame {
        time_ns: time_ns as i64,
        interface: interface.index,
        link_type: interface.link_type,
        original_len: order.u32(body, 16)?,
        bytes,
    })
}

impl Interface {
    fn with_options(mut self, bytes: &[u8], order: ByteOrder) -> Interface {
        for (code, value) in options(bytes, order) {
            match (code, value) {
                (block::RESOLUTION, &[power]) => {
                    let exponent = u32::from(power & 0x7f);
                    let base: u128 = if power & 0x80 == 0 { 10 } else { 2 };
                    // Finer units make no sense, and would overflow.
                    if exponent <= 30 {
                        self.units = base.pow(exponent);
                    }
                }
                (block::OFFSET, value) if value.len() == 8 => {
                    self.offset_s = order.u64(value, 0).unwrap_or_default() as i64;
                }
                _ => {}
            }
        }
        self
    }
}

/// The options of a block, code and value, up to the first that is cut off.
fn options(mut bytes: &[u8], order: ByteOrder) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (code, len) = (order.u16(bytes, 0)?, usize::from(order.u16(bytes, 2)?));
        let value = bytes.get(4..4 + len).filter(|_| code != 0)?;
        bytes = bytes.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}
