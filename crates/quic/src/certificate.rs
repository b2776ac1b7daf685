//! The server's certificate: self-signed, of a length that makes the handshake as long as the scenario says.

use std::sync::Arc;

use ed25519_compact::{KeyPair, Seed, Signature};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, PeerIncompatible, SignatureAlgorithm, SignatureScheme,
};

/// The key of all servers, which guards nothing.
const SEED: [u8; 32] = [7; 32];

/// Who the certificate is of.
pub(crate) const NAME: &str = "server";

/// Signs for the server, and verifies at the client, which trusts this certificate and no other.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    pair: KeyPair,
}

impl Identity {
    /// With a certificate of about `length` bytes, or of the fewest possible.
    pub(crate) fn new(length: usize) -> Identity {
        let pair = KeyPair::from_seed(Seed::new(SEED));
        let least = certificate(&pair, 0).len();
        Identity { certificate: certificate(&pair, length.saturating_sub(least)).into(), pair }
    }
}

/// An element of DER (ITU-T X.690 section 8.1).
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let length = contents.len().to_be_bytes();
    let length = &length[(contents.len().leading_zeros() as usize / 8).min(7)..];
    let more = (contents.len() > 0x7f).then_some(0x80 | length.len() as u8);
    [tag].into_iter().chain(more).chain(length.iter().copied()).chain(contents).collect()
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(0x30, parts)
}

/// A certificate (RFC 5280 section 4.1) with a comment of `padding` bytes.
fn certificate(pair: &KeyPair, padding: usize) -> Vec<u8> {
    const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];
    const COMMON_NAME: &[u8] = &[6, 3, 0x55, 4, 3];
    /// Netscape's extension for comments, which nothing reads.
    const COMMENT: &[u8] = &[6, 9, 0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 1, 0x0d];
    const VERSION_3: &[u8] = &[0xa0, 3, 2, 1, 2];
    const SERIAL: &[u8] = &[2, 1, 1];
    let bits = |bits: &[u8]| element(3, &[&[0], bits]);
    let algorithm = sequence(&[ED25519]);
    let name = sequence(&[&element(0x31, &[&sequence(&[COMMON_NAME, &element(0x0c, &[NAME.as_bytes()])])])]);
    let validity = sequence(&[&element(0x17, &[b"200101000000Z"]), &element(0x17, &[b"491231235959Z"])]);
    let key = sequence(&[&algorithm, &bits(&pair.pk[..])]);
    let comment = element(4, &[&element(0x16, &[&vec![b'.'; padding]])]);
    let extensions = element(0xa3, &[&sequence(&[&sequence(&[COMMENT, &comment])])]);
    let signed = sequence(&[VERSION_3, SERIAL, &algorithm, &name, &validity, &name, &key, &extensions]);
    let signature = pair.sk.sign(&signed, None);
    sequence(&[&signed, &algorithm, &bits(&signature[..])])
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::new(CertifiedKey::new(vec![self.certificate.clone()], Arc::new(self.clone()))))
    }
}

impl SigningKey for Identity {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = || -> Box<dyn Signer> { Box::new(self.clone()) };
        offered.contains(&SignatureScheme::ED25519).then(signer)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl Signer for Identity {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.pair.sk.sign(message, None).to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}

impl ServerCertVerifier for Identity {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let is_known = *end_entity == self.certificate;
        is_known.then(ServerCertVerified::assertion).ok_or(CertificateError::UnknownIssuer.into())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls13RequiredForQuic.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        _cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let signature = Signature::from_slice(signed.signature());
        let verified = signature.and_then(|signature| self.pair.pk.verify(message, &signature));
        match verified {
            Ok(()) if signed.scheme == SignatureScheme::ED25519 => Ok(HandshakeSignatureValid::assertion()),
            _ => Err(CertificateError::BadSignature.into()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
