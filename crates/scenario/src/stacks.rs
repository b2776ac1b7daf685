//! The transport stacks of this build, beside TCP.

use lasthop_proto::quic;
use lasthop_proto::stack::{Early, Stack};

/// The sender of a connection that does not use TCP.
#[derive(Clone, Copy, Debug)]
pub struct StackSender {
    /// The stack of both ends.
    pub stack: &'static dyn Stack,
    /// One of its senders.
    pub name: &'static str,
    /// Settings of QUIC.
    pub quic: quic::Settings,
}

impl StackSender {
    /// What its control may be told by a scheme.
    pub(crate) fn early(&self) -> Early {
        let own = self.stack.senders().iter().find(|sender| sender.name == self.name);
        own.map_or(Early::Nothing, |sender| sender.early)
    }
}

/// The stacks, of which each is a feature of this crate. The page in a browser has none.
pub fn stacks() -> &'static [&'static dyn Stack] {
    #[cfg(feature = "quic")]
    return &[&lasthop_quic::Quinn, &lasthop_quic::Noq];
    #[cfg(not(feature = "quic"))]
    &[]
}

/// The stack with a sender called `name`, and that name.
pub(crate) fn of_sender(name: &str) -> Option<(&'static dyn Stack, &'static str)> {
    let mut all =
        stacks().iter().flat_map(|stack| stack.senders().iter().map(|sender| (*stack, sender.name)));
    all.find(|(_, sender)| *sender == name)
}

/// What to add to the message that there is no sender `name`: that it is one of a stack which this build lacks, or why a stack
/// has it and does not offer it.
pub(crate) fn lacking(name: &str) -> &'static str {
    if ["quinn", "noq"].iter().any(|stack| name.starts_with(stack)) && stacks().is_empty() {
        "; this build has no QUIC: use the command line's `lasthop`, or build with the feature quic"
    } else if name.starts_with("noq-bbr") {
        "; noq's BBR cannot be seeded, so that no run would repeat: use \"quinn-bbr\" or \"quinn-linux-bbr3\""
    } else {
        ""
    }
}
