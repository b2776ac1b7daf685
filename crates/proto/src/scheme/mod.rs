//! Schemes: remedies for losses on the last hop.
//!
//! A scheme is one file in this directory, or a few in a subdirectory. It declares its parameters as a
//! struct, the schema of its `[scheme.NAME]` table, and implements [`Scheme`] for it: its name, what it needs
//! from the link, its agent at the base station or how the base station splits connections, and its reaction
//! at the sender. It is registered by one line below; its name appears nowhere else.

mod registry;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use crate::component::Component;
use crate::fec::Covers;
use crate::split::Split;
use crate::tcp::{Reaction, ReceiverReaction, Settings};

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
    delayed_dupacks: DelayedDupacks,
    snoop: Snoop,
}

/// What a scheme needs from the wireless link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkUse {
    /// Whether the link uses the scenario's ARQ. If true, the scheme requires one; if false, every unit is
    /// sent once even if the scenario has an ARQ.
    pub recovers: bool,
    /// What the link protects with the scenario's code, unless the scenario itself specifies it. The scheme
    /// requires a code if this is set.
    pub protects: Option<Covers>,
}

impl LinkUse {
    /// No ARQ, and no coding.
    pub const BARE: LinkUse = LinkUse { recovers: false, protects: None };
    /// With ARQ, without coding.
    pub const RECOVERING: LinkUse = LinkUse { recovers: true, protects: None };
}

/// A scheme with its parameters.
pub trait Scheme {
    /// The name in scenario files and on the command line.
    fn name(&self) -> &'static str;

    /// A one-line description.
    fn summary(&self) -> &'static str;

    /// The paper and section that proposed it.
    fn source(&self) -> &'static str;

    /// What it needs from the wireless link.
    fn link(&self) -> LinkUse;

    /// How the base station splits connections, given `tcp` on the wired part. A scheme that splits
    /// connections has no other agent. Its reaction applies to the sender on the wireless part, wherever that
    /// is.
    fn split(&self, _tcp: &Settings) -> Option<Split> {
        None
    }

    /// Invalid parameters, given these TCP settings: the name of each, and what was found and expected.
    fn faults(&self, tcp: &Settings) -> Vec<(String, String)> {
        self.split(tcp).map_or_else(Vec::new, |split| split.faults())
    }

    /// The agent at the base station: a component that joins [`Port::WIRED`](crate::Port::WIRED) and
    /// [`Port::RADIO`](crate::Port::RADIO) and watches the link to the mobile host.
    fn agent(&self) -> Option<Box<dyn Component>> {
        None
    }

    /// The sender's reaction to the scheme's feedback.
    fn reaction(&self) -> Option<Box<dyn Reaction>> {
        None
    }

    /// What the receiver does, of a connection that is not split.
    fn receiver_reaction(&self) -> Option<Box<dyn ReceiverReaction>> {
        None
    }
}
