//! Connection ids in sequence.

use std::time::Duration;

use super::proto::{ConnectionId, ConnectionIdGenerator};

/// Length of a connection id, as that of quinn's usual ones.
const LENGTH: usize = 8;

/// The connection ids of one end.
#[derive(Debug)]
pub(crate) struct SequentialIds {
    /// Tells the ends apart.
    pub(crate) end: u8,
    pub(crate) issued: u64,
}

impl ConnectionIdGenerator for SequentialIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.issued += 1;
        let mut id = self.issued.to_be_bytes();
        id[0] = self.end;
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The rest of the ids to which clients address their first packets.
const REST: [u8; 12] = [0xd0; 12];

/// The id to which a client addresses the first packet of the connection with this number. The server replaces it.
pub(crate) fn first_destination(number: u64) -> ConnectionId {
    let mut id = [0; 20];
    id[..8].copy_from_slice(&number.to_be_bytes());
    id[8..].copy_from_slice(&REST);
    ConnectionId::new(&id)
}

/// The number in such an id; `None` for any other.
pub(crate) fn connection_number(id: &[u8]) -> Option<u64> {
    let (number, rest) = id.split_first_chunk::<8>()?;
    (rest == REST).then(|| u64::from_be_bytes(*number))
}
