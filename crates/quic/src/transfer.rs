//! The ends of a transfer: the server sends on one stream, and the client reads.

use super::proto::{Connection, Dir, Event, StreamEvent, StreamId, VarInt};
use bytes::Bytes as Payload;
use lasthop_base::{Bytes, Time};
use lasthop_proto::stack::StackFlow;
use lasthop_proto::tcp::Transfer;
use lasthop_proto::{EndCounters, Out, Port, Signal};

use super::config::{self, Secrets, Use};
use super::host::{Host, Loss, Place, Role, Tally};
use super::streams::{self, Progress};
use crate::clock;

/// The source of the data. It accepts a connection.
pub(crate) struct Upload {
    /// How much is left to write; `None` without end.
    left: Option<u64>,
    stream: Option<StreamId>,
    is_finished: bool,
}

/// Their destination. It connects, and reads.
#[derive(Default)]
pub(crate) struct Download {
    stream: Option<StreamId>,
    delivered: Bytes,
    last_delivery: Time,
    is_finished: bool,
}

/// The source.
pub(crate) fn source(flow: &StackFlow<'_>, transfer: Transfer, secrets: Secrets) -> Host<Upload> {
    let local = config::server(flow, Use::Transfer, secrets);
    let role = Upload { left: transfer.bytes, stream: None, is_finished: false };
    let place = Place {
        own: flow.connection.src,
        peer: flow.connection.dst,
        flow: flow.connection.flow,
        port: Port::ONLY,
    };
    // A destination that has not connected by then has given up, too.
    let patience = transfer.start + config::IDLE;
    Host::new(flow, place, role, local, [transfer.start, patience])
}

/// The destination.
pub(crate) fn destination(flow: &StackFlow<'_>, transfer: Transfer, secrets: Secrets) -> Host<Download> {
    let local = config::client(flow, Use::Transfer, secrets);
    let place = Place {
        own: flow.connection.dst,
        peer: flow.connection.src,
        flow: flow.connection.flow,
        port: Port::ONLY,
    };
    Host::new(flow, place, Download::default(), local, [transfer.start; 2])
}

impl Role for Upload {
    fn on_event(&mut self, now: Time, event: &Event, connection: &mut Connection, out: &mut Out) {
        match event {
            Event::Connected => self.stream = connection.streams().open(Dir::Uni),
            Event::Stream(StreamEvent::Finished { .. }) if !self.is_finished => {
                self.is_finished = true;
                connection.close(clock::instant(now), VarInt::from_u32(0), Payload::new());
                out.signal(Signal::Finished);
            }
            _ => {}
        }
    }

    fn on_lost(&mut self, _is_silent: bool, out: &mut Out) -> Loss {
        if self.is_finished {
            return Loss::Harmless;
        }
        out.signal(Signal::Finished);
        Loss::Final
    }

    fn act(&mut self, _now: Time, connection: &mut Connection) {
        if let Some(stream) = self.stream {
            streams::write(connection, stream, &mut self.left);
        }
    }

    fn count(&self, counters: &mut EndCounters, tally: Tally) {
        counters.declared_lost = Some(tally.lost);
    }
}

impl Role for Download {
    fn on_event(&mut self, _now: Time, event: &Event, connection: &mut Connection, _out: &mut Out) {
        if let Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) = event {
            self.stream = connection.streams().accept(Dir::Uni);
        }
    }

    fn on_lost(&mut self, _is_silent: bool, out: &mut Out) -> Loss {
        if self.is_finished {
            return Loss::Harmless;
        }
        out.signal(Signal::Finished);
        Loss::Final
    }

    fn act(&mut self, now: Time, connection: &mut Connection) {
        let Some(stream) = self.stream else { return };
        let (read, progress) = streams::read(connection, stream);
        if read > Bytes::ZERO {
            self.delivered += read;
            self.last_delivery = now;
        }
        self.is_finished |= progress == Progress::Finished;
    }

    fn count(&self, counters: &mut EndCounters, tally: Tally) {
        counters.delivered = self.delivered;
        counters.last_delivery = self.last_delivery;
        counters.acks_sent = Some(tally.acks);
    }
}
