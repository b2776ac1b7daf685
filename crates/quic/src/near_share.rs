//! What a control that answers a loss by its place on the path knows of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The share of a round trip that is before the agent, while a controller handles a loss there; 1 otherwise. As bits, atomic since
/// controllers are shared by threads.
#[derive(Debug)]
pub(crate) struct NearShare(AtomicU64);

impl Default for NearShare {
    fn default() -> NearShare {
        NearShare(AtomicU64::new(1.0_f64.to_bits()))
    }
}

impl NearShare {
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    pub(crate) fn set(&self, share: f64) {
        self.0.store(share.to_bits(), Relaxed);
    }
}
