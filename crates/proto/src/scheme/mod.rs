//! The schemes: what may be done about a bad last hop.
//!
//! A scheme is one file here, or a few in a directory. It declares its parameters as a struct that is the schema of its
//! `[scheme.NAME]` table, and implements [`Scheme`] for it: who it is, what it asks of the link,
//! the agent that it puts at the base station and the reaction that it gives to the sender. It is
//! registered by one line below; nothing else knows its name.

mod registry;

use alloc::boxed::Box;

use crate::component::Component;
use crate::tcp::Reaction;

registry::register! {
    basic: Basic,
    local_recovery: LocalRecovery,
    source_quench: SourceQuench,
    ebsn: Ebsn,
    lhack: Lhack,
}

/// What a scheme asks of the wireless link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkUse {
    /// Every unit is sent once; the link's own error recovery stays off.
    Bare,
    /// The link recovers errors by the protocol that the scenario gives it; without one, the scheme
    /// cannot work.
    Recovering,
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
