//! Schemes: remedies for losses on the last hop.
//!
//! A scheme is one file in this directory, or a few in a subdirectory. It declares its parameters as a
//! struct, the schema of its `[scheme.NAME]` table, and implements [`Scheme`] for it: its name, and
//! what it [installs](Installer): agents at the ends of wireless links, reactions at the ends of a connection, a
//! split, and its use of the wireless link. It is registered by one line below; its name appears nowhere else.
//!
//! Each run has a [`Combination`] of one or several schemes.
//!
//! ```text
//!             wired part                         wireless part, if connections are split
//! sender ═══════════════ base station ═══════════════════════════════════════ mobile host ══ receiver
//! reactions              split ── first agent ── second agent ── link use ──  agents         reactions
//! ```

mod arrivals;
mod attachment;
mod combination;
mod connections;
mod directions;
mod external;
mod forwarder;
mod gateways;
mod held;
mod holes;
mod installer;
mod need;
mod registry;
mod reports;

use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

pub use combination::{Combination, CombinationError};
pub use directions::Directions;
pub use external::{ExternalSchemes, SchemeFailure};
pub use installer::{ArqUse, Installer, LinkEnd, LinkUse, QueueUse, Site};
pub use need::Need;
pub use packet_fec::TunnelEnd;

use crate::tcp::Settings;

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
    rlp: Rlp,
    arq: Arq,
    snoop: Snoop,
    smart: Smart,
    eln: Eln,
    nack: Nack,
    freeze_tcp: FreezeTcp,
    handoff_rxmt: HandoffRxmt,
    multicast: Multicast,
    forwarding: Forwarding,
    packet_fec: PacketFec,
    airmail: Airmail,
    m_tcp: MTcp,
    wtcp_timestamps: WtcpTimestamps,
    wtcp: Wtcp,
    fq_codel: FqCodel,
    acks_first: AcksFirst,
    ack_thinning: AckThinning,
    sidekick: Sidekick,
    pemi: Pemi,
}

/// The deployment of a scheme, for `lasthop advise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Where it is installed, such as "base station".
    pub place: &'static str,
    /// Products that include it; `None` if it exists in research code only.
    pub products: Option<Products>,
    /// Its drawbacks.
    pub cost: &'static str,
    /// The configurations that `lasthop advise` tries, each as the keys and values that differ from the defaults.
    pub variants: &'static [&'static [(&'static str, &'static str)]],
}

/// Products that include a scheme, and how the usual one is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Products {
    /// What they are called.
    pub names: &'static str,
    /// Whose box it is, and when it is not the user's to change.
    pub owner: &'static str,
    /// Lines for a shell by root. Those that begin with `#` are comments, names in capitals stand for the user's own, `{k}`
    /// for a setting of the variant, `{n-k}` for the difference of two, and `{congestion}` for the congestion control
    /// of the variant's wireless part, or else the sender's, by Linux's name. A file is written by `cat > NAME <<'END'`.
    pub commands: &'static [&'static str],
    /// What the commands do not say.
    pub note: &'static str,
}

/// A scheme with its parameters.
pub trait Scheme {
    /// The name in scenario files and on the command line.
    fn name(&self) -> &'static str;

    /// A one-line description.
    fn summary(&self) -> &'static str;

    /// The paper and section that proposed it.
    fn source(&self) -> &'static str;

    /// The deployment of the scheme; `None` for schemes that the owner of a link cannot use: baselines, variants of other
    /// schemes, schemes that need an ARQ or a historical sender, schemes for hosts that move, and queue disciplines, which
    /// `lasthop advise` tries by settings.
    fn deployment(&self) -> Option<Deployment> {
        None
    }

    /// Whether all that it does depends on segments of TCP, which it reads or changes. Such a scheme has no effect on
    /// connections of other [stacks](crate::stack), nor through a VPN. Links, queues and tunnels serve packets of any kind.
    fn reads_tcp(&self) -> bool {
        true
    }

    /// Whether it acts on connections of QUIC only, which simulated packets are known to belong to and real ones are not.
    fn needs_quic(&self) -> bool {
        false
    }

    /// Invalid parameters, given these TCP settings: the name of each, and what was found and expected.
    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Why the scheme cannot extend connections with these TCP settings, and the setting to change; `None` if it can.
    fn mismatch(&self, _tcp: &Settings) -> Option<String> {
        None
    }

    /// The key and value of a parameter with which it does without what real hosts do not have, and what then happens, as a
    /// clause; `None` if there is none.
    fn with_real_hosts(&self) -> Option<[&'static str; 3]> {
        None
    }

    /// Installs the scheme: its agents, its reactions, and its use of the wireless link.
    fn install<'a>(&'a self, installer: &mut Installer<'a>);

    /// Takes the first failure of its agents and reactions on this thread since the last call. The run then ends with
    /// an error. Only schemes from outside can fail: code written in Python, for example.
    fn take_failure(&self) -> Option<SchemeFailure> {
        None
    }

    /// Text that differs between external schemes that behave differently, as far as that is known: part of the hash of
    /// a scenario.
    fn fingerprint(&self) -> String {
        String::new()
    }

    /// The scheme itself, for the one who added an external scheme.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}
