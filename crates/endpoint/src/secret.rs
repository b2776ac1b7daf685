//! Unpredictable initial sequence numbers and timestamp offsets.

use std::fmt;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use lasthop_base::{Stream, Time};
use lasthop_proto::tcp::SeqNum;
use siphasher::sip::SipHasher24;

/// The secret key of a host for initial sequence numbers (RFC 6528 section 3) and timestamp offsets (RFC 7323
/// section 5.4).
#[derive(Clone)]
pub struct Secret([u64; 2]);

impl Secret {
    /// Draws a key from `random`, which must be unpredictable on public networks.
    pub fn draw(random: &mut Stream) -> Secret {
        let mut word = || random.below(1 << 32) << 32 | random.below(1 << 32);
        Secret([word(), word()])
    }

    /// The initial sequence number of a connection opened at `now`: a clock of 4 microseconds plus an offset
    /// per pair of addresses, so that a new incarnation starts above the sequence numbers of the previous
    /// one.
    pub(crate) fn iss(&self, now: Time, local: SocketAddr, remote: SocketAddr) -> SeqNum {
        SeqNum((now.as_nanos() / 4_000) as u32) + self.hash(local, remote) as u32
    }

    /// The offset of the timestamp clock towards `remote`.
    pub(crate) fn timestamp_offset(&self, local: SocketAddr, remote: SocketAddr) -> u32 {
        (self.hash(local, remote) >> 32) as u32
    }

    fn hash(&self, local: SocketAddr, remote: SocketAddr) -> u64 {
        let Secret([first, second]) = *self;
        let mut hasher = SipHasher24::new_with_keys(first, second);
        for address in [local, remote] {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            hasher.write(&ip.octets());
            hasher.write(&address.port().to_be_bytes());
        }
        hasher.finish()
    }
}

/// Does not print the key.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::{Duration, Streams};

    use super::*;

    #[test]
    fn sequence_numbers_advance_with_time_and_differ_by_address_and_key() {
        let secret = |seed| Secret::draw(&mut Streams::new(seed, 0).stream("secret"));
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        let (now, local, remote) = (Time::from_nanos(5_000_000), address(1), address(2));
        let iss = secret(1).iss(now, local, remote);
        let later = secret(1).iss(now + Duration::from_millis(1), local, remote);
        assert_eq!(later - iss, 250);
        let others = [
            secret(1).iss(now, address(3), remote),
            secret(1).iss(now, local, address(3)),
            secret(2).iss(now, local, remote),
        ];
        assert!(others.iter().all(|other| other.0.abs_diff(iss.0) > 1000));
        assert_ne!(secret(1).timestamp_offset(local, remote), secret(2).timestamp_offset(local, remote));
    }
}
