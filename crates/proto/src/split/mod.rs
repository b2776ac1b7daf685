//! Split connections: a base station terminates a connection and opens another towards the destination.
//!
//! A scheme that splits connections describes itself by a [`Split`]: TCP on the wireless part, and the buffer
//! of the base station. The [`Proxy`] is common to all.

mod chain;
mod loss_recovery;
mod relay;
mod roaming;
mod withholding;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

pub use chain::{Chain, Piece};
pub use loss_recovery::LossRecovery;
pub use relay::Relay;
pub use roaming::StateTransfer;
use roaming::{Reception, Roaming};
pub use withholding::{Received, Withholding};

use crate::component::{Component, Effect, LinkOutcome, Out, Port, Reach, Signal};
use crate::packet::{DropReason, FlowId, Packet};
use crate::tcp::{
    Changes, Connection, Reactions, Receiver, ReceiverReactions, Sender, Settings, WindowCounts,
};

/// How a scheme splits connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// TCP settings of the wireless part, for both ends.
    pub wireless: Settings,
    /// Capacity of the base station's buffer per connection: bytes acknowledged to one side but not yet by
    /// the other.
    pub buffer: Bytes,
    /// If set, one side gets acknowledgements only for what the other side has acknowledged: the connection keeps its
    /// end-to-end semantics. On the way to the mobile host, the last byte is acknowledged this long later, or with a
    /// window of zero when the [signal](crate::Reach) of the mobile host is lost. If not, data are acknowledged when they
    /// are in the buffer.
    pub holds: Option<Duration>,
    /// The time that a hand-off of a mobile host takes.
    pub transfer: StateTransfer,
}

/// User timeout of the wireless part, in both directions: the minimum that RFC 9293 section 3.8.3 recommends.
/// The base station does not hold data forever.
const PATIENCE: Duration = Duration::from_secs(100);

impl Split {
    /// A split whose wireless part differs from `wired` by these changes, with a buffer of `buffer` bytes that moves to
    /// another base station by `transfer`.
    pub fn new(wireless: &Changes, wired: &Settings, buffer: Bytes, transfer: StateTransfer) -> Split {
        let asked = wireless.of(wired);
        let user_timeout = asked.user_timeout.or(Some(PATIENCE));
        Split { wireless: Settings { user_timeout, ..asked }, buffer, holds: None, transfer }
    }

    /// Invalid parameters by name: `wireless.KEY` for TCP settings.
    pub fn faults(&self) -> Vec<(String, String)> {
        let of_wireless = self.wireless.faults().into_iter();
        let mut faults: Vec<_> =
            of_wireless.map(|(key, problem)| (format!("wireless.{key}"), problem)).collect();
        if self.buffer < self.wireless.packet_size {
            let (buffer, packet) = (self.buffer, self.wireless.packet_size);
            let problem =
                format!("found {buffer}, expected room for a packet of the wireless part, {packet}");
            faults.push((String::from("buffer"), problem));
        }
        faults
    }
}

/// Terminates connections at the base station and relays their data. Joins [`Port::WIRED`] and
/// [`Port::RADIO`]; packets of other flows are forwarded.
///
/// Each split connection is a [`Relay`]. Addresses are transparent: the destination sees the source's
/// address, and the source the destination's.
///
/// A [roaming](Proxy::roaming) proxy is at all base stations of a moving host, with a pair of ports
/// [at each](Port::at_station). Its connections are at one of them, and follow the host.
#[derive(Debug)]
pub struct Proxy {
    relays: Vec<Relay>,
    /// Number of finite connections that have not ended.
    pending: usize,
    next_wakeup: Time,
    roaming: Option<Roaming>,
}

impl Default for Proxy {
    fn default() -> Proxy {
        Proxy::new()
    }
}

impl Proxy {
    /// A proxy without connections.
    pub fn new() -> Proxy {
        Proxy { relays: Vec::new(), pending: 0, next_wakeup: Time::NEVER, roaming: None }
    }

    /// A proxy without connections at the base stations of a moving host. `delays` has the propagation delay
    /// between each pair of base stations.
    pub fn roaming(transfer: StateTransfer, delays: Vec<Vec<Duration>>) -> Proxy {
        Proxy { roaming: Some(Roaming::new(transfer, delays)), ..Proxy::new() }
    }

    /// Splits the connection whose data arrive through `from` into a part with the settings `wired` and a
    /// wireless part described by `split`. The reactions are those of the proxy's own endpoint on the wireless
    /// part: a sender, or a receiver if the data come from that part. The proxy signals that it finished when
    /// all finite connections (`ends`) have ended.
    pub fn join(
        &mut self,
        connection: Connection,
        (wired, split): (&Settings, &Split),
        from: Port,
        ends: bool,
        (reactions, receiver_reactions): (impl Into<Reactions>, impl Into<ReceiverReactions>),
    ) {
        let Split { wireless, buffer, holds, transfer: _ } = split;
        let (near, far) = if from == Port::WIRED { (wired, wireless) } else { (wireless, wired) };
        let window = Bytes(u64::from(near.window_payload())).min(*buffer);
        // The buffer is allocated, so that the window is not tuned.
        let near = Settings {
            window: window.into(),
            window_counts: WindowCounts::Payload,
            window_autotuning: false,
            ..near.clone()
        };
        let receiver = Receiver::new(connection, &near).with_reactions(receiver_reactions);
        let sender = Sender::supplied(connection, far, reactions);
        let relay = Relay::new(connection.flow, from, receiver, sender, *buffer, window, ends);
        self.relays.push(match holds {
            Some(hold) => relay.withholding(*hold),
            None => relay,
        });
        self.pending += usize::from(ends);
        if let Some(roaming) = &mut self.roaming {
            roaming.add_capacity(*buffer);
        }
    }

    /// The split connections.
    pub fn relays(&self) -> &[Relay] {
        &self.relays
    }

    /// The relay of a flow, if the flow is split.
    pub fn relay(&self, flow: FlowId) -> Option<&Relay> {
        self.relays.iter().find(|relay| relay.flow() == flow)
    }

    /// Calls `act` on a relay.
    fn act(&mut self, index: usize, out: &mut Out, act: impl FnOnce(&mut Relay, &mut Out)) {
        let station = self.roaming.as_ref().map_or(0, Roaming::station);
        let relay = &mut self.relays[index];
        let before = relay.is_finished();
        if station == 0 {
            act(relay, out);
        } else {
            let at_station = |effect| match effect {
                Effect::Send(side, packet) => Effect::Send(side.at_station(station), packet),
                other => other,
            };
            out.redirect(|out| act(relay, out), |effect| Some(at_station(effect)));
        }
        if relay.ends() && !before && relay.is_finished() {
            self.pending -= 1;
            if self.pending == 0 {
                out.signal(Signal::Finished);
            }
        }
        self.find_next_wakeup();
    }

    fn find_next_wakeup(&mut self) {
        self.next_wakeup = match self.roaming.as_ref().filter(|roaming| roaming.is_moving()) {
            Some(roaming) => roaming.arrival(),
            None => self.relays.iter().map(Relay::next_wakeup).min().unwrap_or(Time::NEVER),
        };
    }

    /// Bytes in the buffers of all connections.
    fn held(&self) -> Bytes {
        self.relays.iter().fold(Bytes::ZERO, |sum, relay| sum + relay.held())
    }

    /// The connections resume at the base station that their state has reached, and move again if the mobile host has left
    /// it.
    fn arrive(&mut self, now: Time, out: &mut Out) {
        let Some(roaming) = &mut self.roaming else { return };
        let (changes, waiting) = roaming.arrive();
        for reach in changes {
            self.reach(now, reach, out);
        }
        for (packet, side) in waiting {
            let index = self.relays.iter().position(|relay| relay.flow() == packet.flow);
            let index = index.expect("packets of other flows do not wait");
            self.act(index, out, |relay, out| relay.receive(now, &packet, side, out));
        }
        self.wake_relays(now, out);
        let held = self.held();
        if let Some(roaming) = &mut self.roaming {
            roaming.follow(now, held);
        }
        self.find_next_wakeup();
    }

    fn wake_relays(&mut self, now: Time, out: &mut Out) {
        for index in 0..self.relays.len() {
            if self.relays[index].next_wakeup() <= now {
                self.act(index, out, |relay, out| relay.wake(now, out));
            }
        }
    }

    fn reach(&mut self, now: Time, reach: Reach, out: &mut Out) {
        for index in 0..self.relays.len() {
            self.act(index, out, |relay, out| relay.reach(now, reach, out));
        }
    }
}

impl Component for Proxy {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let Some(index) = self.relays.iter().position(|relay| relay.flow() == packet.flow) else {
            return out.send(port.across(), *packet);
        };
        match self.roaming.as_mut().map_or(Reception::Here, |roaming| roaming.receive(packet, port)) {
            Reception::Here => {
                self.act(index, out, |relay, out| relay.receive(now, packet, port.side(), out));
            }
            Reception::Waits => {}
            Reception::Full => out.drop(*packet, DropReason::QueueFull),
            Reception::Elsewhere => out.drop(*packet, DropReason::Unreachable),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        match &self.roaming {
            // The next transfer may take no time.
            Some(roaming) if roaming.is_moving() => {
                while self.roaming.as_ref().is_some_and(|roaming| roaming.arrival() <= now) {
                    self.arrive(now, out);
                }
            }
            _ => self.wake_relays(now, out),
        }
    }

    fn next_wakeup(&self) -> Time {
        self.next_wakeup
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        match *signal {
            Signal::Attached { station, .. } => {
                let held = self.held();
                if let Some(roaming) = &mut self.roaming {
                    roaming.attach(now, station, held);
                    self.find_next_wakeup();
                }
            }
            Signal::Reach(reach) => {
                let is_deferred = self.roaming.as_mut().is_some_and(|roaming| roaming.defers(now, reach));
                if !is_deferred {
                    self.reach(now, reach, out);
                }
            }
            _ => {}
        }
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.roaming.iter().flat_map(Roaming::waiting).for_each(visit);
    }
}
