//! The simulator as WebAssembly, for the page that `lasthop web` writes.
//!
//! ```text
//! page ──JSON──> request ──> Scenario, Run (lasthop-experiment) ──> reply ──JSON and columns──> page
//! ```
//!
//! The module imports nothing: it has no clock, no files and no randomness but that of the seed. The page calls
//! four functions, which share one request and one reply in the module's memory:
//!
//! 1. `lasthop_request(length)` returns the address of `length` bytes, where the page puts a [`Request`] as JSON.
//! 2. `lasthop_answer()` answers it.
//! 3. `lasthop_reply()` and `lasthop_reply_length()` return address and length of the [reply](answer).
//!
//! A panic leaves a reply too, with the key `error`; the module must not be used after it.

mod columns;
mod request;

use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

pub use columns::Columns;
pub use request::{Request, answer};

static REQUEST: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static REPLY: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn locked(bytes: &'static Mutex<Vec<u8>>) -> MutexGuard<'static, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for a request of `length` bytes, and returns its address.
#[allow(unsafe_code, reason = "the page calls it by name")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_request(length: usize) -> *mut u8 {
    let mut request = locked(&REQUEST);
    request.clear();
    request.resize(length, 0);
    request.as_mut_ptr()
}

/// Answers the request.
#[allow(unsafe_code, reason = "the page calls it by name")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_answer() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        panic::set_hook(Box::new(|panic| *locked(&REPLY) = request::failed(&panic.to_string())));
    });
    let request = locked(&REQUEST).clone();
    let reply = answer(&request);
    *locked(&REPLY) = reply;
}

/// The address of the reply.
#[allow(unsafe_code, reason = "the page calls it by name")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_reply() -> *const u8 {
    locked(&REPLY).as_ptr()
}

/// The length of the reply in bytes.
#[allow(unsafe_code, reason = "the page calls it by name")]
#[unsafe(no_mangle)]
pub extern "C" fn lasthop_reply_length() -> usize {
    locked(&REPLY).len()
}
