//! The gateway's files; and the gateway itself, between hosts with Linux in network namespaces.

#[cfg(target_os = "linux")]
mod acknowledgements;
#[cfg(target_os = "linux")]
mod agents;
mod files;
#[cfg(target_os = "linux")]
mod hindrances;
#[cfg(target_os = "linux")]
mod hosts;
#[cfg(target_os = "linux")]
mod observation;
#[cfg(target_os = "linux")]
mod offer;
#[cfg(target_os = "linux")]
mod pauses;
mod report;
#[cfg(target_os = "linux")]
mod shaper;
#[cfg(target_os = "linux")]
mod splits;
#[cfg(target_os = "linux")]
mod succession;
#[cfg(target_os = "linux")]
mod tunnel;
