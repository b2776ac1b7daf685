//! Packet loss probability of a wireless link, from the closed form of its channel.

use lasthop_base::Bytes;
use lasthop_link::graph::LinkId;
use lasthop_scenario::network::{Network, NetworkLink};
use lasthop_scenario::{ErrorKind, LinkProtection, Scenario, ScenarioError, alternatives};

use crate::link_name;

/// Maximum number of possible state changes of the channel while a packet is on the air: seconds of work.
const MAX_INSTANTS: f64 = 1e7;

/// The maximum size of an IP packet.
const MAX_PACKET: Bytes = Bytes(65_535);

/// The probability that a packet of `size`, headers included, is lost on the wireless link `link`, by
/// default the first that a connection crosses. The packet is sent once, uncoded, at a random instant of
/// the stationary channel. See [`Model::loss_probability`](lasthop_channel::Model::loss_probability).
///
/// The direction is that of a connection's data, or to the mobile host if no connection crosses the link.
/// In a cell, a packet is lost with its data frame, assuming no collisions, or above the MAC.
///
/// # Errors
/// If the scenario has [faults](Scenario::faults), the link does not exist, or its loss has no closed
/// form.
pub fn packet_loss(scenario: &Scenario, size: Bytes, link: Option<&str>) -> Result<f64, ScenarioError> {
    if size == Bytes::ZERO || size > MAX_PACKET {
        return Err(scenario.error(
            ErrorKind::Request,
            format!("packet loss: found a packet of {size}, expected 1 B to {MAX_PACKET}"),
        ));
    }
    let network = scenario.network()?;
    let id = wireless(&network, link).map_err(|message| scenario.error(ErrorKind::Request, message))?;
    let lacks = |what: &str| {
        let remedy = "measure it: link_failures over link_attempts of a run";
        let name = link_name(&network, id);
        Err(scenario.error(
            ErrorKind::Request,
            format!("packet loss: no closed form for {what} of the link {name}; {remedy}"),
        ))
    };
    let radio = match &network.links[id.index()] {
        NetworkLink::Station(station) if station.radio.is_some() => {
            return lacks("the rates and retransmissions");
        }
        NetworkLink::Station(station) if !station.channel.has_closed_form() => {
            return lacks("the channel");
        }
        NetworkLink::Station(station) => {
            let (bits, on_air) = network.bss.exposed(size);
            let lost = station.channel.loss_probability(1, bits, on_air);
            let ap = network.graph.ends(id)[0];
            let up = network.steps().find(|step| step.0 == id).is_some_and(|(_, from)| from != ap);
            let dropped = if up { station.drop.up } else { station.drop.down };
            return Ok(lost + (1.0 - lost) * dropped.get());
        }
        NetworkLink::Radio(hop) if hop.place.is_some() => return lacks("the movements of the host"),
        NetworkLink::Radio(hop) => {
            let crossed = network.crossed().find(|crossed| crossed.0 == id);
            crossed.map_or(&hop.down, |(_, radio)| radio)
        }
        NetworkLink::Wired(_) => unreachable!("the link is wireless"),
    };
    if !radio.channel.has_closed_form() {
        return lacks("the channel");
    }
    if radio.grants.is_some() {
        return lacks("the grants");
    }
    if radio.rate.varies() {
        return lacks("the varying rate");
    }
    if radio.outage.is_some() {
        return lacks("the outages");
    }
    if radio.fec.is_some() && radio.protect == LinkProtection::All {
        return lacks("the code");
    }
    let (units, bits, on_air) = radio.on_air(size);
    if radio.channel.loss_instants(on_air) > MAX_INSTANTS {
        return lacks("so many periods in a packet");
    }
    Ok(radio.channel.loss_probability(units, bits, on_air))
}

/// The wireless link `link`, or the first that a connection crosses.
fn wireless(network: &Network, link: Option<&str>) -> Result<LinkId, String> {
    let is_wireless = |id: &LinkId| !matches!(network.links[id.index()], NetworkLink::Wired(_));
    let Some(wanted) = link else {
        let first = network.steps().map(|(link, _)| link).find(is_wireless);
        return first.ok_or_else(|| String::from("packet loss: no connection crosses a wireless link"));
    };
    let all = (0..network.links.len()).map(|index| LinkId(index as u32)).filter(is_wireless);
    let named: Vec<(String, LinkId)> = all.map(|id| (link_name(network, id), id)).collect();
    let found = named.iter().find(|(name, _)| name == wanted).map(|(_, id)| *id);
    found.ok_or_else(|| {
        let expected = match named.is_empty() {
            true => String::from("but no link is wireless"),
            false => alternatives(wanted, named.iter().map(|(name, _)| name.as_str())),
        };
        format!("packet loss: found the link \"{wanted}\", {expected}")
    })
}
