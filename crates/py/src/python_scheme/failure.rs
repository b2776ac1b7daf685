//! Exceptions in callbacks, kept until the run on this thread ends.

use std::cell::RefCell;
use std::sync::Arc;

use lasthop_scenario::{SchemeFailure, Time};
use pyo3::prelude::*;

thread_local! {
    /// The first exception since it was last taken. A run stays on its thread.
    static FAILURE: RefCell<Option<SchemeFailure>> = const { RefCell::new(None) };
}

/// Whether a callback has failed; nothing is then called until the run has ended.
fn has_failed() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// Keeps an exception of the scheme `scheme`, unless there is one already.
pub(super) fn fail(scheme: &'static str, at: Option<Time>, error: PyErr) {
    FAILURE.with_borrow_mut(|failure| {
        failure.get_or_insert_with(|| SchemeFailure { scheme, at, cause: Arc::new(error) });
    });
}

/// Takes the exception.
pub(super) fn take() -> Option<SchemeFailure> {
    FAILURE.take()
}

/// Calls Python for the scheme `scheme`. `None` if that raises an exception, which is kept, or if one is kept already.
pub(super) fn guarded<T>(
    scheme: &'static str,
    at: Option<Time>,
    call: impl FnOnce(Python<'_>) -> PyResult<T>,
) -> Option<T> {
    if has_failed() {
        return None;
    }
    Python::attach(call).map_err(|error| fail(scheme, at, error)).ok()
}
