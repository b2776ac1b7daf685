//! The ends of an application: the client sends each request on a stream of its own, and the server answers there.
//!
//! The client opens streams in the order of its requests, so that the server knows each by the number of its stream. What
//! is sent at either end is sent in that order, too, as HTTP/3 serves requests of one urgency (RFC 9218 section 10):
//! retransmissions of an earlier response come before the first bytes of a later one. What is received on a stream waits for no
//! other stream.
//!
//! With one stream for all, requests and responses follow each other on it, whose sizes both ends know.
//!
//! If the client does not hear the server for as long as a connection lasts, it connects again, and makes the requests without a
//! complete response once more; without any, it connects for the next one. The number of a connection is that of the requests
//! made before it, by which the server knows the first of its streams.

use std::collections::{BTreeMap, VecDeque};
use std::mem;

use super::proto::{Connection, Dir, Event, StreamEvent, StreamId, VarInt};
use bytes::Bytes as Payload;
use lasthop_base::{Bytes, Time};
use lasthop_proto::application::{Answer, Exchange, requests, responses};
use lasthop_proto::quic::Settings;
use lasthop_proto::stack::{Dialogue, StackFlow};
use lasthop_proto::{Component, EndCounters, EndReport, Out, Packet, Port, Request, Signal};

use super::config::{self, Secrets, Use};
use super::host::{Host, Loss, Place, Role, Tally};
use super::streams::{self, Progress};
use crate::clock;

/// What an end has read.
#[derive(Default)]
struct Delivered {
    bytes: Bytes,
    last: Time,
}

/// The client's role.
#[derive(Default)]
pub(crate) struct Requests {
    /// Requests that have no stream yet. There is none before the handshake, nor more than the server permits at a time.
    waiting: VecDeque<Outstanding>,
    /// Those that have one.
    open: BTreeMap<StreamId, Outstanding>,
    /// Streams on which something has arrived.
    readable: Vec<StreamId>,
    /// The times of the requests of complete responses.
    answered: VecDeque<Time>,
    delivered: Delivered,
    /// Requests made so far, with those that were made again.
    asked: u64,
    /// Those of them before the connection.
    earlier: u64,
    /// The stream of all requests, if they have one.
    common: Option<Common>,
    /// Whether the client has closed the connection.
    has_closed: bool,
    /// Whether the server has given up a response.
    is_refused: bool,
}

/// The stream of a connection that has one for all requests.
#[derive(Default)]
struct Common {
    stream: Option<StreamId>,
    /// Bytes that have arrived of the next request or response.
    arrived: u64,
    /// Bytes to be written.
    left: u64,
}

impl Common {
    /// That of an end with these settings.
    fn of(settings: &Settings) -> Option<Common> {
        settings.one_stream.then(Common::default)
    }

    /// Writes what there is room for, and reads; the number of bytes read.
    fn exchange(&mut self, connection: &mut Connection) -> Bytes {
        let Some(stream) = self.stream else { return Bytes::ZERO };
        let (read, _) = streams::read(connection, stream);
        self.arrived += read.0;
        self.write(connection);
        read
    }

    fn write(&mut self, connection: &mut Connection) {
        let Some(stream) = self.stream else { return };
        let mut left = Some(self.left);
        streams::fill(connection, stream, &mut left);
        self.left = left.unwrap_or_default();
    }

    /// Takes a message of `size` bytes from what has arrived, if it is complete.
    fn take(&mut self, size: Bytes) -> bool {
        let is_complete = self.arrived >= size.0;
        if is_complete {
            self.arrived -= size.0;
        }
        is_complete
    }
}

/// A request without a complete response.
struct Outstanding {
    since: Time,
    request: Request,
    /// Bytes of the request to be written; `None` once all are.
    left: Option<u64>,
}

/// The server's role.
#[derive(Default)]
pub(crate) struct Responses {
    /// Requests made so far, with those that were made again.
    asked: u64,
    /// Those of them before the connection.
    earlier: u64,
    /// Requests that are not complete, by their numbers.
    expected: BTreeMap<u64, Request>,
    /// The stream of all requests, if they have one.
    common: Option<Common>,
    readable: Vec<StreamId>,
    /// Responses that are not written, with the bytes left.
    writing: BTreeMap<StreamId, u64>,
    delivered: Delivered,
}

/// The client's end of the exchange.
pub(crate) struct Client(Host<Requests>);

/// The client's end.
pub(crate) fn client(flow: &StackFlow<'_>, dialogue: &Dialogue<'_>, secrets: Secrets) -> Client {
    let local = config::client(flow, Use::Exchange, secrets);
    let connection = flow.connection;
    let place = Place { own: connection.src, peer: connection.dst, flow: connection.flow, port: requests(0) };
    // The first request connects.
    let times = [dialogue.config.start, Time::NEVER];
    let role = Requests { common: Common::of(flow.quic), ..Requests::default() };
    Client(Host::new(flow, place, role, local, times))
}

/// The server's end.
pub(crate) fn server(flow: &StackFlow<'_>, dialogue: &Dialogue<'_>, secrets: Secrets) -> Host<Responses> {
    let local = config::server(flow, Use::Exchange, secrets);
    let connection = flow.connection;
    let place =
        Place { own: connection.dst, peer: connection.src, flow: dialogue.responses, port: responses(0) };
    let times = [dialogue.config.start, Time::NEVER];
    let role = Responses { common: Common::of(flow.quic), ..Responses::default() };
    Host::new(flow, place, role, local, times)
}

/// Serves earlier streams first.
fn prioritize(connection: &mut Connection, stream: StreamId) {
    let number = i32::try_from(stream.index()).unwrap_or(i32::MAX);
    // Without effect on a stream that is closed.
    let _ = connection.send_stream(stream).set_priority(-number);
}

impl Delivered {
    fn add(&mut self, now: Time, bytes: Bytes) {
        if bytes > Bytes::ZERO {
            self.bytes += bytes;
            self.last = now;
        }
    }

    fn count(&self, counters: &mut EndCounters, tally: Tally) {
        counters.delivered = self.bytes;
        counters.last_delivery = self.last;
        counters.acks_sent = Some(tally.acks);
        counters.declared_lost = Some(tally.lost);
    }
}

impl Requests {
    /// Makes a request that the user made at `since`.
    fn ask(&mut self, since: Time, request: Request, out: &mut Out) {
        out.signal(Signal::Request(request));
        self.asked += 1;
        self.waiting.push_back(Outstanding { since, request, left: Some(request.size.0) });
    }

    /// As [`act`](Role::act), with one stream for all requests.
    fn act_in_order(&mut self, now: Time, connection: &mut Connection) {
        let Some(common) = &mut self.common else { return };
        common.stream = common.stream.or_else(|| connection.streams().open(Dir::Bi));
        if common.stream.is_some() {
            common.left += self.waiting.iter_mut().filter_map(|request| request.left.take()).sum::<u64>();
        }
        self.delivered.add(now, common.exchange(connection));
        while let Some(first) = self.waiting.pop_front_if(|first| common.take(first.request.response)) {
            self.answered.push_back(first.since);
        }
    }
}

impl Role for Requests {
    fn on_event(&mut self, _now: Time, event: &Event, _connection: &mut Connection, _out: &mut Out) {
        if let Event::Stream(StreamEvent::Readable { id }) = event {
            self.readable.push(*id);
        }
    }

    fn on_lost(&mut self, is_silent: bool, out: &mut Out) -> Loss {
        if self.has_closed {
            return Loss::Harmless;
        }
        if !is_silent {
            return Loss::Final;
        }
        self.earlier = self.asked;
        self.readable.clear();
        self.common = self.common.as_ref().map(|_| Common::default());
        let all = mem::take(&mut self.open).into_values().chain(mem::take(&mut self.waiting));
        for Outstanding { since, request, .. } in all {
            self.ask(since, request, out);
        }
        if self.waiting.is_empty() { Loss::Harmless } else { Loss::Reconnects }
    }

    fn number(&self) -> u64 {
        self.earlier
    }

    fn act(&mut self, now: Time, connection: &mut Connection) {
        if self.common.is_some() {
            self.readable.clear();
            return self.act_in_order(now, connection);
        }
        while !self.waiting.is_empty()
            && let Some(stream) = connection.streams().open(Dir::Bi)
            && let Some(request) = self.waiting.pop_front()
        {
            prioritize(connection, stream);
            self.open.insert(stream, request);
        }
        for (stream, request) in &mut self.open {
            if request.left.is_some() && streams::write(connection, *stream, &mut request.left) {
                request.left = None;
            }
        }
        for stream in self.readable.drain(..) {
            let (read, progress) = streams::read(connection, stream);
            self.delivered.add(now, read);
            match progress {
                Progress::Open => {}
                Progress::Finished => {
                    self.answered.extend(self.open.remove(&stream).map(|request| request.since));
                }
                Progress::Reset => self.is_refused = true,
            }
        }
    }

    fn count(&self, counters: &mut EndCounters, tally: Tally) {
        self.delivered.count(counters, tally);
    }
}

impl Role for Responses {
    fn on_event(&mut self, _now: Time, event: &Event, connection: &mut Connection, _out: &mut Out) {
        match event {
            Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => self.readable.push(*id),
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(stream) = connection.streams().accept(Dir::Bi) {
                    if let Some(common) = &mut self.common {
                        common.stream = common.stream.or(Some(stream));
                    }
                    prioritize(connection, stream);
                    self.readable.push(stream);
                }
            }
            _ => {}
        }
    }

    /// The client knows what is left.
    fn on_lost(&mut self, _is_silent: bool, _out: &mut Out) -> Loss {
        Loss::Harmless
    }

    fn on_accepted(&mut self, number: u64) {
        self.earlier = number;
        self.expected = self.expected.split_off(&number);
        self.readable.clear();
        self.writing.clear();
        self.common = self.common.as_ref().map(|_| Common::default());
    }

    fn act(&mut self, now: Time, connection: &mut Connection) {
        if let Some(common) = &mut self.common {
            self.readable.clear();
            self.delivered.add(now, common.exchange(connection));
            while let Some(first) = self.expected.first_entry()
                && common.take(first.get().size)
            {
                common.left += first.remove().response.0;
            }
            return common.write(connection);
        }
        for stream in self.readable.drain(..) {
            let (read, progress) = streams::read(connection, stream);
            self.delivered.add(now, read);
            if progress == Progress::Finished
                && let Some(request) = self.expected.remove(&(self.earlier + stream.index()))
            {
                self.writing.insert(stream, request.response.0);
            }
        }
        self.writing.retain(|stream, left| {
            let mut rest = Some(*left);
            let is_written = streams::write(connection, *stream, &mut rest);
            *left = rest.unwrap_or_default();
            !is_written
        });
    }

    fn count(&self, counters: &mut EndCounters, tally: Tally) {
        self.delivered.count(counters, tally);
    }

    fn on_signal(&mut self, signal: &Signal) {
        if let Signal::Request(request) = signal {
            self.expected.insert(self.asked, *request);
            self.asked += 1;
        }
    }
}

impl Exchange for Client {
    fn ask(&mut self, now: Time, requests: &[Request], out: &mut Out) {
        self.0.connect(now);
        requests.iter().for_each(|request| self.0.role.ask(now, *request, out));
        self.0.proceed(now, out);
    }

    fn answer(&mut self, _now: Time, _out: &mut Out) -> Option<Answer> {
        self.0.role.answered.pop_front().map(|since| Answer { connection: 0, since })
    }

    fn is_waiting(&self) -> bool {
        !(self.0.role.waiting.is_empty() && self.0.role.open.is_empty())
    }

    fn close(&mut self, now: Time, out: &mut Out) {
        self.0.role.has_closed = true;
        if let Some(connection) = self.0.connection() {
            connection.close(clock::instant(now), VarInt::from_u32(0), Payload::new());
        }
        self.0.proceed(now, out);
    }

    /// The client does not wait for the server to hear of it (RFC 9000 section 10.2).
    fn has_closed(&self) -> bool {
        self.0.role.has_closed
    }

    fn is_lost(&self) -> bool {
        self.0.is_aborted() || self.0.role.is_refused
    }

    fn abort(&mut self, now: Time, out: &mut Out) {
        self.close(now, out);
    }
}

impl Component for Client {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.0.receive(now, packet, port, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.0.wake(now, out);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        self.0.on_signal(now, signal, out);
    }

    fn next_wakeup(&self) -> Time {
        self.0.next_wakeup()
    }

    fn report(&self) -> Option<EndReport> {
        self.0.report()
    }

    fn count(&self, tally: &mut dyn lasthop_proto::Tally) {
        self.0.count(tally);
    }
}
