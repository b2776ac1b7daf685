//! Gilbert and Gilbert-Elliott channels of a scenario, by packets and by time.

use lasthop_base::Bytes;
use lasthop_channel::Bursts;
use lasthop_scenario::network::NetworkLink;
use lasthop_scenario::{Scenario, ScenarioError};

use crate::link_name;

/// The losses of one link, for packets of the scenario's size that follow each other without a gap.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelBursts {
    /// The link.
    pub link: String,
    /// Size of a packet.
    pub packet_size: Bytes,
    /// Packets per second at the rate of the link.
    pub packets_per_s: f64,
    /// The losses.
    pub bursts: Bursts,
}

/// The Gilbert and Gilbert-Elliott channels that the data of connections meet, each link once.
///
/// # Errors
/// If the scenario has [faults](Scenario::faults).
pub fn channel_bursts(scenario: &Scenario) -> Result<Vec<ChannelBursts>, ScenarioError> {
    let network = scenario.network()?;
    let packet_size = scenario.tcp.packet_size;
    let crossed = network.crossed().map(|(id, radio)| {
        let interval = radio.nominal_rate().time_for_bits(radio.expansion.on_air(packet_size.bits()));
        (id, &radio.channel, interval)
    });
    let stations = network.steps().filter_map(|(id, _)| match &network.links[id.index()] {
        NetworkLink::Station(station) => Some((id, &station.channel, network.bss.exposed(packet_size).1)),
        NetworkLink::Wired(_) | NetworkLink::Radio(_) => None,
    });
    let mut found: Vec<ChannelBursts> = Vec::new();
    for (id, channel, interval) in crossed.chain(stations) {
        let link = link_name(&network, id);
        let is_new = found.iter().all(|other| other.link != link);
        if let Some(bursts) = channel.bursts(interval).filter(|_| is_new) {
            let packets_per_s = 1.0 / interval.as_secs_f64();
            found.push(ChannelBursts { link, packet_size, packets_per_s, bursts });
        }
    }
    Ok(found)
}
