//! What the gateway looks at each second, since others may have changed it, and its heartbeat.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Gateway;
use crate::kernel::filter;
use crate::kernel::nftables::{ARRIVED, CARRIED, FOLLOWED, QUEUED, STALLED};
use crate::kernel::queue::{Held, Verdict};
use crate::log;
use crate::notify::Manager;
use crate::setup::routes_of;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// What it has seen.
#[derive(Debug)]
pub(super) struct Upkeep {
    /// When it looks next.
    pub(super) next: Instant,
    /// Whether the routes cannot be made, which is told once.
    has_no_routes: bool,
    /// What the kernel has counted by this gateway's rules, once it has some.
    counted: Option<Counted>,
}

/// SYNs since the rules were installed.
#[derive(Debug, Default)]
struct Counted {
    /// Those that this process has read from the queue.
    read: u64,
    /// Those for the queue that were not held: it was full, or this process only observes.
    passed: u64,
    /// Those that have passed since this process stood still.
    stalled: u64,
    /// Those that this process has let come to this host, and those of them that have not arrived.
    told: u64,
    missing: u64,
    /// Later packets of split connections that have not arrived.
    lost: u64,
    /// The clients that had answers since the last look.
    heard: u64,
}

impl Upkeep {
    pub(super) fn new() -> Upkeep {
        Upkeep { next: Instant::now() + LOOK, has_no_routes: false, counted: None }
    }

    /// Whether the kernel has this gateway's rules.
    pub(super) fn has_rules(&self) -> bool {
        self.counted.is_some()
    }

    /// Notes that this process has read so many SYNs from the queue.
    pub(super) fn read(&mut self, number: u64) {
        if let Some(counted) = &mut self.counted {
            counted.read += number;
        }
    }

    /// Notes that a client had an answer.
    pub(super) fn heard(&mut self) {
        if let Some(counted) = &mut self.counted {
            counted.heard += 1;
        }
    }

    /// Notes that this process has let so many SYNs come to this host.
    pub(super) fn told(&mut self, number: u64) {
        if let Some(counted) = &mut self.counted {
            counted.told += number;
        }
    }
}

impl Gateway {
    /// Looks, if it is time.
    pub(super) fn look(&mut self, now: Instant, manager: &Manager) -> io::Result<()> {
        if now < self.upkeep.next {
            return Ok(());
        }
        self.upkeep.next = now + LOOK;
        manager.alive();
        self.keep_routes();
        // Another may have a number, or the name of a radio.
        self.interfaces.clear();
        self.look_at_firewall();
        self.count(now)
    }

    /// Tells the kernel that this process works. If it has not for so long that the kernel holds no packets any more, those
    /// that are held pass first: their clients may have asked again, and reached the servers.
    pub(super) fn beat(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if let Some(pause) = self.heartbeat.pause(now) {
            // Without an answer, they are counted later.
            let stalled = filter::counts().map_or(0, |counts| self.count_stalled(&counts));
            let passed = self.pass_held()? + stalled;
            self.counters.passed_by_stall.add(passed);
            let meaning = "it was stopped, or waited for a disk, a processor or a successor; new flows have passed meanwhile";
            log::event(
                "has stood still",
                json!({"for_s": pause.as_secs_f64(), "flows": passed, "meaning": meaning}),
            );
        }
        self.heartbeat.beat(now);
        Ok(())
    }

    /// Lets all packets pass that the kernel holds; returns how many.
    pub(super) fn pass_held(&mut self) -> io::Result<u64> {
        let (mut buffer, mut held, mut passed) = (vec![0; 1 << 16], Vec::new(), 0);
        while self.queue.receive(&mut buffer, |Held { id, mark, .. }| held.push((id, mark)))? {
            for (id, mark) in held.drain(..) {
                self.queue.decide(id, Verdict::Pass(mark))?;
                passed += 1;
            }
        }
        self.upkeep.read(passed);
        Ok(passed)
    }

    /// The flows that have passed by the kernel's rules since they do not hear this process, and were not counted before.
    fn count_stalled(&mut self, counts: &BTreeMap<String, u64>) -> u64 {
        let Some(before) = &mut self.upkeep.counted else { return 0 };
        let stalled = counts.get(STALLED).copied().unwrap_or(0);
        stalled.saturating_sub(std::mem::replace(&mut before.stalled, stalled))
    }

    /// Puts back the rules of routing, without which packets of split connections go on to the servers.
    fn keep_routes(&mut self) {
        let (name, facts) = match routes_of(&self.config).install() {
            Ok(false) => return,
            Ok(true) => {
                let cause = "another program has removed routes or rules of routing";
                self.upkeep.has_no_routes = false;
                ("routes were put back", json!({"cause": cause}))
            }
            Err(_) if self.upkeep.has_no_routes => return,
            Err(error) => {
                self.upkeep.has_no_routes = true;
                let meaning = "split connections stand still until this works; it is tried every second";
                ("routes have failed", json!({"error": error.to_string(), "meaning": meaning}))
            }
        };
        log::event(name, facts);
    }

    /// Takes over what the kernel has counted of flows that this process has not seen.
    pub(super) fn count(&mut self, now: Instant) -> io::Result<()> {
        // Without an answer, they are counted later.
        let Ok(counts) = filter::counts() else { return Ok(()) };
        let stalled = self.count_stalled(&counts);
        self.counters.passed_by_stall.add(stalled);
        let count = |name| counts.get(name).copied().unwrap_or(0);
        let [queued, arrived] = [QUEUED, ARRIVED].map(count);
        let lost = count(CARRIED).saturating_sub(count(FOLLOWED));
        let Some(before) = &mut self.upkeep.counted else { return Ok(()) };
        let missing = before.told.saturating_sub(arrived);
        let is_missing = missing > std::mem::replace(&mut before.missing, missing);
        let is_lost = lost > std::mem::replace(&mut before.lost, lost);
        let heard = std::mem::take(&mut before.heard);
        if is_missing {
            self.doubt_doors();
        }
        // A firewall that lets the last packet of a handshake pass lets others pass.
        if is_lost && heard == 0 {
            self.close_doors(now);
        }
        // What was queued has come to this process, or never will.
        if !self.read_queue(now)? {
            return Ok(());
        }
        let Some(before) = &mut self.upkeep.counted else { return Ok(()) };
        let passed = queued.saturating_sub(before.read).max(before.passed);
        let more = passed - std::mem::replace(&mut before.passed, passed);
        self.counters.flows.add(more);
        let reason = if self.is_observing { &self.counters.observed } else { &self.counters.passed_by_limit };
        reason.add(more);
        Ok(())
    }

    /// Forgets what the kernel had counted by rules that were replaced.
    pub(super) fn count_anew(&mut self) {
        self.upkeep.counted = Some(Counted::default());
    }
}
