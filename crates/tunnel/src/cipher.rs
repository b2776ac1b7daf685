//! The shared key, and the ciphers derived from it.
//!
//! ChaCha20-Poly1305 (RFC 8439), with keys by HKDF of SHA-256 (RFC 5869). Nothing here is of our own making but what goes into
//! the derivation. Each start of an end draws a salt at random, and every key with which it seals is derived from that salt. One
//! counter numbers all that it seals until it ends, and is the nonce: no nonce comes twice under a key, whichever end restarts,
//! and however often.

use std::fmt;
use std::str::FromStr;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;

/// Length of an authentication tag.
pub(crate) const TAG: usize = 16;

/// What names a start of an end, drawn at random.
pub type Salt = [u8; 16];

/// The key that both gateways have: 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// The key with these bytes, which must be random.
    pub fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// Bytes that depend on the key and on `labels`, each of a length that the first one implies.
    pub fn derive<const N: usize>(&self, labels: &[&[u8]]) -> [u8; N] {
        let mut bytes = [0; N];
        let derived = Hkdf::<Sha256>::new(Some(b"lasthop tunnel 1"), &self.0);
        derived.expand_multi_info(labels, &mut bytes).expect("fewer bytes than 255 digests have");
        bytes
    }

    /// The digits, as [`FromStr`] reads them.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl FromStr for Key {
    type Err = ();

    fn from_str(text: &str) -> Result<Key, ()> {
        let digits = text.trim().as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(());
        let pairs: Result<Vec<u8>, ()> = digits
            .chunks(2)
            .map(|pair| match *pair {
                [high, low] => Ok((digit(high)? << 4 | digit(low)?) as u8),
                _ => Err(()),
            })
            .collect();
        pairs?.try_into().map(Key).map_err(|_| ())
    }
}

/// The key is not shown.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

/// A cipher of one direction.
pub(crate) struct Cipher(ChaCha20Poly1305);

impl Cipher {
    /// What a start seals that knows no other end yet.
    pub(crate) fn of_hellos(key: &Key, sender: &Salt) -> Cipher {
        Cipher::of(key.derive(&[b"hello", sender]))
    }

    /// What one start seals for another.
    pub(crate) fn of_data(key: &Key, sender: &Salt, receiver: &Salt) -> Cipher {
        Cipher::of(key.derive(&[b"data", sender, receiver]))
    }

    fn of(key: [u8; 32]) -> Cipher {
        Cipher(ChaCha20Poly1305::new(&key.into()))
    }

    fn nonce(counter: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&counter.to_be_bytes());
        nonce.into()
    }

    /// Encrypts what follows the first `header` bytes of a datagram, and adds the tag, which covers the header as well.
    pub(crate) fn seal(&self, counter: u64, datagram: &mut Vec<u8>, header: usize) {
        let (head, body) = datagram.split_at_mut(header);
        let sealed = self.0.encrypt_inout_detached(&Cipher::nonce(counter), head, body.into());
        let tag = sealed.expect("a datagram is shorter than the cipher's limit");
        datagram.extend_from_slice(&tag);
    }

    /// Decrypts what follows the first `header` bytes; `None` if the datagram was not sealed with this key and counter.
    pub(crate) fn open<'a>(&self, counter: u64, datagram: &'a mut [u8], header: usize) -> Option<&'a [u8]> {
        let end = datagram.len().checked_sub(TAG).filter(|end| *end >= header)?;
        let (head, rest) = datagram.split_at_mut(header);
        let (body, tag) = rest.split_at_mut(end - header);
        let tag: [u8; TAG] = (&*tag).try_into().ok()?;
        let opened = self.0.decrypt_inout_detached(
            &Cipher::nonce(counter),
            head,
            (&mut *body).into(),
            &Tag::from(tag),
        );
        opened.ok().map(|()| &*body)
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}
