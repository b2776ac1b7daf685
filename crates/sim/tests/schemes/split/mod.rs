//! What I-TCP, METP and VS-TCP have in common: connections that a proxy splits.

mod network;
mod overflow;
mod proxy;
