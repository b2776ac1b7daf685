//! What real hosts, or real packets, cannot have.

use lasthop_experiment::assemble::ConnectionPart;
use lasthop_experiment::{Experiment, Setup};
use lasthop_link::queue::Queue;
use lasthop_proto::scheme::Scheme;
use lasthop_scenario::{ErrorKind, Scenario, ScenarioError};

use super::split;

/// Refuses what works in simulations alone. `long` is the scenario as it is emulated.
pub(super) fn check(scenario: &Scenario, long: &Scenario, setup: &Setup<'_>) -> Result<(), ScenarioError> {
    let (combination, network) = (setup.combination(), setup.layout().network());
    if network.connections == 0 {
        return Err(scenario.error(ErrorKind::Request, String::from(
            "emulate: found no connection, expected one, at whose ends real hosts are; add a table [transfer]",
        )));
    }
    if let Some((flow, sender)) = network.flows.iter().find_map(|flow| Some((flow, flow.stack?))) {
        return Err(scenario.error(ErrorKind::Request, format!(
            "emulate: found the connection \"{}\" with the sender \"{}\", expected TCP senders: real hosts bring their \
             own transport, and simulated connections beside them use TCP; leave the sender out",
            flow.name, sender.name
        )));
    }
    let is_external = |name| scenario.scheme.external.all().any(|scheme| scheme.name() == name);
    if let Some(scheme) = combination.schemes().find(|scheme| is_external(scheme.name())) {
        return Err(scenario.error(
            ErrorKind::Scheme,
            format!(
                "scheme: found \"{}\", which is not a scheme of Lasthop itself: it runs in simulations only",
                scheme.name()
            ),
        ));
    }
    if let Some(scheme) = combination.schemes().find(|scheme| scheme.needs_quic()) {
        return Err(scenario.error(
            ErrorKind::Scheme,
            format!(
                "scheme: found \"{}\", which acts on QUIC only: which real packets belong to one of its connections is not \
                 known here, so it runs in simulations only; \"sidekick\" repairs packets of any transport",
                scheme.name()
            ),
        ));
    }
    if let Some(what) = beyond_base_stations(setup) {
        let is_usable =
            |name: &str| long.set_up(name).is_ok_and(|other| beyond_base_stations(&other).is_none());
        let usable: Vec<String> = scenario
            .schemes
            .iter()
            .filter(|name| is_usable(name))
            .map(|name| format!("\"{name}\""))
            .collect();
        let remedy = match usable.as_slice() {
            [] => String::from("\"basic\", \"snoop\", or \"arq\" for a link that recovers its losses"),
            names => names.join(" or "),
        };
        // A split whose proxy takes the place of the host's TCP.
        let with = |name: &str| format!("{name} + {}", combination.name());
        let split = scenario.scheme.all().map(|scheme| with(scheme.name())).find(|name| is_usable(name));
        let remedy = match split {
            Some(split) => {
                format!("{remedy}; or \"{split}\", whose proxy at the base station has a TCP that it changes")
            }
            None => remedy,
        };
        return Err(scenario.error(
            ErrorKind::Scheme,
            format!(
                "scheme: found \"{}\". {what}. Expected a scheme of links and base stations alone: {remedy}",
                combination.name()
            ),
        ));
    }
    let reads_tcp = |queue: &Queue| matches!(queue, Queue::Managed(management) if management.reads_tcp());
    if network.queues().any(reads_tcp) {
        return Err(scenario.error(ErrorKind::Request, String::from(
            "emulate: found a queue that drops superseded acknowledgements, expected ack_filter = \"off\": of real packets, \
             queues read the flow and the ECN field alone; `tc qdisc ... cake ack-filter` has it on real links",
        )));
    }
    Ok(())
}

/// What a combination needs that real hosts do not have, as a sentence; `None` if links and base stations are all.
fn beyond_base_stations(setup: &Setup<'_>) -> Option<String> {
    let (combination, layout) = (setup.combination(), setup.layout());
    let network = layout.network();
    let [source, destination] = [network.flows[0].source(), network.flows[0].destination()]
        .map(|host| &network.names[usize::from(host.0)]);
    let changes = |scheme: &dyn Scheme, what: &str, host: &str| {
        let (name, summary) = (scheme.name(), scheme.summary());
        let remedy = scheme.with_real_hosts().map_or_else(String::new, |remedy| format!(". {remedy}"));
        format!(
            "\"{name}\" changes the TCP of the {what} \"{host}\", which is a real host here: {summary}{remedy}"
        )
    };
    // The reactions of a split connection are at the ends of its wireless parts.
    let parts = &layout.parts()[0];
    let is_whole = combination.splitter().is_none();
    let reacts = |part: Option<&ConnectionPart>| part.is_some_and(|part| is_whole || part.wireless);
    if let Some(problem) = split::beyond_proxies(combination, network) {
        return Some(problem);
    }
    let sender = combination.changes_sender().filter(|_| reacts(parts.first()));
    let receiver = combination.changes_receiver().filter(|_| reacts(parts.last()));
    if let Some(scheme) = sender {
        Some(changes(scheme, "source", source))
    } else if let Some(scheme) = receiver {
        Some(changes(scheme, "destination", destination))
    } else if combination.copies_to_base_stations() {
        Some(format!("\"{}\" sends packets to several base stations", combination.name()))
    } else {
        None
    }
}
