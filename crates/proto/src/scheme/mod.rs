//! The schemes: what may be done about a bad last hop.
//!
//! A scheme is one file here, or a few in a directory. It declares its parameters as a struct that is the schema of its
//! `[scheme.NAME]` table, and implements [`Scheme`] for it: who it is, what it asks of the link,
//! the agent that it puts at the base station, or how this splits connections, and the reaction that it gives to the sender. It is
//! registered by one line below; nothing else knows its name.

mod registry;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::component::Component;
use crate::fec::Covers;
use crate::split::Split;
use crate::tcp::{Reaction, Settings};

registry::register! {
    basic: Basic,
    local_recovery: LocalRecovery,
    source_quench: SourceQuench,
    ebsn: Ebsn,
    lhack: Lhack,
    selective_fec: SelectiveFec,
    i_tcp: ITcp,
    metp: Metp,
    vs_tcp: VsTcp,
    wenp: Wenp,
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

    /// How it splits connections at the base station, which on the wired part are as `tcp` has them. What is
    /// split there has no use for another agent. The scheme's reaction is that of the sender on the wireless
    /// part, wherever it is.
    fn split(&self, _tcp: &Settings) -> Option<Split> {
        None
    }

    /// What cannot be of its parameters, beside these settings of TCP: the parameter, and what was found and
    /// expected.
    fn faults(&self, tcp: &Settings) -> Vec<(String, String)> {
        self.split(tcp).map_or_else(Vec::new, |split| split.faults())
    }

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
