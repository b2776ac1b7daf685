//! Last-hop acknowledgements (lhack).

mod agent;
mod network;
mod reaction;
