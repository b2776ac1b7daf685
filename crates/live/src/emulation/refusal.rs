//! What real hosts, or real packets, cannot have.

use lasthop_experiment::assemble::ConnectionPart;
use lasthop_experiment::{Experiment, Setup};
use lasthop_link::queue::Queue;
use lasthop_proto::scheme::Scheme;
use lasthop_scenario::{Change, ErrorKind, Scenario, ScenarioError};

use super::split;

#[cfg(test)]
mod tests;

/// Sets up a scenario, as long as it is emulated, with a scheme.
///
/// # Errors
/// As [`set_up`](Experiment::set_up), and for what works in simulations alone. Each combination and setting that the latter
/// names is accepted.
pub(super) fn set_up<'a>(scenario: &'a Scenario, scheme: &str) -> Result<Setup<'a>, ScenarioError> {
    let setup = scenario.set_up(scheme).map_err(|lack| {
        // With the ARQ that it lacks it may be refused all the same, for what no ARQ changes.
        let problem =
            with_arq(scenario, scheme).and_then(|name| problem(scenario, &scenario.set_up(&name).ok()?));
        problem.map_or(lack, |problem| refuse(scenario, scheme, problem))
    })?;
    let network = setup.layout().network();
    let request = |text: &str| Err(scenario.error(ErrorKind::Request, format!("emulate: found {text}")));
    if network.connections == 0 {
        return request("no connection, expected one, at whose ends real hosts are; add a table [transfer]");
    }
    if let Some((flow, sender)) = network.flows.iter().find_map(|flow| Some((flow, flow.stack?))) {
        return request(&format!(
            "the connection \"{}\" with the sender \"{}\", expected TCP senders: real hosts bring their own transport, \
             and simulated connections beside them use TCP; leave the sender out",
            flow.name, sender.name
        ));
    }
    let reads_tcp = |queue: &Queue| matches!(queue, Queue::Managed(management) if management.reads_tcp());
    if network.queues().any(reads_tcp) {
        return request(
            "a queue that drops superseded acknowledgements, expected ack_filter = \"off\": of real packets, queues read the \
             flow and the ECN field alone; `tc qdisc ... cake ack-filter` has it on real links",
        );
    }
    match problem(scenario, &setup) {
        Some(problem) => Err(refuse(scenario, setup.combination().name(), problem)),
        None => Ok(setup),
    }
}

/// Why a combination works in simulations alone, as a sentence, and the scheme to blame.
type Problem<'a> = (String, Option<&'a dyn Scheme>);

/// The combination with the ARQ that a refusal for the lack of one names.
fn with_arq(scenario: &Scenario, name: &str) -> Option<String> {
    Some(format!("{name} + {}", scenario.scheme.suppliers_of_arq().last()?))
}

/// The refusal of the combination `name`, with what is accepted in its place.
fn refuse(scenario: &Scenario, name: &str, (what, blamed): Problem<'_>) -> ScenarioError {
    let is_usable = |scenario: &Scenario, name: &str| {
        scenario.set_up(name).is_ok_and(|setup| problem(scenario, &setup).is_none())
    };
    let setting = blamed.and_then(|scheme| {
        let [key, value, effect] = scheme.with_real_hosts()?;
        let change = Change::Assignment(format!("scheme.{}.{key}={value}", scheme.name()));
        let mut changed = scenario.with([change]).ok()?;
        (changed.limit, changed.warmup) = (scenario.limit, scenario.warmup);
        is_usable(&changed, name).then(|| format!(". With {key} = \"{value}\", {effect}"))
    });
    let known: Vec<&str> = scenario.scheme.all().map(|scheme| scheme.name()).collect();
    let stated = scenario.schemes.iter().map(|name| &**name).filter(|name| is_usable(scenario, name));
    let mut usable: Vec<&str> = stated.collect();
    if usable.is_empty() {
        usable = known.iter().copied().filter(|name| is_usable(scenario, name)).collect();
    }
    // A split whose proxy takes the place of the host's TCP.
    let mut splits = known.iter().flat_map(|split| {
        let both = format!("{split} + {name}");
        [with_arq(scenario, &both), Some(both)].into_iter().rev().flatten()
    });
    let split = splits
        .find(|both| is_usable(scenario, both))
        .map(|both| format!("; or \"{both}\", whose proxy at the base station has a TCP that it changes"));
    let [setting, split] = [setting, split].map(Option::unwrap_or_default);
    scenario.error(
        ErrorKind::Scheme,
        format!(
            "scheme: found \"{name}\". {what}{setting}. Expected a scheme of links and base stations alone: \"{}\"{split}",
            usable.join("\" or \"")
        ),
    )
}

/// What a combination needs that real hosts, or real packets, do not have.
fn problem<'a>(scenario: &Scenario, setup: &Setup<'a>) -> Option<Problem<'a>> {
    let (combination, layout) = (setup.combination(), setup.layout());
    let network = layout.network();
    let is_external = |name| scenario.scheme.external.all().any(|scheme| scheme.name() == name);
    if let Some(scheme) = combination.schemes().find(|scheme| is_external(scheme.name())) {
        let name = scheme.name();
        let what = format!("\"{name}\" is not a scheme of Lasthop itself, and runs in simulations only");
        return Some((what, Some(scheme)));
    }
    if let Some(scheme) = combination.schemes().find(|scheme| scheme.needs_quic()) {
        let what = format!(
            "\"{}\" acts on QUIC only, and which real packets belong to one of its connections is not known here",
            scheme.name()
        );
        return Some((what, Some(scheme)));
    }
    if let Some(what) = split::beyond_proxies(combination, network) {
        return Some((
            what,
            combination.schemes().find(|scheme| combination.splitter() == Some(scheme.name())),
        ));
    }
    let [source, destination] =
        [network.flows[0].source(), network.flows[0].destination()].map(|host| &network.names[host.index()]);
    let changes = |scheme: &'a dyn Scheme, what: &str, host: &str| {
        let (name, summary) = (scheme.name(), scheme.summary());
        let what = format!(
            "\"{name}\" changes the TCP of the {what} \"{host}\", which is a real host here: {summary}"
        );
        Some((what, Some(scheme)))
    };
    // The reactions of a split connection are at the ends of its wireless parts.
    let parts = &layout.parts()[0];
    let is_whole = combination.splitter().is_none();
    let reacts = |part: Option<&ConnectionPart>| part.is_some_and(|part| is_whole || part.wireless);
    if let Some(scheme) = combination.changes_sender().filter(|_| reacts(parts.first())) {
        changes(scheme, "source", source)
    } else if let Some(scheme) = combination.changes_receiver().filter(|_| reacts(parts.last())) {
        changes(scheme, "destination", destination)
    } else if combination.copies_to_base_stations() {
        let name = combination.name();
        Some((
            format!("\"{name}\" sends copies to several base stations, and a real packet has one way"),
            None,
        ))
    } else {
        None
    }
}
