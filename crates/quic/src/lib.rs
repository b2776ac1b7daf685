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
mod division;
mod exchange;
mod host;
mod ids;
mod linux;
mod meter;
mod numbers;
mod pace;
mod pacubic;
mod sidecar;
mod sizes;
mod streams;
#[cfg(test)]
mod tests;
mod tls;
mod transfer;

use lasthop_proto::stack::{Dialogue, Sender, Stack, StackFlow};
use lasthop_proto::tcp::Transfer;
use lasthop_proto::{Component, application};

use crate::config::{Control, Secrets};

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

    fn packet_number(&self, datagram: &[u8]) -> Option<u64> {
        numbers::packet_number(datagram)
    }

    fn transfer(&self, flow: &StackFlow<'_>, transfer: Transfer) -> [Box<dyn Component>; 2] {
        let [server, client] = Secrets::of(flow);
        let source = transfer::source(flow, transfer, server);
        [Box::new(source), Box::new(transfer::destination(flow, transfer, client))]
    }

    fn application(&self, flow: &StackFlow<'_>, dialogue: &Dialogue<'_>) -> [Box<dyn Component>; 2] {
        let [server, client] = Secrets::of(flow);
        let Dialogue { config, name, streams, .. } = *dialogue;
        let exchange = exchange::client(flow, dialogue, client);
        let client = application::Client::new(config, exchange, streams, name);
        [Box::new(client), Box::new(exchange::server(flow, dialogue, server))]
    }
}
