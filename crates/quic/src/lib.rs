//! QUIC: the protocol code of [quinn](https://github.com/quinn-rs/quinn) and of its fork [noq](https://github.com/n0-computer/noq),
//! as it is, between two hosts of a simulation.
//!
//! Their state machines get the time from their caller, send nothing themselves and never wait, as [components] do. A
//! `Host` translates:
//!
//! ```text
//! packet ──> bytes ──> Endpoint ──events──> Connection ──> datagrams ──> packets
//! wake-up ───────────────timeout───────────────┘  └──> the next deadline
//! ```
//!
//! The types of the two libraries have the same names and are not the same, so that all that stands on them is compiled for each:
//! its files say `proto` for the library, which is `quinn.rs` or `noq.rs`. What they say of quinn holds for noq.
//!
//! What makes it deterministic: each instant is a constant plus the simulated time (`clock`), random numbers are seeded and
//! connection ids are numbers; the handshake has the sizes of TLS 1.3 and no cryptography (`sizes`). quinn's BBR draws the
//! phase in which it begins to probe from the system's random numbers, on which version 0.11 bases no packet.
//!
//! [components]: lasthop_proto::Component

#![expect(clippy::duplicate_mod, reason = "files are compiled once for each library")]

mod certificate;
mod clock;
mod near_share;
mod numbers;
mod provider;

#[path = "."]
mod quinn {
    mod config;
    mod division;
    mod exchange;
    mod host;
    mod ids;
    mod linux;
    mod meter;
    mod pace;
    mod pacubic;
    #[path = "quinn.rs"]
    mod proto;
    mod sidecar;
    mod sizes;
    pub(crate) mod stack;
    mod streams;
    #[cfg(test)]
    mod tests;
    mod tls;
    mod transfer;
}

#[path = "."]
mod noq {
    mod config;
    mod division;
    mod exchange;
    mod host;
    mod ids;
    mod meter;
    mod pace;
    #[cfg(test)]
    mod pacubic;
    #[path = "noq.rs"]
    mod proto;
    mod sidecar;
    mod sizes;
    pub(crate) mod stack;
    mod streams;
    #[cfg(test)]
    mod tests;
    mod tls;
    mod transfer;
}

pub use noq::stack::Library as Noq;
pub use quinn::stack::Library as Quinn;
