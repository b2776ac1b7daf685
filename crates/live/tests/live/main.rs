//! Scenarios in real time: by hand, between sockets, and between kernels in network namespaces.

#[cfg(target_os = "linux")]
mod bump;
#[cfg(target_os = "linux")]
mod bump_worlds;
mod emulation;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod split;
