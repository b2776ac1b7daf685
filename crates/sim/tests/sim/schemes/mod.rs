//! Tests of each scheme: its agent and its reaction by hand, and both in networks with losses.

#![allow(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may hold one")]

mod ack_thinning;
mod delayed_dupacks;
mod eln;
mod forwarding;
mod freeze_tcp;
mod handoff_rxmt;
mod lhack;
mod m_tcp;
mod middle;
mod multicast;
mod nack;
mod packet_fec;
mod selective_fec;
mod sidekick;
mod smart;
mod snoop;
mod split;
mod vs_tcp;
mod wenp;
mod wtcp;
mod wtcp_timestamps;
