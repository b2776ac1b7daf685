//! Many runs on many threads: batches in, rows out.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lasthop_scenario::{Ended, Metrics, Outcome, RunError, Scenario, ScenarioError, Sweep};

/// How long a worker goes on before it hands in its rows and asks for more: long enough that asking
/// costs nothing, short enough that rows arrive as they are made and workers finish together.
const TURN: Duration = Duration::from_millis(5);

/// Runs of one scenario with one scheme.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What its rows are called by.
    pub key: i64,
    /// What is run.
    pub scenario: Arc<Scenario>,
    /// The scheme's name.
    pub scheme: String,
    /// The study's seed.
    pub seed: u64,
    /// The numbers of the runs in the study.
    pub runs: Range<u64>,
}

/// What came of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The key of its batch.
    pub key: i64,
    /// The number of the run in the study.
    pub run: u64,
    /// Why it ended.
    pub ended: Ended,
    /// What it is measured by.
    pub metrics: Metrics,
}

/// A run that cannot go on, with the reason; or one that panicked, which is a fault of Lasthop's: then with the
/// scenario and how to replay it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    fn refused(batch: &Batch, run: u64, error: &RunError) -> Failure {
        let Batch { scenario, scheme, seed, .. } = batch;
        Failure(format!("run {run} of scenario {} with {scheme}, seed {seed}: {error}", scenario.hash()))
    }

    fn new(batch: &Batch, run: u64, panic: &(dyn Any + Send)) -> Failure {
        let Batch { scenario, scheme, seed, .. } = batch;
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
        let schemes = vec![scheme.clone()];
        let replay = Scenario { schemes, sweep: Sweep::default(), ..Scenario::clone(scenario) };
        Failure(format!(
            "run {run} of scenario {} ({}) with {scheme}, seed {seed}, failed: {text}\n\
             This is a fault of Lasthop. To replay it, save what follows as replay.toml and say\n\
             lasthop run replay.toml --seed {seed} --run {run}\n\n{}",
            scenario.hash(),
            scenario.file,
            replay.to_toml()
        ))
    }
}

/// Worker threads that carry out batches of runs.
///
/// Rows come in no particular order, but each is what [`Scenario::run`] gives for its scenario,
/// scheme, seed and run number, however many threads there are. Dropping the pool cancels what is
/// left and waits for the threads.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Tells workers that there is something to do, or that all is over.
    work: Condvar,
    /// Tells collectors that there is something to collect, or that nothing will come.
    news: Condvar,
    /// Counts how often everything was dropped: what began in an earlier epoch is of no use now.
    /// Changes under the lock of `state`; a run reads it without.
    epoch: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Batches with runs that have not begun, each with a number of its own.
    queue: VecDeque<(u64, Batch)>,
    submitted: u64,
    rows: Vec<Row>,
    failure: Option<Failure>,
    /// Runs submitted whose row, or failure, was not collected.
    pending: u64,
    closed: bool,
}

impl Pool {
    /// A pool of `jobs` threads; by default as many as there are cores.
    pub fn new(jobs: Option<NonZeroUsize>) -> Pool {
        let jobs = jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let shared = Arc::new(Shared::default());
        let worker = |number| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("lasthop-{number}"));
            thread.spawn(move || shared.serve(jobs as u64)).expect("the system grants threads")
        };
        let workers = (0..jobs).map(worker).collect();
        Pool { shared, workers }
    }

    /// Enqueues a batch, behind those before it.
    ///
    /// # Errors
    /// If its scenario cannot be run with its scheme.
    pub fn submit(&self, batch: Batch) -> Result<(), ScenarioError> {
        batch.scenario.set_up(&batch.scheme)?;
        if !batch.runs.is_empty() {
            let mut state = self.shared.lock();
            state.pending += batch.runs.end - batch.runs.start;
            state.submitted += 1;
            let number = state.submitted;
            state.queue.push_back((number, batch));
            self.shared.work.notify_all();
        }
        Ok(())
    }

    /// Waits for at least one row, but no longer than `patience` nor when none is to come, and takes
    /// all that there are.
    ///
    /// # Errors
    /// If a run panicked. The pool has then dropped all other runs; their rows that were made before
    /// are collected first.
    pub fn collect(&self, patience: Duration) -> Result<Vec<Row>, Failure> {
        let nothing_yet =
            |state: &mut State| state.rows.is_empty() && state.failure.is_none() && state.pending > 0;
        let waited = self.shared.news.wait_timeout_while(self.shared.lock(), patience, nothing_yet);
        let (mut state, _) = waited.expect("no thread panics with the lock");
        let rows = mem::take(&mut state.rows);
        state.pending -= rows.len() as u64;
        match state.failure.take_if(|_| rows.is_empty()) {
            Some(failure) => {
                state.pending = 0;
                Err(failure)
            }
            None => Ok(rows),
        }
    }

    /// How many runs were submitted and are not yet collected.
    pub fn pending(&self) -> u64 {
        self.shared.lock().pending
    }

    /// Drops every run that is not collected: what has not begun at once, and what is running within
    /// milliseconds. The pool can then be used anew.
    pub fn cancel(&self) {
        let mut state = self.shared.lock();
        self.shared.drop_runs(&mut state);
        state.rows.clear();
        state.failure = None;
        state.pending = 0;
        self.shared.news.notify_all();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.cancel();
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its runs; if it has died of another, it is gone too.
            let _ = worker.join();
        }
    }
}

/// How fast the runs of a batch are, and so how many of them make a turn.
struct Pace {
    batch: u64,
    runs: u64,
}

impl Pace {
    /// What is right for the next turn with this batch, if `runs` of them have just taken `elapsed`.
    fn after(batch: u64, runs: u64, elapsed: Duration) -> Pace {
        let fitting = TURN.as_nanos() * u128::from(runs) / elapsed.as_nanos().max(1);
        // One run may be much shorter than the next.
        Pace { batch, runs: (fitting as u64).clamp(1, 8 * runs) }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the lock")
    }

    /// The life of one of `workers` workers.
    fn serve(&self, workers: u64) {
        let mut pace = Pace { batch: 0, runs: 1 };
        while let Some((epoch, number, share)) = self.take(&pace, workers) {
            let begun = Instant::now();
            let (rows, failure) = self.carry_out(&share, epoch);
            pace = Pace::after(number, share.runs.end - share.runs.start, begun.elapsed());
            self.hand_in(epoch, rows, failure);
        }
    }

    /// Waits for work and takes a share of the first batch: a turn's, if the worker knows its pace,
    /// and at the batch's end so little that others have some too. With it come the epoch and the
    /// batch's number. None when all is over.
    fn take(&self, pace: &Pace, workers: u64) -> Option<(u64, u64, Batch)> {
        let idle = |state: &mut State| state.queue.is_empty() && !state.closed;
        let mut state = self.work.wait_while(self.lock(), idle).expect("no thread panics with the lock");
        let (number, batch) = state.queue.front_mut()?;
        let number = *number;
        let left = batch.runs.end - batch.runs.start;
        let turn = if pace.batch == number { pace.runs } else { 1 };
        let end = batch.runs.start + turn.min(left.div_ceil(2 * workers));
        let share = Batch { runs: batch.runs.start..end, ..batch.clone() };
        batch.runs.start = end;
        if batch.runs.is_empty() {
            state.queue.pop_front();
        }
        Some((self.epoch.load(Relaxed), number, share))
    }

    /// The rows of all runs of `share` before one that failed, or before all was dropped.
    fn carry_out(&self, share: &Batch, epoch: u64) -> (Vec<Row>, Option<Failure>) {
        let keep_going = || self.epoch.load(Relaxed) == epoch;
        let setup = share.scenario.set_up(&share.scheme).expect("it was checked when it was submitted");
        let mut rows = Vec::with_capacity((share.runs.end - share.runs.start) as usize);
        for run in share.runs.clone().take_while(|_| keep_going()) {
            match attempt(share, run, || setup.run(share.seed, run, |_| keep_going())) {
                Ok(Ok(Outcome { ended, metrics, .. })) => {
                    rows.push(Row { key: share.key, run, ended, metrics })
                }
                Ok(Err(RunError::Stopped)) => break,
                Ok(Err(error)) => return (rows, Some(Failure::refused(share, run, &error))),
                Err(failure) => return (rows, Some(failure)),
            }
        }
        (rows, None)
    }

    fn hand_in(&self, epoch: u64, rows: Vec<Row>, failure: Option<Failure>) {
        let mut state = self.lock();
        if self.epoch.load(Relaxed) != epoch {
            return;
        }
        state.rows.extend(rows);
        if failure.is_some() {
            self.drop_runs(&mut state);
            state.pending = state.rows.len() as u64 + 1;
            state.failure = failure;
        }
        self.news.notify_all();
    }

    /// Drops what has not begun, and lets what is running stop.
    fn drop_runs(&self, state: &mut State) {
        self.epoch.fetch_add(1, Relaxed);
        state.queue.clear();
    }
}

/// What `action`, which is run number `run` of `batch`, gives, or the account of its panic.
fn attempt<T>(batch: &Batch, run: u64, action: impl FnOnce() -> T) -> Result<T, Failure> {
    // A run's state dies with it: nothing that a panic left half done is seen by anyone.
    catch_unwind(AssertUnwindSafe(action)).map_err(|panic| Failure::new(batch, run, &*panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "[transfer]\nsize = '1 KB'\n[wired]\nrate = '1 Mbps'\n[radio]\nrate = '1 Mbps'\n\
                            [sweep]\nlimit = ['1 s', '2 s']";

    fn batch(runs: Range<u64>) -> Batch {
        let scenario = Arc::new(Scenario::parse::<&str>(SCENARIO, "test.toml", &[]).expect("it is sound"));
        Batch { key: 5, scenario, scheme: String::from("basic"), seed: 3, runs }
    }

    #[test]
    fn a_panic_is_told_with_all_that_replays_it() {
        let failure = attempt(&batch(0..9), 4, || panic!("boom {}", 1)).unwrap_err().to_string();
        let (told, replay) = failure.split_once("\n\n").expect("the scenario follows");
        insta::assert_snapshot!(told);
        let replay = Scenario::parse::<&str>(replay, "replay.toml", &[]).expect("it is sound");
        assert_eq!(replay.hash(), batch(0..9).scenario.hash());
        assert_eq!((replay.schemes, replay.sweep.is_empty()), (vec![String::from("basic")], true));
    }

    #[test]
    fn a_failure_comes_after_the_rows_and_drops_all_else() {
        let pool = Pool::new(NonZeroUsize::new(1));
        let shared = &pool.shared;
        shared.lock().pending = 10;
        let (rows, none) = shared.carry_out(&batch(0..2), 0);
        let failure = attempt(&batch(0..9), 2, || panic!("boom")).unwrap_err();
        assert_eq!((rows.len(), none), (2, None));
        shared.hand_in(0, rows.clone(), Some(failure.clone()));
        shared.hand_in(0, rows, None);
        assert_eq!(pool.pending(), 3);
        assert_eq!(pool.collect(Duration::ZERO).map(|rows| rows.len()), Ok(2));
        assert_eq!((pool.pending(), pool.collect(Duration::ZERO)), (1, Err(failure)));
        assert_eq!((pool.pending(), pool.collect(Duration::ZERO)), (0, Ok(vec![])));
    }
}
