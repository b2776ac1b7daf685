//! Acknowledgements of hops.

mod agent;
mod network;
mod reaction;
