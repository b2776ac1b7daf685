//! An 802.11 wireless LAN: a basic service set (BSS) of an access point and its stations, which share one medium
//! by the distributed coordination function (DCF; IEEE 802.11-1999 clause 9).
//! Scenario files call it a cell.

mod config;
mod contender;
mod dcf;
mod outcomes;
mod phy;
mod queues;
mod stats;

use lasthop_base::{Bytes, Stream, Time};
use lasthop_channel::Channel;
use lasthop_proto::{Component, DropReason, HostId, Out, Packet, Port, Probe};

use contender::{Contender, Frame};
use dcf::Phase;
use outcomes::Outcomes;
use phy::DATA_OVERHEAD;
use queues::Queues;

pub use config::{AboveMac, ApQueue, BssConfig, Cw, RetryLimit, Station, StationStreams};
pub use phy::{Band, Dsss, DsssRate, Ofdm, OfdmRate, Phy, Preamble, Timing};
pub use stats::{BssStats, StationStats, WayStats};

/// The access point's place among those who contend; station i has place 1 + i.
const AP: usize = 0;

/// An access point and its stations. [`Port(0)`](Port::WIRED) is the access point's side towards the fixed
/// network; `Port(1 + i)` is station i. Everybody hears everybody, and propagation takes no time.
///
/// # The way of a packet
/// One that enters by [`Port::WIRED`] is queued at the access point for the station through which its
/// destination is reached. One that enters by a station's port is queued there for the access point, which
/// sends it back into the BSS if it is for one of the BSS's hosts, and out of [`Port::WIRED`] if it is for
/// anyone else. A packet is handed on when its data frame ends, before the ACK.
///
/// # Taking turns
/// In the standard's words (section 9.2), and where these leave something open:
/// - Backoff slots begin after the medium was idle for DIFS, or for EIFS after a frame that could not be
///   understood. A backoff of b slots ends b slots later, and the station begins to send. The backoff of
///   others loses the slots that have ended by then, and not the one that has begun (freezing). So after a
///   busy period nobody but those who have just sent can have no slot left: Bianchi's model (IEEE JSAC
///   18(3), 2000) lets a busy period take a slot from everyone, the standard does not.
/// - A station that begins is noticed a slot later: this is what a slot is made for. Who begins before that
///   collides, at the same instant or not.
/// - After each attempt, whatever its outcome, a backoff is drawn, though nothing may wait (post-backoff).
///   A packet that finds the medium idle and no backoff left is sent at once, or as soon as DIFS or EIFS is
///   over; one that finds it busy draws a backoff. So does a packet that waits for DIFS or EIFS without one
///   when the medium gets busy.
/// - ACK and CTS timeouts last as long as what did not come would have taken: SIFS and the frame. DIFS
///   follows. With control frames at the lowest mandatory rate this is EIFS, so that those who collided and
///   those who listened begin their slots together; with faster ones, those who collided are ahead.
/// - Whose frame the channel destroyed is not known to those who listen but are not meant: they understood
///   it, and their NAV says when it would have been acknowledged. The receiver waits for EIFS.
///
/// # Losses
/// Frames that collide are lost. Of the others data frames meet the station's channel, with all their bits
/// behind the PLCP header; RTS, CTS and ACK frames, which are short and slow, always arrive. So no packet
/// arrives twice. What is dropped above the MAC ([`DropReason::Corrupted`]) was acknowledged, and is not
/// sent again. A packet whose retry limit is reached is dropped ([`DropReason::AttemptsExhausted`]) when the
/// last timeout is over.
///
/// # Signals
/// Those who watch hear of what the access point sends, as from a [`RadioLink`](crate::RadioLink):
/// [`LinkOutcome::Delivered`] when the ACK has come; [`LinkOutcome::AttemptFailed`] when the timeout is over,
/// or when a longer frame that it collided with has ended; and then [`LinkOutcome::Discarded`], if the retry
/// limit is reached. What is dropped above the MAC was delivered for all that the access point knows.
///
/// # Randomness
/// See [`StationStreams`]; the access point has a stream of its own for its backoffs.
///
/// # Cost
/// There is no event for a slot: who begins next follows from the slots that each has left. A frame exchange
/// takes a wake-up when its data frame ends, one more with RTS or with a collision of frames that differ,
/// and one more for what watchers hear.
///
/// [`LinkOutcome::Delivered`]: lasthop_proto::LinkOutcome::Delivered
/// [`LinkOutcome::AttemptFailed`]: lasthop_proto::LinkOutcome::AttemptFailed
/// [`LinkOutcome::Discarded`]: lasthop_proto::LinkOutcome::Discarded
#[allow(missing_debug_implementations)]
pub struct Bss {
    config: BssConfig,
    timing: Timing,
    contenders: Vec<Contender>,
    queues: Vec<Queues>,
    peers: Vec<Peer>,
    /// For each host the place of its station; [`AP`] for who is not in the BSS.
    places: Vec<usize>,
    phase: Phase,
    /// Those who send now.
    senders: Vec<usize>,
    outcomes: Outcomes,
    stats: BssStats,
}

/// A station, as the medium sees it.
struct Peer {
    channel: Box<dyn Channel>,
    down: Way,
    up: Way,
    stats: StationStats,
}

/// Chance on one way.
struct Way {
    bits: Stream,
    above: Stream,
    /// Probability that a packet is dropped above the MAC.
    dropped: f64,
}

impl Bss {
    /// An idle BSS, whose access point draws its backoffs from `backoff`.
    ///
    /// # Panics
    /// If the parameters are not [valid](BssConfig::validate), or if a host has two stations.
    pub fn new(config: BssConfig, backoff: Stream, stations: Vec<Station>) -> Bss {
        if let Err(invalid) = config.validate() {
            panic!("{invalid}");
        }
        let timing = config.timing();
        let mut contenders = vec![Contender::new(timing.cw, backoff)];
        let mut queues = vec![Queues::of_ap(config.ap_queue, stations.len())];
        let (mut peers, mut places) = (Vec::new(), Vec::new());
        for (index, Station { hosts, channel, above_mac, streams }) in stations.into_iter().enumerate() {
            contenders.push(Contender::new(timing.cw, streams.backoff));
            queues.push(Queues::one(config.station_queue));
            let (down, up) = (above_mac.down.get(), above_mac.up.get());
            let down = Way { bits: streams.bits_down, above: streams.above_down, dropped: down };
            let up = Way { bits: streams.bits_up, above: streams.above_up, dropped: up };
            peers.push(Peer { channel, down, up, stats: StationStats::default() });
            for HostId(host) in hosts {
                let host = usize::from(host);
                places.resize(places.len().max(host + 1), AP);
                assert!(places[host] == AP, "host {host} has two stations");
                places[host] = index + 1;
            }
        }
        Bss {
            config,
            timing,
            senders: Vec::with_capacity(contenders.len()),
            contenders,
            queues,
            peers,
            places,
            phase: Phase::Contention { first: Time::NEVER, due: Time::NEVER },
            outcomes: Outcomes::default(),
            stats: BssStats::default(),
        }
    }

    /// Packets that wait at the access point and at the stations.
    pub(crate) fn held(&self) -> usize {
        self.queues.iter().map(|queues| queues.waiting().0).sum()
    }

    /// What happened on the medium so far.
    pub fn stats(&self) -> &BssStats {
        &self.stats
    }

    /// What became of the packets of station `index` so far.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn station(&self, index: usize) -> &StationStats {
        &self.peers[index].stats
    }

    /// The place of the station through which a host is reached; [`AP`] if it is not in the BSS.
    fn place_of(&self, host: HostId) -> usize {
        self.places.get(usize::from(host.0)).copied().unwrap_or(AP)
    }

    fn way(&mut self, from: usize, to: usize) -> &mut WayStats {
        if from == AP { &mut self.peers[to - 1].stats.down } else { &mut self.peers[from - 1].stats.up }
    }

    fn frame_of(&self, packet: Packet, to: usize) -> Frame {
        let data = self.config.phy.data_time(packet.size);
        let rts = self.config.rts_threshold.is_some_and(|most| packet.size + DATA_OVERHEAD > most);
        let first = if rts { self.timing.rts } else { data };
        Frame { packet, to, data, first, rts, attempts: 0, short: 0, long: 0 }
    }

    /// What the MAC has received goes to where it is for, unless it is dropped above.
    fn hand_on(&mut self, sender: usize, frame: &Frame, now: Time, out: &mut Out) {
        let Frame { packet, to, .. } = *frame;
        let peer = &mut self.peers[sender.max(to) - 1];
        let (way, stats) = match sender {
            AP => (&mut peer.down, &mut peer.stats.down),
            _ => (&mut peer.up, &mut peer.stats.up),
        };
        // Drawn even where nothing is dropped, so that the same packet of two schemes meets the same number.
        if way.above.bernoulli(way.dropped) {
            stats.corrupted += 1;
            return out.drop(packet, DropReason::Corrupted);
        }
        stats.delivered += 1;
        stats.delivered_bytes += packet.size;
        if sender == AP {
            return out.send(Port(to as u16), packet);
        }
        match self.place_of(packet.dst) {
            AP => out.send(Port::WIRED, packet),
            station => self.enqueue(AP, station, packet, now, out),
        }
    }

    /// A packet comes to one who contends, for another.
    fn enqueue(&mut self, from: usize, to: usize, packet: Packet, now: Time, out: &mut Out) {
        if self.contenders[from].head.is_none() {
            let during = !matches!(self.phase, Phase::Contention { .. });
            let frame = self.frame_of(packet, to);
            self.queues[from].pass(to);
            self.contenders[from].take(now, frame, during);
            self.contenders[from].plan(self.timing.slot);
            self.plan_for(from);
        } else if !self.queues[from].push(packet, to) {
            self.way(from, to).overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }
}

impl Component for Bss {
    /// # Panics
    /// If a packet from the fixed network is for nobody in the BSS: it was routed wrongly.
    fn receive(&mut self, now: Time, packet: Packet, port: Port, out: &mut Out) {
        // What ends at this instant counts, whether the BSS was woken before or not.
        self.advance(now, out);
        let from = usize::from(port.0);
        let to = match from {
            AP => self.place_of(packet.dst),
            _ => AP,
        };
        assert!(from != to, "{:?} is not in the BSS", packet.dst);
        self.enqueue(from, to, packet, now, out);
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

    /// The access point's queue in packets and bytes, and its contention window.
    fn show(&self, probe: &mut dyn Probe) {
        let (packets, Bytes(bytes)) = self.queues[AP].waiting();
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes as f64);
        probe.value("cw", f64::from(self.contenders[AP].window()));
    }
}
