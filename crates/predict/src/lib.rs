//! What a scenario says of its runs before they are made: nothing here is measured, and nothing simulated.
//!
//! ```text
//!                        ┌──> packet_loss, channel_bursts: closed forms of the channels
//! Scenario ──> Network ──┼──> packet_bound: how many packets a run delivers at most
//!                        ├──> measured_time_s: over which time it measures throughput
//!                        └──> bad_periods, link_timing: what each run of a seed and number meets
//! ```

mod bad_periods;
mod channel_bursts;
mod link_timing;
mod measured_time;
mod packet_bound;
mod packet_loss;

use lasthop_link::graph::LinkId;
use lasthop_scenario::network::Network;

pub use bad_periods::bad_periods;
pub use channel_bursts::{ChannelBursts, channel_bursts};
pub use link_timing::{LinkAsked, link_opportunities, link_timing, varying_links};
pub use measured_time::measured_time_s;
pub use packet_bound::packet_bound;
pub use packet_loss::packet_loss;

/// The name of a link.
fn link_name(network: &Network, link: LinkId) -> String {
    network.graph.ends(link).map(|end| network.names[end.index()].as_str()).join("-")
}
