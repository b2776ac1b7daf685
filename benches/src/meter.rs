//! Cost of a benchmark: CPU time, elapsed time and memory.

use std::fs;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

/// The cost of a piece of work.
pub(crate) struct Cost {
    /// Processor time of all threads, in user and system mode. Their sum is exact to a microsecond;
    /// how it divides is a guess of the kernel's.
    pub(crate) cpu_s: f64,
    /// Elapsed time.
    pub(crate) wall_s: f64,
    /// The most memory that the process has ever held, in bytes.
    pub(crate) peak_bytes: u64,
}

/// Does the work and measures it.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    let (wall, cpu) = (Instant::now(), cpu_s());
    let result = counted(work);
    let (cpu_s, wall_s) = (cpu_s() - cpu, wall.elapsed().as_secs_f64());
    (result, Cost { cpu_s, wall_s, peak_bytes: peak_bytes() })
}

/// A name by which a profiler can tell the work from what is around it.
#[inline(never)]
fn counted<T>(work: impl FnOnce() -> T) -> T {
    work()
}

fn cpu_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the process's own usage can be read");
    let seconds = |time: TimeVal| time.num_microseconds() as f64 * 1e-6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// From `/proc`: `getrusage` would count the memory of the process that started this one.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix("kB")).expect("a peak in kB");
    1024 * kib.trim().parse::<u64>().expect("a number")
}
