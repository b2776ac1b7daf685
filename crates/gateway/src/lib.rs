//! The gateway: remedies on the connections of a real link, by the names and words of scenarios.
//!
//! ```text
//! file ──> Config ──> Policy: opening packet ──> Help
//!             │                    ^                ├ split ──> openings ──> workers: two sockets of the kernel, pipes
//!             v                    │                └ agents ──> agents: packets before the radio's interface
//!          kernel: rules ──> queue of SYNs            tunnel: packets to another gateway
//!                      └───> log of headers ──> observer ──> rows ──> report: what help gains
//! ```
//!
//! A flow is judged once, by the packet that opens it: the kernel holds it for as long as it takes to connect to the server.
//! All later packets of split connections go to sockets of the kernel, those of flows with agents to these, and those of other
//! flows are forwarded untouched. What a flow gets is a value of [`Help`](policy::Help).
//!
//! The observer reads the headers of helped and unhelped flows alike, and the report compares them.
//!
//! If the process ends, in whatever way, the kernel removes the rules, and new flows pass untouched. They also do while it stands
//! still, since the rules need its heartbeat.

#[cfg(target_os = "linux")]
mod agents;
mod arms;
pub mod cli;
pub mod config;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod counters;
#[cfg(target_os = "linux")]
mod doors;
#[cfg(target_os = "linux")]
pub mod flow;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod notify;
#[cfg(target_os = "linux")]
mod observe;
#[cfg(target_os = "linux")]
mod openings;
#[cfg(target_os = "linux")]
pub mod policy;
#[cfg(target_os = "linux")]
mod process;
pub mod report;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod shaper;
#[cfg(target_os = "linux")]
mod split;
#[cfg(target_os = "linux")]
mod tunnel;
