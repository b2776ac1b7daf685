//! Whether a mobile host is at the base station of an agent's link.

use crate::component::Signal;

/// Whether the mobile host of an agent's link is attached to the base station of that link. A host that does not move
/// always is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attachment {
    /// The number of the base station among those of a moving host.
    station: Option<u16>,
    is_attached: bool,
}

impl Attachment {
    /// The state before a run, given [`Site::station`](super::Site::station).
    pub(super) fn new(station: Option<u16>) -> Attachment {
        Attachment { station, is_attached: station.is_none() }
    }

    pub(super) fn is_attached(self) -> bool {
        self.is_attached
    }

    /// Takes a signal; returns whether the host has come or left.
    pub(super) fn update(&mut self, signal: &Signal) -> bool {
        let is_attached = match *signal {
            Signal::Attached { station, .. } => self.station == Some(station),
            Signal::Detached { .. } => false,
            Signal::Link(_)
            | Signal::Status
            | Signal::Frame(_)
            | Signal::Corrupted(_)
            | Signal::Reach(_)
            | Signal::Request(_)
            | Signal::Encoded(_)
            | Signal::Quack(_)
            | Signal::Lost(_)
            | Signal::Finished => return false,
        };
        core::mem::replace(&mut self.is_attached, is_attached) != is_attached
    }
}
