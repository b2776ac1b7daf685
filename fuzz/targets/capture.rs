//! A file that may be a capture.
#![no_main]

#[path = "../../crates/capture/tests/capture/columns.rs"]
mod columns;

use lasthop_capture::Packets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    if let Ok(packets) = Packets::read(file) {
        columns::examine(&packets);
    }
});
