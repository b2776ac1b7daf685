//! An end of a connection: quinn's endpoint and connection as a component, and the application that sends or reads.

use std::mem;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::proto::{
    self, ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointEvent, Event, Incoming, Transmit,
};
use bytes::BytesMut;
use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::quic::Settings;
use lasthop_proto::stack::{Contents, StackFlow};
use lasthop_proto::{
    Body, Component, Datagram, Dscp, Ecn, EndCounters, EndReport, FlowId, Handle, HostId, Out, Packet, Port,
    Probe, Signal,
};

use super::config::Local;
use super::ids;
use super::meter::RoundTrips;
use super::pace::Pace;
use super::sidecar::Below;
use crate::clock;

/// What an end does with its connection.
pub(crate) trait Role: Send {
    /// Handles an event of the connection.
    fn on_event(&mut self, now: Time, event: &Event, connection: &mut Connection, out: &mut Out);

    /// The connection is lost, or was never made. `is_silent` if the peer was not heard, or knows nothing of it.
    fn on_lost(&mut self, is_silent: bool, out: &mut Out) -> Loss;

    /// The number of a client's next connection, which increases.
    fn number(&self) -> u64 {
        0
    }

    /// A server accepts the connection with this number, in place of any earlier one.
    fn on_accepted(&mut self, _number: u64) {}

    /// Writes what there is room for, and reads what has arrived.
    fn act(&mut self, now: Time, connection: &mut Connection);

    /// Adds what the role counts, and what of `tally` is meaningful for it.
    fn count(&self, counters: &mut EndCounters, tally: Tally);

    /// A watched component emitted a signal.
    fn on_signal(&mut self, _signal: &Signal) {}
}

/// What the loss of a connection means for an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing is left undone for now.
    Harmless,
    /// The client connects again.
    Reconnects,
    /// The end has given up.
    Final,
}

/// What quinn counts, over all connections of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// ACK frames sent.
    pub(crate) acks: u64,
    /// Packets declared lost.
    pub(crate) lost: u64,
}

impl Tally {
    fn plus(self, connection: &mut Connection) -> Tally {
        let Tally { acks, lost } = proto::tally(connection);
        Tally { acks: self.acks + acks, lost: self.lost + lost }
    }
}

/// Where an end is, and what it sends.
pub(crate) struct Place {
    /// Its own host.
    pub(crate) own: HostId,
    /// The other end's.
    pub(crate) peer: HostId,
    /// The flow of its packets.
    pub(crate) flow: FlowId,
    /// Their port.
    pub(crate) port: Port,
}

/// An end.
pub(crate) struct Host<R> {
    pub(crate) role: R,
    settings: Settings,
    start: Time,
    place: Place,
    /// Those of the peer and its own, as captures have them.
    addresses: [SocketAddr; 2],
    endpoint: Endpoint,
    /// How a client connects.
    client: Option<ClientConfig>,
    round_trips: Arc<RoundTrips>,
    /// Of an end whose control computes a rate.
    pace: Option<Pace>,
    /// The latest connection.
    connection: Option<(ConnectionHandle, Connection)>,
    /// The number of the latest connection that a server has accepted.
    accepted: Option<u64>,
    /// Of the connections before the latest.
    earlier: Tally,
    /// Of all, as of the latest event.
    tally: Tally,
    contents: Arc<dyn Contents>,
    /// What a scheme has below quinn.
    below: Option<Below>,
    /// Datagrams sent.
    sent: u64,
    /// Datagrams that arrived with a mark.
    marks: u64,
    aborted: Option<Time>,
    deadline: Time,
    /// Reused.
    buffer: Vec<u8>,
}

/// The addresses of the peer and of an end that opens the flow or does not, as captures have them.
fn addresses(place: &Place, opens: bool) -> [SocketAddr; 2] {
    let (opener, other) = place.flow.ports();
    let [peer, own] = if opens { [other, opener] } else { [opener, other] };
    [(place.peer, peer), (place.own, own)].map(|(host, port)| SocketAddr::from((host.address(0), port)))
}

/// How many frames with data, or that probe, were sent so far.
fn data_frames(connection: &mut Connection) -> u64 {
    let frames = connection.stats().frame_tx;
    frames.stream + frames.crypto + frames.ping
}

impl<R: Role> Host<R> {
    /// An end that wakes at `deadline`: a client of whose connection there is a configuration connects, and a server to which
    /// nobody has connected gives up.
    pub(crate) fn new(
        flow: &StackFlow<'_>,
        place: Place,
        role: R,
        local: Local,
        [start, deadline]: [Time; 2],
    ) -> Host<R> {
        let Local { endpoint, client, round_trips, division, is_paced } = local;
        let below = flow.sidecar.zip(division).map(|(make, division)| Below::new(make(), division));
        Host {
            role,
            settings: *flow.quic,
            start,
            addresses: addresses(&place, client.is_some()),
            place,
            endpoint,
            client,
            round_trips,
            pace: is_paced.then(|| Pace::new(flow.quic.tick)),
            connection: None,
            accepted: None,
            earlier: Tally::default(),
            tally: Tally::default(),
            contents: Arc::clone(&flow.contents),
            below,
            sent: 0,
            marks: 0,
            aborted: None,
            deadline,
            buffer: Vec::new(),
        }
    }

    /// The connection, if there is one.
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// Whether the connection was lost, or never made.
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.is_some()
    }

    /// Connects, unless there is a connection that is not lost. What the handshake sends waits for
    /// [`proceed`](Host::proceed).
    pub(crate) fn connect(&mut self, now: Time) {
        let is_connected = self.connection.as_ref().is_some_and(|(_, connection)| !connection.is_drained());
        let Some(mut config) = self.client.clone().filter(|_| !is_connected) else { return };
        self.forget();
        let number = self.role.number();
        config.initial_dst_cid_provider(Arc::new(move || ids::first_destination(number)));
        let [peer, _] = self.addresses;
        let connection = self.endpoint.connect(clock::instant(now), config, peer, "server");
        self.connection = Some(connection.expect("the address and the version are valid"));
    }

    /// Accepts a connection that is later than the latest. A stranger's has no number.
    fn accept(&mut self, now: Time, incoming: Incoming, out: &mut Out) {
        let number = ids::connection_number(&incoming.orig_dst_cid()[..]);
        if self.aborted.is_some() || number <= self.accepted {
            return self.endpoint.ignore(incoming);
        }
        match self.endpoint.accept(incoming, clock::instant(now), &mut self.buffer, None) {
            Ok(connection) => {
                self.forget();
                self.connection = Some(connection);
                self.accepted = number;
                self.role.on_accepted(number.unwrap_or_default());
            }
            Err(error) => {
                if let Some(response) = error.response {
                    self.send(now, &response, out);
                }
            }
        }
    }

    /// Drops the connection, whose packets the endpoint no longer expects.
    fn forget(&mut self) {
        let Some((handle, mut connection)) = self.connection.take() else { return };
        self.earlier = self.earlier.plus(&mut connection);
        if let Some(below) = &mut self.below {
            below.forget();
        }
        self.pace = self.pace.map(|_| Pace::new(self.settings.tick));
        while let Some(event) = connection.poll_endpoint_events() {
            self.endpoint.handle_event(handle, event);
        }
        if !connection.is_drained() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    fn lose(&mut self, now: Time, is_silent: bool, out: &mut Out) {
        match self.role.on_lost(is_silent, out) {
            Loss::Harmless => {}
            Loss::Reconnects => self.connect(now),
            Loss::Final => self.aborted = self.aborted.or(Some(now)),
        }
    }

    /// Sends the datagrams in the buffer.
    fn send(&mut self, now: Time, transmit: &Transmit, out: &mut Out) {
        let ecn = transmit.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        let buffer = mem::take(&mut self.buffer);
        buffer[..transmit.size].chunks(segment).for_each(|datagram| self.leave(now, now, datagram, ecn, out));
        self.buffer = buffer;
        self.buffer.clear();
    }

    /// A datagram leaves that quinn has sent at `first`.
    fn leave(&mut self, now: Time, first: Time, datagram: &[u8], ecn: Ecn, out: &mut Out) {
        let Place { own: src, peer: dst, flow, port } = self.place;
        let handle = self.contents.put(datagram);
        let size = Bytes(datagram.len() as u64) + Settings::HEADERS;
        let body = Body::Datagram(Datagram { seq: self.sent, sent: now });
        self.sent += 1;
        let packet = Packet { src, dst, flow, size, dscp: Dscp::DEFAULT, ecn, handle, body };
        if let Some(below) = &mut self.below {
            below.on_sent(&packet, first, datagram);
        }
        out.send(port, packet);
    }

    /// A control message tells what has become of packets: those that are missing leave again.
    fn on_report(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let Some(below) = &mut self.below else { return };
        for (first, ecn, datagram) in below.on_report(now, packet) {
            self.leave(now, first, &datagram, ecn, out);
        }
        self.proceed(now, out);
    }

    /// Hands a datagram to the endpoint.
    fn on_datagram(&mut self, now: Time, data: BytesMut, ecn: Option<EcnCodepoint>, out: &mut Out) {
        let instant = clock::instant(now);
        let event = proto::handle(&mut self.endpoint, instant, self.addresses, ecn, data, &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((_, connection)) = self.connection.as_mut().filter(|(own, _)| *own == handle) {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming, out),
            Some(DatagramEvent::Response(transmit)) => self.send(now, &transmit, out),
            None => {}
        }
        self.buffer.clear();
    }

    /// Handles events and sends until nothing is left to do, and sets the deadline.
    pub(crate) fn proceed(&mut self, now: Time, out: &mut Out) {
        let mut is_first = true;
        loop {
            // What leaves brings no events about.
            let mut is_idle = !mem::take(&mut is_first);
            let Some((handle, connection)) = &mut self.connection else { return };
            while let Some(event) = connection.poll_endpoint_events() {
                is_idle = false;
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            while let Some((_, connection)) = &mut self.connection
                && let Some(event) = connection.poll()
            {
                is_idle = false;
                match event {
                    Event::ConnectionLost { reason } => {
                        let is_silent = matches!(reason, ConnectionError::TimedOut | ConnectionError::Reset);
                        self.lose(now, is_silent, out);
                    }
                    event => self.role.on_event(now, &event, connection, out),
                }
            }
            if is_idle {
                break;
            }
            if let Some((_, connection)) = &mut self.connection {
                self.role.act(now, connection);
            }
            while let Some(transmit) = self.transmit(now) {
                self.send(now, &transmit, out);
            }
        }
        let Some((_, connection)) = &mut self.connection else { return };
        self.tally = self.earlier.plus(connection);
        let timeout = connection.poll_timeout();
        let timeout = timeout.map_or(Time::NEVER, |timeout| self.expiry(now, clock::time(timeout)));
        let departure = self.pace.and_then(|pace| pace.wait(now));
        self.deadline = departure.map_or(timeout, |departure| timeout.min(self.expiry(now, departure)));
    }

    /// The datagrams that the connection has to send now, which are in the buffer.
    fn transmit(&mut self, now: Time) -> Option<Transmit> {
        let (_, connection) = self.connection.as_mut()?;
        let Some(pace) = &mut self.pace else {
            let batch = NonZeroUsize::new(self.settings.batch as usize)?;
            return proto::transmit(connection, clock::instant(now), batch, &mut self.buffer);
        };
        if pace.wait(now).is_some() {
            return None;
        }
        let before = data_frames(connection);
        let transmit = proto::transmit(connection, clock::instant(now), NonZeroUsize::MIN, &mut self.buffer)?;
        // Acknowledgements alone are not paced (RFC 9002 section 7.7).
        if data_frames(connection) != before {
            pace.on_sent(now, transmit.size, connection);
        }
        Some(transmit)
    }

    /// When a timer expires that is due at `due`: at a tick, and later than now.
    fn expiry(&self, now: Time, due: Time) -> Time {
        let tick = self.settings.tick.as_nanos().max(1);
        let due = due.max(now + Duration::from_nanos(1));
        Time::from_nanos(due.as_nanos().div_ceil(tick).saturating_mul(tick))
    }
}

impl<R: Role> Component for Host<R> {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        if packet.handle == Handle::NONE {
            return self.on_report(now, packet, out);
        }
        self.marks += u64::from(packet.ecn == Ecn::Ce);
        let mut data = BytesMut::new();
        self.contents.take(packet.handle, &mut |bytes| data.extend_from_slice(bytes));
        self.on_datagram(now, data, EcnCodepoint::from_bits(packet.ecn.bits()), out);
        self.proceed(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        if self.deadline > now {
            return;
        }
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(clock::instant(now));
        } else if self.client.is_some() {
            self.connect(now);
        } else {
            self.deadline = Time::NEVER;
            self.lose(now, true, out);
        }
        self.proceed(now, out);
    }

    fn on_signal(&mut self, _now: Time, signal: &Signal, _out: &mut Out) {
        self.role.on_signal(signal);
        if let Some(below) = &mut self.below {
            below.on_signal(self.place.flow, signal);
        }
    }

    fn next_wakeup(&self) -> Time {
        self.deadline
    }

    fn report(&self) -> Option<EndReport> {
        let mut counters = EndCounters {
            started: Some(self.start),
            aborted: self.aborted,
            packets_sent: self.sent,
            marks: Some(self.marks),
            rtt_samples: Some(self.round_trips.samples()),
            rtt_sum: Some(self.round_trips.sum()),
            ..EndCounters::default()
        };
        if let Some(below) = &self.below {
            below.report(&mut counters);
        }
        self.role.count(&mut counters, self.tally);
        Some(EndReport { counters, ..EndReport::default() })
    }

    /// Counters of the scheme that has something at the end.
    fn count(&self, tally: &mut dyn lasthop_proto::Tally) {
        if let Some(below) = &self.below {
            below.count(tally);
        }
    }

    /// The congestion window and its threshold, the largest payload of a datagram, the smoothed round-trip time, and packets
    /// declared lost; NaN where undefined.
    fn show(&self, probe: &mut dyn Probe) {
        let connection = self.connection.as_ref().map(|(_, connection)| connection);
        let control = connection.map(proto::metrics);
        let path = connection.map(proto::path);
        let bytes = |bytes: Option<u64>| bytes.map_or(f64::NAN, |bytes| bytes as f64);
        let threshold = control.as_ref().and_then(|control| control.ssthresh);
        probe.value("cwnd_bytes", bytes(control.as_ref().map(|control| control.congestion_window)));
        probe.value("ssthresh_bytes", bytes(threshold.filter(|bytes| *bytes < u64::MAX)));
        probe.value("mss_bytes", bytes(path.map(|(_, mtu)| mtu.into())));
        probe.value("srtt_s", path.map_or(f64::NAN, |(rtt, _)| rtt.as_secs_f64()));
        probe.value("declared_lost", bytes(connection.map(|_| self.tally.lost)));
    }
}
