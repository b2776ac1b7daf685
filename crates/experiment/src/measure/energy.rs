//! Air time of radios by direction, and the energy of mobile hosts.

use lasthop_base::{Bytes, Duration};
use lasthop_link::graph::LinkId;
use lasthop_scenario::network::{Network, NetworkLink};

use super::evaluate::Measured;

/// Air time and energy of the radios since the end of the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RadioUse {
    /// Air time of the directions to base stations.
    pub(super) uplink_air_time: Duration,
    /// Energy of the radios of mobile hosts whose power is stated; `None` if no power is stated.
    pub(super) mobile_energy_j: Option<f64>,
    /// Payload delivered, by any flow.
    pub(super) delivered: Bytes,
}

impl RadioUse {
    /// `directions` are the links of the radios, each with the end that sends, in the order of their counters.
    pub(crate) fn new(
        network: &Network,
        directions: impl Iterator<Item = (LinkId, usize)>,
        measured: &Measured<'_>,
        delivered: Bytes,
    ) -> RadioUse {
        let span = measured.length().as_secs_f64();
        let hops = network.links.iter().filter_map(|link| match link {
            NetworkLink::Radio(hop) => Some(hop),
            NetworkLink::Wired(_) | NetworkLink::Station(_) => None,
        });
        // A host has one radio, with which it visits all its base stations.
        let radios = hops.filter(|hop| hop.place.is_none_or(|(_, station)| station == 0));
        let idle = radios.filter_map(|hop| hop.down.power).map(|power| power.idle.as_watts() * span);
        let mut energy = idle.reduce(|one, other| one + other);
        let mut uplink_air_time = Duration::ZERO;
        for ((link, from), air_time) in directions.zip(measured.air_times()) {
            let NetworkLink::Radio(hop) = &network.links[link.index()] else {
                unreachable!("a radio is at the end of a wireless link")
            };
            let sends = from == hop.mobile;
            if sends {
                uplink_air_time += air_time;
            }
            let Some(power) = hop.down.power else { continue };
            let active = if sends { power.transmit } else { power.receive };
            let above_idle = (active.as_watts() - power.idle.as_watts()) * air_time.as_secs_f64();
            *energy.get_or_insert(0.0) += above_idle;
        }
        RadioUse { uplink_air_time, mobile_energy_j: energy, delivered }
    }
}
