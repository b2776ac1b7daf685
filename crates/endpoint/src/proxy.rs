//! A base station that splits the connections of real hosts.

use std::collections::{BTreeSet, HashMap, VecDeque};

use lasthop_base::Time;
use lasthop_proto::tcp::Flags;
use lasthop_proto::{Notice, Port, Reach};
use lasthop_wire::Icmp;

use crate::packet::{Incoming, Outgoing};
use crate::relay::Relay;
use crate::split::{Hosts, Parts, ProxyStats, index};

/// Limit of connections at a time.
const CONNECTIONS: usize = 1024;

/// Limit of connections at a time with an incomplete handshake.
const HALF_OPEN: usize = 256;

/// Limit of the buffers of all connections together, which bounds their number if buffers are large.
const BUFFERED: u64 = 256 << 20;

/// A packet that the proxy sends.
#[derive(Clone, Debug)]
pub struct Relayed<T> {
    /// The side where it leaves: [`Port::WIRED`] or [`Port::RADIO`].
    pub to: Port,
    /// The tag of its connection.
    pub tag: T,
    /// The shift that was applied to its window (RFC 7323 section 2.3).
    pub scale: u8,
    /// The packet.
    pub packet: Outgoing,
}

/// Terminates the connections of real hosts at a base station, and relays their data: towards each host it is an
/// [`Endpoint`](crate::Endpoint) with the address of the other host, so the hosts do not notice it.
///
/// ```text
///  host ──SYN──> proxy                     SYN is not answered yet
///                proxy ──SYN──> host       a SYN of its own, with the options of this part
///                proxy <─SYN-ACK── host    (or RST: the first host is refused; or nothing)
///  host <─SYN-ACK── proxy ──ACK──> host
///  host <──data──> proxy <──data──> host   two connections, joined by a buffer for each direction
/// ```
///
/// The proxy connects before it accepts, so that a refused port is refused and an absent host is silent. That
/// costs one round trip of each part, as without a proxy. I-TCP itself accepts first, so its first host may see
/// an open connection that the second host refuses.
///
/// Data that arrive in order are acknowledged at once and held until the other host has acknowledged them. Parts
/// that [withhold](Parts::withholding) acknowledge them only then. FIN follows the last byte of its stream; the
/// other stream may continue. RST, a user timeout and a failed handshake reset the other part, and the bytes
/// held are lost.
///
/// Connections are known by both addresses and ports, and each has a tag `T` of the caller. All input is hostile:
/// nothing panics, and connections, half-open ones and bytes are bounded. The same input at the same times gives the same
/// output.
#[allow(missing_debug_implementations)]
pub struct Proxy<T> {
    parts: Parts,
    relays: Vec<Option<Relay<T>>>,
    free: Vec<usize>,
    by_hosts: HashMap<Hosts, usize>,
    /// The next wake-up of each relay that has one.
    deadlines: BTreeSet<(Time, usize)>,
    half_open: usize,
    packets: VecDeque<Relayed<T>>,
    stats: ProxyStats,
    scratch: Box<[u8]>,
}

impl<T: Copy> Proxy<T> {
    /// A proxy without connections.
    pub fn new(parts: Parts) -> Proxy<T> {
        Proxy {
            parts,
            relays: Vec::new(),
            free: Vec::new(),
            by_hosts: HashMap::new(),
            deadlines: BTreeSet::new(),
            half_open: 0,
            packets: VecDeque::new(),
            stats: ProxyStats::default(),
            scratch: vec![0; 1 << 16].into(),
        }
    }

    /// The counters.
    pub fn stats(&self) -> &ProxyStats {
        &self.stats
    }

    /// The number of connections at present, including those in TIME-WAIT.
    pub fn connections(&self) -> usize {
        self.by_hosts.len()
    }

    /// The number of connections at present without those in TIME-WAIT.
    pub fn open_connections(&self) -> usize {
        self.relays.iter().flatten().filter(|relay| !relay.is_lingering()).count()
    }

    /// The number of connections at present with an incomplete handshake.
    pub fn half_open(&self) -> usize {
        self.half_open
    }

    /// Processes a segment that arrives from side `from`. Returns false if it belongs to no split connection and
    /// opens none: the caller then forwards it. A connection that it opens has the tag `tag`.
    pub fn receive(&mut self, now: Time, from: Port, tag: T, packet: &Incoming<'_>) -> bool {
        let mut hosts = [packet.remote, packet.local];
        hosts.rotate_left(index(from));
        let known = self.by_hosts.get(&hosts).copied();
        if let Some(id) = known {
            let succeeds = |relay: &Relay<T>| relay.may_be_succeeded_by(now, from, packet);
            if self.relays[id].as_ref().is_some_and(succeeds) {
                self.remove(id);
            } else {
                self.act(now, id, |relay| relay.receive(now, from, packet));
                return true;
            }
        }
        let flags = packet.header.segment.flags;
        if flags & (Flags::SYN | Flags::ACK | Flags::RST) != Flags::SYN {
            self.stats.foreign_segments += 1;
            return false;
        }
        if !self.has_room() {
            self.stats.dropped_syns += 1;
            return true;
        }
        let relay = Relay::open(now, from, packet, tag, &self.parts);
        let id = self.free.pop().unwrap_or(self.relays.len());
        if id == self.relays.len() {
            self.relays.push(None);
        }
        self.by_hosts.insert(relay.hosts, id);
        self.half_open += usize::from(relay.is_half_open());
        self.relays[id] = Some(relay);
        self.act(now, id, |_| {});
        true
    }

    /// Processes an ICMP message that arrives from side `from`. Returns false unless it is about a packet that the
    /// proxy has sent.
    pub fn receive_icmp(&mut self, now: Time, from: Port, icmp: &Icmp<'_>) -> bool {
        let quoted = icmp.quote().and_then(|quote| {
            let ((src_port, dst_port), _) = quote.ports.zip(quote.seq)?;
            Some([(quote.dst, dst_port).into(), (quote.src, src_port).into()])
        });
        let Some(mut hosts) = quoted else { return false };
        hosts.rotate_left(index(from));
        let Some(&id) = self.by_hosts.get(&hosts) else { return false };
        self.act(now, id, |relay| relay.receive_icmp(now, from, icmp));
        true
    }

    /// Passes a scheme's message from side `from` to the connections whose tag `is_meant`.
    pub fn on_notice(&mut self, now: Time, from: Port, notice: &Notice, is_meant: impl Fn(&T) -> bool) {
        for id in 0..self.relays.len() {
            if self.relays[id].as_ref().is_some_and(|relay| is_meant(&relay.tag)) {
                self.act(now, id, |relay| relay.on_notice(now, from, notice));
            }
        }
    }

    /// Passes a change of the mobile host's radio signal, or the prediction of one, to all connections.
    pub fn on_reach(&mut self, now: Time, reach: Reach) {
        for id in 0..self.relays.len() {
            if self.relays[id].is_some() {
                self.act(now, id, |relay| relay.on_reach(now, reach));
            }
        }
    }

    /// Processes expired timers.
    pub fn wake(&mut self, now: Time) {
        while let Some(&(due, id)) = self.deadlines.first().filter(|(due, _)| *due <= now) {
            self.act(now, id, |relay| relay.wake(now));
            debug_assert!(!self.deadlines.contains(&(due, id)), "a timer did not advance");
        }
    }

    /// The earliest timer, at which [`wake`](Proxy::wake) is due; [`Time::NEVER`] if no timer runs.
    pub fn next_wakeup(&self) -> Time {
        self.deadlines.first().map_or(Time::NEVER, |(due, _)| *due)
    }

    /// The next packet to send; `None` if there is none.
    pub fn poll(&mut self) -> Option<Relayed<T>> {
        self.packets.pop_front()
    }

    /// Whether another connection may open, after removing one in TIME-WAIT if necessary.
    fn has_room(&mut self) -> bool {
        let by_bytes = BUFFERED / (2 * self.parts.buffer() as u64).max(1);
        let most = usize::try_from(by_bytes).unwrap_or(CONNECTIONS).clamp(1, CONNECTIONS);
        if self.connections() >= most {
            let lingering = self.relays.iter().enumerate().filter_map(|(id, relay)| {
                let relay = relay.as_ref().filter(|relay| relay.is_lingering())?;
                Some((relay.next_wakeup(), id))
            });
            if let Some((_, id)) = lingering.min() {
                self.remove(id);
            }
        }
        self.connections() < most && self.half_open < HALF_OPEN
    }

    /// Calls `act` on a relay, then moves its data, sends its packets and updates its deadline.
    fn act(&mut self, now: Time, id: usize, act: impl FnOnce(&mut Relay<T>)) {
        let Some(relay) = &mut self.relays[id] else { return };
        let (was_due, was_half_open) = (relay.next_wakeup(), relay.is_half_open());
        act(relay);
        relay.settle(now, &self.parts, &mut self.stats, &mut self.scratch);
        while let Some((to, scale, packet)) = relay.poll() {
            self.packets.push_back(Relayed { to, tag: relay.tag, scale, packet });
        }
        self.half_open -= usize::from(was_half_open);
        self.half_open += usize::from(relay.is_half_open());
        let due = relay.next_wakeup();
        self.deadlines.remove(&(was_due, id));
        if due < Time::NEVER {
            self.deadlines.insert((due, id));
        }
        if relay.is_over() {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: usize) {
        let Some(relay) = self.relays[id].take() else { return };
        self.by_hosts.remove(&relay.hosts);
        self.deadlines.remove(&(relay.next_wakeup(), id));
        self.half_open -= usize::from(relay.is_half_open());
        self.free.push(id);
    }
}
