//! Split connections: a base station ends the connection of a source and goes on with one of its own.
//!
//! Every scheme that splits connections is [`Split`]: how TCP is on the wireless part, and how much the
//! base station may hold. The [`Proxy`] is the same for all.

mod chain;
mod recovery;
mod relay;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

pub use chain::{Chain, Piece};
pub use recovery::Recovery;
pub use relay::Relay;

use crate::component::{Component, Out, Port, Signal};
use crate::packet::{FlowId, Packet};
use crate::tcp::{Changes, Connection, Reaction, Receiver, Sender, Settings, WindowCounts};

/// How a scheme splits connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// TCP on the wireless part, at both of its ends.
    pub wireless: Settings,
    /// Most bytes that the base station holds of a connection: acknowledged to the one side, and not yet by
    /// the other.
    pub buffer: Bytes,
}

/// How long a base station waits for the other side of the wireless part, or that one for it, before it gives
/// up: the least that RFC 9293 section 3.8.3 recommends. Nothing is held for a mobile host for ever.
const PATIENCE: Duration = Duration::from_secs(100);

impl Split {
    /// A split with a wireless part on which TCP differs from `wired` by these changes, and `buffer` bytes.
    pub fn new(wireless: &Changes, wired: &Settings, buffer: Bytes) -> Split {
        let asked = wireless.of(wired);
        let user_timeout = asked.user_timeout.or(Some(PATIENCE));
        Split { wireless: Settings { user_timeout, ..asked }, buffer }
    }

    /// What cannot be, by the name of the parameter: `wireless.KEY` for one of its settings.
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

/// Ends connections at the base station, and goes on with others. Joins [`Port::WIRED`] and [`Port::RADIO`];
/// what belongs to no connection of its own passes.
///
/// Each connection that it splits is a [`Relay`]. The destination sees the source's address, and the source the
/// destination's.
#[derive(Debug)]
pub struct Proxy {
    relays: Vec<Relay>,
    /// How many of those that have an end have not come to it.
    pending: usize,
    next_wakeup: Time,
}

impl Default for Proxy {
    fn default() -> Proxy {
        Proxy::new()
    }
}

impl Proxy {
    /// A proxy that splits nothing yet.
    pub fn new() -> Proxy {
        Proxy { relays: Vec::new(), pending: 0, next_wakeup: Time::NEVER }
    }

    /// Splits the connection whose data come in by the port `from`, into a part on which TCP is `wired` and a
    /// wireless one as `split` has it. `reaction` is what a scheme adds to the
    /// sender on the wireless part, which is the proxy's own if the data come from the other one. Once all
    /// that have an end (`ends`) have come to it, the proxy says that it is finished.
    pub fn join(
        &mut self,
        connection: Connection,
        (wired, split): (&Settings, &Split),
        from: Port,
        ends: bool,
        reaction: Option<Box<dyn Reaction>>,
    ) {
        let Split { wireless, buffer } = split;
        let (near, far) = if from == Port::WIRED { (wired, wireless) } else { (wireless, wired) };
        let window = Bytes(u64::from(near.window_payload())).min(*buffer);
        let near = Settings { window: window.into(), window_counts: WindowCounts::Payload, ..near.clone() };
        let receiver = Receiver::new(connection, &near);
        let sender = Sender::supplied(connection, far, reaction);
        self.relays.push(Relay::new(connection.flow, from, receiver, sender, *buffer, window, ends));
        self.pending += usize::from(ends);
    }

    /// The connections that it splits.
    pub fn relays(&self) -> &[Relay] {
        &self.relays
    }

    /// The one that a flow is, if it splits it.
    pub fn relay(&self, flow: FlowId) -> Option<&Relay> {
        self.relays.iter().find(|relay| relay.flow() == flow)
    }

    /// Lets a relay act.
    fn act(&mut self, index: usize, out: &mut Out, act: impl FnOnce(&mut Relay, &mut Out)) {
        let relay = &mut self.relays[index];
        let before = relay.is_finished();
        act(relay, out);
        if relay.ends() && !before && relay.is_finished() {
            self.pending -= 1;
            if self.pending == 0 {
                out.signal(Signal::Finished);
            }
        }
        self.next_wakeup = self.relays.iter().map(Relay::next_wakeup).min().unwrap_or(Time::NEVER);
    }
}

impl Component for Proxy {
    fn receive(&mut self, now: Time, packet: Packet, port: Port, out: &mut Out) {
        match self.relays.iter().position(|relay| relay.flow() == packet.flow) {
            Some(index) => self.act(index, out, |relay, out| relay.receive(now, packet, port, out)),
            None => out.send(port.across(), packet),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        for index in 0..self.relays.len() {
            if self.relays[index].next_wakeup() <= now {
                self.act(index, out, |relay, out| relay.wake(now, out));
            }
        }
    }

    fn next_wakeup(&self) -> Time {
        self.next_wakeup
    }
}
