//! What the ends do with streams: write zeros, and count what they read.

use super::proto::{self, Connection, ReadError, StreamId};
use bytes::Bytes as Payload;
use lasthop_base::Bytes;

/// What is written, over and over.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// How a stream stands after it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More may arrive. If the connection is lost, an event reports that.
    Open,
    /// All of it was read.
    Finished,
    /// The peer has given it up.
    Reset,
}

/// Writes as [`fill`] does, and ends the stream after the last byte. Whether that is done.
pub(crate) fn write(connection: &mut Connection, stream: StreamId, left: &mut Option<u64>) -> bool {
    let is_written = fill(connection, stream, left);
    if is_written {
        // Again without effect.
        let _ = connection.send_stream(stream).finish();
    }
    is_written
}

/// Writes what there is room for of the bytes `left`, without end if `None`. Whether none is left.
pub(crate) fn fill(connection: &mut Connection, stream: StreamId, left: &mut Option<u64>) -> bool {
    let mut sending = connection.send_stream(stream);
    while *left != Some(0) {
        let most = left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        match proto::write(&mut sending, Payload::from_static(&ZEROS[..ZEROS.len().min(most)])) {
            Ok(written) if written > 0 => *left = left.map(|left| left - written as u64),
            // Blocked, or the connection is lost, which an event reports.
            _ => return false,
        }
    }
    true
}

/// Reads what has arrived: how much, and what of the stream is left.
pub(crate) fn read(connection: &mut Connection, stream: StreamId) -> (Bytes, Progress) {
    let mut delivered = Bytes::ZERO;
    let mut receiving = connection.recv_stream(stream);
    let Ok(mut chunks) = receiving.read(true) else { return (delivered, Progress::Open) };
    let progress = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => delivered += Bytes(chunk.bytes.len() as u64),
            Ok(None) => break Progress::Finished,
            Err(ReadError::Blocked) => break Progress::Open,
            Err(ReadError::Reset(_)) => break Progress::Reset,
        }
    };
    // What is to be sent is asked for next.
    let _ = chunks.finalize();
    (delivered, progress)
}
