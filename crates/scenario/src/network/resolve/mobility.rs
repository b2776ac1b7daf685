//! The moving hosts of a network and the paths to them, with error checks.

use lasthop_base::Duration;
use lasthop_link::graph::LinkId;
use lasthop_proto::HostId;

use super::Resolver;
use crate::diagnostics::alternatives;
use crate::network::{MovingHost, NetworkLink};
use crate::schema::{Mobility, Move, Moves, Topology};

/// Random numbers that the movements of a host may take until the time limit: about a second.
const MAX_DRAWS: f64 = 2e7;

/// The paths of a flow: over each base station of a moving host, or one.
pub(super) struct Paths {
    pub(super) first: Vec<HostId>,
    pub(super) others: Vec<Vec<HostId>>,
}

impl Paths {
    /// The paths in the other direction.
    pub(super) fn reversed(&self) -> Paths {
        let back = |path: &Vec<HostId>| path.iter().rev().copied().collect();
        Paths { first: back(&self.first), others: self.others.iter().map(back).collect() }
    }
}

impl Resolver<'_> {
    pub(super) fn add_moving_hosts(&mut self) {
        let scenario = self.scenario;
        if let (Topology::HandOff(_), true) = (&scenario.topology, scenario.mobility.is_empty()) {
            let problem = "missing key mobility.mobile, which states how the host moves; expected a table such as \
                           [mobility.mobile.moves.periodic] with the key stay";
            return self.fault(&[], problem);
        }
        for (name, mobility) in &scenario.mobility {
            let Some(links) = self.links_of_moving(name) else { continue };
            let stations: Vec<HostId> = links.iter().map(|&(_, station)| station).collect();
            let names: Vec<&str> = stations.iter().map(|&station| self.name_of(station)).collect();
            let (chosen, wrong) = choose(mobility, &names);
            for (keys, problem) in wrong {
                let keys = keys.split('.').filter(|key| !key.is_empty());
                self.fault(&["mobility", name].into_iter().chain(keys).collect::<Vec<_>>(), problem);
            }
            self.check_moves(name, mobility, chosen.len());
            let number = |wanted: &str| {
                let place = chosen.iter().position(|&index| self.name_of(stations[index]) == wanted)?;
                u16::try_from(place).ok()
            };
            let moves = mobility.moves.numbered(number);
            let index = self.network.moving.len();
            for (number, &place) in (0..).zip(&chosen) {
                if let NetworkLink::Radio(hop) = &mut self.network.links[links[place].0.index()] {
                    hop.place = Some((index, number));
                }
            }
            self.network.moving.push(MovingHost {
                host: self.nodes[name.as_str()],
                stream: ["mobility:", name].concat(),
                stations: chosen.iter().map(|&place| stations[place]).collect(),
                moves,
                gap: mobility.gap,
                overlap: mobility.overlap,
            });
        }
        if !self.network.moving.is_empty() {
            self.fixed = self.network.fixed();
        }
    }

    fn name_of(&self, node: HostId) -> &str {
        &self.network.names[node.index()]
    }

    /// The wireless links of a host that moves, each with its base station; `None` if the host cannot move.
    fn links_of_moving(&mut self, name: &str) -> Option<Vec<(LinkId, HostId)>> {
        let Some(&host) = self.nodes.get(name) else {
            let names = self.network.names.iter().map(String::as_str);
            let problem = format!("found no such host, {}", alternatives(name, names));
            self.fault(&["mobility", name], problem);
            return None;
        };
        let graph = &self.network.graph;
        let mut links = Vec::new();
        for &other in graph.neighbours(host) {
            let link = graph.link(host, other).expect("neighbours have a link");
            match &self.network.links[link.index()] {
                NetworkLink::Radio(hop) if graph.ends(link)[hop.mobile] == host => links.push((link, other)),
                _ => {
                    let problem = format!(
                        "found a host with other links than wireless ones to base stations, to \"{}\", expected a \
                         mobile host",
                        self.name_of(other)
                    );
                    self.fault(&["mobility", name], problem);
                    return None;
                }
            }
        }
        Some(links)
    }

    /// Checks the numbers of an itinerary.
    fn check_moves(&mut self, name: &str, mobility: &Mobility, stations: usize) {
        let mut problems: Vec<(String, String)> = Vec::new();
        for (key, _) in mobility.moves.lengths().into_iter().filter(|(_, length)| length.is_zero()) {
            problems.push((
                key.into(),
                String::from("found a length of zero, expected one above zero, such as \"10 s\""),
            ));
        }
        if mobility.overlap && !mobility.gap.is_zero() {
            let problem = format!(
                "found true beside a gap of \"{}\", expected no gap, since no cell is left",
                mobility.gap
            );
            self.fault(&["mobility", name, "overlap"], problem);
        }
        if let Moves::Strongest(law) = &mobility.moves {
            if !(law.exponent >= 0.0 && law.exponent <= 10.0) {
                let problem = format!("found {}, expected 0 to 10", law.exponent);
                problems.push((String::from("strongest.exponent"), problem));
            }
            for (key, level) in [("shadowing", law.shadowing), ("hysteresis", law.hysteresis)] {
                if level.get() < 0.0 {
                    problems.push((
                        format!("strongest.{key}"),
                        format!("found \"{level}\", expected at least \"0 dB\""),
                    ));
                }
            }
        }
        if let Moves::Timetable(moves) = &mobility.moves {
            for (index, pair) in moves.windows(2).enumerate() {
                if pair[1].at <= pair[0].at + mobility.gap {
                    let problem = format!(
                        "found \"{}\", expected a time after the host has arrived at \"{}\", later than \"{}\"",
                        pair[1].at,
                        pair[0].to,
                        pair[0].at + mobility.gap
                    );
                    problems.push((format!("timetable.{}.at", index + 1), problem));
                }
            }
        }
        for (keys, problem) in problems {
            let keys = ["mobility", name, "moves"].into_iter().chain(keys.split('.'));
            self.fault(&keys.collect::<Vec<_>>(), problem);
        }
        if let Some((keys, cycle)) = mobility.moves.cycle().filter(|(_, cycle)| !cycle.is_zero()) {
            // Each link's two directions have a copy of the itinerary, as have the host and its meter.
            let copies = 2 * stations + 2;
            let draws = if matches!(mobility.moves, Moves::Strongest(_)) { stations } else { 1 };
            let limit = self.scenario.limit;
            let found = limit.as_secs_f64() / cycle.as_secs_f64() * (copies * draws) as f64;
            if found > MAX_DRAWS {
                let least = Duration::from_secs_f64(cycle.as_secs_f64() * found / MAX_DRAWS);
                let problem = format!(
                    "found \"{cycle}\" with {stations} base stations until the limit of \"{limit}\", which takes too \
                     long to draw, expected at least \"{least}\", fewer base stations or a shorter limit"
                );
                let keys = ["mobility", name, "moves"].into_iter().chain(keys.split('.'));
                self.fault(&keys.collect::<Vec<_>>(), problem);
            }
        }
    }

    /// The paths between two nodes, of which one may move: over the fewest links to or from each base station.
    pub(super) fn shortest(&mut self, start: HostId, end: HostId) -> Result<Option<Paths>, &'static str> {
        let stations = |host| {
            let moving = self.network.moving.iter().find(|moving| moving.host == host)?;
            Some(moving.stations.clone())
        };
        let graph = if self.network.moving.is_empty() { &self.network.graph } else { &self.fixed };
        let paths = &mut self.paths;
        let to_stations = match (stations(start), stations(end)) {
            (None, None) => {
                let path = paths.between(graph, start, end);
                return Ok(path.map(|first| Paths { first, others: Vec::new() }));
            }
            (Some(_), Some(_)) => return Err("moves, and so does the other end; expected a host that stays"),
            // All paths to or from the host that stays come from one search, so that they part only once.
            (Some(stations), None) => stations
                .into_iter()
                .map(|station| {
                    let path = paths.between(graph, station, end)?;
                    Some([vec![start], path].concat())
                })
                .collect::<Option<Vec<_>>>(),
            (None, Some(stations)) => stations
                .into_iter()
                .map(|station| {
                    let path = paths.between(graph, station, start)?;
                    Some(path.into_iter().rev().chain([end]).collect())
                })
                .collect(),
        };
        Ok(to_stations.map(|mut all| Paths { first: all.remove(0), others: all }))
    }
}

/// The base stations of a moving host: indices into `names`, which are all that it may have. Errors have the keys and
/// the problem.
fn choose(mobility: &Mobility, names: &[&str]) -> (Vec<usize>, Vec<(String, String)>) {
    let mut problems = Vec::new();
    let mut chosen: Vec<usize> = Vec::new();
    match &mobility.stations {
        None => chosen.extend(0..names.len()),
        Some(stations) if stations.is_empty() => {
            problems.push((
                String::from("stations"),
                String::from("found none, expected at least one base station"),
            ));
        }
        Some(stations) => {
            for (index, station) in stations.iter().enumerate() {
                let problem = match names.iter().position(|name| name == station) {
                    None => format!("found \"{station}\", {}", alternatives(station, names.iter().copied())),
                    Some(place) if chosen.contains(&place) => {
                        format!("found \"{station}\" a second time, expected it once")
                    }
                    Some(place) => {
                        chosen.push(place);
                        continue;
                    }
                };
                problems.push((format!("stations.{index}"), problem));
            }
        }
    }
    if let Moves::Timetable(moves) = &mobility.moves {
        let known: Vec<&str> = chosen.iter().map(|&place| names[place]).collect();
        for (index, Move { to, .. }) in
            moves.iter().enumerate().filter(|(_, each)| !known.contains(&each.to.as_str()))
        {
            let problem = format!("found \"{to}\", {}", alternatives(to, known.iter().copied()));
            problems.push((format!("moves.timetable.{index}.to"), problem));
        }
    }
    (chosen, problems)
}
