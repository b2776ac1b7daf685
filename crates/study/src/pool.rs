//! A thread pool for runs: takes batches, returns rows.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lasthop_experiment::{Ended, Experiment, MetricName, MetricPlace, Metrics, RunError, SharedSetup, Value};
use lasthop_scenario::{Scenario, ScenarioError, SchemeFailure, Sweep};

/// How long a worker computes before it delivers its rows and takes more runs: long enough to make the
/// overhead negligible, short enough for timely rows and for workers to finish together.
const TURN: Duration = Duration::from_millis(5);

/// The number of uncollected rows from which on workers wait for the collector: some 20 MB. A collector that
/// writes to a disk pauses for tens of milliseconds.
const MOST_UNCOLLECTED: usize = 1 << 16;

/// Runs of one scenario with one scheme.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Identifies the batch in its rows.
    pub key: i64,
    /// The scenario to run.
    pub scenario: Arc<Scenario>,
    /// The scheme's name.
    pub scheme: String,
    /// The seed of the study.
    pub seed: u64,
    /// The run numbers.
    pub runs: Range<u64>,
}

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The key of its batch.
    pub key: i64,
    /// The run number.
    pub run: u64,
    /// Why it ended.
    pub ended: Ended,
    /// Its metrics.
    pub metrics: Metrics,
    /// The further metrics that the pool was asked for, in their order: null where the run has none of that name.
    pub further: Vec<Value>,
}

impl Row {
    /// All its values: those of [`Metrics`], and the further ones.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        self.metrics.values().chain(self.further.iter().copied())
    }
}

/// The error of a run that failed, or that panicked because of a bug in Lasthop; then with the scenario and
/// the command to replay it.
#[derive(Clone, Debug)]
pub struct Failure {
    text: String,
    /// The run, in words.
    run: String,
    scheme: Option<SchemeFailure>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// Equal if their texts are.
impl PartialEq for Failure {
    fn eq(&self, other: &Failure) -> bool {
        self.text == other.text
    }
}

impl Failure {
    fn refused(batch: &Batch, run: u64, error: &RunError) -> Failure {
        let Batch { scenario, scheme, seed, .. } = batch;
        let which = format!("run {run} of scenario {} with {scheme}, seed {seed}", scenario.hash());
        let failed = match error {
            RunError::Scheme(failure) => Some(failure.clone()),
            RunError::Scenario(_) | RunError::Capture(..) | RunError::Stopped => None,
        };
        Failure { text: format!("{which}: {error}"), run: which, scheme: failed }
    }

    /// Which run failed, with its scenario, scheme and seed.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The failure of an external scheme that caused it, if one did.
    pub fn scheme(&self) -> Option<&SchemeFailure> {
        self.scheme.as_ref()
    }

    fn new(batch: &Batch, run: u64, panic: &(dyn Any + Send)) -> Failure {
        let Batch { scenario, scheme, seed, .. } = batch;
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
        let mut replay = Scenario::clone(scenario);
        (replay.schemes, replay.sweep) = (vec![scheme.clone()], Sweep::default());
        let which = format!(
            "run {run} of scenario {} ({}) with {scheme}, seed {seed}",
            scenario.hash(),
            scenario.file
        );
        let text = format!(
            "{which}, failed: {text}\n\
             This is a bug in Lasthop. To reproduce it, save the TOML below as replay.toml and run:\n\
             lasthop run replay.toml --seed {seed} --run {run}\n\n{}",
            replay.to_toml()
        );
        Failure { text, run: which, scheme: None }
    }
}

/// Worker threads that execute batches of runs.
///
/// The order of rows is unspecified, but each row equals the result of [`Experiment::run`] for its scenario,
/// scheme, seed and run number, for any number of threads. Workers wait while many rows are uncollected, so
/// memory does not grow with the number of runs. Dropping the pool cancels pending runs and waits for the
/// threads.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The further metrics of every row.
    further: Vec<MetricName>,
    state: Mutex<State>,
    /// Wakes workers when there is work, or at shutdown.
    work: Condvar,
    /// Wakes collectors when there are rows, or when none will come.
    news: Condvar,
    /// Wakes workers that wait for the collector, or at cancellation.
    room: Condvar,
    /// Number of cancellations so far; results from an earlier epoch are discarded. Written under the lock of
    /// `state`, and read by runs without it.
    epoch: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Batches with pending runs.
    queue: VecDeque<Pending>,
    submitted: u64,
    rows: Vec<Row>,
    failure: Option<Failure>,
    /// Submitted runs whose row or failure is not collected yet.
    pending: u64,
    closed: bool,
}

/// A batch with pending runs.
#[derive(Debug)]
struct Pending {
    id: u64,
    batch: Batch,
    /// Made by the first worker that takes runs of the batch.
    setup: Arc<OnceLock<Prepared>>,
}

/// The state shared by all runs of a batch.
#[derive(Debug)]
struct Prepared {
    setup: SharedSetup,
    /// Where its runs have the further metrics; `None` for those that they lack.
    further: Vec<Option<MetricPlace>>,
}

impl Prepared {
    fn new(batch: &Batch, further: &[MetricName]) -> Result<Prepared, ScenarioError> {
        let setup = SharedSetup::new(Arc::clone(&batch.scenario), &batch.scheme)?;
        let places = match further.is_empty() {
            true => Vec::new(),
            false => {
                let names = setup.get().metric_names();
                further.iter().map(|name| names.find(name).ok()).collect()
            }
        };
        Ok(Prepared { setup, further: places })
    }
}

/// Runs for a worker.
struct Share {
    epoch: u64,
    /// The id of the batch.
    id: u64,
    batch: Batch,
    setup: Arc<OnceLock<Prepared>>,
}

impl Pool {
    /// A pool of `jobs` threads; by default one per core.
    pub fn new(jobs: Option<NonZeroUsize>) -> Pool {
        Pool::with_metrics(jobs, Vec::new())
    }

    /// A pool whose rows have `further` metrics, such as `snoop.local_retransmissions`.
    pub fn with_metrics(jobs: Option<NonZeroUsize>, further: Vec<MetricName>) -> Pool {
        let jobs = jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let shared = Arc::new(Shared { further, ..Shared::default() });
        let worker = |number| {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("lasthop-{number}"));
            thread.spawn(move || shared.serve(jobs as u64)).expect("a thread can be spawned")
        };
        let workers = (0..jobs).map(worker).collect();
        Pool { shared, workers }
    }

    /// Enqueues a batch.
    ///
    /// # Errors
    /// If its scenario cannot be run with its scheme.
    pub fn submit(&self, batch: Batch) -> Result<(), ScenarioError> {
        batch.scenario.set_up(&batch.scheme)?;
        if !batch.runs.is_empty() {
            let mut state = self.shared.lock();
            state.pending += batch.runs.end - batch.runs.start;
            state.submitted += 1;
            let id = state.submitted;
            state.queue.push_back(Pending { id, batch, setup: Arc::default() });
            self.shared.work.notify_all();
        }
        Ok(())
    }

    /// Waits up to `patience` for at least one row, and returns all available rows. Returns immediately if no
    /// rows will come.
    ///
    /// # Errors
    /// If a run failed. All other runs are then cancelled; rows of finished runs are returned first.
    pub fn collect(&self, patience: Duration) -> Result<Vec<Row>, Failure> {
        let nothing_yet =
            |state: &mut State| state.rows.is_empty() && state.failure.is_none() && state.pending > 0;
        let waited = self.shared.news.wait_timeout_while(self.shared.lock(), patience, nothing_yet);
        let (mut state, _) = waited.expect("no thread panics with the lock");
        let rows = mem::take(&mut state.rows);
        self.shared.room.notify_all();
        state.pending -= rows.len() as u64;
        match state.failure.take_if(|_| rows.is_empty()) {
            Some(failure) => {
                state.pending = 0;
                Err(failure)
            }
            None => Ok(rows),
        }
    }

    /// Number of submitted runs that are not collected yet.
    pub fn pending(&self) -> u64 {
        self.shared.lock().pending
    }

    /// Cancels all runs that are not collected: pending ones immediately, running ones within milliseconds. The
    /// pool remains usable.
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
            // Workers catch panics of runs; a worker that died of another panic is ignored.
            let _ = worker.join();
        }
    }
}

/// The speed of a batch's runs, which determines the number of runs per turn.
struct Pace {
    batch: u64,
    runs: u64,
}

impl Pace {
    /// The pace for the next turn with this batch, after `runs` runs took `elapsed`.
    fn after(batch: u64, runs: u64, elapsed: Duration) -> Pace {
        let fitting = TURN.as_nanos() * u128::from(runs) / elapsed.as_nanos().max(1);
        // Limited, because the next run may take much longer.
        Pace { batch, runs: (fitting as u64).clamp(1, 8 * runs) }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the lock")
    }

    /// Main loop of one of `workers` workers.
    fn serve(&self, workers: u64) {
        let mut pace = Pace { batch: 0, runs: 1 };
        while let Some(Share { epoch, id, batch, setup }) = self.take(&pace, workers) {
            let begun = Instant::now();
            let (rows, failure) = self.carry_out(&batch, &setup, epoch);
            pace = Pace::after(id, batch.runs.end - batch.runs.start, begun.elapsed());
            self.hand_in(epoch, rows, failure);
        }
    }

    /// Waits for work and takes runs of the first batch: as many as fit a turn at the known pace, and fewer
    /// near the end of the batch, to leave some for other workers. Returns `None` at shutdown.
    fn take(&self, pace: &Pace, workers: u64) -> Option<Share> {
        let idle = |state: &mut State| state.queue.is_empty() && !state.closed;
        let mut state = self.work.wait_while(self.lock(), idle).expect("no thread panics with the lock");
        let Pending { id, batch, setup } = state.queue.front_mut()?;
        let (id, setup) = (*id, Arc::clone(setup));
        let left = batch.runs.end - batch.runs.start;
        let turn = if pace.batch == id { pace.runs } else { 1 };
        let end = batch.runs.start + turn.min(left.div_ceil(2 * workers));
        let share = Batch { runs: batch.runs.start..end, ..batch.clone() };
        batch.runs.start = end;
        if batch.runs.is_empty() {
            state.queue.pop_front();
        }
        Some(Share { epoch: self.epoch.load(Relaxed), id, batch: share, setup })
    }

    /// The rows of all runs of `share` until one fails or everything is cancelled.
    fn carry_out(
        &self,
        share: &Batch,
        setup: &OnceLock<Prepared>,
        epoch: u64,
    ) -> (Vec<Row>, Option<Failure>) {
        let keep_going = || self.epoch.load(Relaxed) == epoch;
        let prepare = || Prepared::new(share, &self.further);
        let Prepared { setup, further } =
            setup.get_or_init(|| prepare().expect("submit() has validated the batch"));
        let setup = setup.get();
        let mut rows = Vec::with_capacity((share.runs.end - share.runs.start) as usize);
        for run in share.runs.clone().take_while(|_| keep_going()) {
            match attempt(share, run, || setup.run(share.seed, run, &mut |_| keep_going())) {
                Ok(Ok(summary)) => {
                    let value = |place: &Option<MetricPlace>| {
                        place.map_or(Value::Real(None), |place| summary.value(place))
                    };
                    let further = further.iter().map(value).collect();
                    let (ended, metrics) = (summary.ended, summary.metrics);
                    rows.push(Row { key: share.key, run, ended, metrics, further })
                }
                Ok(Err(RunError::Stopped)) => break,
                Ok(Err(error)) => return (rows, Some(Failure::refused(share, run, &error))),
                Err(failure) => return (rows, Some(failure)),
            }
        }
        (rows, None)
    }

    /// Delivers rows, once the collector has room for them.
    fn hand_in(&self, epoch: u64, rows: Vec<Row>, failure: Option<Failure>) {
        let full =
            |state: &mut State| state.rows.len() >= MOST_UNCOLLECTED && self.epoch.load(Relaxed) == epoch;
        let mut state = self.room.wait_while(self.lock(), full).expect("no thread panics with the lock");
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

    /// Cancels pending runs, and lets running ones stop.
    fn drop_runs(&self, state: &mut State) {
        self.epoch.fetch_add(1, Relaxed);
        state.queue.clear();
        self.room.notify_all();
    }
}

/// The result of `action`, which is run number `run` of `batch`, or the failure if it panics.
fn attempt<T>(batch: &Batch, run: u64, action: impl FnOnce() -> T) -> Result<T, Failure> {
    // The state of a run is dropped with it, so no inconsistent state is visible after a panic.
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
    fn a_panic_report_replays_the_run() {
        let failure = attempt(&batch(0..9), 4, || panic!("boom {}", 1)).unwrap_err().to_string();
        let (report, replay) = failure.split_once("\n\n").expect("the scenario follows");
        // The hash covers the parameters of every scheme, so that a new one changes it.
        let hash = batch(0..9).scenario.hash();
        insta::assert_snapshot!(report.replace(&hash, "HASH"));
        let replay = Scenario::parse::<&str>(replay, "replay.toml", &[]).expect("it is sound");
        assert_eq!(replay.hash(), batch(0..9).scenario.hash());
        assert_eq!((replay.schemes, replay.sweep.is_empty()), (vec![String::from("basic")], true));
    }

    #[test]
    fn a_failure_follows_finished_rows_and_cancels_the_rest() {
        let pool = Pool::new(NonZeroUsize::new(1));
        let shared = &pool.shared;
        shared.lock().pending = 10;
        let (rows, none) = shared.carry_out(&batch(0..2), &OnceLock::new(), 0);
        let failure = attempt(&batch(0..9), 2, || panic!("boom")).unwrap_err();
        assert_eq!((rows.len(), none), (2, None));
        shared.hand_in(0, rows.clone(), Some(failure.clone()));
        shared.hand_in(0, rows, None);
        assert_eq!(pool.pending(), 3);
        assert_eq!(pool.collect(Duration::ZERO).map(|rows| rows.len()), Ok(2));
        assert_eq!((pool.pending(), pool.collect(Duration::ZERO)), (1, Err(failure)));
        assert_eq!((pool.pending(), pool.collect(Duration::ZERO)), (0, Ok(vec![])));
    }

    #[test]
    fn workers_wait_for_a_collector_that_falls_behind() {
        let pool = Pool::new(NonZeroUsize::new(1));
        let (rows, _) = pool.shared.carry_out(&batch(0..1), &OnceLock::new(), 0);
        let deliver = |epoch: u64| {
            let (shared, rows) = (Arc::clone(&pool.shared), rows.clone());
            thread::spawn(move || shared.hand_in(epoch, rows, None))
        };
        let fill = || pool.shared.lock().rows = vec![rows[0].clone(); MOST_UNCOLLECTED];
        pool.shared.lock().pending = 2 * MOST_UNCOLLECTED as u64;

        fill();
        let worker = deliver(0);
        thread::sleep(Duration::from_millis(50));
        assert!(!worker.is_finished());
        assert_eq!(pool.collect(Duration::ZERO).map(|rows| rows.len()), Ok(MOST_UNCOLLECTED));
        worker.join().expect("there is room now");
        assert_eq!(pool.collect(Duration::ZERO).map(|rows| rows.len()), Ok(1));

        fill();
        let worker = deliver(0);
        pool.cancel();
        worker.join().expect("its rows are dropped");
        assert_eq!(pool.collect(Duration::ZERO), Ok(vec![]));
    }
}
