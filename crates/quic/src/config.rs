//! The configuration of quinn's endpoints.

use std::io::{self, Write};
use std::sync::Arc;

use lasthop_base::{Duration, Stream, Time};
use lasthop_proto::quic::Settings;
use lasthop_proto::stack::{Log, StackFlow};

use crate::clock;

use super::division::{Dividing, Division};
use super::ids::SequentialIds;
use super::meter::{Metering, RoundTrips};
use super::proto::congestion::ControllerFactory;
use super::proto::{
    self, AckFrequencyConfig, ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig,
    TransportConfig, VarInt, crypto,
};
use super::sizes;
use super::tls::Tls;

/// A connection without packets for this long is given up: quinn's default.
pub(crate) const IDLE: Duration = Duration::from_secs(30);

/// A client that may have more to ask sends after so long without a packet: half of the above, so that one may be lost.
const KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(15);

/// quinn's default for handshake messages that arrive out of order, and what those may exceed the certificates by.
const CRYPTO_BUFFER: usize = 16 * 1024;
const HANDSHAKE_REST: usize = 4 * 1024;

/// Makes controllers.
pub(crate) type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Makes the controllers of `flow`. `division` is that of an end at which a scheme has something.
fn factory(flow: &StackFlow<'_>, division: Option<&Arc<Division>>) -> Factory {
    let near_share = division.map(|division| Arc::clone(&division.near_share)).unwrap_or_default();
    let control = proto::factory(flow.sender, flow.connection.flow, near_share);
    match division {
        None => control,
        Some(division) => Arc::new(Dividing { control, division: Arc::clone(division) }),
    }
}

/// quinn at one end.
pub(crate) struct Local {
    pub(crate) endpoint: Endpoint,
    /// How a client connects.
    pub(crate) client: Option<ClientConfig>,
    pub(crate) round_trips: Arc<RoundTrips>,
    /// If a scheme has something at the end.
    pub(crate) division: Option<Arc<Division>>,
    /// Whether datagrams leave at the rate of the control.
    pub(crate) is_paced: bool,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// One stream of data.
    Transfer,
    /// Requests and responses, between which the user may think for longer than a connection without packets lasts.
    Exchange,
}

/// What an end draws its random numbers from, and how it protects packets.
#[derive(Clone)]
pub(crate) struct Secrets {
    seed: [u8; 32],
    client: Arc<dyn crypto::ClientConfig>,
    server: Arc<dyn crypto::ServerConfig>,
}

impl Secrets {
    /// Those of the server and of the client of a flow.
    pub(crate) fn of(flow: &StackFlow<'_>) -> [Secrets; 2] {
        let mut random = flow.random.clone();
        let seeds = [(); 2].map(|()| seed(&mut random));
        if flow.quic.tls {
            let tls = Arc::new(Tls::new(flow, random));
            return seeds.map(|seed| Secrets { seed, client: tls.clone(), server: tls.clone() });
        }
        let Settings { handshake: certificates, zero_rtt: is_resumed, .. } = *flow.quic;
        let sizes = Arc::new(sizes::Handshake { certificates, is_resumed });
        seeds.map(|seed| Secrets { seed, client: sizes.clone(), server: sizes.clone() })
    }
}

/// The seed of an endpoint.
fn seed(random: &mut Stream) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.below(u64::MAX).to_le_bytes()));
    seed
}

/// Settings as valid by [`Settings::faults`]: all conversions fit.
fn transport(
    control: Factory,
    settings: &Settings,
    purpose: Use,
    round_trips: &Arc<RoundTrips>,
) -> TransportConfig {
    let mut config = TransportConfig::default();
    if purpose == Use::Exchange {
        // Requests and responses are on streams in both directions.
        config.max_concurrent_uni_streams(VarInt::from_u32(0));
    }
    let window = VarInt::from_u32(u32::try_from(settings.window.0).unwrap_or(u32::MAX));
    let metering = Metering { control, round_trips: Arc::clone(round_trips) };
    proto::set_control(&mut config, metering);
    config.packet_threshold(settings.packet_threshold);
    let usual = Settings::default();
    if (settings.ack_every, settings.ack_delay) != (usual.ack_every, usual.ack_delay) {
        let mut frequency = AckFrequencyConfig::default();
        frequency.max_ack_delay(Some(std::time::Duration::from_nanos(settings.ack_delay.as_nanos())));
        frequency.ack_eliciting_threshold(VarInt::from_u32(settings.ack_every - 1));
        frequency.reordering_threshold(VarInt::from_u32(settings.packet_threshold - 1));
        config.ack_frequency_config(Some(frequency));
    }
    config.stream_receive_window(window).send_window(8 * u64::from(window));
    let handshake = usize::try_from(settings.handshake.0).unwrap_or(usize::MAX);
    config.crypto_buffer_size(CRYPTO_BUFFER.max(handshake.saturating_add(HANDSHAKE_REST)));
    config.max_idle_timeout(Some(VarInt::from_u32((IDLE.as_nanos() / 1_000_000) as u32).into()));
    let mtu = mtu(settings);
    if settings.mtu_discovery {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(mtu);
        config.mtu_discovery_config(Some(discovery));
    } else {
        config.initial_mtu(mtu).mtu_discovery_config(None);
    }
    config
}

fn mtu(settings: &Settings) -> u16 {
    u16::try_from(settings.mtu.0).unwrap_or(u16::MAX)
}

fn endpoint(settings: &Settings, end: u8, seed: [u8; 32], server: Option<Arc<ServerConfig>>) -> Endpoint {
    let mut config = EndpointConfig::new(Arc::new(sizes::Unkeyed));
    proto::set_ids(&mut config, move || Box::new(SequentialIds { end, issued: 0 }));
    config.rng_seed(Some(seed));
    config.max_udp_payload_size(mtu(settings)).expect("at least 1,200 bytes");
    proto::endpoint(config, server, settings.mtu_discovery)
}

fn division(flow: &StackFlow<'_>) -> Option<Arc<Division>> {
    flow.sidecar.map(|_| Arc::default())
}

/// Writes where the flow wants it.
pub(crate) struct LogWriter(pub(crate) Arc<dyn Log>);

impl Write for LogWriter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.write(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server of `flow`.
pub(crate) fn server(flow: &StackFlow<'_>, purpose: Use, secrets: Secrets) -> Local {
    let settings = flow.quic;
    let mut config = ServerConfig::new(secrets.server, Arc::new(sizes::Unkeyed));
    let (round_trips, division) = (Arc::default(), division(flow));
    let mut transport = transport(factory(flow, division.as_ref()), settings, purpose, &round_trips);
    if let Some(log) = &flow.log {
        proto::set_log(&mut transport, Arc::clone(log), flow.sender, clock::instant(Time::ZERO));
    }
    config.transport_config(Arc::new(transport));
    let endpoint = endpoint(settings, 1, secrets.seed, Some(Arc::new(config)));
    Local { endpoint, client: None, round_trips, division, is_paced: proto::has_rate(flow.sender) }
}

/// A client of `flow`.
pub(crate) fn client(flow: &StackFlow<'_>, purpose: Use, secrets: Secrets) -> Local {
    let settings = flow.quic;
    let mut config = ClientConfig::new(secrets.client);
    let (round_trips, division) = (Arc::default(), division(flow));
    let mut transport = transport(factory(flow, division.as_ref()), settings, purpose, &round_trips);
    if purpose == Use::Exchange {
        transport.keep_alive_interval(Some(KEEP_ALIVE));
    }
    config.transport_config(Arc::new(transport));
    let endpoint = endpoint(settings, 2, secrets.seed, None);
    Local { endpoint, client: Some(config), round_trips, division, is_paced: proto::has_rate(flow.sender) }
}
