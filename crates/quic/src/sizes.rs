//! A handshake and packet protection with the sizes of TLS 1.3, without cryptography.
//!
//! ```text
//! client                                      server
//! Initial    hello, parameters ------------->
//!            <------------------------------- Initial    hello
//!            <------------------------------- Handshake  parameters, certificates, finished
//! Handshake  finished ---------------------->
//! ```
//!
//! A session that is resumed has no certificates, and the client's requests leave with its hello (RFC 9001 section 4.6):
//!
//! ```text
//! client                                      server
//! Initial    hello, ticket, parameters ----->
//! 0-RTT      requests ---------------------->
//!            <------------------------------- Initial    hello
//!            <------------------------------- Handshake  parameters, finished
//!            <------------------------------- 1-RTT      responses
//! Handshake  finished ---------------------->
//! ```
//!
//! A message is its length, the length of what it says, that, and zeros. Bytes are those of strangers: a message that is none
//! ends the connection.

use std::any::Any;

use super::proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
    ServerConfig, Session, UnsupportedVersion,
};
use super::proto::transport_parameters::TransportParameters;
use super::proto::{self, ConnectError, IdArgument, Receiver, Side, TransportError, TransportErrorCode};
use crate::numbers::tag_of;
use bytes::BytesMut;
use lasthop_base::Bytes;

/// Lengths of messages with X25519 and SHA-256: the client's hello with its usual extensions, the server's, and `Finished`
/// (RFC 8446 section 4).
const CLIENT_HELLO: usize = 280;
const SERVER_HELLO: usize = 90;
const FINISHED: usize = 36;

/// What resumption adds to the client's hello: a ticket of 192 bytes, as of rustls, and its binder (RFC 8446 section 4.2.11).
const TICKET: usize = 240;

/// The server's handshake messages without certificates: encrypted extensions and `Finished`, with the transport parameters.
const RESUMED: usize = 150;

/// The tag of AES-GCM and ChaCha20-Poly1305 (RFC 9001 section 5.3).
const TAG: usize = 16;

/// Bytes of the header protection's sample (RFC 9001 section 5.4.2).
const SAMPLE: usize = 16;

/// Longest message that is buffered.
const LONGEST: usize = 1 << 16;

/// A key that protects nothing. The tag is the packet number, on which the nonce of a real one depends (RFC 9001 section 5.3): a
/// packet that arrives so late that its truncated number means another one is not accepted. The rest are zeros.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unkeyed;

impl Unkeyed {
    /// The tag of a token.
    pub(crate) const TAG: [u8; TAG] = [0; TAG];
}

impl PacketKey for Unkeyed {
    fn encrypt(&self, packet: u64, buf: &mut [u8], _header_len: usize) {
        if let Some(tag) = buf.last_chunk_mut() {
            *tag = tag_of(packet);
        }
    }

    fn decrypt(&self, packet: u64, _header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload.last_chunk() != Some(&tag_of(packet)) {
            return Err(CryptoError);
        }
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Unkeyed {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        SAMPLE
    }
}

/// Of stateless resets.
impl HmacKey for Unkeyed {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        // FNV-1a, another one for each byte of the signature.
        for (index, out) in signature_out.iter_mut().enumerate() {
            let start = 0xcbf2_9ce4_8422_2325u64 ^ index as u64;
            let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            *out = (data.iter().fold(start, step) >> 32) as u8;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        if expected == signature { Ok(()) } else { Err(CryptoError) }
    }
}

fn packet_keys() -> KeyPair<proto::Key> {
    KeyPair { local: proto::boxed(Unkeyed), remote: proto::boxed(Unkeyed) }
}

fn keys() -> Keys {
    Keys { header: KeyPair { local: Box::new(Unkeyed), remote: Box::new(Unkeyed) }, packet: packet_keys() }
}

/// The handshake of either side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake {
    /// Length of the server's messages, with its certificates.
    pub(crate) certificates: Bytes,
    /// Whether an earlier session is resumed.
    pub(crate) is_resumed: bool,
}

impl Handshake {
    fn session(self, side: Side, own: &TransportParameters) -> Box<dyn Session> {
        let mut parameters = Vec::new();
        own.write(&mut parameters);
        // What the client remembers of the server is what it has itself: both ends have the same settings.
        let remembered = (self.is_resumed && side.is_client())
            .then(|| TransportParameters::read(side, &mut &parameters[..]).ok())
            .flatten();
        let received = Vec::new();
        Box::new(Exchange {
            side,
            step: Step::Start,
            handshake: self,
            parameters,
            peer: remembered,
            received,
        })
    }
}

impl ClientConfig for Handshake {
    fn start_session(
        self: Receiver<'_, Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(self.session(Side::Client, params))
    }
}

impl ServerConfig for Handshake {
    fn initial_keys(&self, _version: u32, _dst_cid: IdArgument<'_>) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: IdArgument<'_>, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Receiver<'_, Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        self.session(Side::Server, params)
    }
}

/// How far one side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    /// The client's hello is sent, or received.
    ClientHello,
    /// The server's hello is sent, or received.
    ServerHello,
    /// The client has the keys of the handshake, and waits for the server's certificates.
    Keyed,
    /// The server's certificates are sent, or received.
    Certificates,
    Done,
}

/// The handshake of one side.
struct Exchange {
    side: Side,
    step: Step,
    handshake: Handshake,
    /// The own transport parameters, encoded.
    parameters: Vec<u8>,
    /// The peer's; until they arrive, those that the client remembers.
    peer: Option<TransportParameters>,
    received: Vec<u8>,
}

/// A number at the start of `bytes`, and what follows it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number) as usize, rest))
}

fn violation(reason: &str) -> TransportError {
    proto::error(TransportErrorCode::PROTOCOL_VIOLATION, reason.to_owned())
}

impl Exchange {
    /// Takes a message once all of it has arrived: what it says.
    fn message(&mut self) -> Result<Option<Vec<u8>>, TransportError> {
        let malformed = || violation("malformed handshake message");
        let Some((length, _)) = number(&self.received) else { return Ok(None) };
        if !(8..=LONGEST).contains(&length) {
            return Err(malformed());
        }
        if self.received.len() < length {
            return Ok(None);
        }
        let rest = self.received.split_off(length);
        let message = std::mem::replace(&mut self.received, rest);
        let contents = number(&message[4..]).and_then(|(length, rest)| rest.get(..length));
        contents.map(|contents| Some(contents.to_vec())).ok_or_else(malformed)
    }

    /// Appends a message of `length` bytes, or more if it says more.
    fn write(buf: &mut Vec<u8>, length: usize, contents: &[u8]) {
        let length = length.max(8 + contents.len());
        let end = buf.len() + length;
        buf.extend_from_slice(&(length as u32).to_be_bytes());
        buf.extend_from_slice(&(contents.len() as u32).to_be_bytes());
        buf.extend_from_slice(contents);
        buf.resize(end, 0);
    }

    fn read_parameters(&mut self, mut message: &[u8]) -> Result<(), TransportError> {
        self.peer = Some(TransportParameters::read(self.side, &mut message)?);
        Ok(())
    }
}

impl Session for Exchange {
    fn initial_keys(&self, _dst_cid: IdArgument<'_>, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(()))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// The keys of 0-RTT packets, once the peer's parameters are known or remembered.
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, proto::Key)> {
        let is_early = self.handshake.is_resumed && self.peer.is_some();
        is_early.then(|| -> (Box<dyn HeaderKey>, _) { (Box::new(Unkeyed), proto::boxed(Unkeyed)) })
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.handshake.is_resumed.then_some(true)
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        let mut has_data = false;
        while let Some(message) = self.message()? {
            self.step = match (self.side, self.step) {
                (Side::Server, Step::Start) => {
                    self.read_parameters(&message)?;
                    has_data = true;
                    Step::ClientHello
                }
                (Side::Client, Step::ClientHello) => Step::ServerHello,
                (Side::Client, Step::Keyed) => {
                    self.read_parameters(&message)?;
                    has_data = true;
                    Step::Certificates
                }
                (Side::Server, Step::Certificates) => Step::Done,
                _ => return Err(violation("unexpected handshake message")),
            };
        }
        Ok(has_data)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (step, has_keys) = match (self.side, self.step) {
            (Side::Client, Step::Start) => {
                let ticket = if self.handshake.is_resumed { TICKET } else { 0 };
                Exchange::write(buf, CLIENT_HELLO + ticket, &self.parameters);
                (Step::ClientHello, false)
            }
            (Side::Server, Step::ClientHello) => {
                Exchange::write(buf, SERVER_HELLO, &[]);
                (Step::ServerHello, true)
            }
            (Side::Server, Step::ServerHello) => {
                let Handshake { certificates, is_resumed } = self.handshake;
                let length =
                    if is_resumed { RESUMED } else { (certificates.0 as usize).saturating_sub(SERVER_HELLO) };
                Exchange::write(buf, length, &self.parameters);
                (Step::Certificates, true)
            }
            (Side::Client, Step::ServerHello) => (Step::Keyed, true),
            (Side::Client, Step::Certificates) => {
                Exchange::write(buf, FINISHED, &[]);
                (Step::Done, true)
            }
            _ => return None,
        };
        self.step = step;
        has_keys.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<proto::Key>> {
        Some(packet_keys())
    }

    fn is_valid_retry(&self, _orig_dst_cid: IdArgument<'_>, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
