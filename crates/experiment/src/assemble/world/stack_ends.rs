//! The ends of connections and applications that other stacks than TCP build.

use std::collections::BTreeMap;
use std::sync::Arc;

use lasthop_base::Streams;
use lasthop_proto::FlowId;
use lasthop_proto::stack::{Dialogue, StackFlow};
use lasthop_proto::tcp::Transfer;
use lasthop_scenario::network::{Flow, Workload};
use lasthop_sim::{Contents, Node};

use super::Layout;

/// The ends of all connections of stacks, and the bytes of their packets.
#[derive(Default)]
pub(super) struct StackEnds {
    ends: BTreeMap<FlowId, [Option<Node>; 2]>,
    /// `None` without such connections.
    pub(super) contents: Option<Contents>,
}

impl StackEnds {
    /// Takes the source, number 0, or the sink, number 1, of a flow; `None` if no stack builds it.
    pub(super) fn take(&mut self, flow: FlowId, end: usize) -> Option<Node> {
        self.ends.get_mut(&flow)?[end].take()
    }
}

impl Layout {
    /// The transfer of a flow in a run, with the random delay of its start.
    pub(super) fn transfer(flow: &Flow, streams: Streams) -> Option<Transfer> {
        let Workload::Transfer { transfer, spread, .. } = flow.workload else { return None };
        let delay =
            (!spread.is_zero()).then(|| streams.stream(&["start:", &flow.name].concat()).up_to(spread));
        Some(Transfer { start: transfer.start + delay.unwrap_or_default(), ..transfer })
    }

    /// The ends of the connections of stacks, except those for which `other` returns one.
    pub(super) fn stack_ends(&self, streams: Streams, other: impl Fn(FlowId) -> Option<Node>) -> StackEnds {
        let mut all = StackEnds::default();
        for (id, flow) in (0..).map(FlowId).zip(&self.network.flows) {
            let Some(sender) = &flow.stack else { continue };
            if other(id).is_some() {
                continue;
            }
            let stack_flow = |contents: &Contents| StackFlow {
                connection: self.connection(id),
                sender: sender.name,
                quic: &sender.quic,
                random: streams.stream(&["stack:", &flow.name].concat()),
                contents: Arc::new(contents.clone()),
            };
            let contents = all.contents.get_or_insert_default();
            let ends = match &flow.workload {
                Workload::Transfer { .. } => {
                    let transfer = Layout::transfer(flow, streams).expect("the flow is a transfer");
                    sender.stack.transfer(&stack_flow(contents), transfer)
                }
                Workload::Application(config) => {
                    let responses = FlowId(id.0 + 1);
                    let dialogue = Dialogue { responses, config, name: &flow.name, streams };
                    sender.stack.application(&stack_flow(contents), &dialogue)
                }
                // Its ends are those of the application's first flow.
                Workload::Joined(_) => continue,
                Workload::Traffic { .. } => unreachable!("other traffic has no stack"),
            };
            all.ends.insert(id, ends.map(|end| Some(end.into())));
        }
        all
    }
}
