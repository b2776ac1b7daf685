//! Packets written and read, well-formed and hostile.

mod hostile;
mod packets;
