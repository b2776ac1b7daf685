//! Hidden stations: PPDUs that begin while the access point receives another.

use lasthop_base::Time;
use lasthop_link::wifi::{RESPONSE_TIMEOUT, SIFS};
use lasthop_proto::Out;

use super::exchange::Phase;
use super::{CATEGORIES, WifiBss};

/// What stations that do not hear each other know of the medium, and what they send into each other.
pub(super) struct Hidden {
    /// Of each area since when, or from when on, its stations have an idle medium; never while it is busy. None if all
    /// stations hear each other.
    idle_from: Vec<Time>,
    /// PPDUs on the air that the access point does not receive: their senders, and their ends.
    garbled: Vec<(usize, Time)>,
    /// End of the last of all such PPDUs.
    garbled_until: Time,
    /// When a station begins next into what it does not hear, or such a PPDU ends.
    pub(super) due: Time,
}

impl Hidden {
    pub(super) fn new(areas: usize) -> Hidden {
        let idle_from = vec![Time::ZERO; areas];
        Hidden { idle_from, garbled: Vec::new(), garbled_until: Time::ZERO, due: Time::NEVER }
    }

    /// Whether there are stations that do not hear each other.
    pub(super) fn exist(&self) -> bool {
        !self.idle_from.is_empty()
    }

    /// Whether nothing that the access point cannot receive is on the air.
    pub(super) fn is_clear(&self) -> bool {
        self.garbled.is_empty()
    }

    /// Since when the stations of an area have an idle medium.
    pub(super) fn idle_from(&self, area: usize) -> Time {
        self.idle_from[area - 1]
    }

    /// A transmission makes the medium busy until `until`: for the sender's area, or for all if all hear the sender.
    fn occupy(&mut self, area: Option<usize>, until: Time) {
        match area {
            Some(area) => self.idle_from[area - 1] = self.idle_from[area - 1].max(until),
            None => self.idle_from.iter_mut().for_each(|from| *from = (*from).max(until)),
        }
    }
}

impl WifiBss {
    /// The area of a contender; `None` if all hear it.
    fn area(&self, sender: usize) -> Option<usize> {
        Some(self.contenders[sender].area).filter(|area| *area > 0)
    }

    /// Since when a contender has an idle medium and need not wait for a response; never while it is busy.
    pub(super) fn idle_since(&self, sender: usize) -> Time {
        let since = self.area(sender).map_or(self.idle_from, |area| self.hidden.idle_from(area));
        since.max(self.contenders[sender].hold)
    }

    /// Whether a contender has an idle medium at `now`.
    pub(super) fn is_idle(&self, sender: usize, now: Time) -> bool {
        match self.area(sender) {
            None => matches!(self.phase, Phase::Idle { .. }) && self.idle_from <= now,
            Some(area) => self.hidden.idle_from(area) <= now,
        }
    }

    /// The first PPDU of an access of `sender` begins. Returns whether there are stations that do not hear it, which go on
    /// counting.
    pub(super) fn occupy(&mut self, sender: usize) -> bool {
        let area = self.area(sender);
        self.hidden.occupy(area, Time::NEVER);
        area.is_some()
    }

    /// All hear that the medium is busy from `now` on.
    pub(super) fn silence(&mut self, now: Time) {
        if self.hidden.exist() {
            self.count_down(now);
            self.hidden.occupy(None, Time::NEVER);
        }
    }

    /// The medium becomes idle at `now` for all who know it to be busy, unless other PPDUs are still on the air.
    pub(super) fn release_medium(&mut self, now: Time) {
        for (index, from) in
            self.hidden.idle_from.iter_mut().enumerate().filter(|(_, from)| **from == Time::NEVER)
        {
            let own =
                self.hidden.garbled.iter().filter(|(sender, _)| self.contenders[*sender].area == index + 1);
            *from = own.map(|(_, until)| *until).fold(now, Time::max);
        }
        self.idle_from = now.max(self.hidden.garbled_until);
        self.stats.collision_time += self.idle_from.since(now);
    }

    /// The current senders transmit from `now` on what the access point does not receive: several began together, or into each
    /// other.
    pub(super) fn garble(&mut self, now: Time) {
        self.stats.collisions += 1;
        if matches!(self.phase, Phase::Idle { .. }) {
            self.idle_from = self.idle_from.max(now);
        }
        for place in 0..self.senders.len() {
            let sender = self.senders[place];
            self.count_attempts(sender, true);
            let ppdu = &mut self.ppdus[sender];
            ppdu.frames.iter_mut().for_each(|frame| (frame.arrives, frame.collides) = (false, true));
            let until = now + ppdu.protection.map_or(ppdu.duration, |[rts, _]| rts);
            self.add_garbled(sender, until);
        }
    }

    fn add_garbled(&mut self, sender: usize, until: Time) {
        let area = self.area(sender);
        self.hidden.occupy(area, until);
        self.contenders[sender].hold = until + RESPONSE_TIMEOUT;
        self.hidden.garbled.push((sender, until));
        self.hidden.garbled_until = self.hidden.garbled_until.max(until);
        if matches!(self.phase, Phase::Idle { .. }) {
            self.release_medium(self.idle_from);
        }
    }

    /// When the next of the PPDUs that are not received ends.
    pub(super) fn garbled_end(&self) -> Time {
        self.hidden.garbled.iter().map(|(_, until)| *until).min().unwrap_or(Time::NEVER)
    }

    /// A PPDU that was not received ends.
    pub(super) fn end_garbled(&mut self, now: Time, out: &mut Out) {
        let place = self.hidden.garbled.iter().position(|(_, until)| *until == now).expect("it is due");
        let (sender, _) = self.hidden.garbled.swap_remove(place);
        self.miss_response(sender, true, now, now + RESPONSE_TIMEOUT, out);
        if matches!(self.phase, Phase::Idle { .. }) {
            self.schedule();
        }
    }

    /// Stations begin at `now` into a PPDU that they do not hear: its further MPDUs, or its RTS, are lost as well.
    pub(super) fn intrude(&mut self, now: Time, out: &mut Out) {
        self.start_due(now, out);
        if self.senders.is_empty() {
            return;
        }
        self.garble(now);
        match &mut self.phase {
            Phase::OnAir { sender, next, at, until, .. } => {
                let (sender, until) = (*sender, *until);
                let agreement = self.ppdus[sender].agreement;
                let mut hit = 0;
                for frame in self.ppdus[sender].frames.iter_mut().filter(|frame| frame.at > now) {
                    hit += u64::from(!frame.collides);
                    (frame.arrives, frame.collides) = (false, true);
                }
                if self.ppdus[sender].frames.get(*next).is_none_or(|frame| frame.at > now) {
                    (*next, *at) = (self.ppdus[sender].frames.len(), until);
                }
                let (station, up) = self.peer_of(agreement);
                self.peers[station].stats_mut(up).packets.collided += hit;
            }
            Phase::Asking { sender, start, until, .. } => {
                let (sender, until) = (*sender, *until);
                self.idle_from = *start;
                self.phase = Phase::Idle { due: Time::NEVER };
                self.add_garbled(sender, until);
                self.schedule();
            }
            _ => unreachable!("all hear what else is on the air"),
        }
    }

    /// The RTS of a station has ended and the access point answers.
    pub(super) fn end_asking(&mut self, sender: usize, start: Time, now: Time, txop_ends: Time) {
        self.silence(now + SIFS);
        self.transmit(sender, start, txop_ends);
    }

    /// Computes when a station begins next into what it does not hear.
    pub(super) fn schedule_hidden(&mut self) {
        // A cell whose stations hear each other pays for no more than this.
        if self.hidden.exist() {
            self.hidden.due = self.next_hidden();
        }
    }

    fn next_hidden(&self) -> Time {
        let end = self.garbled_end();
        if matches!(self.phase, Phase::Idle { .. }) {
            return end;
        }
        let beginning = self.used.iter().filter_map(|&function| {
            let sender = function / CATEGORIES;
            let area = self.area(sender)?;
            (self.hidden.idle_from(area) < Time::NEVER)
                .then(|| self.functions[function].due(self.idle_since(sender)))
        });
        beginning.fold(end, Time::min)
    }
}
