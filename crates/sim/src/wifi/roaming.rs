//! Roaming stations: when they scan and when they change the access point, and what becomes of their frames.

use lasthop_base::{Duration, Stream, Time};
use lasthop_link::wifi::{Category, Queued, Roaming, StationRadio};
use lasthop_proto::{DropReason, Out};

use super::{AP, CATEGORIES, WifiBss};

/// The absences of a roaming station: one for each channel that it scans, and the gap.
pub(super) struct Roam {
    config: Roaming,
    /// Its radio, and the random streams of its rate controls, which begin anew at each access point.
    radio: StationRadio,
    rates: [Stream; 2],
    /// Start of the first scan before the next roam.
    scan: Time,
    /// How often it has left or come back since then.
    changes: u32,
}

impl Roam {
    pub(super) fn new(config: Roaming, radio: StationRadio, rates: [Stream; 2], random: &mut Stream) -> Roam {
        let scan = Time::ZERO + Duration::from_nanos(random.below(config.every.as_nanos()));
        Roam { config, radio, rates, scan, changes: 0 }
    }

    /// When it leaves or comes back next.
    pub(super) fn next(&self) -> Time {
        let Roaming { dwell, pause, .. } = self.config;
        let left = self.scan + (dwell + pause) * u64::from(self.changes / 2);
        let is_last = self.changes / 2 == u32::from(self.config.channels);
        let length = if is_last { self.config.gap() } else { dwell };
        if self.is_away() { left + length } else { left }
    }

    fn is_away(&self) -> bool {
        self.changes % 2 == 1
    }

    /// Whether it has left one access point and not joined the other.
    fn is_between(&self) -> bool {
        self.is_away() && self.changes / 2 == u32::from(self.config.channels)
    }
}

impl WifiBss {
    fn roam_of(&self, place: usize) -> Option<&Roam> {
        self.peers[place - 1].roam.as_ref()
    }

    /// Whether the station at `place` scans or changes its access point.
    pub(super) fn is_away(&self, place: usize) -> bool {
        self.roam_of(place).is_some_and(Roam::is_away)
    }

    /// Whether frames for the station at `place` are lost, as no access point knows it.
    pub(super) fn is_unreachable(&self, place: usize) -> bool {
        self.roam_of(place).is_some_and(|roam| roam.is_between() && roam.config.queued == Queued::Lost)
    }

    /// Stations that are due on the idle medium leave or come back: none leaves within an exchange.
    pub(super) fn roam(&mut self, now: Time, out: &mut Out) {
        for place in 1..=self.peers.len() {
            while self.roam_of(place).is_some_and(|roam| roam.next() <= now) {
                self.change_access(place, now, out);
            }
        }
        self.schedule_roam();
        self.schedule();
    }

    pub(super) fn schedule_roam(&mut self) {
        let due = self.peers.iter().filter_map(|peer| peer.roam.as_ref()).map(Roam::next);
        self.roams = due.min().unwrap_or(Time::NEVER);
    }

    fn change_access(&mut self, place: usize, now: Time, out: &mut Out) {
        let format = self.config.format;
        let peer = &mut self.peers[place - 1];
        let roam = peer.roam.as_mut().expect("it roams");
        if roam.is_between() {
            let radio = roam.radio;
            peer.rates = roam
                .rates
                .clone()
                .map(|random| radio.rate.build(format, radio.streams, peer.noise.as_ref(), random));
            peer.rates.iter_mut().for_each(|control| control.associate(now));
            roam.scan += roam.config.every;
            roam.changes = 0;
            peer.stats.roams += 1;
        } else {
            roam.changes += 1;
        }
        if !roam.is_away() {
            self.release_buffered(place, now);
            return self.add_waiting(place, AP, now);
        }
        for category in Category::ALL {
            for (from, to) in [(AP, place), (place, AP)] {
                let index = self.agreement(from, to, category);
                if std::mem::take(&mut self.agreements[index].is_ready) {
                    let function = CATEGORIES * from + category as usize;
                    self.functions[function].ready.retain(|&other| other != index);
                }
            }
            if self.is_unreachable(place) {
                self.abandon(place, category, now, out);
            }
        }
    }

    /// The old access point drops what it holds for a station.
    fn abandon(&mut self, place: usize, category: Category, now: Time, out: &mut Out) {
        let index = self.agreement(AP, place, category);
        let is_shared = self.shares_queue(false);
        let dropped = self.agreements[index].abandon(now, &mut self.released, out);
        for (packet, was_sent) in dropped {
            if is_shared {
                let (packets, bytes) = &mut self.shared[category as usize];
                *packets -= 1;
                *bytes = *bytes - packet.size;
            }
            let stats = &mut self.peers[place - 1].stats.down;
            *(if was_sent { &mut stats.packets.discarded } else { &mut stats.unreachable }) += 1;
            out.drop(packet, DropReason::Unreachable);
        }
        self.hand_on(place - 1, false, now, out);
    }
}
