//! The TCP [endpoint](lasthop_endpoint) behind packetdrill's interface for shared libraries
//! (`--so_filename`).
//!
//! packetdrill runs scripts of system calls, injected packets, and expected packets with their times. It
//! calls the table of functions that [`packetdrill_interface_init`] fills in. Time is virtual: it advances
//! when packetdrill sleeps, reads the clock or waits for a packet, so scripts run instantly and
//! deterministically.
//!
//! ```text
//!             system calls, packets        safe code            TCP
//! packetdrill -------------------> interface ------> Host ------> Listener, Endpoint
//!             <-------------------           <------      <------
//!             results, packets               sockets, virtual clock
//! ```
//!
//! The [`Host`] implements the sockets in safe code; the module `interface` translates between C and Rust.
//!
//! `--so_flags` takes JSON of the type [`Flags`]: `{"tcp": {"congestion": "reno", "timestamps": false}}`.
//!
//! packetdrill reads TCP_INFO with `getsockopt` of the C library. Preload this library (`LD_PRELOAD`) to
//! intercept that call for its own sockets.
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
