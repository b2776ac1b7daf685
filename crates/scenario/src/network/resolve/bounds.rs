//! Resource limits: scenarios beyond them would run for days or exhaust memory.

use std::collections::BTreeSet;
use std::mem;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_link::graph::LinkId;
use lasthop_link::queue::Queue;
use lasthop_link::varying::{Delay, Rate};
use lasthop_proto::scheme::LinkEnd;
use lasthop_proto::traffic::{Config, Pattern};
use lasthop_proto::{arq, quic, tcp};

use super::Resolver;
use crate::network::{BssKind, Flow, LastHop, NetworkLink, StationConfig, Workload};
use crate::schema::{Radio, Traffic, Wired};

/// About three years.
const MAX_LIMIT: Duration = Duration::from_secs(100_000_000);

/// Bits that a link may carry until the time limit: 1 Tb/s for 1000 s.
const MAX_BITS: f64 = 1e15;

/// Attempts that an ARQ without a limit may make until the time limit: hours of work.
const MAX_ATTEMPTS: f64 = 1e11;

/// Times that packets may overtake others until the time limit: a quarter of an hour of work.
const MAX_OVERTAKINGS: f64 = 1e12;

/// A packet without payload.
const MIN_PACKET: Bytes = Bytes(40);

/// Periods of a channel with states, or outages, until the time limit. After a long silence they are drawn
/// all at once, which takes about a second.
const MAX_PERIODS: f64 = 2e7;

/// Intervals of grants until the time limit: one in use costs as much as a packet, and those of an idle link are skipped.
const MAX_INTERVALS: f64 = 1e9;

/// Periods of a channel while one unit is on the air; all of them are held in memory.
const MAX_PERIODS_IN_UNIT: f64 = 1e6;

/// Packets that a traffic source may send until the time limit.
const MAX_DATAGRAMS: f64 = 1e9;

/// Segments in a window: 1 GiB of 1 KiB segments. Without congestion control all of them are sent in one burst.
const MAX_SEGMENTS: u32 = 1 << 20;

/// The maximum size of an IP packet.
const MAX_PACKET: Bytes = Bytes(65_535);

/// The largest packet of an MSDU of 2304 B (IEEE 802.11-2020, table 9-25), of which LLC takes 8.
const MAX_MSDU_PACKET: Bytes = Bytes(2_296);

/// Links. So many, each with components at both ends, take gigabytes of memory, and few of the 2³² numbers of components.
const MAX_LINKS: usize = 1 << 20;

/// Flows; likewise.
const MAX_FLOWS: usize = 1 << 18;

/// Links on the paths of all flows together: a few hundred megabytes of memory.
const MAX_STEPS: usize = 1 << 22;

/// Pairs of base stations of a moving host that have paths to each other: a second of set-up.
const MAX_STATION_PAIRS: usize = 1 << 20;

impl Resolver<'_> {
    /// Checks the numbers of links and flows.
    pub(super) fn check_size(&mut self, links: usize) {
        let scenario = self.scenario;
        let connections = scenario.connection.len().max(scenario.topology.pairs().len());
        let flows = connections + scenario.traffic.len() + 2 * scenario.application.len();
        for (found, most, what) in [(links, MAX_LINKS, "links"), (flows, MAX_FLOWS, "flows")] {
            if found > most {
                let problem = format!("found {found} {what}, expected at most {most}; leave some out");
                self.fault(&["topology"], problem);
            }
        }
    }

    /// Whether the paths of all flows, with another of `nodes` nodes, are short enough in all.
    pub(super) fn check_steps(&mut self, nodes: usize) -> bool {
        self.steps += nodes - 1;
        if self.steps > MAX_STEPS {
            let problem = format!(
                "found flows over more than {MAX_STEPS} links, each counted as often as it is crossed, expected fewer \
                 flows or shorter paths"
            );
            self.fault(&["topology"], problem);
        }
        self.steps <= MAX_STEPS
    }

    /// Checks the number of paths between base stations.
    pub(super) fn check_station_pairs(&mut self) {
        let needs_pairs = self
            .combinations
            .iter()
            .any(|(_, combination)| combination.splitter().is_some() || !combination.connected().is_empty());
        let pairs: usize = self.network.moving.iter().map(|moving| moving.stations.len().pow(2)).sum();
        if needs_pairs && pairs > MAX_STATION_PAIRS {
            let problem = format!(
                "found {pairs} pairs of base stations between which a scheme brings packets or connections, expected at \
                 most {MAX_STATION_PAIRS}; leave some out"
            );
            self.fault(&["mobility"], problem);
        }
    }

    /// Reports what would take too long or too much memory.
    pub(super) fn check_bounds(&mut self) {
        let limit = self.scenario.limit;
        if limit > MAX_LIMIT {
            let problem =
                format!("found \"{limit}\", expected at most \"{MAX_LIMIT}\", which is three years");
            return self.fault(&["limit"], problem);
        }
        self.check_windows();
        let largest_packet = self.largest_packet();
        self.check_wifi_bounds(largest_packet);
        self.check_msdus();
        self.check_initials();
        // Moved out and back, so that the checks can report faults.
        let links = mem::take(&mut self.network.links);
        for (index, link) in links.iter().enumerate() {
            let name = self.name_of_link(index);
            match link {
                NetworkLink::Wired(wired) => {
                    let Wired { rate, delay, queue, .. } = &**wired;
                    let scenario = self.scenario;
                    let path = |key| {
                        let own = scenario.link.get(&name).is_some_and(|link| link.states(key));
                        if own { vec!["link", name.as_str(), key] } else { vec!["wired", key] }
                    };
                    let on_air = rate.nominal().time_for(MAX_PACKET);
                    self.check_rate(&path("rate"), rate.nominal());
                    self.check_steps_of(&path("rate"), rate.mean_step(), on_air);
                    self.check_steps_of(&path("delay"), delay.mean_step(), on_air);
                    self.check_order(&path("delay"), rate.nominal(), delay, largest_packet);
                    self.check_queue(&path("queue"), queue, largest_packet);
                    self.check_bucket(&path("rate"), rate, largest_packet);
                }
                NetworkLink::Radio(hop) => {
                    let [down, up] = [LinkEnd::BaseStation, LinkEnd::MobileHost]
                        .map(|end| (largest_packet + self.tunnel_overhead(end)).min(MAX_PACKET));
                    self.check_hop(&name, &hop.down, false, down);
                    self.check_hop(&name, &hop.up, true, up);
                    self.check_supplied_arq(hop);
                }
                NetworkLink::Station(station) => {
                    let own = self.scenario.link.get(&name).is_some_and(|link| link.states("channel"));
                    let table =
                        if own { vec!["link", name.as_str()] } else { vec![self.network.bss.table()] };
                    let (_, on_air) = self.network.bss.exposed(MAX_PACKET);
                    let cycle = station.channel.mean_cycle_s();
                    self.check_periods(&[&table[..], &["channel"]].concat(), cycle, on_air);
                    self.check_roams(&name, station);
                }
            }
        }
        self.network.links = links;
        let flows = mem::take(&mut self.network.flows);
        for flow in &flows {
            if let Workload::Traffic { config, voip } = &flow.workload {
                self.check_datagrams(&flow.name, *config, voip.is_some());
            }
        }
        self.network.flows = flows;
    }

    /// Checks that a client's first datagram passes the links of each connection of QUIC.
    fn check_initials(&mut self) {
        let is_small = |hole: Option<Bytes>| hole.is_some_and(|size| size < quic::Settings::LEAST_PACKET);
        let network = &self.network;
        let crossed = network.flows.iter().filter(|flow| flow.stack.is_some()).flat_map(|flow| {
            let steps = flow.path.all().flat_map(|nodes| nodes.windows(2));
            steps.filter_map(|step| network.graph.link(step[0], step[1]))
        });
        let mut found = Vec::new();
        for link in crossed.collect::<BTreeSet<_>>() {
            match &network.links[link.index()] {
                NetworkLink::Wired(wired) if is_small(wired.black_hole) => found.push((link, None)),
                NetworkLink::Radio(hop) => {
                    let ways = [(&hop.down, false), (&hop.up, true)];
                    let small = ways.into_iter().filter(|(radio, _)| is_small(radio.black_hole));
                    found.extend(small.map(|(_, up)| (link, Some(up))));
                }
                NetworkLink::Wired(_) | NetworkLink::Station(_) => {}
            }
        }
        for (link, up) in found {
            let name = self.name_of_link(link.index());
            let own = self.scenario.link.get(&name).is_some_and(|link| link.states("black_hole"));
            let table = match up {
                Some(up) => self.table_of(&name, "black_hole", up),
                None if own => vec!["link", &name],
                None => vec!["wired"],
            };
            let problem = format!(
                "found a size below that of the first datagram of QUIC, so that no connection opens, expected at least \"{}\"",
                quic::Settings::LEAST_PACKET
            );
            self.fault(&[table, vec!["black_hole"]].concat(), problem);
        }
    }

    /// Checks how often a station scans and roams.
    fn check_roams(&mut self, name: &str, station: &StationConfig) {
        let Some(roaming) = station.radio.and_then(|radio| radio.roaming) else { return };
        let own = self.scenario.link.get(name).and_then(|link| link.station?.roaming);
        let table = if own.is_some() { vec!["link", name, "station"] } else { vec!["wifi"] };
        let absence = roaming.every.as_secs_f64() / (1.0 + f64::from(roaming.channels));
        self.check_periods(&[&table[..], &["roaming"]].concat(), Some(absence), Duration::ZERO);
    }

    /// Checks that packets which pass a BSS of `[wifi]` fit into MSDUs.
    fn check_msdus(&mut self) {
        if !matches!(self.network.bss, BssKind::Edca(_)) {
            return;
        }
        let flows = mem::take(&mut self.network.flows);
        for Flow { name, path, workload, tcp, stack, receiver_ecn: _ } in &flows {
            let graph = &self.network.graph;
            let passes = path
                .all()
                .flat_map(|nodes| nodes.windows(2))
                .any(|step| graph.link(step[0], step[1]).is_some_and(|link| graph.station(link).is_some()));
            let name = name.as_str();
            let (place, found, headers) = match (workload, stack) {
                (Workload::Traffic { config, .. }, _) => {
                    (vec!["traffic", name, "packet_size"], config.size, Bytes::ZERO)
                }
                (_, Some(sender)) => {
                    (vec!["quic", "mtu"], sender.quic.packet_size(), quic::Settings::HEADERS)
                }
                _ if *tcp == self.scenario.tcp => (vec!["tcp", "packet_size"], tcp.packet_size, Bytes::ZERO),
                _ => (vec!["connection", name, "tcp", "packet_size"], tcp.packet_size, Bytes::ZERO),
            };
            if passes && found > MAX_MSDU_PACKET {
                let problem = format!(
                    "found packets of \"{found}\", more than an MSDU of 802.11 holds; expected at most \"{}\"",
                    MAX_MSDU_PACKET - headers
                );
                self.fault(&place, problem);
            }
        }
        self.network.flows = flows;
    }

    /// Checks the queues of `[wifi]`, and how often its neighbour sends and bursts come.
    fn check_wifi_bounds(&mut self, largest_packet: Bytes) {
        let BssKind::Edca(config) = &self.network.bss else { return };
        let (queue, station_queue, neighbour) = (config.queue, config.station_queue, config.neighbour);
        let (interference, access) = (config.interference, config.edca.best_effort);
        self.check_queue(&["wifi", "queue"], &queue, largest_packet);
        self.check_queue(&["wifi", "station_queue"], &station_queue, largest_packet);
        if let Some(source) = interference {
            let period = source.period.as_secs_f64();
            self.check_periods(&["wifi", "interference", "period"], Some(period), Duration::ZERO);
        }
        let Some(neighbour) = neighbour else { return };
        let (share, largest) = (neighbour.share.get(), neighbour.largest_share(&access));
        if share >= largest {
            let problem = format!(
                "found {share}, expected less than {:.3}, which AIFS and mean backoff leave to exchanges of \"{}\"; state \
                 a smaller share, or a longer exchange",
                (largest * 1e3).floor() / 1e3,
                neighbour.exchange
            );
            self.fault(&["wifi", "neighbour", "share"], problem);
        }
        // Each is an event of its own, as a packet is.
        let gap = neighbour.exchange.as_secs_f64() / neighbour.share.get();
        let exchanges = self.scenario.limit.as_secs_f64() / gap;
        if exchanges > MAX_DATAGRAMS {
            let longest = Duration::from_secs_f64(MAX_DATAGRAMS * gap);
            let problem = format!(
                "found {exchanges:.0} exchanges until the limit of \"{}\", expected at most {MAX_DATAGRAMS:.0}; make them \
                 longer, or choose a limit of at most \"{longest}\"",
                self.scenario.limit
            );
            self.fault(&["wifi", "neighbour"], problem);
        }
    }

    fn name_of_link(&self, index: usize) -> String {
        let ends = self.network.graph.ends(LinkId(index as u32));
        ends.map(|end| self.network.names[end.index()].as_str()).join("-")
    }

    fn check_window(&mut self, path: &[&str], tcp: &tcp::Settings) {
        let segments = tcp.window_payload() / tcp.mss();
        if segments > MAX_SEGMENTS {
            let problem = format!(
                "found {}, which is {segments} segments of {}, expected at most {MAX_SEGMENTS} segments; choose a \
                 smaller window or larger packets",
                tcp.window,
                Bytes(u64::from(tcp.mss()))
            );
            self.fault(path, problem);
        }
    }

    /// Checks the windows of all connections, and of their wireless parts.
    fn check_windows(&mut self) {
        let scenario = self.scenario;
        let flows = mem::take(&mut self.network.flows);
        let own = flows.iter().filter(|flow| flow.is_tcp() && flow.tcp != scenario.tcp);
        let own = own.map(|flow| (vec!["connection", flow.name.as_str(), "tcp", "window"], &flow.tcp));
        for (path, tcp) in [(vec!["tcp", "window"], &scenario.tcp)].into_iter().chain(own) {
            self.check_window(&path, tcp);
            for (_, combination) in self.combinations {
                // Other invalid parameters of a scheme are reported elsewhere.
                if combination.faults(tcp).next().is_none()
                    && let Some((scheme, split)) = combination.splitter().zip(combination.split(tcp))
                {
                    self.check_window(&["scheme", scheme, "wireless", "window"], &split.wireless);
                }
            }
        }
        self.network.flows = flows;
    }

    fn check_rate(&mut self, path: &[&str], rate: BitRate) {
        let limit = self.scenario.limit;
        if rate.as_bps() as f64 * limit.as_secs_f64() > MAX_BITS {
            let longest = Duration::from_secs_f64(MAX_BITS / rate.as_bps() as f64);
            let problem = format!(
                "found \"{rate}\" and a limit of \"{limit}\", in which a link carries more packets than a run gets \
                 through, expected a lower rate, or a limit of at most \"{longest}\""
            );
            self.fault(path, problem);
        }
    }

    /// Checks how many packets of a given `size` overtake others: each costs as much time as others that it overtakes.
    fn check_order(&mut self, path: &[&str], rate: BitRate, delay: &Delay, size: Bytes) {
        let per_s = rate.as_bps() as f64 / size.bits() as f64;
        let limit = self.scenario.limit;
        let overtakings = per_s * limit.as_secs_f64() * per_s * delay.overtaking().as_secs_f64();
        if overtakings > MAX_OVERTAKINGS {
            let longest = Duration::from_secs_f64(limit.as_secs_f64() * MAX_OVERTAKINGS / overtakings);
            let problem = format!(
                "found a delay with which packets overtake others up to {overtakings:.0} times until the limit of \"{limit}\", \
                 expected at most {MAX_OVERTAKINGS:.0}; state in_order, less jitter, a lower rate, or a limit of at most \
                 \"{longest}\""
            );
            self.fault(&[path, &["netem"]].concat(), problem);
        }
    }

    /// Checks that packets of up to `largest_packet` pass a queue at all.
    fn check_queue(&mut self, path: &[&str], queue: &Queue, largest_packet: Bytes) {
        if let Some(largest) = queue.largest_packet().filter(|largest| *largest < largest_packet) {
            let problem = format!(
                "found one that lets no packet of more than \"{largest}\" pass, and packets have up to \"{largest_packet}\""
            );
            self.fault(path, problem);
        }
    }

    /// Checks that a shaper ever has the tokens of packets of up to `largest`.
    fn check_bucket(&mut self, path: &[&str], rate: &Rate, largest: Bytes) {
        let Some(bucket) = rate.token_bucket() else { return };
        let needed = largest + bucket.overhead;
        if bucket.burst < needed {
            let problem = format!(
                "found \"{}\", less than the largest packet with its overhead, for which there are never enough tokens; \
                 expected at least \"{needed}\"",
                bucket.burst
            );
            self.fault(&[path, &["token-bucket", "burst"]].concat(), problem);
        }
    }

    /// Checks a direction of a wireless link, which packets of up to `largest_packet` may cross.
    fn check_hop(&mut self, name: &str, radio: &Radio, up: bool, largest_packet: Bytes) {
        let path = |resolver: &Self, key: &'static str| -> Vec<String> {
            let table = resolver.table_of(name, key, up);
            table.into_iter().chain([key]).map(str::to_owned).collect()
        };
        let say = |resolver: &mut Self, key, check: &dyn Fn(&mut Self, &[&str])| {
            let path = path(resolver, key);
            check(resolver, &path.iter().map(String::as_str).collect::<Vec<_>>());
        };
        say(self, "rate", &|resolver, path| resolver.check_rate(path, radio.rate.nominal()));
        say(self, "delay", &|resolver, path| {
            resolver.check_order(path, radio.rate.nominal(), &radio.delay, largest_packet);
        });
        say(self, "queue", &|resolver, path| resolver.check_queue(path, &radio.queue, largest_packet));
        if radio.unit.is_some_and(|unit| unit.get() > MAX_PACKET) {
            say(self, "unit", &|resolver, path| {
                let problem =
                    format!("found more than the largest packet, expected at most \"{MAX_PACKET}\"");
                resolver.fault(path, problem);
            });
            return;
        }
        let unit = radio.unit.or(radio.mtu).map_or(MAX_PACKET, |unit| unit.get().min(MAX_PACKET));
        let unit = radio.unit.map_or(unit.min(largest_packet), |unit| unit.get());
        let bits = radio.expansion.on_air(unit.min(largest_packet).bits());
        say(self, "rate", &|resolver, path| {
            resolver.check_bucket(path, &radio.rate, Bytes(bits.div_ceil(8)));
        });
        // A code adds less than the same amount again.
        let on_air = radio.rate.nominal().time_for_bits(radio.expansion.on_air(2 * unit.bits()));
        for (key, step) in [("rate", radio.rate.mean_step()), ("delay", radio.delay.mean_step())] {
            if step.is_some() {
                say(self, key, &|resolver, path| resolver.check_steps_of(path, step, on_air));
            }
        }
        if let Some(grants) = radio.grants {
            say(self, "grants", &|resolver, path| {
                let interval = grants.interval.as_secs_f64();
                resolver.check_count(&[path, &["interval"]].concat(), interval, on_air, MAX_INTERVALS);
            });
        }
        say(self, "channel", &|resolver, path| {
            resolver.check_periods(path, radio.channel.mean_cycle_s(), on_air);
        });
        say(self, "arq", &|resolver, path| resolver.check_attempts(path, radio, radio.arq));
        if let Some(every) = radio.outage.and_then(|outages| outages.every) {
            say(self, "outage", &|resolver, path| {
                resolver.check_periods(&[path, &["every"]].concat(), Some(every.as_secs_f64()), on_air);
            });
        }
    }

    /// Checks the ARQs that schemes supply to a link.
    fn check_supplied_arq(&mut self, hop: &LastHop) {
        for (_, combination) in self.combinations {
            let Some(scheme) = combination.arq_supplier() else { continue };
            let directions =
                [(LinkEnd::BaseStation, &hop.down, &hop.up), (LinkEnd::MobileHost, &hop.up, &hop.down)];
            for (sender, radio, opposite) in directions {
                let arq = combination.link().arq.of(sender, radio.arq, opposite.arq);
                if arq != radio.arq {
                    self.check_attempts(&["scheme", scheme], radio, arq);
                }
            }
        }
    }

    /// Checks the number of attempts of an ARQ without a limit: each takes time.
    fn check_attempts(&mut self, path: &[&str], radio: &Radio, arq: arq::Config) {
        let Some((retransmissions, wait)) = arq.retries() else { return };
        let unit = arq.frame().unwrap_or_else(|| radio.unit.map_or(MIN_PACKET, |unit| unit.get()));
        let attempt = radio.rate.nominal().time_for_bits(radio.expansion.on_air(unit.bits())) + wait;
        let attempts = self.scenario.limit.as_secs_f64() / attempt.as_secs_f64();
        if retransmissions == arq::Retransmissions::Unlimited && attempts > MAX_ATTEMPTS {
            let problem = format!(
                "found unlimited retransmissions, up to {attempts:.0} until the limit, expected at most \
                 {MAX_ATTEMPTS:.0}; give them a number, wait longer between them, or choose a lower rate"
            );
            self.fault(path, problem);
        }
    }

    /// The largest packet that may cross a link.
    fn largest_packet(&self) -> Bytes {
        let traffic = self.scenario.traffic.values().filter_map(Traffic::size);
        // A scheme may use larger segments on the wireless part, and has control messages.
        let split =
            self.combinations.iter().filter_map(|(_, combination)| combination.split(&self.scenario.tcp));
        let own = self.network.settings().map(|tcp| tcp.packet_size);
        let stacks =
            self.network.flows.iter().filter_map(|flow| flow.stack.map(|sender| sender.quic.packet_size()));
        let sizes = traffic.chain(own).chain(stacks).chain(split.map(|split| split.wireless.packet_size));
        sizes.fold(self.scenario.tcp.packet_size, Bytes::max).min(MAX_PACKET)
    }

    /// The most that the tunnel of a scheme adds to a packet that enters a wireless link at `end`.
    fn tunnel_overhead(&self, end: LinkEnd) -> Bytes {
        let combinations = self.combinations.iter();
        combinations.map(|(_, combination)| combination.tunnel_overhead(end)).fold(Bytes::ZERO, Bytes::max)
    }

    /// Checks periods that recur every `cycle` seconds, given units with an air time of `on_air`.
    fn check_periods(&mut self, path: &[&str], cycle: Option<f64>, on_air: Duration) {
        if let Some(cycle) = cycle {
            self.check_count(path, cycle, on_air, MAX_PERIODS);
        }
    }

    /// Checks that there are at most `most` periods of `cycle` seconds until the limit.
    fn check_count(&mut self, path: &[&str], cycle: f64, on_air: Duration, most: f64) {
        let limit = self.scenario.limit;
        let (within_limit, within_unit) = (limit.as_secs_f64() / cycle, on_air.as_secs_f64() / cycle);
        if within_limit > most {
            let longest = Duration::from_secs_f64(most * cycle);
            let problem = format!(
                "found {within_limit:.0} periods until the limit of \"{limit}\", expected at most {most:.0}; \
                 make them longer, or choose a limit of at most \"{longest}\""
            );
            self.fault(path, problem);
        } else if within_unit > MAX_PERIODS_IN_UNIT {
            let problem = format!(
                "found {within_unit:.0} periods while one unit is on the air for \"{on_air}\", expected at most \
                 {MAX_PERIODS_IN_UNIT:.0}; make them longer, or units shorter by mtu"
            );
            self.fault(path, problem);
        }
    }

    /// Checks a rate or a delay that changes every `step`.
    fn check_steps_of(&mut self, path: &[&str], step: Option<Duration>, on_air: Duration) {
        self.check_periods(path, step.map(|step| step.as_secs_f64()), on_air);
    }

    fn check_datagrams(&mut self, name: &str, config: Config, voip: bool) {
        let packets = datagrams(config, self.scenario.limit);
        let key = match config.pattern {
            Pattern::Constant { .. } => "constant",
            Pattern::Poisson { .. } => "poisson",
            Pattern::OnOff { .. } => "on-off",
        };
        if packets > MAX_DATAGRAMS {
            let problem = format!(
                "found {packets:.0} packets until the limit or the stop, expected at most {MAX_DATAGRAMS:.0}; choose a \
                 lower rate, longer silences, larger packets or an earlier stop"
            );
            let path: &[&str] =
                if voip { &["traffic", name, "voip"] } else { &["traffic", name, "law", key] };
            self.fault(path, problem);
        }
    }
}

/// The mean number of packets of a source of traffic until `limit`.
pub fn datagrams(config: Config, limit: Duration) -> f64 {
    let Config { size, start, stop, pattern, .. } = config;
    let end = stop.min(Time::ZERO + limit);
    let span = end.since(start.min(end)).as_secs_f64();
    let per_second = match pattern {
        Pattern::Constant { rate } | Pattern::Poisson { rate } => rate.as_bps() as f64 / size.bits() as f64,
        Pattern::OnOff { rate, on, off, .. } => {
            let (on, off) = (on.as_secs_f64(), off.as_secs_f64());
            // Each burst may have one packet more than its length suggests.
            (1.0 + on * rate.as_bps() as f64 / size.bits() as f64) / (on + off)
        }
    };
    per_second * span
}
