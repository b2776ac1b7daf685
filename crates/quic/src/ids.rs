//! Connection ids in sequence.

use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};

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

    fn validate(&self, _cid: &ConnectionId) -> Result<(), InvalidCid> {
        Ok(())
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The id to which a client addresses its first packet. The server replaces it.
pub(crate) fn first_destination() -> ConnectionId {
    ConnectionId::new(&[0xd0; 20])
}
