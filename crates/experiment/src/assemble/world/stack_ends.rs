//! The ends of connections and applications that other stacks than TCP build.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use lasthop_base::Streams;
use lasthop_proto::scheme::Combination;
use lasthop_proto::stack::{Dialogue, Log, StackFlow};
use lasthop_proto::tcp::Transfer;
use lasthop_proto::{ComponentId, FlowId};
use lasthop_scenario::network::{Flow, Workload};
use lasthop_sim::{Contents, Node};

use super::Layout;

/// The qlog of an end, in memory.
#[derive(Clone, Debug, Default)]
pub struct StackLog(Arc<Mutex<Vec<u8>>>);

impl StackLog {
    /// Takes what has been written.
    pub fn take(&self) -> String {
        let text = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The number of bytes written.
    pub fn size(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Log for StackLog {
    fn write(&self, text: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text);
    }
}

/// The ends of all connections of stacks, and the bytes of their packets.
#[derive(Default)]
pub(super) struct StackEnds {
    ends: BTreeMap<FlowId, [Option<Node>; 2]>,
    /// `None` without such connections.
    pub(super) contents: Option<Contents>,
    /// The logs of their stacks, if they are kept.
    pub(super) logs: Vec<(FlowId, StackLog)>,
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

    /// Whether the ends of a flow read reports, if there are any.
    fn has_readers(&self, flow: &Flow) -> bool {
        flow.stack.is_some() && self.network.wireless_steps(flow) > 0
    }

    /// The ends that read reports: both of a connection.
    pub fn readers(&self, combination: &Combination<'_>) -> impl Iterator<Item = ComponentId> {
        let flows = self.network.flows.iter().zip(&self.wiring.flows);
        let is_read = combination.sidecar().is_some();
        let read = flows.filter(move |(flow, _)| is_read && self.has_readers(flow));
        let first = read.filter(|(flow, _)| !matches!(flow.workload, Workload::Joined(_)));
        first.flat_map(|(_, ends)| [ends.source.0, ends.sink.0])
    }

    /// The ends of the connections of stacks, except those for which `other` returns one. Their stacks keep logs if `is_logged`.
    pub(super) fn stack_ends(
        &self,
        combination: &Combination<'_>,
        streams: Streams,
        is_logged: bool,
        other: impl Fn(FlowId) -> Option<Node>,
    ) -> StackEnds {
        let mut all = StackEnds::default();
        for (id, flow) in (0..).map(FlowId).zip(&self.network.flows) {
            let Some(sender) = &flow.stack else { continue };
            if other(id).is_some() {
                continue;
            }
            let is_first = !matches!(flow.workload, Workload::Joined(_));
            let log = (is_logged && is_first).then(StackLog::default);
            all.logs.extend(log.iter().map(|log| (id, log.clone())));
            let sidecar = combination.sidecar().filter(|_| self.has_readers(flow));
            let stack_flow = |contents: &Contents| StackFlow {
                connection: self.connection(id),
                sender: sender.name,
                quic: &sender.quic,
                random: streams.stream(&["stack:", &flow.name].concat()),
                contents: Arc::new(contents.clone()),
                log: log.clone().map(|log| Arc::new(log) as Arc<dyn Log>),
                sidecar: sidecar.map(|(_, make)| make),
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
