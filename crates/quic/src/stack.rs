//! A library as a stack.

use lasthop_proto::stack::{Dialogue, Sender, Stack, StackFlow};
use lasthop_proto::tcp::Transfer;
use lasthop_proto::{Component, application};

use crate::numbers;

use super::config::Secrets;
use super::{exchange, proto, transfer};

/// The stack.
#[derive(Clone, Copy, Debug)]
pub struct Library;

impl Stack for Library {
    fn protocol(&self) -> &'static str {
        "QUIC"
    }

    fn version(&self) -> &'static str {
        proto::VERSION
    }

    fn senders(&self) -> &'static [Sender] {
        proto::SENDERS
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
