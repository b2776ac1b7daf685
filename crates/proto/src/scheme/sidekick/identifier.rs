//! What stands for the bytes of a packet.
//!
//! An agent reads some bytes of the encrypted payload, which differ at random from packet to packet. Packets in the simulation have
//! no ciphertext: here a hash of what a packet says takes its place, and of the handle to its bytes if it is a datagram with bytes.
//! Fields that change on the way, DSCP and ECN, are not part of it.
//! TCP segments that are equal in everything, such as a retransmission without timestamps, have equal hashes, as their bytes are equal.

use crate::packet::{Body, Packet};
use crate::tcp::Segment;

/// A hash of a packet.
pub(super) fn hash(packet: &Packet) -> u64 {
    let Packet { src, dst, flow, size, body, .. } = packet;
    let mut hash = Hash(0);
    hash.write(u64::from(src.0) | u64::from(dst.0) << 16 | u64::from(flow.0) << 32);
    hash.write(size.0);
    match body {
        Body::Tcp(segment) => hash.write_segment(segment),
        Body::Datagram(datagram) => {
            hash.write(datagram.seq);
            hash.write(datagram.sent.as_nanos());
            hash.write(packet.handle.0.into());
        }
        Body::Notice(notice) => {
            hash.write(u64::from(notice.code.kind) | u64::from(notice.code.code) << 8);
            hash.write(notice.seq.0.into());
        }
        // A tunnel is nearer to the link than any other agent.
        Body::Coded(coded) => hash.write(coded.block.into()),
    }
    hash.0
}

struct Hash(u64);

impl Hash {
    /// Mixes as the output function of SplitMix64 (Steele, Lea and Flood 2014).
    fn write(&mut self, word: u64) {
        let mut mixed = (self.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        self.0 = mixed ^ mixed >> 31;
    }

    fn write_segment(&mut self, segment: &Segment) {
        let Segment { seq, ack, len, wnd, flags, sack, timestamps, has_unknown_options: _ } = segment;
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        self.write(pair(seq.0, ack.0));
        self.write(pair(*len, *wnd));
        self.write(flags.0.into());
        sack.iter().for_each(|block| self.write(pair(block.start.0, block.end.0)));
        if let Some(counters) = sack.ecn_counters() {
            counters.fields().iter().for_each(|&field| self.write(field.into()));
        }
        if let Some(timestamps) = timestamps {
            self.write(pair(timestamps.value, timestamps.echo));
        }
    }
}
