//! The bytes of a packet, as the emulator reads and changes them.
#![no_main]

#[allow(dead_code, unused_imports, reason = "the tests' own generator of inputs is not needed")]
#[path = "../../crates/wire/tests/wire/hostile.rs"]
mod hostile;

use lasthop_base::Streams;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    hostile::examine(bytes, bytes.len());
    hostile::change(bytes, &mut Streams::new(1, 0).stream("fuzz"));
});
