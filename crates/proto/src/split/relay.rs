//! A connection split by a proxy.

use lasthop_base::{Bytes, Duration, Time};

use core::cell::Cell;

use super::Chain;
use super::withholding::{Received, Withholding};
use crate::component::{Component, Effect, Out, Port, Probe, Reach, Signal};
use crate::packet::{Body, FlowId, Packet};
use crate::tcp::{Receiver, Sender};

/// Two connections joined by a bounded buffer.
///
/// Data that arrive in order are acknowledged, buffered and forwarded as far as the far connection permits,
/// and released when the far side acknowledges them. The window advertised to the near side never exceeds the
/// free space of the buffer. The far connection opens with the first packet of the near one, and closes when
/// the near one has ended and all data were forwarded. If either side is reset or aborts, so is the other,
/// and buffered data are lost.
#[derive(Debug)]
pub struct Relay {
    flow: FlowId,
    /// Port of the data source.
    from: Port,
    receiver: Receiver,
    sender: Sender,
    /// Data received and not yet acknowledged by the far side.
    held: Chain<()>,
    buffer: u64,
    /// The largest window advertised to the near side.
    window: u64,
    peak: u64,
    /// Total bytes received, and bytes released.
    taken: u64,
    released: u64,
    ends: bool,
    /// Whether the far connection was closed. To close it again would send nothing more, and cost time at every event.
    closed: bool,
    /// The acknowledgements to the near side, if they wait for the far side.
    withholding: Option<Withholding>,
}

impl Relay {
    pub(super) fn new(
        flow: FlowId,
        from: Port,
        mut receiver: Receiver,
        sender: Sender,
        buffer: Bytes,
        window: Bytes,
        ends: bool,
    ) -> Relay {
        receiver.pause();
        let held = Chain::default();
        let (buffer, window) = (buffer.0, window.0);
        Relay {
            flow,
            from,
            receiver,
            sender,
            held,
            buffer,
            window,
            peak: 0,
            taken: 0,
            released: 0,
            ends,
            closed: false,
            withholding: None,
        }
    }

    /// The relay with acknowledgements that wait for the far side ([`Split::holds`](super::Split::holds)).
    pub(super) fn withholding(self, hold: Duration) -> Relay {
        Relay { withholding: Some(Withholding::new(hold, self.from == Port::WIRED)), ..self }
    }

    /// The flow.
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// Whether the far connection has ended.
    pub(super) fn is_finished(&self) -> bool {
        self.sender.stats().completed.is_some() || self.sender.is_aborted()
    }

    /// Whether the transfer is finite.
    pub(super) fn ends(&self) -> bool {
        self.ends
    }

    /// The endpoint that faces the source.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// The endpoint that faces the destination.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Buffered bytes: received from the source, and not acknowledged by the destination.
    pub fn held(&self) -> Bytes {
        Bytes(self.held.len())
    }

    /// Peak of the buffered bytes.
    pub fn peak(&self) -> Bytes {
        Bytes(self.peak)
    }

    /// The quantities that the far [sender](Sender) reports, and `held_bytes`.
    pub fn show(&self, probe: &mut dyn Probe) {
        self.sender.show(probe);
        probe.value("held_bytes", self.held.len() as f64);
    }

    pub(super) fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        if port == self.from {
            let withholding = self.withholding.as_mut().zip(packet.segment());
            let is_due = withholding.is_some_and(|(withholding, segment)| withholding.note(now, segment));
            self.on_near((now, is_due), out, |receiver, out| receiver.receive(now, packet, Port::ONLY, out));
            self.on_far(out, |sender, out| sender.open(now, out));
        } else {
            self.on_far(out, |sender, out| sender.receive(now, packet, Port::ONLY, out));
        }
        self.pass_on(now, out);
    }

    pub(super) fn wake(&mut self, now: Time, out: &mut Out) {
        if self.receiver.next_wakeup() <= now {
            self.on_near((now, false), out, |receiver, out| receiver.wake(now, out));
        }
        if let Some(withholding) = &mut self.withholding {
            withholding.wake(now);
        }
        if self.sender.next_wakeup() <= now {
            self.on_far(out, |sender, out| sender.wake(now, out));
        }
        self.pass_on(now, out);
    }

    pub(super) fn next_wakeup(&self) -> Time {
        let withheld = self.withholding.as_ref().map_or(Time::NEVER, Withholding::deadline);
        self.receiver.next_wakeup().min(self.sender.next_wakeup()).min(withheld)
    }

    /// Handles a change of the mobile host's radio signal, or the prediction of one.
    pub(super) fn reach(&mut self, now: Time, reach: Reach, out: &mut Out) {
        let Some(withholding) = &mut self.withholding else { return };
        if withholding.reach(reach) {
            self.acknowledge(now, out);
        }
        if self.from == Port::WIRED {
            self.on_far(out, |sender, out| sender.on_signal(now, &Signal::Reach(reach), out));
        }
        self.pass_on(now, out);
    }

    /// Sends the acknowledgements that the near side may receive.
    fn acknowledge(&mut self, now: Time, out: &mut Out) {
        if self.receiver.stats().delivered > Bytes::ZERO && !self.receiver.is_reset() {
            self.on_near((now, true), out, |receiver, out| receiver.acknowledge_received(now, out));
        }
    }

    /// Moves received data to the far connection, releases acknowledged data and updates the advertised
    /// window.
    fn pass_on(&mut self, now: Time, out: &mut Out) {
        if self.receiver.is_reset() || self.sender.is_aborted() {
            return self.give_up(now, out);
        }
        let arrived = self.receiver.stats().delivered.0 - self.taken;
        if arrived > 0 {
            self.taken += arrived;
            self.held.push((), 0..arrived as usize);
            self.peak = self.peak.max(self.held.len());
            self.on_far(out, |sender, out| sender.supply(now, arrived, out));
        }
        let acknowledged = self.sender.acknowledged() - self.released;
        if acknowledged > 0 {
            self.released += acknowledged;
            self.held.release(acknowledged);
        }
        if let Some(withholding) = &mut self.withholding {
            withholding.release(now, self.released, self.sender.stats().completed.is_some());
        }
        // Data beyond the buffer's capacity stay in the receiver, and close its window.
        let beyond = self.held.len().saturating_sub(self.buffer - self.window);
        let room = self.receiver.unread() - beyond.min(self.receiver.unread());
        if room > 0 {
            self.on_near((now, false), out, |receiver, out| _ = receiver.read(now, room, out));
        }
        if self.receiver.has_ended() && !self.closed {
            self.closed = true;
            self.on_far(out, |sender, out| sender.close(now, out));
        }
        let news =
            self.withholding.as_ref().map_or(0, |withholding| withholding.news(&(&self.receiver).into()));
        for _ in 0..news {
            self.acknowledge(now, out);
        }
    }

    /// One side was lost: aborts the other side, unless all data of the lost side were received.
    fn give_up(&mut self, now: Time, out: &mut Out) {
        self.on_far(out, |sender, out| sender.abort(now, out));
        if !self.receiver.has_ended() {
            self.on_near((now, false), out, |receiver, out| receiver.abort(now, out));
        }
        self.held.release(self.held.len());
    }

    /// Calls `act` on the near endpoint. If acknowledgements wait for the far side, those of the endpoint are
    /// rewritten or suppressed, but sent in any case if they are due.
    fn on_near(
        &mut self,
        (now, is_due): (Time, bool),
        out: &mut Out,
        act: impl FnOnce(&mut Receiver, &mut Out),
    ) {
        let Relay { receiver, withholding, from, .. } = self;
        let Some(withholding) = withholding else { return through(out, *from, |out| act(receiver, out)) };
        let received = Cell::new(Received::from(&*receiver));
        let emit = |out: &mut Out| {
            act(receiver, out);
            received.set(Received::from(&*receiver));
        };
        out.redirect(emit, |effect| match effect {
            Effect::Send(_, mut packet) => {
                let is_sent = match &mut packet.body {
                    Body::Tcp(ack) => withholding.rewrite(now, ack, &received.get(), is_due),
                    _ => true,
                };
                is_sent.then_some(Effect::Send(*from, packet))
            }
            Effect::Signal(_) => None,
            drop => Some(drop),
        });
    }

    fn on_far(&mut self, out: &mut Out, act: impl FnOnce(&mut Sender, &mut Out)) {
        through(out, self.from.across(), |out| act(&mut self.sender, out));
    }
}

/// Collects the effects of one endpoint; its packets leave through `port`.
fn through(out: &mut Out, port: Port, emit: impl FnOnce(&mut Out)) {
    out.redirect(emit, |effect| match effect {
        Effect::Send(_, packet) => Some(Effect::Send(port, packet)),
        // The proxy signals on behalf of its endpoints.
        Effect::Signal(_) => None,
        drop => Some(drop),
    });
}
