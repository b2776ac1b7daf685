//! AIRMAIL: an asymmetric ARQ, and FEC while there are losses.
//!
//! **What it does.** The wireless link retransmits lost units. The mobile host does as little as possible: it
//! has no timers, and acknowledges several units in one status message after the last of them has arrived.
//! The base station polls it after a timeout. In the other direction, the base station sends status messages
//! periodically, and the mobile host retransmits missing units. Each end has a window of units. While status
//! messages report losses, units are protected by a code.
//! **Source.** Ayanoglu, Paul, LaPorta, Sabnani and Gitlin, "AIRMAIL: A link-layer protocol for wireless
//! networks", Wireless Networks 1, 1995.
//! **Parameters.** `window`: maximum unreported or missing units of either end, 32. `every`: units per status
//! message of the mobile host, 8. `period`: time between status messages of the base station, 50 ms, about
//! eight packets of a 2 Mb/s link. `report_delay`: delay of a status message or poll, 20 ms. `timeout`: time
//! without transmissions after which the base station polls for unreported units, 100 ms. `retransmissions`:
//! maximum retransmissions of a unit, unlimited. `fec`: whether the link's code protects units while there
//! are losses; off, since most scenarios have no code.
//! **Differences from the paper.** The paper has three levels of FEC: bits, bytes and packets. Here only the
//! block code within units is adaptive; `radio.expansion` is a constant code at the bit level, and the scheme
//! `packet-fec` a code across packets. The code is on from a status message with losses until one without;
//! the paper adapts to the measured channel. Status messages have a constant delay, are never lost and use no
//! air time. At a hand-off the window is not transferred: the old base station drops its packets. The full
//! paper was not available: parameter values and rules are not verified, and its measurements are not
//! reproduced.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArqUse, Installer, LinkEnd, Scheme};
use crate::arq::status_window::{Params, Reports};
use crate::arq::{Config, Protocol, Retransmissions};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::fec::Covers;
use crate::packet::Packet;
use crate::tcp::Settings;

/// An asymmetric ARQ with adaptive FEC.
///
/// Replaces the scenario's ARQ in both directions by `status-window`, with event-driven reports to the base
/// station and periodic reports to the mobile host. Not for cells, whose MAC has its own ARQ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Airmail {
    /// Maximum number of unreported or missing units of either end.
    pub window: u32,
    /// Number of units per status message of the mobile host; at most `window`.
    pub every: u32,
    /// Time between status messages of the base station.
    pub period: Duration,
    /// Delay of a status message or poll.
    pub report_delay: Duration,
    /// Time without transmissions after which the base station polls for unreported units.
    pub timeout: Duration,
    /// Maximum number of retransmissions of a unit; then the whole packet is discarded.
    pub retransmissions: Retransmissions,
    /// Whether the link's code (`radio.fec`, required) protects units after a status message with losses,
    /// until one without losses.
    pub fec: bool,
}

impl Default for Airmail {
    fn default() -> Airmail {
        let Params { retransmissions, window, report_delay, timeout, .. } = Params::default();
        let (every, period, fec) = (8, Duration::from_millis(50), false);
        Airmail { window, every, period, report_delay, timeout, retransmissions, fec }
    }
}

impl Airmail {
    /// The ARQ of the base station, and that of the mobile host.
    fn arqs(&self) -> [Params; 2] {
        let Airmail { window, every, period, report_delay, timeout, retransmissions, .. } = *self;
        [Reports::Every(every), Reports::Period(period)].map(|reports| Params {
            retransmissions,
            window,
            reports,
            report_delay,
            timeout,
        })
    }
}

impl Scheme for Airmail {
    fn name(&self) -> &'static str {
        "airmail"
    }

    fn summary(&self) -> &'static str {
        "an ARQ in which the mobile host seldom reports and the base station does the work; FEC while there are losses"
    }

    fn source(&self) -> &'static str {
        "Ayanoglu et al. 1995"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let fault = self.arqs().iter().find_map(|arq| arq.validate().err());
        fault.map_or_else(Vec::new, |invalid| {
            let key = invalid.field.trim_start_matches("reports.");
            vec![(String::from(key), String::from(invalid.problem))]
        })
    }

    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Replaced(self.arqs().map(Config::StatusWindow)));
        if self.fec {
            installer.protect(Covers::Requested);
        }
        installer.at_base_station(|_| Observer { from: LinkEnd::MobileHost, statuses: 0 });
        installer.at_mobile_host(|_| Observer { from: LinkEnd::BaseStation, statuses: 0 });
    }
}

/// Counts the status messages received over the link.
#[derive(Debug)]
struct Observer {
    /// The end that sends the status messages.
    from: LinkEnd,
    statuses: u64,
}

impl Component for Observer {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        out.send(port.across(), *packet);
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn on_signal(&mut self, _now: Time, signal: &Signal, _out: &mut Out) {
        self.statuses += u64::from(*signal == Signal::Status);
    }

    /// Totals of the status messages of each end.
    fn count(&self, tally: &mut dyn Tally) {
        let is_base_station = self.from == LinkEnd::BaseStation;
        tally.total("base_station_reports", if is_base_station { self.statuses } else { 0 });
        tally.total("mobile_host_reports", if is_base_station { 0 } else { self.statuses });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostId;

    #[test]
    fn status_messages_alone_are_counted() {
        let mut observer = Observer { from: LinkEnd::MobileHost, statuses: 0 };
        let (host, station, mut out) = (HostId(1), 0, Out::default());
        for signal in [Signal::Status, Signal::Detached { host, station }, Signal::Status] {
            observer.on_signal(Time::ZERO, &signal, &mut out);
        }
        assert_eq!(observer.statuses, 2);
    }
}
