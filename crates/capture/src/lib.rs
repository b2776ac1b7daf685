//! Captures of packets: written as pcapng files, read as columns.
//!
//! ```text
//! a simulated run ── Tap ──> RunCapture ──┐
//!                                         ├──> Writer ──> pcapng
//! frames of an emulation ──> EndCapture ──┘
//!
//! pcap, pcapng ──> file ──> frames ──> wire ──> Packets: a column for each field
//! ```
//!
//! All input is hostile: no file panics, and work and memory are linear in its length.

mod datagram;
mod emulated;
mod file;
mod left_out;
mod packets;
mod simulated;
mod writer;

pub use emulated::EndCapture;
pub use file::ReadError;
pub use left_out::LeftOut;
pub use packets::Packets;
pub use simulated::{CapturePoint, CapturedPart, MAX_FURTHER_PARTS, RunCapture};

/// Limit of packets in a capture, written or read.
pub const MAX_PACKETS: usize = 4_000_000;

/// Limit of the captured bytes of the packets in a file that is written. [`MAX_PACKETS`] headers are a sixth of it, as many whole
/// packets three times as much.
pub const MAX_BYTES: u64 = 2_000_000_000;
