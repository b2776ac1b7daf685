//! The tunnel between two gateways: IP packets in authenticated datagrams over a path that loses some of them, with help by
//! class: codes across packets, or an ARQ.
//!
//! ```text
//! packets ──> Tunnel: class ──> packet-fec, ARQ of the laboratory ──> seal ──> datagrams
//! packets <── Tunnel: class <── packet-fec, order                 <── open <── datagrams
//! ```
//!
//! Like the components that it drives, it does no I/O and knows no clock: a [`Tunnel`] is driven by calls with the time, so that a
//! test runs two of them in virtual time, and a gateway one of them on a socket.
//!
//! Who has not the key cannot change anything, and gets no answer, except one to each recorded hello, five a second at most. The
//! address of the other end is where its newest authentic datagram came from. Recorded datagrams are refused, also after either
//! end has started anew ([`Key`]).

mod arq;
mod cipher;
mod erasure;
mod exits;
mod fec;
mod message;
mod outer;
mod path_size;
mod places;
mod plan;
mod sent;
mod session;
mod settings;
#[cfg(test)]
mod tests;
mod tunnel;
mod window;

pub use arq::ArqCounters;
pub use cipher::{Key, Salt};
pub use exits::{Event, Exits, Group};
pub use fec::{FecCounters, most_open_packets};
pub use message::{CLASSES, INTERLEAVE, OVERHEAD};
pub use outer::{Ends, Marking, Tos, decapsulate};
pub use settings::{Help, Settings};
pub use tunnel::{Counters, Tunnel};
