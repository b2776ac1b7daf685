//! Cryptography for rustls: one cipher suite, TLS_AES_128_GCM_SHA256, which QUIC needs for Initial packets anyway, and X25519. Random
//! numbers are those of the run.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use aes_gcm::aes::Aes128;
use aes_gcm::aes::cipher::BlockCipherEncrypt;
use aes_gcm::{AeadInOut, Aes128Gcm, KeyInit};
use ed25519_compact::x25519;
use hmac::{Hmac, Mac};
use lasthop_base::Stream;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter, Nonce,
    OutboundOpaqueMessage, OutboundPlainMessage, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::hash::{self, Hash, HashAlgorithm};
use rustls::crypto::tls13::HkdfUsingHmac;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, SharedSecret,
    SupportedKxGroup, WebPkiSupportedAlgorithms, hmac as keyed,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::pki_types::PrivateKeyDer;
use rustls::{
    CipherSuite, CipherSuiteCommon, ConnectionTrafficSecrets, Error, NamedGroup, PeerMisbehaved,
    SupportedCipherSuite, Tls13CipherSuite, quic, sign,
};
use sha2::{Digest, Sha256};

/// The cipher suite.
pub(crate) static SUITE: Tls13CipherSuite = Tls13CipherSuite {
    common: CipherSuiteCommon {
        suite: CipherSuite::TLS13_AES_128_GCM_SHA256,
        hash_provider: &Sha,
        confidentiality_limit: PACKETS_PER_KEY,
    },
    hkdf_provider: &HkdfUsingHmac(&Sha),
    aead_alg: &NoRecords,
    quic: Some(&Aes),
};

/// Its protection of packets.
pub(crate) static INITIAL: quic::Suite = quic::Suite { suite: &SUITE, quic: &Aes };

/// The limits of AES-GCM: packets sealed with one key, and forged ones that are tolerated (RFC 9001 section 6.6).
const PACKETS_PER_KEY: u64 = 1 << 23;
const FORGERIES: u64 = 1 << 52;

/// Bytes of the header protection's sample (RFC 9001 section 5.4.2).
pub(crate) const SAMPLE: usize = 16;

/// Lengths of a key and of a tag of AES-128-GCM.
const KEY: usize = 16;
const TAG: usize = 16;

/// Everything together.
pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![SupportedCipherSuite::Tls13(&SUITE)],
        kx_groups: vec![&X25519],
        signature_verification_algorithms: WebPkiSupportedAlgorithms { all: &[], mapping: &[] },
        secure_random: &OfTheRun,
        key_provider: &OfTheRun,
    }
}

thread_local! {
    /// The random numbers of the handshake that this thread is at.
    static RANDOM: RefCell<Option<Stream>> = const { RefCell::new(None) };
}

/// Calls `act`, in which rustls draws from `random`: its providers are static, and know no connection.
pub(crate) fn with_random<T>(random: &Mutex<Stream>, act: impl FnOnce() -> T) -> T {
    let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
    RANDOM.set(Some(random.clone()));
    let result = act();
    if let Some(rest) = RANDOM.take() {
        *random = rest;
    }
    result
}

/// The random numbers of [`with_random`], and nothing outside of it.
#[derive(Debug)]
struct OfTheRun;

impl SecureRandom for OfTheRun {
    fn fill(&self, buf: &mut [u8]) -> Result<(), GetRandomFailed> {
        RANDOM.with_borrow_mut(|random| {
            let random = random.as_mut().ok_or(GetRandomFailed)?;
            buf.fill_with(|| random.below(256) as u8);
            Ok(())
        })
    }
}

/// Keys come from no file.
impl KeyProvider for OfTheRun {
    fn load_private_key(
        &self,
        _: PrivateKeyDer<'static>,
    ) -> Result<std::sync::Arc<dyn sign::SigningKey>, Error> {
        Err(UnsupportedOperationError.into())
    }
}

/// SHA-256, and HMAC with it.
#[derive(Clone, Default)]
struct Sha;

impl Hash for Sha {
    fn start(&self) -> Box<dyn hash::Context> {
        Box::new(Hashing(Sha256::new()))
    }

    fn hash(&self, data: &[u8]) -> hash::Output {
        hash::Output::new(&Sha256::digest(data))
    }

    fn output_len(&self) -> usize {
        32
    }

    fn algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }
}

#[derive(Clone)]
struct Hashing(Sha256);

impl hash::Context for Hashing {
    fn fork_finish(&self) -> hash::Output {
        hash::Output::new(&self.0.clone().finalize())
    }

    fn fork(&self) -> Box<dyn hash::Context> {
        Box::new(self.clone())
    }

    fn finish(self: Box<Self>) -> hash::Output {
        hash::Output::new(&self.0.finalize())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

impl keyed::Hmac for Sha {
    fn with_key(&self, key: &[u8]) -> Box<dyn keyed::Key> {
        Box::new(Keyed(Hmac::new_from_slice(key).expect("HMAC takes keys of any length")))
    }

    fn hash_output_len(&self) -> usize {
        32
    }
}

struct Keyed(Hmac<Sha256>);

impl keyed::Key for Keyed {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> keyed::Tag {
        let mut hmac = self.0.clone();
        hmac.update(first);
        middle.iter().for_each(|part| hmac.update(part));
        hmac.update(last);
        keyed::Tag::new(&hmac.finalize().into_bytes())
    }

    fn tag_len(&self) -> usize {
        32
    }
}

/// X25519 (RFC 7748).
#[derive(Debug)]
struct X25519;

struct Exchange {
    secret: x25519::SecretKey,
    public: x25519::PublicKey,
}

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut secret = [0; x25519::SecretKey::BYTES];
        OfTheRun.fill(&mut secret)?;
        let secret = x25519::SecretKey::new(secret);
        let public = secret.recover_public_key().map_err(|_| Error::FailedToGetRandomBytes)?;
        Ok(Box::new(Exchange { secret, public }))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let point = peer.try_into().map(x25519::PublicKey::new).ok();
        // A point of small order has no product.
        let shared = point.and_then(|point| point.dh(&self.secret).ok());
        shared.map(|shared| SharedSecret::from(&shared[..])).ok_or(PeerMisbehaved::InvalidKeyShare.into())
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        &self.public[..]
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// AES-128 (RFC 9001 section 5).
struct Aes;

/// A key from rustls, which makes it as long as [`Algorithm::aead_key_len`](quic::Algorithm::aead_key_len) says.
fn bytes_of(key: &AeadKey) -> [u8; KEY] {
    key.as_ref().try_into().expect("the length of keys of this suite")
}

impl quic::Algorithm for Aes {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn quic::PacketKey> {
        Box::new(Packets { cipher: Aes128Gcm::new(&bytes_of(&key).into()), iv })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn quic::HeaderProtectionKey> {
        Box::new(Headers(Aes128::new(&bytes_of(&key).into())))
    }

    fn aead_key_len(&self) -> usize {
        KEY
    }
}

struct Packets {
    cipher: Aes128Gcm,
    iv: Iv,
}

impl quic::PacketKey for Packets {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<quic::Tag, Error> {
        let nonce = Nonce::new(&self.iv, number).0;
        let sealed = self.cipher.encrypt_inout_detached(&nonce.into(), header, payload.into());
        sealed.map(|tag| quic::Tag::from(&tag[..])).map_err(|_| Error::EncryptError)
    }

    fn decrypt_in_place<'a>(
        &self,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let nonce = Nonce::new(&self.iv, number).0;
        let (text, tag) = payload.split_last_chunk_mut::<TAG>().ok_or(Error::DecryptError)?;
        let opened =
            self.cipher.decrypt_inout_detached(&nonce.into(), header, (&mut *text).into(), &(*tag).into());
        opened.map(|()| &*text).map_err(|_| Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        PACKETS_PER_KEY
    }

    fn integrity_limit(&self) -> u64 {
        FORGERIES
    }
}

struct Headers(Aes128);

impl Headers {
    /// Covers the low bits of the first byte and the packet number, or uncovers them (RFC 9001 section 5.4.1).
    fn mask(&self, sample: &[u8], first: &mut u8, number: &mut [u8], is_covered: bool) -> Result<(), Error> {
        const LONG: u8 = 0x80;
        let mut block: [u8; 16] = sample.try_into().map_err(|_| Error::General("a short sample".into()))?;
        self.0.encrypt_block((&mut block).into());
        let [mask, rest @ ..] = block;
        let plain = *first;
        *first ^= mask & if plain & LONG == 0 { 0x1f } else { 0x0f };
        let length = if is_covered { *first } else { plain } & 3;
        number.iter_mut().zip(rest).take(usize::from(length) + 1).for_each(|(byte, mask)| *byte ^= mask);
        Ok(())
    }
}

impl quic::HeaderProtectionKey for Headers {
    fn encrypt_in_place(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), Error> {
        self.mask(sample, first, number, false)
    }

    fn decrypt_in_place(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), Error> {
        self.mask(sample, first, number, true)
    }

    fn sample_len(&self) -> usize {
        SAMPLE
    }
}

/// QUIC has no TLS records (RFC 9001 section 4): rustls makes their keys, and uses none.
struct NoRecords;

impl Tls13AeadAlgorithm for NoRecords {
    fn encrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(NoRecords)
    }

    fn decrypter(&self, _: AeadKey, _: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(NoRecords)
    }

    fn key_len(&self) -> usize {
        KEY
    }

    fn extract_keys(&self, _: AeadKey, _: Iv) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

impl MessageEncrypter for NoRecords {
    fn encrypt(&mut self, _: OutboundPlainMessage<'_>, _: u64) -> Result<OutboundOpaqueMessage, Error> {
        Err(Error::EncryptError)
    }

    fn encrypted_payload_len(&self, length: usize) -> usize {
        length
    }
}

impl MessageDecrypter for NoRecords {
    fn decrypt<'a>(&mut self, _: InboundOpaqueMessage<'a>, _: u64) -> Result<InboundPlainMessage<'a>, Error> {
        Err(Error::DecryptError)
    }
}
