//! Which flows the tunnel helps, for a comparison with those that it does not.
//!
//! The two gateways see a flow from both sides, and each must know its arm from any packet. So it is a hash of addresses and ports,
//! whichever end has sent the packet, with a key that follows from that of the tunnel. The observer asks the same function.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use lasthop_tunnel::Key;
use sha2::{Digest, Sha256};

use crate::config::Config;

/// The hash by which arms are chosen.
#[derive(Clone)]
pub(crate) struct Arms {
    key: [u8; 32],
}

/// The key of a tunnel.
///
/// # Errors
/// If there is no such file, or something else in it.
pub(crate) fn key_of(config: &Config) -> io::Result<Option<Key>> {
    let Some(tunnel) = &config.tunnel else { return Ok(None) };
    let wrong = |kind, problem: String| {
        io::Error::new(kind, format!("tunnel.key {}: {problem}", tunnel.key.display()))
    };
    let text = fs::read_to_string(&tunnel.key).map_err(|error| {
        let remedy = "`lasthop-gateway key` prints one";
        wrong(error.kind(), format!("{error}; {remedy}"))
    })?;
    let expected = "expected 64 hexadecimal digits, as `lasthop-gateway key` prints them";
    let found = || format!("found {} characters, {expected}", text.trim_end().chars().count());
    text.parse().map(Some).map_err(|()| wrong(io::ErrorKind::InvalidData, found()))
}

/// Checks the key of a tunnel; returns what is probably not meant, such as that it is still to be made.
///
/// # Errors
/// If it cannot be used.
pub(crate) fn check_key(config: &Config) -> io::Result<Option<String>> {
    match key_of(config) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(error.to_string())),
        Err(error) => Err(error),
        Ok(_) => Ok(key_caveat(config)),
    }
}

/// What is wrong with the permissions of a tunnel's key, if others may read it.
pub(crate) fn key_caveat(config: &Config) -> Option<String> {
    let path = &config.tunnel.as_ref()?.key;
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let remedy = "with the key, they are in the network: make a new one for both gateways, with umask 077";
    (mode & 0o077 != 0)
        .then(|| format!("tunnel.key {}: others may read it (mode {mode:o}); {remedy}", path.display()))
}

impl Arms {
    /// Those of a file with a tunnel.
    ///
    /// # Errors
    /// If its key cannot be read.
    pub(crate) fn of(config: &Config) -> io::Result<Option<Arms>> {
        Ok(key_of(config)?.map(|key| Arms::new(&key)))
    }

    pub(crate) fn new(key: &Key) -> Arms {
        Arms { key: key.derive(&[b"arms"]) }
    }

    /// Whether a flow between these ends, in whichever order, is one of the share without help, in thousandths.
    pub(crate) fn is_unhelped(&self, ends: [SocketAddr; 2], share: u16) -> bool {
        match share {
            0 => false,
            1000.. => true,
            _ => self.draw(ends) < share,
        }
    }

    fn draw(&self, ends: [SocketAddr; 2]) -> u16 {
        let [one, other] = ends;
        let mut hash = Sha256::new().chain_update(self.key);
        for end in [one.min(other), one.max(other)] {
            match end.ip() {
                std::net::IpAddr::V4(address) => hash.update(address.octets()),
                std::net::IpAddr::V6(address) => hash.update(address.octets()),
            }
            hash.update(end.port().to_be_bytes());
        }
        let digest = hash.finalize();
        let drawn = digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        (drawn % 1000) as u16
    }
}

/// The key is not shown.
impl std::fmt::Debug for Arms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Arms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_flow_have_one_arm_and_shares_are_kept() {
        let arms = Arms::new(&Key::new([3; 32]));
        let flows: Vec<[SocketAddr; 2]> =
            (1000..5000).map(|port| [([10, 1, 0, 2], port).into(), ([10, 2, 0, 2], 443).into()]).collect();
        let unhelped = |share| flows.iter().filter(|flow| arms.is_unhelped(**flow, share)).count();
        assert_eq!((unhelped(0), unhelped(1000)), (0, 4000));
        // Five standard deviations.
        assert!((unhelped(500) as i64 - 2000).abs() < 160 && (unhelped(100) as i64 - 400).abs() < 95);
        for &[client, server] in &flows {
            assert_eq!(arms.is_unhelped([client, server], 300), arms.is_unhelped([server, client], 300));
        }
    }
}
