//! What the gateway looks at each second, since others may have changed it, and its heartbeat.

use std::io;
use std::time::{Duration, Instant};

use nix::sys::socket::SockProtocol;
use serde_json::json;

use super::Gateway;
use crate::doors::Door;
use crate::kernel::netlink::Netlink;
use crate::kernel::nftables::{self, QUEUED, STALLED};
use crate::kernel::queue::{Held, Verdict};
use crate::kernel::statements::{Statement, text_of};
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
    /// The flows that the kernel had counted by this gateway's rules, once it has some.
    counted: Option<u64>,
    /// Those of them that have passed since this process stood still.
    stalled: u64,
}

impl Upkeep {
    pub(super) fn new() -> Upkeep {
        Upkeep { next: Instant::now() + LOOK, has_no_routes: false, counted: None, stalled: 0 }
    }
}

impl Gateway {
    /// Looks, if it is time.
    pub(super) fn look(&mut self, now: Instant, manager: &Manager) {
        if now < self.upkeep.next {
            return;
        }
        self.upkeep.next = now + LOOK;
        manager.alive();
        self.keep_routes();
        self.count_observed();
    }

    /// Tells the kernel that this process works. If it has not for so long that the kernel holds no packets any more, those
    /// that are held pass first: their clients may have asked again, and reached the servers.
    pub(super) fn beat(&mut self) -> io::Result<()> {
        let now = Instant::now();
        if let Some(pause) = self.heartbeat.pause(now) {
            let passed = self.pass_held()? + self.count_stalled();
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
    fn pass_held(&mut self) -> io::Result<u64> {
        let (mut buffer, mut held, mut passed) = (vec![0; 1 << 16], Vec::new(), 0);
        while self.queue.receive(&mut buffer, |Held { id, mark, .. }| held.push((id, mark)))? {
            for (id, mark) in held.drain(..) {
                self.queue.decide(id, Verdict::Pass(mark))?;
                passed += 1;
            }
        }
        Ok(passed)
    }

    /// The flows that have passed by the kernel's rules since this process stood still, and were not counted before.
    fn count_stalled(&mut self) -> u64 {
        let netlink = Netlink::open(SockProtocol::NetlinkNetFilter);
        let counted = netlink.and_then(|mut netlink| nftables::counted(&mut netlink, STALLED));
        // Without an answer, they are counted later.
        let counted = counted.unwrap_or(self.upkeep.stalled);
        counted.saturating_sub(std::mem::replace(&mut self.upkeep.stalled, counted))
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

    /// Takes over what the kernel has counted while observing, when it holds no packet and this process sees none.
    pub(super) fn count_observed(&mut self) {
        let Some(before) = self.upkeep.counted.filter(|_| self.is_observing) else { return };
        let netlink = Netlink::open(SockProtocol::NetlinkNetFilter);
        // Without an answer, it is counted later.
        let Ok(counted) = netlink.and_then(|mut netlink| nftables::counted(&mut netlink, QUEUED)) else {
            return;
        };
        self.upkeep.counted = Some(counted);
        let more = counted.saturating_sub(before);
        self.counters.flows.add(more);
        self.counters.observed.add(more);
    }

    /// Forgets what the kernel had counted by rules that were replaced.
    pub(super) fn count_anew(&mut self) {
        (self.upkeep.counted, self.upkeep.stalled) = (Some(0), 0);
    }

    /// Notes that a client has asked again without an answer.
    pub(super) fn note_unheard(&mut self, door: Door, now: Instant) {
        if !self.doors.unheard(door, now) {
            return;
        }
        let local = Statement::Marked { mask: self.marks.mask(), value: self.marks.local(), is_equal: true };
        let accept = text_of(&[local, Statement::Accept]);
        log::event(
            "clients get no answer",
            json!({
                "cause": "servers have answered, and this host has not: its firewall drops packets to its own sockets",
                "meaning": "flows go on without a split; one is tried every five minutes",
                "remedy": format!("nft insert rule inet filter input '{accept}', with your table and chain"),
            }),
        );
    }

    /// Notes that a client had an answer.
    pub(super) fn note_heard(&mut self, door: Door) {
        if self.doors.heard(door) {
            log::event("clients get answers again", json!({"meaning": "flows are split"}));
        }
    }
}
