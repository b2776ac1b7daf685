//! Local retransmission at the base station.

mod agent;
mod network;
mod selective;
