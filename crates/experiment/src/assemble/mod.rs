//! Construction of the components of a run from a network and a combination of schemes.
//!
//! ```text
//! Network ──with a combination──> Layout ──with random streams──> World
//!                                 (all runs)                      (one run)
//! ```

mod movement;
mod split_segments;
mod world;

pub use split_segments::{ConnectionPart, PartEnd};
pub use world::{Agent, ConnectionComponents, Layout, StackLog, World};
