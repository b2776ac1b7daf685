//! A full-duplex TCP endpoint on real packets: a [`Sender`](lasthop_proto::tcp::Sender) and a
//! [`Receiver`](lasthop_proto::tcp::Receiver) as one connection.
//!
//! ```text
//!                    ┌──────────── Endpoint ────────────┐
//! parsed packet ─────┤ state, options, RST rules, PAWS  ├──> packets to send
//! time ──────────────┤   ┌────────┐      ┌──────────┐   │    next wake-up
//! send, read, close ─┤   │ Sender │      │ Receiver │   ├──> bytes in order
//!                    │   └────────┘      └──────────┘   │
//!                    └──────────────────────────────────┘
//! ```
//!
//! The two halves are those of the simulator. The sender implements congestion control, loss recovery,
//! retransmission and persist timers; the receiver implements delayed and selective acknowledgements and the
//! window. The endpoint adds the rest of RFC 9293: the handshake with its options, the eleven states, the
//! acceptability of segments, resets, TIME-WAIT and keep-alive. It also adds payloads, which the simulator
//! does not have. It has no access to clocks or sockets.
//!
//! ```
//! use lasthop_base::{Streams, Time};
//! use lasthop_endpoint::{Config, Endpoint, Incoming, Secret, StateName};
//!
//! let secret = Secret::draw(&mut Streams::new(1, 0).stream("secret"));
//! let [here, there] = ["10.0.0.1:40000", "10.0.0.2:80"].map(|text| text.parse().unwrap());
//! let mut server = Endpoint::listen(Config::default(), there, secret.clone());
//! let mut client = Endpoint::connect(Time::ZERO, Config::default(), here, there, secret);
//! client.send(Time::ZERO, b"hello");
//! loop {
//!     if let Some(packet) = client.poll() {
//!         server.receive(Time::ZERO, &Incoming::from(&packet));
//!     } else if let Some(packet) = server.poll() {
//!         client.receive(Time::ZERO, &Incoming::from(&packet));
//!     } else {
//!         break;
//!     }
//! }
//! let mut read = [0; 16];
//! let len = server.read(Time::ZERO, &mut read);
//! assert_eq!((&read[..len], server.state()), (&b"hello"[..], StateName::Established));
//! ```

mod buffers;
mod clock;
mod config;
mod connection;
mod ecn;
mod endpoint;
mod handshake;
mod listener;
mod options;
mod packet;
mod path_errors;
mod proxy;
mod relay;
mod secret;
mod split;
mod state;
mod throttle;

pub use config::{Config, KeepAlive, Withholds};
pub use endpoint::{End, Endpoint};
pub use listener::Listener;
pub use packet::{Incoming, Outgoing, refuse};
pub use proxy::{Proxy, Relayed};
pub use secret::Secret;
pub use split::{MakeReactions, Parts, ProxyStats};
pub use state::StateName;
