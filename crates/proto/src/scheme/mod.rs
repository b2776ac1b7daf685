//! The schemes: what may be done about a bad last hop.
//!
//! A scheme is one file here, or a few in a directory. It declares its parameters as a struct that is the schema of its
//! `[scheme.NAME]` table, and implements [`Scheme`] for it: who it is, what it asks of the link,
//! the agent that it puts at the base station and the reaction that it gives to the sender. It is
//! registered by one line below; nothing else knows its name.

mod registry;

use alloc::boxed::Box;

use crate::component::Component;
use crate::fec::Covers;
use crate::tcp::Reaction;

registry::register! {
    basic: Basic,
    local_recovery: LocalRecovery,
    source_quench: SourceQuench,
    ebsn: Ebsn,
    lhack: Lhack,
    selective_fec: SelectiveFec,
}

/// What a scheme asks of the wireless link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkUse {
    /// Whether the link recovers errors by the protocol that the scenario gives it; without one, the
    /// scheme cannot work. Otherwise every unit is sent once, whatever the scenario has.
    pub recovers: bool,
    /// What the link protects by the code that the scenario gives it, if the scenario itself does not
    /// say what; without a code, the scheme cannot work either.
    pub protects: Option<Covers>,
}

impl LinkUse {
    /// Every unit is sent once, and nothing is protected.
    pub const BARE: LinkUse = LinkUse { recovers: false, protects: None };
    /// The link recovers errors, and nothing is protected.
    pub const RECOVERING: LinkUse = LinkUse { recovers: true, protects: None };
}

/// A scheme with its parameters.
pub trait Scheme {
    /// Its name in scenario files and on the command line.
    fn name(&self) -> &'static str;

    /// One line: what it does.
    fn summary(&self) -> &'static str;

    /// Where it was proposed: paper and section.
    fn source(&self) -> &'static str;

    /// What it asks of the wireless link.
    fn link(&self) -> LinkUse;

    /// The agent at the base station: a component that joins [`Port::WIRED`](crate::Port::WIRED) and
    /// [`Port::RADIO`](crate::Port::RADIO) and hears what happens on the link to the mobile host.
    fn agent(&self) -> Option<Box<dyn Component>> {
        None
    }

    /// What the sender does on the scheme's feedback.
    fn reaction(&self) -> Option<Box<dyn Reaction>> {
        None
    }
}
