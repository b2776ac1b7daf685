//! SYNs that the kernel holds.

use crate::flow::Opening;
use crate::kernel::queue::Held;

/// A SYN that the kernel holds.
#[derive(Debug)]
pub(super) struct Syn {
    /// By which the verdict names it.
    pub(super) id: u32,
    pub(super) mark: u32,
    /// The number of the interface by which it came.
    pub(super) interface: u32,
    pub(super) opening: Opening,
    /// The whole packet, unless it has data.
    pub(super) packet: Vec<u8>,
}

impl Syn {
    /// Reads what the kernel holds; `None` if it opens no TCP connection.
    pub(super) fn of(held: &Held<'_>) -> Option<Syn> {
        let Held { id, mark, interface, bytes } = *held;
        Some(Syn { id, mark, interface, opening: Opening::parse(bytes)?, packet: bytes.to_vec() })
    }
}
