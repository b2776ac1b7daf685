//! Split connections: common tests of I-TCP, METP and VS-TCP.

mod network;
mod overflow;
mod proxy;
mod roaming;
