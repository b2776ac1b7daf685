//! Assertions with tolerances.

/// Asserts a relative error.
#[track_caller]
pub(crate) fn assert_close(what: &str, found: f64, expected: f64, relative_error: f64) {
    let error = found / expected - 1.0;
    assert!(error.abs() < relative_error, "{what}: found {found:e}, expected {expected:e}, off by {error:e}");
}

/// Asserts an error within five standard errors, which a correct result exceeds for one seed in 1.7 million;
/// seeds are fixed.
#[track_caller]
pub(crate) fn assert_within_five(what: &str, found: f64, expected: f64, standard_error: f64) {
    let errors = (found - expected) / standard_error;
    assert!(
        errors.abs() < 5.0,
        "{what}: found {found}, expected {expected}, {errors:.1} standard errors off"
    );
}
