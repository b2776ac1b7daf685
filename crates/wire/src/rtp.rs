//! RTP (RFC 3550).

use crate::error::{be16, be32};

/// The header of an RTP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtp {
    /// Version; 2 unless the payload is of another protocol.
    pub version: u8,
    /// Payload type.
    pub payload_type: u8,
    /// Sequence number.
    pub seq: u16,
    /// Synchronisation source (SSRC).
    pub source: u32,
}

impl Rtp {
    /// Reads the header at the beginning of a UDP payload; `None` if the payload is shorter. Nothing identifies RTP: a
    /// payload of any other protocol is read as well.
    pub fn parse(payload: &[u8]) -> Option<Rtp> {
        let header = payload.get(..12)?;
        let (version, payload_type) = (header[0] >> 6, header[1] & 0x7f);
        Some(Rtp { version, payload_type, seq: be16(header, 2), source: be32(header, 8) })
    }
}
