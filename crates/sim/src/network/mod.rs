//! Networks: a graph of nodes and duplex links, the paths of the flows that cross it, and the plan
//! of components and wires that this comes to.
//!
//! Routes are fixed before a run begins, so that a plan holds a [`Router`] only where packets that
//! come out of one place part ways. Everywhere else to be forwarded takes no time and no component:
//! it is a wire.

mod graph;
mod plan;
mod router;

pub use graph::{BssId, Graph, LinkId};
pub use plan::{FlowEnds, FlowPath, Part, Place, Plan};
pub use router::Router;
