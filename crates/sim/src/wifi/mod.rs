//! 802.11n, 802.11ac and 802.11ax: a basic service set (BSS) whose access point and stations share one medium by enhanced
//! distributed channel access (EDCA), aggregate packets, and acknowledge them by Block Acks.

mod agreement;
mod contention;
mod exchange;
mod hidden;
mod power_save;
mod ppdu;
mod roaming;
mod station;
mod stats;

use lasthop_base::{Bytes, Duration, Stream, Time};
use lasthop_channel::Channel;
use lasthop_link::queue::{Queue, QueueLimit};
use lasthop_link::wifi::rate::RateControl;
use lasthop_link::wifi::{Bursts, Category, FadingSignal, NoiseErrors, Scheduler, WifiConfig};
use lasthop_proto::{Component, DropReason, HostId, Out, Packet, Port, Probe};

use agreement::Agreement;
use contention::{Contender, Function};
use exchange::Phase;
use hidden::Hidden;
use power_save::Doze;
use ppdu::Ppdu;
use roaming::Roam;

pub use station::{BssStreams, WifiStation, WifiStreams};
pub use stats::{StationWays, WayStats, WifiStats};

/// Index of the access point among the contenders; station i has index 1 + i.
const AP: usize = 0;

/// Number of categories.
const CATEGORIES: usize = Category::ALL.len();

/// The agreement of the neighbouring BSS, which has none.
const FOREIGN: usize = usize::MAX;

/// An access point and its stations. [`Port(0)`](Port::WIRED) faces the wired network; `Port(1 + i)` is station i. All hear
/// each other, but for stations of different areas, and propagation takes no time.
///
/// # Forwarding
/// As in the [cell of 802.11b and 802.11g](crate::wlan::Bss). An MPDU is forwarded when its last bit has arrived, unless an
/// earlier one is missing: then it waits in the receiver's buffer until that one arrives or is given up, or for the time-out.
/// One that comes after it is dropped, as above the MAC.
///
/// # Channel access
/// - Each contender has a function for each [category](Category) with frames. It sends when the medium has been idle for its
///   AIFS and its backoff. A backoff loses one slot at the end of the AIFS and one for each idle slot after it, so every busy
///   period takes at least one slot from all: IEEE 802.11-2020 section 10.23.2.4, and Bianchi's model (IEEE JSAC 18(3), 2000).
/// - The first frame of a function that is empty starts at the next slot boundary if the medium is idle and no backoff is
///   pending, and otherwise draws a backoff.
/// - Functions of different contenders that are due at one instant collide, and everything in these PPDUs is lost. Within a
///   contender, the last category of those due behaves as after a collision.
/// - After a collision the senders wait for the response, and then for AIFS; the others only for AIFS, or for EIFS if so
///   configured.
/// - The window is doubled if no response comes, and reset by any response.
///
/// # Hidden stations
/// A station of another [area](lasthop_link::wifi::StationRadio::area) counts its backoff, and begins, while a station sends, until the access
/// point answers. The access point receives the PPDU that began first: its MPDUs up to there arrive, and may be acknowledged. All that
/// begins while another PPDU is on the air is lost. Nobody waits for EIFS after it, and none begins in the SIFS before a response. Such a
/// station may begin in a burst of interference.
///
/// # Exchanges
/// The access point [chooses](Scheduler) a station. First come the MPDUs to repeat, then new ones, as far as the window of the
/// Block Ack, the bytes and the air time allow. A single MPDU is acknowledged by an Ack. Responses are never lost. Within a TXOP, further
/// PPDUs follow after SIFS.
///
/// # Losses
/// A fading signal is that of the beginning of a PPDU. Each MPDU survives, independently, with the product of three probabilities: by noise at its rate and length, the fixed one, and that
/// of the channel, all of whose bits after the preamble are exposed. One that reaches the retry limit is dropped
/// ([`DropReason::AttemptsExhausted`]), and the receiver goes on without it.
///
/// # Signals
/// Watchers get the outcome of each attempt of the access point's MPDUs, as from a [`Link`](crate::Link), at the end of the
/// response, or of the PPDU if there is none.
///
/// # Power save
/// What arrives for a [dozing](lasthop_link::wifi::PowerSave) station waits for a beacon, which is on time and takes no air, or for a frame of the
/// station. A station that is served stays awake until nothing is left for it. It counts as in the access point's queue.
///
/// # Roaming
/// A station that [scans or changes its access point](lasthop_link::wifi::Roaming) leaves between exchanges. Until it comes back, nothing
/// is sent in either direction: frames wait, or those for it are dropped ([`DropReason::Unreachable`]).
///
/// # Interference
/// In a [burst](lasthop_link::wifi::Interference) that is heard the medium is busy, after the exchange in which it starts, if any.
///
/// # Left out
/// OFDMA, MU-MIMO, A-MSDU, encryption, the air of beacons, capture, lost responses.
///
/// # Cost
/// Two wake-ups for each PPDU, and one for each MPDU that arrives.
#[allow(missing_debug_implementations)]
pub struct WifiBss {
    config: WifiConfig,
    /// Of each contender, [`CATEGORIES`] functions.
    functions: Vec<Function>,
    /// The functions that ever had frames, in ascending order.
    used: Vec<usize>,
    contenders: Vec<Contender>,
    hidden: Hidden,
    /// What each contender sends, or sent last.
    ppdus: Vec<Ppdu>,
    /// By category those of the access point, one for each station; then those of each station, one for each category.
    agreements: Vec<Agreement>,
    /// What each category of the access point holds for all stations.
    shared: [(usize, Bytes); CATEGORIES],
    peers: Vec<Peer>,
    /// Index of the station of each host, from 1; [`AP`] for hosts outside the BSS.
    places: Vec<usize>,
    neighbour: Option<Foreign>,
    bursts: Option<Bursts>,
    /// Start of the next burst on the idle medium; never if none is heard.
    burst: Time,
    /// When a station leaves or comes back next.
    roams: Time,
    phase: Phase,
    /// The next beacon that announces frames for a dozing station.
    release: Time,
    /// A receiver's buffer may release MPDUs behind a missing one no earlier.
    held_until: Time,
    /// End of the last busy period.
    idle_from: Time,
    /// Current senders.
    senders: Vec<usize>,
    /// Functions that were due and gave way to a later category of their contender.
    losers: Vec<usize>,
    /// Packets that entered the BSS.
    entered: u64,
    released: Vec<Packet>,
    stats: WifiStats,
}

/// The medium's view of a station; of pairs, the downlink comes first.
struct Peer {
    channel: Box<dyn Channel>,
    noise: Option<NoiseErrors>,
    fading: Option<FadingSignal>,
    /// Survival of MPDUs whatever the rate.
    survival: [f64; 2],
    bits: [Stream; 2],
    above_mac: [(f64, Stream); 2],
    rates: [Box<dyn RateControl>; 2],
    doze: Option<Doze>,
    roam: Option<Roam>,
    stats: StationWays,
}

impl Peer {
    /// A signal that fades is that of `now`.
    fn fade(&mut self, now: Time) {
        if let Some(signal) = &self.fading {
            let noise = NoiseErrors::new(signal.snr(now));
            self.rates.iter_mut().for_each(|control| control.hear(&noise));
            self.noise = Some(noise);
        }
    }

    fn stats_mut(&mut self, up: bool) -> &mut WayStats {
        if up { &mut self.stats.up } else { &mut self.stats.down }
    }
}

/// The neighbouring BSS.
struct Foreign {
    /// Its index among the contenders.
    place: usize,
    exchange: Duration,
    mean_gap: Duration,
    arrivals: Stream,
    /// Arrival of its next exchange.
    next: Time,
    /// Exchanges that wait.
    backlog: u64,
}

impl WifiBss {
    /// An idle BSS.
    ///
    /// # Panics
    /// If the parameters are not [valid](WifiConfig::validate), or a host belongs to two stations.
    pub fn new(config: WifiConfig, streams: BssStreams, stations: Vec<WifiStation>) -> WifiBss {
        if let Err(invalid) = config.validate() {
            panic!("{invalid}");
        }
        let (mut contenders, mut peers) = (vec![Contender::new(0, streams.backoff)], Vec::new());
        let mut areas: Vec<u16> = stations.iter().map(|station| station.radio.area).collect();
        areas.sort_unstable();
        areas.dedup();
        if areas.len() == 1 {
            areas.clear();
        }
        let (mut places, mut queues, mut first_beacon) = (Vec::new(), Vec::new(), None);
        for (index, station) in stations.into_iter().enumerate() {
            let WifiStation { hosts, radio, channel, above_mac, mut streams } = station;
            let area = areas.binary_search(&radio.area).map_or(0, |place| 1 + place);
            contenders.push(Contender::new(area, streams.backoff));
            queues.push(streams.queue);
            let noise = radio.snr.map(NoiseErrors::new);
            let fading = radio.fading.zip(radio.snr);
            let fading = fading.map(|(fading, snr)| FadingSignal::new(fading, snr, &mut streams.fading));
            let roam = radio
                .roaming
                .map(|roaming| Roam::new(roaming, radio, streams.rate.clone(), &mut streams.roam));
            let rates = streams
                .rate
                .map(|random| radio.rate.build(config.format, radio.streams, noise.as_ref(), random));
            let survival = [radio.loss.down, radio.loss.up].map(|loss| 1.0 - loss.get());
            let [above_down, above_up] = streams.above_mac;
            let above_mac = [(above_mac.down.get(), above_down), (above_mac.up.get(), above_up)];
            let doze = radio.power_save.map(|save| Doze::new(save, &mut streams.beacon, &mut first_beacon));
            let (bits, stats) = (streams.bits, StationWays::default());
            peers.push(Peer { channel, noise, fading, survival, bits, above_mac, rates, doze, roam, stats });
            for host in hosts.into_iter().map(HostId::index) {
                places.resize(places.len().max(host + 1), AP);
                assert!(places[host] == AP, "host {host} has two stations");
                places[host] = index + 1;
            }
        }
        let mut agreements = Vec::new();
        for _ in Category::ALL {
            agreements.extend(queues.iter().map(|[down, _]| Agreement::new(&config, false, down.clone())));
        }
        for [_, up] in &queues {
            agreements.extend(Category::ALL.map(|_| Agreement::new(&config, true, up.clone())));
        }
        let mut first_burst = streams.interference;
        let bursts = config.interference.map(|source| {
            Bursts::new(source, Duration::from_nanos(first_burst.below(source.period.as_nanos())))
        });
        let neighbour = config.neighbour.map(|neighbour| {
            let [arrivals, backoff] = streams.neighbour;
            contenders.push(Contender::new(0, backoff));
            let mean_gap = neighbour.exchange.as_secs_f64() / neighbour.share.get();
            let mut foreign = Foreign {
                place: contenders.len() - 1,
                exchange: neighbour.exchange,
                mean_gap: Duration::from_secs_f64(mean_gap),
                arrivals,
                next: Time::ZERO,
                backlog: 0,
            };
            foreign.schedule();
            foreign
        });
        let functions = contenders.iter().flat_map(|_| Category::ALL);
        let mut bss = WifiBss {
            functions: functions
                .map(|category| Function::new(config.edca.access(category), config.retry_limit))
                .collect(),
            used: Vec::new(),
            ppdus: contenders.iter().map(|_| Ppdu::default()).collect(),
            senders: Vec::with_capacity(contenders.len()),
            losers: Vec::new(),
            contenders,
            hidden: Hidden::new(areas.len()),
            agreements,
            shared: [(0, Bytes::ZERO); CATEGORIES],
            peers,
            places,
            neighbour,
            bursts,
            burst: Time::NEVER,
            roams: Time::NEVER,
            phase: Phase::Idle { due: Time::NEVER },
            release: Time::NEVER,
            held_until: Time::NEVER,
            idle_from: Time::ZERO,
            entered: 0,
            released: Vec::new(),
            stats: WifiStats::default(),
            config,
        };
        bss.schedule_roam();
        bss.schedule();
        bss
    }

    /// Packets that entered and have not left the BSS.
    pub fn held(&self) -> usize {
        self.agreements.iter().map(Agreement::packets).sum()
    }

    /// Counters of the medium.
    pub fn stats(&self) -> &WifiStats {
        &self.stats
    }

    /// Packets that queue disciplines have marked.
    pub fn marked(&self) -> u64 {
        self.agreements.iter().map(Agreement::marked).sum()
    }

    /// Counters of station `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn station(&self, index: usize) -> &StationWays {
        &self.peers[index].stats
    }

    /// Index of the station that leads to `host`; [`AP`] if the host is not in the BSS.
    fn place_of(&self, host: HostId) -> usize {
        self.places.get(host.index()).copied().unwrap_or(AP)
    }

    /// The agreement between the access point and the station at place `to`, or between the station at `from` and the
    /// access point.
    fn agreement(&self, from: usize, to: usize, category: Category) -> usize {
        let stations = self.peers.len();
        match from {
            AP => category as usize * stations + to - 1,
            _ => CATEGORIES * (stations + from - 1) + category as usize,
        }
    }

    /// The station of an agreement, and whether it is that of its uplink.
    fn peer_of(&self, agreement: usize) -> (usize, bool) {
        let (stations, down) = (self.peers.len(), CATEGORIES * self.peers.len());
        if agreement < down { (agreement % stations, false) } else { ((agreement - down) / CATEGORIES, true) }
    }

    /// Whether all stations share the queue that an agreement's packets wait in.
    fn shares_queue(&self, up: bool) -> bool {
        !up && self.config.scheduler == Scheduler::Fifo
    }

    /// A packet arrives at contender `from` for contender `to`.
    fn enqueue(&mut self, from: usize, to: usize, packet: &Packet, now: Time, out: &mut Out) {
        let category = Category::of(packet.dscp);
        let index = self.agreement(from, to, category);
        let up = from != AP;
        let station = if up { from } else { to };
        if !up && self.is_unreachable(station) {
            self.peers[station - 1].stats.down.unreachable += 1;
            return out.drop(*packet, DropReason::Unreachable);
        }
        let (is_shared, is_away) = (self.shares_queue(up), self.is_away(station));
        let limit = match if up { &self.config.station_queue } else { &self.config.queue } {
            Queue::DropTail(limit) => *limit,
            Queue::Managed(_) => QueueLimit::Unlimited,
        };
        let agreement = &mut self.agreements[index];
        let held = if is_shared { self.shared[category as usize] } else { agreement.held() };
        self.entered += 1;
        if !agreement.push(now, (self.entered, packet), (limit, held), out) {
            self.peers[station - 1].stats_mut(up).packets.overflowed += 1;
            return out.drop(*packet, DropReason::QueueFull);
        }
        if is_shared {
            let (packets, bytes) = &mut self.shared[category as usize];
            *packets += 1;
            *bytes += packet.size;
        }
        let waits = !is_away && !agreement.is_ready && agreement.has_frames();
        if waits && (up || !self.is_buffered(to, now)) {
            self.agreements[index].is_ready = true;
            self.add_ready(CATEGORIES * from + category as usize, index, now);
        }
    }

    /// An agreement of `function` has frames.
    fn add_ready(&mut self, function: usize, agreement: usize, now: Time) {
        if let Err(place) = self.used.binary_search(&function) {
            self.used.insert(place, function);
        }
        let sender = function / CATEGORIES;
        let idle_from = self.is_idle(sender, now).then(|| self.idle_since(sender));
        let contender = &mut self.contenders[sender];
        let state = &mut self.functions[function];
        if state.ready.is_empty() {
            state.wake(now, idle_from, &mut contender.backoff);
        }
        state.ready.push_back(agreement);
        if let (Phase::Idle { due }, Some(idle_from)) = (&mut self.phase, idle_from) {
            *due = state.due(idle_from).min(*due);
        }
    }

    /// Where packets leave the BSS that station `station` has sent (`up`) or got.
    fn outlet(station: usize, up: bool) -> Port {
        if up { Port::WIRED } else { Port(1 + station as u32) }
    }

    /// Forwards packets that the receiver has released, unless they are dropped above the MAC.
    fn hand_on(&mut self, station: usize, up: bool, now: Time, out: &mut Out) {
        let mut released = std::mem::take(&mut self.released);
        for packet in &released {
            let peer = &mut self.peers[station];
            let (dropped, random) = &mut peer.above_mac[usize::from(up)];
            // Drawn for every packet, so that the n-th one uses the same random number under every scheme.
            let is_dropped = *dropped > 0.0 && random.bernoulli(*dropped);
            let stats = &mut peer.stats_mut(up).packets;
            if is_dropped {
                stats.corrupted += 1;
                out.corrupt(WifiBss::outlet(station, up), *packet);
                continue;
            }
            stats.delivered += 1;
            stats.delivered_bytes += packet.size;
            match self.place_of(packet.dst) {
                to if up && to != AP => self.enqueue(AP, to, packet, now, out),
                _ => out.send(WifiBss::outlet(station, up), *packet),
            }
        }
        released.clear();
        self.released = released;
    }
}

impl Foreign {
    fn schedule(&mut self) {
        self.next += self.arrivals.exponential(self.mean_gap);
    }
}

impl Component for WifiBss {
    /// # Panics
    /// If a packet from the wired network has a destination outside the BSS.
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        // Processes events due at this instant first, whether or not the BSS was woken before.
        self.advance(now, out);
        let from = port.index();
        let to = if from == AP { self.place_of(packet.dst) } else { AP };
        assert!(from != to, "{:?} is not in the BSS", packet.dst);
        self.enqueue(from, to, packet, now, out);
        self.schedule_hidden();
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.advance(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.due()
    }

    /// Packets and bytes that the access point holds for its stations, and its contention window for best effort.
    fn show(&self, probe: &mut dyn Probe) {
        let down = &self.agreements[..CATEGORIES * self.peers.len()];
        let queued = down.iter().map(|agreement| {
            let ((packets, bytes), (others, more)) = (agreement.held(), agreement.managed());
            (packets + others, bytes + more)
        });
        let (packets, bytes) = queued.fold((0, Bytes::ZERO), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes.0 as f64);
        probe.value("cw", f64::from(self.functions[Category::BestEffort as usize].window()));
    }
}
