//! Packets written and read, well-formed and hostile.

mod encapsulations;
mod hostile;
mod packets;
