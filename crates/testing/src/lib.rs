//! What tests of several crates share.
//!
//! [`dialogue`] plays the network to one end of a connection, without a simulator. [`net`] and [`stations`] build
//! small networks in the engine, and [`invariants`] and [`endpoint_invariants`] say what must hold in them whatever is lost.
//!
//! ```text
//! proto/tests ──> dialogue                     (one end, by hand)
//! sim/tests   ──> net, stations ──> invariants (whole transfers)
//!                 random                       (any settings)
//! ```

mod account;
pub mod dialogue;
pub mod endpoint_invariants;
pub mod invariants;
pub mod net;
pub mod random;
pub mod reorder;
pub mod stations;

/// Runs `case` and names it if it fails.
pub fn check(name: &str, case: impl FnOnce() + std::panic::UnwindSafe) {
    if let Err(reason) = std::panic::catch_unwind(case) {
        eprintln!("in the case: {name}");
        std::panic::resume_unwind(reason);
    }
}
