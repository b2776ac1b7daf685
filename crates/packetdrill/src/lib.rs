//! The TCP [endpoint](lasthop_endpoint) behind packetdrill's interface for shared libraries (`--so_filename`).
//!
//! packetdrill runs scripts: system calls, packets that arrive, and packets that are expected with their times. It calls the
//! table of functions that [`packetdrill_interface_init`] fills in. Time is virtual: it passes when packetdrill sleeps,
//! looks at the clock or waits for a packet, so scripts run at once and always alike.
//!
//! ```text
//!             system calls, packets        safe code            TCP
//! packetdrill -------------------> interface ------> Host ------> Listener, Endpoint
//!             <-------------------           <------      <------
//!             results, packets               sockets, virtual clock
//! ```
//!
//! The [`Host`] has the sockets, in safe code; the module `interface` translates between it and C.
//!
//! `--so_flags` are JSON, the type [`Flags`]: `{"tcp": {"congestion": "reno", "timestamps": false}}`.
//!
//! packetdrill reads TCP_INFO with `getsockopt` of the C library. If this library is also preloaded (`LD_PRELOAD`), it
//! answers for its own sockets.
#![cfg(target_os = "linux")]

mod flags;
mod host;
mod info;
mod interface;
mod options;
mod socket;

pub use flags::Flags;
pub use host::Host;
pub use interface::{Interface, packetdrill_interface_init};
pub use socket::{Fd, Wait};
