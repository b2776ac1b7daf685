//! [quinn](https://github.com/quinn-rs/quinn), as the files use it that are compiled for either library.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use lasthop_proto::FlowId;
use lasthop_proto::stack::{Early, Log, Sender};
use lasthop_proto::tcp::Congestion;
pub(super) use quinn_proto::*;

use crate::near_share::NearShare;

use self::congestion::{BbrConfig, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig};
use self::crypto::{AeadKey, CryptoError, HandshakeTokenKey, PacketKey};
use super::config::{Factory, LogWriter};
use super::host::Tally;
use super::linux::Linux;
use super::pacubic::PacubicConfig;
use super::sizes::Unkeyed;

/// As in Cargo.toml.
pub(super) const VERSION: &str = "quinn-proto 0.11.19";

/// A connection id as an argument.
pub(super) type IdArgument<'a> = &'a ConnectionId;

/// The receiver of what starts a session.
pub(super) type Receiver<'a, T> = Arc<T>;

/// A sender with a control that no server has in quinn.
const fn added(name: &'static str, title: &'static str, early: Early) -> Sender {
    Sender { name, title, how: None, early }
}

/// The senders.
pub(super) const SENDERS: &[Sender] = &[
    Sender {
        name: "quinn-cubic",
        title: "CUBIC of quinn, its default",
        how: Some("quinn's default: CubicConfig as congestion_controller_factory of TransportConfig"),
        early: Early::All,
    },
    Sender {
        name: "quinn-newreno",
        title: "NewReno of quinn",
        how: Some("NewRenoConfig as congestion_controller_factory of quinn's TransportConfig"),
        early: Early::All,
    },
    Sender {
        name: "quinn-bbr",
        title: "BBR of quinn",
        how: Some("BbrConfig as congestion_controller_factory of quinn's TransportConfig"),
        early: Early::All,
    },
    added("quinn-pacubic", "path-aware CUBIC over quinn", Early::All),
    added("quinn-linux-cubic", "CUBIC of Linux over quinn", Early::Losses),
    added("quinn-linux-reno", "Reno of Linux over quinn", Early::Losses),
    added("quinn-linux-bbr", "BBR of Linux over quinn", Early::Nothing),
    added("quinn-linux-bbr3", "BBR version 3 of Linux over quinn", Early::Nothing),
];

/// The control of this workspace's TCP, with the constants of Linux, that a sender has.
fn linux(sender: &str) -> Option<Congestion> {
    match sender {
        "quinn-linux-cubic" => Some(Congestion::Cubic),
        "quinn-linux-reno" => Some(Congestion::Reno),
        "quinn-linux-bbr" => Some(Congestion::Bbr),
        "quinn-linux-bbr3" => Some(Congestion::Bbr3),
        _ => None,
    }
}

/// Whether the control of `sender` computes a rate at which datagrams are to leave, to which quinn itself does not keep.
pub(super) fn has_rate(sender: &str) -> bool {
    linux(sender).is_some_and(|congestion| congestion.control().needs_pacing)
}

/// What makes the control of `sender`; that of quinn's default for an unknown one.
pub(super) fn factory(sender: &str, flow: FlowId, near_share: Arc<NearShare>) -> Factory {
    match sender {
        "quinn-newreno" => Arc::new(NewRenoConfig::default()),
        "quinn-bbr" => Arc::new(BbrConfig::default()),
        "quinn-pacubic" => Arc::new(PacubicConfig { near_share }),
        _ => match linux(sender) {
            Some(congestion) => Arc::new(Linux { congestion, flow }),
            None => Arc::new(CubicConfig::default()),
        },
    }
}

pub(super) fn set_control(
    config: &mut TransportConfig,
    control: impl ControllerFactory + Send + Sync + 'static,
) {
    config.congestion_controller_factory(Arc::new(control));
}

/// What a controller does on a loss that was none: quinn tells of no such loss.
macro_rules! on_spurious_loss {
    ($($ignored:tt)*) => {};
}
pub(super) use on_spurious_loss;

/// Keeps a qlog that begins at `start`.
pub(super) fn set_log(config: &mut TransportConfig, log: Arc<dyn Log>, title: &str, start: Instant) {
    let mut qlog = QlogConfig::default();
    qlog.writer(Box::new(LogWriter(log))).title(Some(title.to_owned())).start_time(start);
    config.qlog_stream(qlog.into_stream());
}

pub(super) fn set_ids(
    config: &mut EndpointConfig,
    make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(make);
}

pub(super) fn endpoint(
    config: EndpointConfig,
    server: Option<Arc<ServerConfig>>,
    mtu_discovery: bool,
) -> Endpoint {
    Endpoint::new(Arc::new(config), server, mtu_discovery, None)
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
    endpoint.handle(now, peer, Some(own.ip()), ecn, data, buffer)
}

/// At most `most` datagrams.
pub(super) fn transmit(
    connection: &mut Connection,
    now: Instant,
    most: NonZeroUsize,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(now, most.get(), buffer)
}

/// Writes what there is room for: how many bytes that is.
pub(super) fn write(stream: &mut SendStream<'_>, payload: Bytes) -> Result<usize, WriteError> {
    stream.write_chunks(&mut [payload]).map(|written| written.bytes)
}

pub(super) fn tally(connection: &mut Connection) -> Tally {
    let stats = connection.stats();
    Tally { acks: stats.frame_tx.acks, lost: stats.path.lost_packets }
}

/// The smoothed round-trip time, and the largest payload of a datagram.
pub(super) fn path(connection: &Connection) -> (Duration, u16) {
    let path = connection.stats().path;
    (path.rtt, path.current_mtu)
}

pub(super) fn metrics(connection: &Connection) -> ControllerMetrics {
    connection.congestion_state().metrics()
}

pub(super) fn error(code: TransportErrorCode, reason: String) -> TransportError {
    TransportError { code, frame: None, reason }
}

/// A key of packets.
pub(super) type Key = Box<dyn PacketKey>;

pub(super) fn boxed(key: impl PacketKey + 'static) -> Key {
    Box::new(key)
}

/// Of tokens for the validation of addresses.
impl HandshakeTokenKey for Unkeyed {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Unkeyed)
    }
}

impl AeadKey for Unkeyed {
    fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&Unkeyed::TAG);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _additional_data: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(Unkeyed::TAG.len()).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}
