//! QUIC: the protocol code of [quinn](https://github.com/quinn-rs/quinn), as it is, between two hosts of a simulation.
//!
//! quinn's state machines get the time from their caller, send nothing themselves and never wait, as [components] do. A
//! `Host` translates:
//!
//! ```text
//! packet ──> bytes ──> Endpoint ──events──> Connection ──> datagrams ──> packets
//! wake-up ───────────────timeout───────────────┘  └──> the next deadline
//! ```
//!
//! What makes it deterministic: each instant is a constant plus the simulated time (`clock`), random numbers are seeded and
//! connection ids are numbers; the handshake has the sizes of TLS 1.3 and no cryptography (`sizes`). quinn's BBR draws the
//! phase in which it begins to probe from the system's random numbers, on which version 0.11 bases no packet.
//!
//! [components]: lasthop_proto::Component

mod clock;
mod config;
mod host;
mod ids;
mod sizes;

use lasthop_proto::Component;
use lasthop_proto::stack::{Sender, Stack, StackFlow};

use crate::config::Control;
use crate::host::Host;

/// The stack.
#[derive(Clone, Copy, Debug)]
pub struct Quinn;

impl Stack for Quinn {
    fn protocol(&self) -> &'static str {
        "QUIC"
    }

    fn version(&self) -> &'static str {
        // As in Cargo.toml.
        "quinn-proto 0.11.19"
    }

    fn senders(&self) -> &'static [Sender] {
        &Control::SENDERS
    }

    fn ends(&self, flow: &StackFlow<'_>) -> [Box<dyn Component>; 2] {
        let mut random = flow.random.clone();
        let [server, client] = [(); 2].map(|()| config::seed(&mut random));
        [Box::new(Host::server(flow, server)), Box::new(Host::client(flow, client))]
    }
}
