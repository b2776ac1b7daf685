//! An end of a connection: quinn's endpoint and connection as a component, and the application that sends or reads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Bytes as Payload, BytesMut};
use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::quic::Settings;
use lasthop_proto::stack::{Contents, StackFlow};
use lasthop_proto::{
    Body, Component, Datagram, Dscp, Ecn, EndCounters, EndReport, FlowId, Handle, HostId, Out, Packet, Port,
    Probe, Signal,
};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, Event,
    StreamEvent, StreamId, Transmit, VarInt,
};

use crate::clock;
use crate::config::{self, Control};

/// What the server sends, over and over.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// What an end does with the connection.
enum Role {
    /// Accepts the connection, and sends so many bytes on one stream; `None` sends without end.
    Server { left: Option<u64> },
    /// Connects, with this configuration, and reads.
    Client { config: Option<ClientConfig>, delivered: Bytes, last_delivery: Time },
}

/// An end.
pub(crate) struct Host {
    role: Role,
    settings: Settings,
    start: Time,
    own: SocketAddr,
    peer: SocketAddr,
    ids: (HostId, HostId, FlowId),
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    contents: Arc<dyn Contents>,
    /// Datagrams sent.
    sent: u64,
    /// Whether all data have arrived, as far as this end knows.
    is_finished: bool,
    aborted: Option<Time>,
    deadline: Time,
    /// Reused.
    buffer: Vec<u8>,
}

fn address(host: HostId) -> SocketAddr {
    let [high, low] = host.0.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, high, low)), 443)
}

impl Host {
    /// The source of the data.
    pub(crate) fn server(flow: &StackFlow<'_>, seed: [u8; 32]) -> Host {
        let endpoint = config::server(flow.quic, Control::named(flow.sender), seed);
        let role = Role::Server { left: flow.transfer.bytes };
        // A destination that has not connected by then has given up, too.
        let patience = flow.transfer.start + config::IDLE;
        Host::new(flow, [flow.connection.src, flow.connection.dst], role, endpoint, patience)
    }

    /// Their destination.
    pub(crate) fn client(flow: &StackFlow<'_>, seed: [u8; 32]) -> Host {
        let (endpoint, config) = config::client(flow.quic, Control::named(flow.sender), seed);
        let role = Role::Client { config: Some(config), delivered: Bytes::ZERO, last_delivery: Time::ZERO };
        Host::new(flow, [flow.connection.dst, flow.connection.src], role, endpoint, flow.transfer.start)
    }

    fn new(
        flow: &StackFlow<'_>,
        [own, peer]: [HostId; 2],
        role: Role,
        endpoint: Endpoint,
        deadline: Time,
    ) -> Host {
        Host {
            role,
            settings: *flow.quic,
            start: flow.transfer.start,
            own: address(own),
            peer: address(peer),
            ids: (own, peer, flow.connection.flow),
            endpoint,
            connection: None,
            stream: None,
            contents: Arc::clone(&flow.contents),
            sent: 0,
            is_finished: false,
            aborted: None,
            deadline,
            buffer: Vec::new(),
        }
    }

    /// Sends the datagrams in the buffer.
    fn send(&mut self, now: Time, transmit: &Transmit, out: &mut Out) {
        let ecn = transmit.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
        let (src, dst, flow) = self.ids;
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        for datagram in self.buffer[..transmit.size].chunks(segment) {
            let handle = self.contents.put(datagram);
            let size = Bytes(datagram.len() as u64) + Settings::HEADERS;
            let body = Body::Datagram(Datagram { seq: self.sent, sent: now });
            self.sent += 1;
            out.send(Port::ONLY, Packet { src, dst, flow, size, dscp: Dscp::DEFAULT, ecn, handle, body });
        }
        self.buffer.clear();
    }

    /// Hands a datagram to the endpoint.
    fn on_datagram(&mut self, now: Time, data: BytesMut, ecn: Option<EcnCodepoint>, out: &mut Out) {
        let instant = clock::instant(now);
        let event =
            self.endpoint.handle(instant, self.peer, Some(self.own.ip()), ecn, data, &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((_, connection)) = self.connection.as_mut().filter(|(own, _)| *own == handle) {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming))
                if self.connection.is_none() && self.aborted.is_none() =>
            {
                match self.endpoint.accept(incoming, instant, &mut self.buffer, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => {
                        if let Some(response) = error.response {
                            self.send(now, &response, out);
                        }
                    }
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(transmit)) => self.send(now, &transmit, out),
            None => {}
        }
        self.buffer.clear();
    }

    fn on_event(&mut self, now: Time, event: &Event, out: &mut Out) {
        let Some((_, connection)) = &mut self.connection else { return };
        match (&self.role, event) {
            (Role::Server { .. }, Event::Connected) => self.stream = connection.streams().open(Dir::Uni),
            (Role::Client { .. }, Event::Stream(StreamEvent::Opened { dir: Dir::Uni })) => {
                self.stream = connection.streams().accept(Dir::Uni);
            }
            (Role::Server { .. }, Event::Stream(StreamEvent::Finished { .. })) if !self.is_finished => {
                self.is_finished = true;
                connection.close(clock::instant(now), VarInt::from_u32(0), Payload::new());
                out.signal(Signal::Finished);
            }
            (_, Event::ConnectionLost { .. }) if !self.is_finished => {
                self.aborted = self.aborted.or(Some(now));
                out.signal(Signal::Finished);
            }
            _ => {}
        }
    }

    /// The application writes what there is room for, or reads what has arrived.
    fn act(&mut self, now: Time) {
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) else { return };
        match &mut self.role {
            Role::Server { left } => {
                let mut sending = connection.send_stream(stream);
                while *left != Some(0) {
                    let most = left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
                    let mut chunks = [Payload::from_static(&ZEROS[..ZEROS.len().min(most)])];
                    match sending.write_chunks(&mut chunks) {
                        Ok(written) if written.bytes > 0 => {
                            *left = left.map(|left| left - written.bytes as u64);
                        }
                        // Blocked, or the connection is lost, which an event reports.
                        _ => return,
                    }
                }
                // Again without effect.
                let _ = sending.finish();
            }
            Role::Client { delivered, last_delivery, .. } => {
                let mut receiving = connection.recv_stream(stream);
                let Ok(mut chunks) = receiving.read(true) else { return };
                loop {
                    match chunks.next(usize::MAX) {
                        Ok(Some(chunk)) => {
                            *delivered += Bytes(chunk.bytes.len() as u64);
                            *last_delivery = now;
                        }
                        Ok(None) => break self.is_finished = true,
                        // Blocked, or the connection is lost, which an event reports.
                        Err(_) => break,
                    }
                }
                // What is to be sent is asked for next.
                let _ = chunks.finalize();
            }
        }
    }

    /// Handles events and sends until nothing is left to do, and sets the deadline.
    fn proceed(&mut self, now: Time, out: &mut Out) {
        let instant = clock::instant(now);
        loop {
            let mut is_idle = true;
            let Some((handle, connection)) = &mut self.connection else { return };
            while let Some(event) = connection.poll_endpoint_events() {
                is_idle = false;
                if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(answer);
                }
            }
            while let Some(event) = self.connection.as_mut().and_then(|(_, connection)| connection.poll()) {
                is_idle = false;
                self.on_event(now, &event, out);
            }
            self.act(now);
            let batch = self.settings.batch as usize;
            while let Some(transmit) = self
                .connection
                .as_mut()
                .and_then(|(_, connection)| connection.poll_transmit(instant, batch, &mut self.buffer))
            {
                is_idle = false;
                self.send(now, &transmit, out);
            }
            if is_idle {
                break;
            }
        }
        let timeout = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        self.deadline = timeout.map_or(Time::NEVER, |timeout| self.expiry(now, clock::time(timeout)));
    }

    /// When a timer expires that is due at `due`: at a tick, and later than now.
    fn expiry(&self, now: Time, due: Time) -> Time {
        let tick = self.settings.tick.as_nanos().max(1);
        let due = due.max(now + Duration::from_nanos(1));
        Time::from_nanos(due.as_nanos().div_ceil(tick).saturating_mul(tick))
    }
}

impl Component for Host {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        if packet.handle == Handle::NONE {
            return;
        }
        let mut data = BytesMut::new();
        self.contents.take(packet.handle, &mut |bytes| data.extend_from_slice(bytes));
        self.on_datagram(now, data, EcnCodepoint::from_bits(packet.ecn.bits()), out);
        self.proceed(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let instant = clock::instant(now);
        match (&mut self.role, &mut self.connection) {
            (_, Some((_, connection))) => connection.handle_timeout(instant),
            (Role::Client { config, .. }, None) => {
                let config = config.take().expect("a client connects once");
                let connection = self.endpoint.connect(instant, config, self.peer, "server");
                self.connection = Some(connection.expect("the address and the version are valid"));
            }
            (Role::Server { .. }, None) => {
                (self.aborted, self.deadline) = (Some(now), Time::NEVER);
                out.signal(Signal::Finished);
            }
        }
        self.proceed(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.deadline
    }

    fn report(&self) -> Option<EndReport> {
        let stats = self.connection.as_ref().map(|(_, connection)| connection.stats()).unwrap_or_default();
        let common = EndCounters {
            started: Some(self.start),
            aborted: self.aborted,
            packets_sent: self.sent,
            ..EndCounters::default()
        };
        let counters = match self.role {
            Role::Server { .. } => EndCounters { declared_lost: Some(stats.path.lost_packets), ..common },
            Role::Client { delivered, last_delivery, .. } => {
                EndCounters { delivered, last_delivery, acks_sent: Some(stats.frame_tx.acks), ..common }
            }
        };
        Some(EndReport { counters, ..EndReport::default() })
    }

    /// The congestion window and its threshold, the largest payload of a datagram, the smoothed round-trip time, and packets
    /// declared lost; NaN where undefined.
    fn show(&self, probe: &mut dyn Probe) {
        let connection = self.connection.as_ref().map(|(_, connection)| connection);
        let control = connection.map(|connection| connection.congestion_state().metrics());
        let path = connection.map(|connection| connection.stats().path);
        let bytes = |bytes: Option<u64>| bytes.map_or(f64::NAN, |bytes| bytes as f64);
        let threshold = control.and_then(|control| control.ssthresh);
        probe.value("cwnd_bytes", bytes(path.map(|path| path.cwnd)));
        probe.value("ssthresh_bytes", bytes(threshold.filter(|bytes| *bytes < u64::MAX)));
        probe.value("mss_bytes", bytes(path.map(|path| u64::from(path.current_mtu))));
        probe.value("srtt_s", path.map_or(f64::NAN, |path| path.rtt.as_secs_f64()));
        probe.value("declared_lost", bytes(path.map(|path| path.lost_packets)));
    }
}
