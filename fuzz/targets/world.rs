//! Random extreme scenarios of the tests, by number.
#![no_main]

#[allow(dead_code, unused_imports, reason = "the tests' own loop is not needed")]
#[path = "../../crates/experiment/tests/hostile.rs"]
mod hostile;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|number: u64| {
    hostile::try_scenario(number);
});
