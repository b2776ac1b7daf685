//! The text of a scenario: it is refused with a message, or says the same when it is written and read again.
#![no_main]

use lasthop_scenario::Scenario;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Scenario::parse::<&str>(text, "fuzz.toml", &[]) {
        Ok(scenario) => {
            let written = scenario.to_toml();
            let again =
                Scenario::parse::<&str>(&written, "again.toml", &[]).expect("what is written can be read");
            assert_eq!(again.to_toml(), written);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
