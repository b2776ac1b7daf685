//! Dozing stations: what the access point buffers, and when it releases it.

use lasthop_base::{Duration, Stream, Time};
use lasthop_link::wifi::{Category, PowerSave};

use super::{AP, CATEGORIES, WifiBss};

/// Whether a station dozes, and when it listens to the next beacon that announces frames for it.
pub(super) struct Doze {
    config: PowerSave,
    /// The first beacon to which it listens.
    phase: Duration,
    /// It dozes from then on, unless the access point is sending to it.
    awake_until: Time,
    /// The beacon that releases what is buffered; never if nothing is.
    pub(super) release: Time,
}

impl Doze {
    /// A station that dozes. The first one of a BSS draws the `first` beacon of the access point, and each draws to which of its
    /// beacons it listens.
    pub(super) fn new(config: PowerSave, random: &mut Stream, first: &mut Option<Duration>) -> Doze {
        let (drawn, beacon) = (random.below(config.listen_interval().as_nanos()), config.beacon.as_nanos());
        let first = *first.get_or_insert(Duration::from_nanos(drawn % beacon));
        let phase = first + config.beacon * (drawn / beacon);
        Doze { config, phase, awake_until: Time::ZERO, release: Time::NEVER }
    }

    /// The first beacon after `now` to which it listens.
    fn next_beacon(&self, now: Time) -> Time {
        let (first, interval) = (Time::ZERO + self.phase, self.config.listen_interval());
        if now < first {
            return first;
        }
        let heard = now.since(first).as_nanos() / interval.as_nanos();
        first + interval * (heard + 1)
    }
}

impl WifiBss {
    /// Whether frames for the station at place `to` must wait for a beacon; then the beacon is scheduled.
    pub(super) fn is_buffered(&mut self, to: usize, now: Time) -> bool {
        let Some(doze) = &self.peers[to - 1].doze else { return false };
        let is_served =
            || Category::ALL.iter().any(|&each| self.agreements[self.agreement(AP, to, each)].is_ready);
        if now < doze.awake_until || is_served() {
            return false;
        }
        let release = doze.next_beacon(now).min(doze.release);
        self.schedule_release(to, release);
        true
    }

    fn schedule_release(&mut self, to: usize, release: Time) {
        if let Some(doze) = &mut self.peers[to - 1].doze {
            doze.release = release;
        }
        let due = self.peers.iter().filter_map(|peer| peer.doze.as_ref()).map(|doze| doze.release);
        self.release = due.min().unwrap_or(Time::NEVER);
    }

    /// The beacon at `now` announces frames for stations.
    pub(super) fn announce(&mut self, now: Time) {
        for to in 1..=self.peers.len() {
            if self.peers[to - 1].doze.as_ref().is_some_and(|doze| doze.release == now) {
                self.release_buffered(to, now);
            }
        }
    }

    /// An exchange with a station has ended: it stays awake for a while, and one that it began may release what is buffered.
    pub(super) fn keep_awake(&mut self, station: usize, up: bool, now: Time) {
        let Some(doze) = &mut self.peers[station].doze else { return };
        doze.awake_until = now + doze.config.timeout;
        if up && doze.config.is_triggered() && doze.release < Time::NEVER {
            self.release_buffered(station + 1, now);
        }
    }

    pub(super) fn release_buffered(&mut self, to: usize, now: Time) {
        self.schedule_release(to, Time::NEVER);
        // Otherwise it is released when the station comes back.
        if self.is_away(to) {
            return;
        }
        if let Some(doze) = &mut self.peers[to - 1].doze {
            doze.awake_until = now + doze.config.timeout;
        }
        self.add_waiting(AP, to, now);
    }

    /// Agreements with frames from `from` to `to` that are not served yet are from now on.
    pub(super) fn add_waiting(&mut self, from: usize, to: usize, now: Time) {
        for category in Category::ALL {
            let index = self.agreement(from, to, category);
            if !self.agreements[index].is_ready && self.agreements[index].has_frames() {
                self.agreements[index].is_ready = true;
                self.add_ready(CATEGORIES * from + category as usize, index, now);
            }
        }
    }
}
