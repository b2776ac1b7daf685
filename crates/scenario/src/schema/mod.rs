//! The schema of scenario files: the structs whose fields are the keys.
//!
//! ```text
//! Scenario        [topology] [tcp] [scheme.NAME] ... and every table below
//! ├── topology    [topology]
//! ├── links       [wired] [radio] [link.NAME]
//! ├── cell        [cell]
//! ├── wifi        [wifi]
//! ├── shared      [shared]
//! ├── mobility    [mobility.NAME]
//! ├── flows       [transfer] [connection.NAME] [traffic.NAME] [application.NAME]
//! └── sweep       [sweep]
//! ```
//!
//! Each field is a key, with its doc comment and its default. Constraints between values are checked in
//! [`network`](crate::network).

mod cell;
mod flows;
mod json_schema;
mod links;
mod mobility;
mod scenario;
mod serde_words;
mod shared;
mod sweep;
mod topology;
mod wifi;

pub use cell::Cell;
pub use flows::{Application, ConnectionOverride, Host, Traffic, Transfer};
pub use json_schema::json_schema_of;
pub use links::{LinkOverride, LinkProtection, Radio, RadioPower, Wired};
pub use mobility::{Mobility, Move, Moves, Periodic, Random, Strongest};
pub use scenario::Scenario;
pub use shared::Shared;
pub use sweep::{Point, Sweep};
pub use topology::{BaseStations, Dumbbell, GraphTopology, MobileHosts, Path, Stations, Topology, Wireless};
pub use wifi::{StationOverride, Wifi};

pub(crate) use scenario::settings_table;
pub(crate) use sweep::{Axis, FIXED, SweptPreset, text};
pub(crate) use topology::{Edge, Pair, split};
