//! ACKs-first scheduling.
//!
//! **What it does.** At both ends of the wireless link, acknowledgements without data go ahead of everything else in the queue. A
//! download then does not wait for the ACKs that are stuck behind an upload on a slow uplink. Agents give these ACKs the code
//! point of expedited forwarding, unless they have one of their own, and a priority queue serves that first.
//! **Source.** Balakrishnan, Padmanabhan and Katz, "The effects of asymmetry on TCP performance", MobiCom 1997; RFC 3449 section
//! 5.4.2 summarises it.
//! **Parameters.** None.
//! **Differences from the source.** Other expedited packets, such as Snoop's retransmissions, share the queue of the ACKs. An ACK
//! that waits does not give way to a newer one of its connection; that is another remedy of the source, ACK filtering. The code
//! point stays on the rest of the way.

use lasthop_base::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, QueueUse, Scheme};
use crate::component::{Component, LinkOutcome, Out, Port, Tally};
use crate::packet::{Body, Dscp, Packet};
use crate::tcp::Flags;

/// ACKs-first scheduling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AcksFirst {}

impl Scheme for AcksFirst {
    fn name(&self) -> &'static str {
        "acks-first"
    }

    fn summary(&self) -> &'static str {
        "acknowledgements without data go first on the wireless link"
    }

    fn source(&self) -> &'static str {
        "Balakrishnan, Padmanabhan and Katz 1997, RFC 3449 section 5.4.2"
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.queue(QueueUse::ExpeditedFirst);
        installer.expedites();
        installer.at_base_station(|_| Marker::default());
        installer.at_mobile_host(|_| Marker::default());
    }
}

/// Gives acknowledgements that enter the link the code point of expedited forwarding.
#[derive(Debug, Default)]
struct Marker {
    expedited_acks: u64,
}

/// Whether a packet is an acknowledgement and nothing else.
fn is_pure_ack(packet: &Packet) -> bool {
    let Body::Tcp(segment) = &packet.body else { return false };
    let others = Flags::SYN | Flags::FIN | Flags::RST;
    segment.len == 0 && segment.flags.has(Flags::ACK) && segment.flags & others == Flags::default()
}

impl Component for Marker {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let mut packet = *packet;
        if port == Port::WIRED && packet.dscp == Dscp::DEFAULT && is_pure_ack(&packet) {
            packet.dscp = Dscp::EXPEDITED;
            self.expedited_acks += 1;
        }
        out.send(port.across(), packet);
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    /// Total of acknowledgements that went first.
    fn count(&self, tally: &mut dyn Tally) {
        tally.total("expedited_acks", self.expedited_acks);
    }
}
