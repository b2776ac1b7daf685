//! [noq](https://github.com/n0-computer/noq), a fork of quinn, as the files use it that are compiled for either library: where it
//! differs from quinn, as quinn is. Its multipath is not used.
//!
//! noq tells a controller that what was lost has arrived after all, and its CUBIC takes the reduction back; quinn does not. Its BBR
//! cannot be seeded and is no sender here.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use lasthop_proto::FlowId;
use lasthop_proto::stack::{Early, Log, Sender};
pub(super) use noq_proto::*;

use crate::near_share::NearShare;

use self::congestion::{ControllerFactory, ControllerMetrics, Inner, Outer};
use self::crypto::{CryptoError, HandshakeTokenKey, PacketKey};
use super::config::{Factory, LogWriter};
use super::host::Tally;
use super::sizes::Unkeyed;

/// As in Cargo.toml.
pub(super) const VERSION: &str = "noq-proto 1.4.0";

/// A connection id as an argument.
pub(super) type IdArgument<'a> = ConnectionId;

/// The receiver of what starts a session.
pub(super) type Receiver<'a, T> = &'a T;

/// The senders.
pub(super) const SENDERS: &[Sender] = &[
    Sender {
        name: "noq-cubic",
        title: "CUBIC of noq, its default",
        how: Some("noq's default: CubicConfig as congestion_controller_factory of TransportConfig"),
        early: Early::All,
    },
    Sender {
        name: "noq-newreno",
        title: "NewReno of noq",
        how: Some("NewRenoConfig as congestion_controller_factory of noq's TransportConfig"),
        early: Early::All,
    },
];

/// Whether the control of a sender computes a rate to which noq itself does not keep.
pub(super) fn has_rate(_sender: &str) -> bool {
    false
}

/// What makes the control of `sender`; that of noq's default for an unknown one.
pub(super) fn factory(sender: &str, _flow: FlowId, _near_share: Arc<NearShare>) -> Factory {
    Arc::new(Inner(match sender {
        "noq-newreno" => Arc::new(noq_proto::congestion::NewRenoConfig::default()),
        _ => Arc::new(noq_proto::congestion::CubicConfig::default()),
    }))
}

pub(super) fn set_control(
    config: &mut TransportConfig,
    control: impl ControllerFactory + Send + Sync + 'static,
) {
    config.congestion_controller_factory(Arc::new(Outer(Arc::new(control))));
}

/// What a controller does on a loss that was none.
macro_rules! on_spurious_loss {
    ($self:ident => $answer:expr) => {
        fn on_spurious_loss(&mut $self) {
            $answer;
        }
    };
}
pub(super) use on_spurious_loss;

/// Keeps a qlog that begins at `start`.
pub(super) fn set_log(config: &mut TransportConfig, log: Arc<dyn Log>, title: &str, start: Instant) {
    config.qlog_factory(Arc::new(Qlog { log, title: title.to_owned(), start }));
}

struct Qlog {
    log: Arc<dyn Log>,
    title: String,
    start: Instant,
}

impl QlogFactory for Qlog {
    fn for_connection(&self, _: Side, _: SocketAddr, _: ConnectionId, _: Instant) -> Option<QlogConfig> {
        let mut qlog = QlogConfig::new(Box::new(LogWriter(Arc::clone(&self.log))));
        qlog.title(Some(self.title.clone())).start_time(self.start);
        Some(qlog)
    }
}

pub(super) fn set_ids(
    config: &mut EndpointConfig,
    make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(Arc::new(make));
}

pub(super) fn endpoint(
    config: EndpointConfig,
    server: Option<Arc<ServerConfig>>,
    mtu_discovery: bool,
) -> Endpoint {
    Endpoint::new(Arc::new(config), server, mtu_discovery)
}

/// Hands over a datagram from `peer` to `own`.
pub(super) fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    [peer, own]: [SocketAddr; 2],
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    buffer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(peer, Some(own.ip())), ecn, data, buffer)
}

/// At most `most` datagrams.
pub(super) fn transmit(
    connection: &mut Connection,
    now: Instant,
    most: NonZeroUsize,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, most, buffer)
}

/// Writes what there is room for: how many bytes that is.
pub(super) fn write(stream: &mut SendStream<'_>, payload: Bytes) -> Result<usize, WriteError> {
    stream.write_chunks(&mut &mut [payload][..])
}

pub(super) fn tally(connection: &mut Connection) -> Tally {
    let stats = connection.stats();
    Tally { acks: stats.frame_tx.acks, lost: stats.lost_packets }
}

/// The smoothed round-trip time, and the largest payload of a datagram.
pub(super) fn path(connection: &Connection) -> (Duration, u16) {
    (connection.rtt(PathId::ZERO).unwrap_or_default(), connection.current_mtu())
}

pub(super) fn metrics(connection: &Connection) -> ControllerMetrics {
    connection
        .congestion_state(PathId::ZERO)
        .map_or_else(ControllerMetrics::default, |control| control.metrics())
}

pub(super) fn error(code: TransportErrorCode, reason: String) -> TransportError {
    TransportError::new(code, reason)
}

/// A key of packets.
pub(super) type Key = Box<dyn noq_proto::crypto::PacketKey>;

pub(super) fn boxed(key: impl PacketKey + 'static) -> Key {
    Box::new(crypto::OnlyPath(key))
}

/// Of tokens for the validation of addresses.
impl HandshakeTokenKey for Unkeyed {
    fn seal(&self, _nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend_from_slice(&Unkeyed::TAG);
        Ok(())
    }

    fn open<'a>(&self, _nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let length = data.len().checked_sub(Unkeyed::TAG.len()).ok_or(CryptoError)?;
        Ok(&data[..length])
    }
}

/// Keys of packets as of quinn: of the only path.
pub(super) mod crypto {
    use bytes::BytesMut;
    use noq_proto::PathId;
    pub(crate) use noq_proto::crypto::*;

    pub(crate) trait PacketKey: Send + Sync {
        fn encrypt(&self, packet: u64, buffer: &mut [u8], header: usize);
        fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError>;
        fn tag_len(&self) -> usize;
        fn confidentiality_limit(&self) -> u64;
        fn integrity_limit(&self) -> u64;
    }

    /// One for noq.
    pub(super) struct OnlyPath<K>(pub(super) K);

    impl<K: PacketKey> noq_proto::crypto::PacketKey for OnlyPath<K> {
        fn encrypt(&self, _path: PathId, packet: u64, buffer: &mut [u8], header: usize) {
            self.0.encrypt(packet, buffer, header);
        }

        fn decrypt(
            &self,
            _path: PathId,
            packet: u64,
            header: &[u8],
            payload: &mut BytesMut,
        ) -> Result<(), CryptoError> {
            self.0.decrypt(packet, header, payload)
        }

        fn tag_len(&self) -> usize {
            self.0.tag_len()
        }

        fn confidentiality_limit(&self) -> u64 {
            self.0.confidentiality_limit()
        }

        fn integrity_limit(&self) -> u64 {
            self.0.integrity_limit()
        }
    }
}

/// Controllers as of quinn, without packet numbers, for which neither NewReno nor CUBIC asks.
pub(super) mod congestion {
    use std::any::Any;
    use std::fmt;
    use std::sync::Arc;
    use std::time::Instant;

    use noq_proto::RttEstimator;
    pub(crate) use noq_proto::congestion::ControllerMetrics;
    use noq_proto::congestion::{Controller as OfNoq, ControllerFactory as FactoryOfNoq};

    pub(crate) trait Controller: Send + Sync {
        fn on_sent(&mut self, _now: Instant, _bytes: u64, _last_packet_number: u64) {}
        fn on_ack(
            &mut self,
            _now: Instant,
            _sent: Instant,
            _bytes: u64,
            _app_limited: bool,
            _rtt: &RttEstimator,
        ) {
        }
        fn on_end_acks(&mut self, _now: Instant, _in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        }
        fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64);
        /// All that the latest congestion event took for lost has arrived.
        fn on_spurious_loss(&mut self) {}
        fn on_mtu_update(&mut self, new_mtu: u16);
        fn window(&self) -> u64;
        fn metrics(&self) -> ControllerMetrics {
            let mut metrics = ControllerMetrics::default();
            metrics.congestion_window = self.window();
            metrics
        }
        fn clone_box(&self) -> Box<dyn Controller>;
        fn initial_window(&self) -> u64;
        fn into_any(self: Box<Self>) -> Box<dyn Any>;
    }

    pub(crate) trait ControllerFactory {
        fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller>;
    }

    /// Makes controllers of noq.
    pub(super) struct Inner(pub(super) Arc<dyn FactoryOfNoq + Send + Sync>);

    impl ControllerFactory for Inner {
        fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
            Box::new(Controlling(Arc::clone(&self.0).build(now, current_mtu)))
        }
    }

    struct Controlling(Box<dyn OfNoq>);

    impl Controller for Controlling {
        fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
            self.0.on_sent(now, bytes, last_packet_number);
        }

        fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
            self.0.on_ack(now, sent, bytes, 0, app_limited, rtt);
        }

        fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
            self.0.on_end_acks(now, in_flight, app_limited, largest);
        }

        fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
            self.0.on_congestion_event(now, sent, is_persistent, lost_bytes == 0, lost_bytes, 0);
        }

        fn on_spurious_loss(&mut self) {
            self.0.on_spurious_congestion_event();
        }

        fn on_mtu_update(&mut self, new_mtu: u16) {
            self.0.on_mtu_update(new_mtu);
        }

        fn window(&self) -> u64 {
            self.0.window()
        }

        fn metrics(&self) -> ControllerMetrics {
            self.0.metrics()
        }

        fn clone_box(&self) -> Box<dyn Controller> {
            Box::new(Controlling(self.0.clone_box()))
        }

        fn initial_window(&self) -> u64 {
            self.0.initial_window()
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any> {
            self.0.into_any()
        }
    }

    /// Makes controllers for noq.
    pub(super) struct Outer<F>(pub(super) Arc<F>);

    impl<F: ControllerFactory + Send + Sync + 'static> FactoryOfNoq for Outer<F> {
        fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn OfNoq> {
            Box::new(Controlled(Arc::clone(&self.0).build(now, current_mtu)))
        }
    }

    struct Controlled(Box<dyn Controller>);

    impl fmt::Debug for Controlled {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Controlled").finish_non_exhaustive()
        }
    }

    impl OfNoq for Controlled {
        fn on_sent(&mut self, now: Instant, bytes: u64, largest: u64) {
            self.0.on_sent(now, bytes, largest);
        }

        fn on_ack(
            &mut self,
            now: Instant,
            sent: Instant,
            bytes: u64,
            _number: u64,
            app_limited: bool,
            rtt: &RttEstimator,
        ) {
            self.0.on_ack(now, sent, bytes, app_limited, rtt);
        }

        fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
            self.0.on_end_acks(now, in_flight, app_limited, largest);
        }

        fn on_congestion_event(
            &mut self,
            now: Instant,
            sent: Instant,
            is_persistent: bool,
            _is_mark: bool,
            lost_bytes: u64,
            _largest: u64,
        ) {
            self.0.on_congestion_event(now, sent, is_persistent, lost_bytes);
        }

        fn on_spurious_congestion_event(&mut self) {
            self.0.on_spurious_loss();
        }

        fn on_mtu_update(&mut self, new_mtu: u16) {
            self.0.on_mtu_update(new_mtu);
        }

        fn window(&self) -> u64 {
            self.0.window()
        }

        fn metrics(&self) -> ControllerMetrics {
            self.0.metrics()
        }

        fn clone_box(&self) -> Box<dyn OfNoq> {
            Box::new(Controlled(self.0.clone_box()))
        }

        fn initial_window(&self) -> u64 {
            self.0.initial_window()
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any> {
            self.0.into_any()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::division::{Dividing, Division};
    use super::*;

    #[test]
    fn a_loss_that_was_none_costs_nothing_unless_an_agent_reports() {
        for has_reports in [false, true] {
            let division = Arc::<Division>::default();
            let control = factory("noq-cubic", FlowId(0), Arc::default());
            let begin = Instant::now();
            let mut controller =
                Arc::new(Dividing { control, division: Arc::clone(&division) }).build(begin, 1_200);
            if has_reports {
                division.on_report_delay(lasthop_base::Duration::from_millis(2));
            }
            let full = controller.window();
            controller.on_congestion_event(begin + Duration::from_millis(60), begin, false, 1_200);
            let reduced = controller.window();
            assert!(reduced < full);
            controller.on_spurious_loss();
            assert_eq!(controller.window(), if has_reports { reduced } else { full });
        }
    }
}
