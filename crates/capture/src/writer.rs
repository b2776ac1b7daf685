//! Blocks of pcapng files (draft-ietf-opsawg-pcapng).

use std::io::{self, Write};

use lasthop_base::Time;

use crate::file::block;
use crate::{MAX_BYTES, MAX_PACKETS};

/// An interface of a file: a capture point.
pub(crate) struct Interface<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    /// LINKTYPE of the frames.
    pub(crate) link_type: u16,
    /// Maximum number of bytes stored of a frame; 0 if unlimited.
    pub(crate) snap_len: u32,
}

/// A packet of a file.
pub(crate) struct Record<'a> {
    /// Index of the interface.
    pub(crate) interface: u32,
    pub(crate) time: Time,
    /// Length of the whole frame.
    pub(crate) original_len: u32,
    /// The stored bytes of the frame.
    pub(crate) bytes: &'a [u8],
    pub(crate) comment: Option<&'a str>,
}

/// Writes a pcapng file with nanosecond timestamps. It is little-endian and does not depend on the machine, so that the
/// same run produces the same file everywhere.
pub(crate) struct Writer<W: Write> {
    out: W,
    /// Buffer for one block, so that `out` gets it in one piece.
    block: Vec<u8>,
    records: usize,
    /// Captured bytes of all packets.
    bytes: u64,
}

/// Codes of options (sections 3.5, 4.1 and 4.2).
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const USER_APPLICATION: u16 = 4;
    pub(super) const INTERFACE_NAME: u16 = 2;
    pub(super) const INTERFACE_DESCRIPTION: u16 = 3;
}

/// Timestamps in units of 10^-9 s.
const NANOSECONDS: u8 = 9;

impl<W: Write> Writer<W> {
    /// Starts a file.
    pub(crate) fn new(out: W, interfaces: &[Interface<'_>]) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, block: Vec::new(), records: 0, bytes: 0 };
        writer.begin(block::SECTION);
        writer.words(&[block::BYTE_ORDER, 0x0000_0001, u32::MAX, u32::MAX]);
        writer.option(option::USER_APPLICATION, concat!("Lasthop ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.option(option::END, &[]);
        writer.end()?;
        for interface in interfaces {
            writer.begin(block::INTERFACE);
            writer.words(&[interface.link_type.into(), interface.snap_len]);
            writer.option(option::INTERFACE_NAME, interface.name.as_bytes());
            writer.option(option::INTERFACE_DESCRIPTION, interface.description.as_bytes());
            writer.option(block::RESOLUTION, &[NANOSECONDS]);
            writer.option(option::END, &[]);
            writer.end()?;
        }
        Ok(writer)
    }

    /// The limit that the file has reached, as a text, if it has reached one.
    pub(crate) fn limit(&self) -> Option<String> {
        if self.records >= MAX_PACKETS {
            Some(format!("{MAX_PACKETS} packets"))
        } else {
            (self.bytes >= MAX_BYTES).then(|| format!("{MAX_BYTES} bytes of packets"))
        }
    }

    pub(crate) fn packet(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.records += 1;
        self.bytes += record.bytes.len() as u64;
        let ticks = record.time.as_nanos();
        let len = record.bytes.len() as u32;
        self.begin(block::ENHANCED_PACKET);
        self.words(&[record.interface, (ticks >> 32) as u32, ticks as u32, len, record.original_len]);
        self.padded(record.bytes);
        if let Some(comment) = record.comment {
            self.option(option::COMMENT, comment.as_bytes());
            self.option(option::END, &[]);
        }
        self.end()
    }

    /// Writes secrets of TLS, as lines of a key log, for packets that follow.
    pub(crate) fn secrets(&mut self, lines: &str) -> io::Result<()> {
        self.begin(block::SECRETS);
        self.words(&[block::TLS_KEY_LOG, lines.len() as u32]);
        self.padded(lines.as_bytes());
        self.end()
    }

    /// Flushes and returns the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        // The length follows at the end of the block.
        self.words(&[kind, 0]);
    }

    fn end(&mut self) -> io::Result<()> {
        let len = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.words(&[len]);
        self.out.write_all(&self.block)
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.block.extend_from_slice(&word.to_le_bytes()));
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.words(&[u32::from(code) | (value.len() as u32) << 16]);
        self.padded(value);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_their_bytes_are_limited() {
        let mut writer = Writer::new(io::sink(), &[]).expect("it takes everything");
        let record =
            Record { interface: 0, time: Time::ZERO, original_len: 1_500, bytes: &[0; 1_500], comment: None };
        writer.bytes = MAX_BYTES - 3_000;
        for expected in [None, Some("2000000000 bytes of packets")] {
            writer.packet(&record).expect("it takes everything");
            assert_eq!(writer.limit().as_deref(), expected);
        }
        (writer.records, writer.bytes) = (MAX_PACKETS - 1, 0);
        assert_eq!(writer.limit(), None);
        writer.packet(&record).expect("it takes everything");
        assert_eq!(writer.limit().as_deref(), Some("4000000 packets"));
    }
}
