//! Networks: a graph of nodes and duplex links, the paths of the flows, and their translation to components
//! and wires.
//!
//! Paths are fixed before a run begins. A [`Router`] component exists only where packets that leave the same
//! port take different next hops; elsewhere forwarding takes no time and no component, just a wire. A moving
//! host has a path over each of its base stations; where they part, a [`MovingRouter`] chooses by the host's
//! last registration.

mod moving_router;
mod router;
mod wiring;

pub use lasthop_link::graph::{BssId, Graph, LinkId, SharedId};
pub use lasthop_link::{FlowPath, Join, ShortestPaths};
pub use moving_router::MovingRouter;
pub use router::Router;
pub use wiring::{AgentPlace, AgentRef, ComponentKind, FlowEnds, MovingHosts, PortRef, Wiring};
