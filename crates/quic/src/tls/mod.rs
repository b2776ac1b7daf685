//! TLS 1.3 by rustls, in place of what [`sizes`](super::sizes) stands in for: packets are protected, and their secrets logged.
//!
//! quinn's own adapter is compiled only with `ring` or `aws-lc-rs`, which are C and assembly and draw from the system's random
//! numbers. A run repeats: all of its random numbers come from the flow's, and TLS's clock stands still, so no session expires.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use super::proto::transport_parameters::TransportParameters;
use super::proto::{self, ConnectError, IdArgument, Receiver, Side, TransportError, TransportErrorCode};
use bytes::BytesMut;
use lasthop_base::Stream;
use lasthop_proto::stack::{Contents, StackFlow};
use rustls::client::Resumption;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::quic::{self, Connection, KeyChange, Secrets, Version};
use rustls::server::ServerSessionMemoryCache;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, Error, KeyLog, NoKeyLog, ServerConfig};

use crate::certificate::{Identity, NAME};
use crate::provider::{INITIAL, SAMPLE, provider, with_random};

/// QUIC version 1, the only one here.
const VERSION: u32 = 1;

/// Bytes of the server's handshake messages beside the certificate's own: hellos, transport parameters, signature and `Finished`.
const BESIDE_CERTIFICATE: usize = 370;

/// Why rustls accepts a configuration.
const CONFIGURED: &str = "the suite is of TLS 1.3, serves QUIC and has a group";

/// Sessions that either end remembers.
const SESSIONS: usize = 16;

/// TLS of both ends of a flow.
pub(crate) struct Tls {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    /// Whether an earlier session is resumed.
    is_resumed: bool,
    random: Arc<Mutex<Stream>>,
}

impl Tls {
    /// With the sizes and the resumption of the flow's settings.
    pub(crate) fn new(flow: &StackFlow<'_>, random: Stream) -> Tls {
        let is_resumed = flow.quic.zero_rtt;
        let length = usize::try_from(flow.quic.handshake.0).unwrap_or(usize::MAX);
        let identity = Arc::new(Identity::new(length.saturating_sub(BESIDE_CERTIFICATE)));
        let (provider, clock) = (Arc::new(provider()), Arc::new(Still));
        let versions = [&rustls::version::TLS13];
        let log = |of: Side| Arc::new(SecretLog { of, contents: Arc::clone(&flow.contents) });
        let client = ClientConfig::builder_with_details(Arc::clone(&provider), clock.clone());
        let mut client = client
            .with_protocol_versions(&versions)
            .expect(CONFIGURED)
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&identity) as _)
            .with_no_client_auth();
        client.key_log = log(Side::Client);
        client.enable_early_data = is_resumed;
        client.resumption = match is_resumed {
            true => Resumption::in_memory_sessions(SESSIONS),
            false => Resumption::disabled(),
        };
        let server = ServerConfig::builder_with_details(provider, clock);
        let mut server = server
            .with_protocol_versions(&versions)
            .expect(CONFIGURED)
            .with_no_client_auth()
            .with_cert_resolver(identity);
        server.key_log = log(Side::Server);
        server.session_storage = ServerSessionMemoryCache::new(SESSIONS);
        server.send_tls13_tickets = usize::from(is_resumed);
        server.max_early_data_size = if is_resumed { u32::MAX } else { 0 };
        Tls {
            client: Arc::new(client),
            server: Arc::new(server),
            is_resumed,
            random: Arc::new(Mutex::new(random)),
        }
    }

    /// A handshake of the two ends by themselves, after which the client has a ticket that the server knows. `parameters` are
    /// those of the server that the client is to remember.
    fn rehearse(&self, parameters: &[u8]) -> Result<(), Error> {
        let mut client = ClientConfig::clone(&self.client);
        let mut server = ServerConfig::clone(&self.server);
        (client.key_log, server.key_log) = (Arc::new(NoKeyLog), Arc::new(NoKeyLog));
        with_random(&self.random, || {
            let mut client = client_of(client.into(), parameters.to_vec())?;
            let mut server = server_of(server.into(), parameters.to_vec())?;
            while hand_over(&mut client, &mut server)? | hand_over(&mut server, &mut client)? {}
            Ok(())
        })
    }

    fn session(&self, connection: Connection) -> Box<dyn crypto::Session> {
        Box::new(Session { connection, random: Arc::clone(&self.random), next: None })
    }
}

fn client_of(config: Arc<ClientConfig>, parameters: Vec<u8>) -> Result<Connection, Error> {
    let name = ServerName::try_from(NAME).map_err(|_| Error::UnsupportedNameType)?;
    quic::ClientConnection::new(config, Version::V1, name, parameters).map(Connection::Client)
}

fn server_of(config: Arc<ServerConfig>, parameters: Vec<u8>) -> Result<Connection, Error> {
    quic::ServerConnection::new(config, Version::V1, parameters).map(Connection::Server)
}

/// Hands over what one end of a handshake has to say, each level of encryption by itself; whether that was anything.
fn hand_over(from: &mut Connection, to: &mut Connection) -> Result<bool, Error> {
    let mut has_said = false;
    loop {
        let mut said = Vec::new();
        let keys = from.write_hs(&mut said);
        if !said.is_empty() {
            to.read_hs(&said)?;
            has_said = true;
        } else if keys.is_none() {
            return Ok(has_said);
        }
    }
}

fn encoded(parameters: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    bytes
}

impl crypto::ClientConfig for Tls {
    fn start_session(
        self: Receiver<'_, Self>,
        _version: u32,
        _server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        // What the client remembers of the server is what it has itself: both ends have the same settings.
        let parameters = encoded(parameters);
        let rehearsed = if self.is_resumed { self.rehearse(&parameters) } else { Ok(()) };
        let client = || client_of(Arc::clone(&self.client), parameters);
        let client = rehearsed.and_then(|()| with_random(&self.random, client));
        Ok(self.session(client.expect(CONFIGURED)))
    }
}

impl crypto::ServerConfig for Tls {
    fn initial_keys(&self, version: u32, id: IdArgument<'_>) -> Result<Keys, UnsupportedVersion> {
        let is_ours = version == VERSION;
        is_ours.then(|| initial_keys(&id[..], rustls::Side::Server)).ok_or(UnsupportedVersion)
    }

    /// Not called: no server here sends a Retry packet.
    fn retry_tag(&self, _version: u32, _id: IdArgument<'_>, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Receiver<'_, Self>,
        _version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let server = || server_of(Arc::clone(&self.server), encoded(parameters));
        self.session(with_random(&self.random, server).expect(CONFIGURED))
    }
}

/// Every session is of the same time, which is in the validity of no particular certificate.
#[derive(Debug)]
struct Still;

impl TimeProvider for Still {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_600_000_000)))
    }
}

/// Logs each secret once, as soon as packets that it protects may leave: that of 0-RTT by the client, the others by the server.
#[derive(Debug)]
struct SecretLog {
    of: Side,
    contents: Arc<dyn Contents>,
}

impl KeyLog for SecretLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.contents.log_secret(&format!("{label} {} {}", hex(client_random), hex(secret)));
    }

    fn will_log(&self, label: &str) -> bool {
        let is_early = label == "CLIENT_EARLY_TRAFFIC_SECRET";
        is_early == self.of.is_client() && label != "EXPORTER_SECRET"
    }
}

/// The handshake of one end.
struct Session {
    connection: Connection,
    random: Arc<Mutex<Stream>>,
    next: Option<Secrets>,
}

impl crypto::Session for Session {
    fn initial_keys(&self, id: IdArgument<'_>, side: Side) -> Keys {
        initial_keys(&id[..], if side.is_client() { rustls::Side::Client } else { rustls::Side::Server })
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, proto::Key)> {
        let keys = self.connection.zero_rtt_keys()?;
        Some((Box::new(Header(keys.header)), proto::boxed(Packet(keys.packet))))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.connection {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Of the event that this may report, no end makes use.
    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let Session { connection, random, .. } = self;
        let read = with_random(random, || connection.read_hs(bytes));
        read.map(|()| false).map_err(|error| {
            let code = connection.alert().map_or(TransportErrorCode::PROTOCOL_VIOLATION, |alert| {
                TransportErrorCode::crypto(alert.into())
            });
            proto::error(code, error.to_string())
        })
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let side = match &self.connection {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        };
        let read = |mut bytes: &[u8]| TransportParameters::read(side, &mut bytes);
        Ok(self.connection.quic_transport_parameters().map(read).transpose()?)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let Session { connection, random, .. } = self;
        match with_random(random, || connection.write_hs(buf))? {
            KeyChange::Handshake { keys } => Some(converted(keys)),
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                Some(converted(keys))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<proto::Key>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: proto::boxed(Packet(keys.local)), remote: proto::boxed(Packet(keys.remote)) })
    }

    fn is_valid_retry(&self, _id: IdArgument<'_>, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self.connection.export_keying_material(output, label, Some(context));
        exported.map(|_| ()).map_err(|_| ExportKeyingMaterialError)
    }
}

fn initial_keys(id: &[u8], side: rustls::Side) -> Keys {
    converted(INITIAL.keys(id, side, Version::V1))
}

fn converted(quic::Keys { local, remote }: quic::Keys) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(Header(local.header)), remote: Box::new(Header(remote.header)) },
        packet: KeyPair {
            local: proto::boxed(Packet(local.packet)),
            remote: proto::boxed(Packet(remote.packet)),
        },
    }
}

/// A key of rustls for quinn.
struct Packet(Box<dyn quic::PacketKey>);

impl PacketKey for Packet {
    fn encrypt(&self, number: u64, packet: &mut [u8], header_length: usize) {
        let (header, rest) = packet.split_at_mut(header_length);
        let (payload, tag) = rest.split_at_mut(rest.len() - self.tag_len());
        let sealed = self.0.encrypt_in_place(number, header, payload);
        tag.copy_from_slice(sealed.expect("a datagram is shorter than the cipher's limit").as_ref());
    }

    fn decrypt(&self, number: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let opened = self.0.decrypt_in_place(number, header, payload);
        let length = opened.map_err(|_| CryptoError)?.len();
        payload.truncate(length);
        Ok(())
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

/// A key of rustls for quinn.
struct Header(Box<dyn quic::HeaderProtectionKey>);

/// Calls `mask` with the sample, the first byte and the packet number of a packet, whose number begins at `offset`. quinn has seen
/// that it is long enough.
fn protected(
    offset: usize,
    packet: &mut [u8],
    mask: impl FnOnce(&[u8], &mut u8, &mut [u8]) -> Result<(), Error>,
) {
    // As if the number had four bytes (RFC 9001 section 5.4.2).
    let Some((header, rest)) = packet.split_at_mut_checked(offset + 4) else { return };
    let (before, number) = header.split_at_mut(offset);
    if let (Some(first), Some(sample)) = (before.first_mut(), rest.get(..SAMPLE)) {
        mask(sample, first, number).expect("the sample has the length of a block");
    }
}

impl HeaderKey for Header {
    fn decrypt(&self, offset: usize, packet: &mut [u8]) {
        protected(offset, packet, |sample, first, number| self.0.decrypt_in_place(sample, first, number));
    }

    fn encrypt(&self, offset: usize, packet: &mut [u8]) {
        protected(offset, packet, |sample, first, number| self.0.encrypt_in_place(sample, first, number));
    }

    fn sample_size(&self) -> usize {
        self.0.sample_len()
    }
}
