//! The parametric bootstrap: records simulated from the fitted model with the same probe times, and fitted
//! again.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lasthop_base::Streams;

use crate::family::{Fit, refit};
use crate::losses::Losses;
use crate::model::Model;
use crate::shape::Shape;

/// The results of one simulated record.
#[derive(Clone, Debug, PartialEq)]
pub struct Replicate {
    /// The maximum-likelihood model of the same family. Independent losses of 0 or 1 if no packet or every
    /// packet was lost; `None` if the record has too few periods for the family.
    pub model: Option<Model>,
    /// The histograms.
    pub shape: Shape,
}

/// Simulates the record `replicates` times with the model of `found`, and fits each replicate.
///
/// The result depends only on the record, the model and the seed, not on the number of threads.
pub fn bootstrap(
    losses: &Losses,
    found: &Fit,
    seed: u64,
    replicates: usize,
    threads: NonZeroUsize,
) -> Vec<Replicate> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![None; replicates]);
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= replicates {
                return;
            }
            let mut stream = Streams::new(seed, number as u64).stream("fit.bootstrap");
            let record = losses.simulate(&found.model, &mut stream);
            let model = refit(&record, found).map(|fit| fit.model);
            let replicate = Replicate { model, shape: Shape::of(&record) };
            done.lock().expect("no thread panics")[number] = Some(replicate);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.get().min(replicates) {
            scope.spawn(work);
        }
        work();
    });
    let done = done.into_inner().expect("no thread panics");
    done.into_iter().map(|replicate| replicate.expect("each number was taken")).collect()
}
