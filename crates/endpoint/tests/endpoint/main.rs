//! The endpoint: conversations with a scripted peer, and two endpoints over hostile networks.

mod arrivals;
mod attacks;
mod closing;
mod flow_control;
mod fuzzing;
mod idle;
mod listening;
mod opening;
mod path;
mod peer;
mod proxy;
mod smoltcp;
mod streams;
mod world;
