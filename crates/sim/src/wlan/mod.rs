//! 802.11 wireless LAN: a basic service set (BSS) of an access point and its stations, which share one medium
//! by the distributed coordination function (DCF; IEEE 802.11-1999 clause 9). Scenario files call it a cell.

mod contender;
mod dcf;
mod outcomes;
mod queues;
mod station;
mod stats;

use lasthop_base::{Bytes, Stream, Time};
use lasthop_channel::Channel;
use lasthop_link::wlan::DATA_OVERHEAD;
use lasthop_proto::{Component, DropReason, HostId, Out, Packet, Port, Probe};

use contender::{Contender, Frame, Medium};
use dcf::Phase;
use outcomes::Outcomes;
use queues::Queues;

pub use lasthop_link::wlan::{
    AboveMac, ApQueue, Band, BssConfig, Cw, Dsss, DsssRate, Ofdm, OfdmRate, Phy, Preamble, RetryLimit, Timing,
};
pub use station::{Station, StationStreams};
pub use stats::{BssStats, DirectionStats, StationStats};

/// Index of the access point among the contenders; station i has index 1 + i.
const AP: usize = 0;

/// An access point and its stations. [`Port(0)`](Port::WIRED) of the access point faces the wired network;
/// `Port(1 + i)` is station i. All stations hear each other, and propagation takes no time.
///
/// # Forwarding
/// A packet that enters by [`Port::WIRED`] is queued at the access point for the station that leads to its
/// destination. A packet that enters by a station's port is queued at the station for the access point, which
/// forwards it into the BSS if its destination is in the BSS, and otherwise out of [`Port::WIRED`]. Packets
/// are forwarded at the end of their data frame, before the ACK.
///
/// # Channel access
/// As in section 9.2 of the standard; where it leaves details open:
/// - Backoff slots start after the medium has been idle for DIFS, or EIFS after a frame received with errors.
///   A station with a backoff of b slots starts to send b slots later. Meanwhile the backoff of other
///   stations decreases by the slots that have ended, but not by the slot in progress (freezing). Hence after
///   a busy period only its senders can have a backoff of zero: Bianchi's model (IEEE JSAC 18(3), 2000)
///   decrements every backoff in a busy period, the standard does not.
/// - A transmission is detected one slot after its start; the slot time is defined by this. Stations that
///   start before that collide, at the same instant or not.
/// - After each attempt, successful or not, a backoff is drawn even if no packet is queued (post-backoff). A
///   packet that arrives while the medium is idle and no backoff is pending is sent immediately, or at the end of
///   DIFS or EIFS; one that arrives while the medium is busy draws a backoff, and so does a packet that waits
///   for DIFS or EIFS without a backoff when the medium becomes busy.
/// - ACK and CTS timeouts last as long as the missing response: SIFS and the frame; DIFS follows. With
///   control frames at the lowest mandatory rate this equals EIFS, so that senders and listeners of a
///   collision start their slots together. With faster control frames the senders start earlier.
/// - If the channel corrupts a frame, stations other than its receiver are assumed to have decoded it, and
///   their NAV covers the ACK. The receiver waits for EIFS.
/// # Losses
/// Frames that collide are lost. Other data frames meet the station's channel with all bits after the PLCP
/// header; RTS, CTS and ACK frames, which are short and slow, always arrive. Hence no packet arrives twice. A
/// packet dropped above the MAC ([`DropReason::Corrupted`]) was acknowledged and is not retransmitted; watchers of
/// arrivals at its receiver see it. A
/// packet that reaches its retry limit is dropped ([`DropReason::AttemptsExhausted`]) at the end of the last
/// timeout.
///
/// # Signals
/// Watchers get the outcomes of the access point's frames, as from a [`Link`](crate::Link):
/// [`LinkOutcome::Delivered`] at the end of the ACK; [`LinkOutcome::AttemptFailed`] at the end of the
/// timeout, or of a longer frame in the same collision; then [`LinkOutcome::Discarded`] if the retry limit is
/// reached. Packets dropped above the station's MAC count as delivered.
///
/// # Randomness
/// See [`StationStreams`]; the access point has its own stream for backoffs.
///
/// # Cost
/// Slots are not simulated one by one: the next sender follows from the remaining slots of the stations with a
/// packet. Stations without one cost nothing, but for the first frame exchange after their own. A frame
/// exchange takes one wake-up at the end of its data frame, another with RTS or with a collision of frames of
/// different lengths, and another for the signal to watchers.
///
/// [`LinkOutcome::Delivered`]: lasthop_proto::LinkOutcome::Delivered
/// [`LinkOutcome::AttemptFailed`]: lasthop_proto::LinkOutcome::AttemptFailed
/// [`LinkOutcome::Discarded`]: lasthop_proto::LinkOutcome::Discarded
#[allow(missing_debug_implementations)]
pub struct Bss {
    config: BssConfig,
    timing: Timing,
    contenders: Vec<Contender>,
    /// The contenders that are not parked, in ascending order.
    attentive: Vec<usize>,
    /// The medium as parked contenders see it.
    medium: Medium,
    queues: Vec<Queues>,
    peers: Vec<StationState>,
    /// Index of the station of each host; [`AP`] for hosts outside the BSS.
    places: Vec<usize>,
    phase: Phase,
    /// Current senders.
    senders: Vec<usize>,
    outcomes: Outcomes,
    stats: BssStats,
}

/// The medium's view of a station.
struct StationState {
    channel: Box<dyn Channel>,
    down: Direction,
    up: Direction,
    stats: StationStats,
}

/// Random processes of one direction.
struct Direction {
    bits: Stream,
    above: Stream,
    /// Drop probability above the MAC.
    dropped: f64,
}

impl Bss {
    /// An idle BSS; `backoff` is the stream for the access point's backoffs.
    ///
    /// # Panics
    /// If the parameters are not [valid](BssConfig::validate), or a host belongs to two stations.
    pub fn new(config: BssConfig, backoff: Stream, stations: Vec<Station>) -> Bss {
        if let Err(invalid) = config.validate() {
            panic!("{invalid}");
        }
        let timing = config.timing();
        let mut contenders = vec![Contender::new(timing.cw, backoff)];
        let mut queues = vec![Queues::of_ap(config.ap_queue, config.priority, stations.len())];
        let (mut peers, mut places) = (Vec::new(), Vec::new());
        for (index, Station { hosts, channel, above_mac, streams }) in stations.into_iter().enumerate() {
            contenders.push(Contender::new(timing.cw, streams.backoff));
            queues.push(Queues::one(config.station_queue, false));
            let (down, up) = (above_mac.down.get(), above_mac.up.get());
            let down = Direction { bits: streams.bits_down, above: streams.above_down, dropped: down };
            let up = Direction { bits: streams.bits_up, above: streams.above_up, dropped: up };
            peers.push(StationState { channel, down, up, stats: StationStats::default() });
            for host in hosts.into_iter().map(HostId::index) {
                places.resize(places.len().max(host + 1), AP);
                assert!(places[host] == AP, "host {host} has two stations");
                places[host] = index + 1;
            }
        }
        Bss {
            config,
            timing,
            senders: Vec::with_capacity(contenders.len()),
            attentive: Vec::with_capacity(contenders.len()),
            contenders,
            medium: Medium::new(),
            queues,
            peers,
            places,
            phase: Phase::Contention { first: Time::NEVER, due: Time::NEVER },
            outcomes: Outcomes::default(),
            stats: BssStats::default(),
        }
    }

    /// Packets queued at the access point and the stations.
    pub(crate) fn held(&self) -> usize {
        self.queues.iter().map(|queues| queues.waiting().0).sum()
    }

    /// Counters of the medium.
    pub fn stats(&self) -> &BssStats {
        &self.stats
    }

    /// Counters of station `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    pub fn station(&self, index: usize) -> &StationStats {
        &self.peers[index].stats
    }

    /// Index of the station that leads to `host`; [`AP`] if the host is not in the BSS.
    fn place_of(&self, host: HostId) -> usize {
        self.places.get(host.index()).copied().unwrap_or(AP)
    }

    fn direction_stats(&mut self, from: usize, to: usize) -> &mut DirectionStats {
        if from == AP { &mut self.peers[to - 1].stats.down } else { &mut self.peers[from - 1].stats.up }
    }

    fn frame_of(&self, packet: Packet, to: usize) -> Frame {
        let data = self.config.phy.data_time(packet.size);
        let rts = self.config.rts_threshold.is_some_and(|most| packet.size + DATA_OVERHEAD > most);
        let first = if rts { self.timing.rts } else { data };
        Frame { packet, to, data, first, rts, attempts: 0, short: 0, long: 0 }
    }

    /// Forwards a received packet, unless it is dropped above the MAC.
    fn hand_on(&mut self, sender: usize, frame: &Frame, now: Time, out: &mut Out) {
        let Frame { packet, to, .. } = *frame;
        let peer = &mut self.peers[sender.max(to) - 1];
        let (way, stats) = match sender {
            AP => (&mut peer.down, &mut peer.stats.down),
            _ => (&mut peer.up, &mut peer.stats.up),
        };
        // Drawn even if nothing can be dropped, so that the n-th packet uses the same random number under
        // every scheme.
        let outlet = if sender == AP { Port(to as u32) } else { Port::WIRED };
        if way.above.bernoulli(way.dropped) {
            stats.corrupted += 1;
            return out.corrupt(outlet, packet);
        }
        stats.delivered += 1;
        stats.delivered_bytes += packet.size;
        if sender == AP {
            return out.send(outlet, packet);
        }
        match self.place_of(packet.dst) {
            AP => out.send(outlet, packet),
            station => self.enqueue(AP, station, packet, now, out),
        }
    }

    /// A packet arrives at contender `from` for contender `to`.
    fn enqueue(&mut self, from: usize, to: usize, packet: Packet, now: Time, out: &mut Out) {
        if self.contenders[from].head.is_none() {
            let during = !matches!(self.phase, Phase::Contention { .. });
            let frame = self.frame_of(packet, to);
            self.queues[from].pass(to);
            self.unpark(from);
            self.contenders[from].take(now, frame, during);
            self.contenders[from].schedule(self.timing.slot);
            self.schedule_one(from);
        } else if !self.queues[from].push(packet, to) {
            self.direction_stats(from, to).overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }
}

impl Component for Bss {
    /// # Panics
    /// If a packet from the wired network has a destination outside the BSS.
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        // Processes events due at this instant first, whether or not the BSS was woken before.
        self.advance(now, out);
        let from = port.index();
        let to = match from {
            AP => self.place_of(packet.dst),
            _ => AP,
        };
        assert!(from != to, "{:?} is not in the BSS", packet.dst);
        self.enqueue(from, to, *packet, now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.advance(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let due = match self.phase {
            Phase::Contention { due, .. } => due,
            Phase::Alone { until, .. } | Phase::Collision { until } => until,
        };
        due.min(self.outcomes.next())
    }

    /// Packets and bytes in the access point's queue, and its contention window.
    fn show(&self, probe: &mut dyn Probe) {
        let (packets, Bytes(bytes)) = self.queues[AP].waiting();
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes as f64);
        probe.value("cw", f64::from(self.contenders[AP].window()));
    }
}
