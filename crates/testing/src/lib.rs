//! Test utilities shared by several crates.
//!
//! [`dialogue`] scripts exchanges with one TCP endpoint, without the simulator. [`net`] and [`stations`]
//! build small networks in the engine; [`invariants`] and [`endpoint_invariants`] check them under losses.
//! [`namespace`] is for tests with the kernel's network.
//!
//! ```text
//! proto/tests ──> dialogue                     (one end, by hand)
//! sim/tests   ──> net, stations ──> invariants (whole transfers)
//!                 random, schemes              (any settings, any schemes)
//! ```

mod account;
pub mod dialogue;
pub mod endpoint_invariants;
pub mod invariants;
pub mod namespace;
pub mod net;
pub mod random;
pub mod reorder;
pub mod scenario_texts;
pub mod schemes;
pub mod stations;

/// Runs `case`; prints `name` if it panics.
pub fn check(name: &str, case: impl FnOnce() + std::panic::UnwindSafe) {
    if let Err(reason) = std::panic::catch_unwind(case) {
        eprintln!("in the case: {name}");
        std::panic::resume_unwind(reason);
    }
}
