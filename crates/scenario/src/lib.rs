//! Scenario files, and the networks that they describe.
//!
//! A [`Scenario`] is read from TOML and is valid: it can run with each of its schemes. [`Scenario::points`] expands a
//! [`Sweep`] into scenarios, and [`Scenario::network`] tells which links and flows a scenario has. Nothing here runs:
//! that is the business of the crates above.
//!
//! ```text
//! TOML ──document──> tree ──file──> schema ──network──> links, flows, paths, places of agents
//! values ──────────────┘ └──────────── faults <────────────┘
//! ```

mod diagnostics;
mod document;
mod error;
mod file;
pub mod network;
mod presets;
mod schema;
pub mod stacks;
mod toml_file;
mod tree;

pub use lasthop_base::{Amount, Bytes, Duration, Number, Time};
pub use lasthop_proto::scheme::{ExternalSchemes, Scheme, SchemeFailure, Schemes};
pub use lasthop_proto::tcp::Profile;

pub use diagnostics::alternatives;
pub use error::{ErrorKind, Fault, ScenarioError};
pub use presets::{Preset, PresetTable};
pub use schema::{
    Application, BaseStations, Cell, ConnectionOverride, Dumbbell, GraphTopology, Host, LinkOverride,
    LinkProtection, MobileHosts, Mobility, Move, Moves, Path, Periodic, Point, Radio, RadioPower, Random,
    Scenario, Shared, StationOverride, Stations, Strongest, Sweep, Topology, Traffic, Transfer, Wifi, Wired,
    Wireless, json_schema_of,
};
pub use toml_file::{TomlFile, to_toml};
pub use tree::{Change, Value};
