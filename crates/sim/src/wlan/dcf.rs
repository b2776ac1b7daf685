//! The distributed coordination function: contention, frame exchanges and collisions.

use lasthop_base::{Duration, Time};
use lasthop_proto::{LinkOutcome, Out};

use super::contender::{Contender, Frame};
use super::outcomes::Outcome;
use super::{AP, Bss, BssConfig, StationState};
use lasthop_link::wlan::{DATA_OVERHEAD, Timing};

/// State of the medium.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    /// Idle. The next transmission starts at `first` and cannot end before `due`.
    Contention { first: Time, due: Time },
    /// A single sender; its data frame ends at `until`.
    Alone { sender: usize, until: Time, arrives: bool },
    /// A collision; the longest frame ends at `until`.
    Collision { until: Time },
}

impl Bss {
    /// Processes everything that is due by `now`.
    pub(super) fn advance(&mut self, now: Time, out: &mut Out) {
        loop {
            let begun = match self.phase {
                Phase::Contention { first, .. } => first + self.timing.slot,
                Phase::Alone { until, .. } | Phase::Collision { until } => until,
            };
            if begun.min(self.outcomes.next()) > now {
                return;
            }
            if self.outcomes.next() <= begun {
                self.outcomes.emit(out);
                continue;
            }
            match self.phase {
                Phase::Contention { first, .. } => self.begin(first),
                Phase::Alone { sender, until, arrives } => {
                    self.stats.exchanges += 1;
                    if arrives {
                        self.succeed(sender, until, out)
                    } else {
                        self.fail(sender, until)
                    }
                    self.schedule();
                }
                Phase::Collision { until } => {
                    self.collide(until);
                    self.schedule();
                }
            }
        }
    }

    /// Brings a contender up to date with the medium.
    pub(super) fn unpark(&mut self, place: usize) {
        if self.contenders[place].is_parked() {
            self.contenders[place].unpark(&self.medium);
            let before = self.attentive.partition_point(|&other| other < place);
            self.attentive.insert(before, place);
        }
    }

    /// Computes the next transmission of all senders with a packet.
    pub(super) fn schedule(&mut self) {
        let slot = self.timing.slot;
        self.phase = Phase::Contention { first: Time::NEVER, due: Time::NEVER };
        for index in 0..self.attentive.len() {
            let place = self.attentive[index];
            self.contenders[place].schedule(slot);
            self.schedule_one(place);
        }
    }

    /// Updates the next transmission with that of one sender.
    pub(super) fn schedule_one(&mut self, place: usize) {
        let Contender { start, head: Some(frame), .. } = &self.contenders[place] else { return };
        if let Phase::Contention { first, .. } = self.phase
            && *start < first
        {
            self.phase = Phase::Contention { first: *start, due: *start + frame.first };
        }
    }

    /// The medium becomes busy at `first`.
    fn begin(&mut self, first: Time) {
        let slot = self.timing.slot;
        let noticed = first + slot;
        let mut known = (Time::NEVER, 0);
        let mut slots_ended = |from: Time| {
            if known.0 != from {
                let span = noticed.max(from).since(from).saturating_sub(Duration::from_nanos(1));
                known = (from, (span.as_nanos() / slot.as_nanos()).min(u64::from(u32::MAX)) as u32);
            }
            known.1
        };
        self.senders.clear();
        self.medium.defer(&mut slots_ended);
        for &place in &self.attentive {
            let contender = &mut self.contenders[place];
            if contender.start < noticed {
                self.senders.push(place);
            } else {
                contender.defer(noticed, &mut slots_ended);
            }
        }
        for index in 0..self.senders.len() {
            let sender = self.senders[index];
            let frame = self.frame(sender);
            frame.attempts += 1;
            let (again, to) = (frame.attempts > 1, frame.to);
            let way = self.direction_stats(sender, to);
            way.attempts += 1;
            way.retries += u64::from(again);
        }
        self.phase = match self.senders[..] {
            [sender] => self.begin_alone(sender),
            _ => self.begin_collision(first),
        };
    }

    fn frame(&mut self, sender: usize) -> &mut Frame {
        self.contenders[sender].head.as_mut().expect("a sending station has a packet")
    }

    fn begin_alone(&mut self, sender: usize) -> Phase {
        let Timing { rts, cts, sifs, plcp, ack, .. } = self.timing;
        let mut start = self.contenders[sender].start;
        let frame = self.contenders[sender].head.as_mut().expect("a sending station has a packet");
        if frame.rts {
            // A CTS frame counts as a success of the RTS (section 9.2.5.7).
            frame.short = 0;
            start = start + rts + sifs + cts + sifs;
            self.stats.busy_time += rts + cts;
        }
        let until = start + frame.data;
        self.stats.busy_time += frame.data;
        let bits = (frame.packet.size + DATA_OVERHEAD).bits();
        let to = frame.to;
        let StationState { channel, down, up, .. } = &mut self.peers[sender.max(to) - 1];
        let survival = channel.survival(start + plcp, until, bits);
        let way = if sender == AP { down } else { up };
        let arrives = way.bits.bernoulli(survival);
        if arrives {
            self.stats.busy_time += ack;
        } else {
            self.direction_stats(sender, to).lost += 1;
        }
        Phase::Alone { sender, until, arrives }
    }

    fn begin_collision(&mut self, first: Time) -> Phase {
        let mut until = first;
        for index in 0..self.senders.len() {
            let sender = self.senders[index];
            until = until.max(self.contenders[sender].start + self.frame(sender).first);
            let to = self.frame(sender).to;
            self.direction_stats(sender, to).collided += 1;
        }
        self.stats.busy_time += until.since(first);
        self.stats.collisions += 1;
        Phase::Collision { until }
    }

    /// A data frame has arrived at `until`; the ACK follows.
    fn succeed(&mut self, sender: usize, until: Time, out: &mut Out) {
        let end = until + self.timing.sifs + self.timing.ack;
        self.set_all_busy(end, end + self.timing.difs);
        let frame = *self.frame(sender);
        self.finish_exchange(sender, until, end);
        if sender == AP {
            self.outcomes.add(Outcome::new(end, &frame, LinkOutcome::Delivered, true));
        }
        self.hand_on(sender, &frame, until, out);
    }

    /// A data frame ended at `until` with errors.
    fn fail(&mut self, sender: usize, until: Time) {
        let Timing { sifs, ack, difs, eifs, .. } = self.timing;
        let acknowledged = until + sifs + ack;
        self.set_all_busy(acknowledged, acknowledged + difs);
        let Frame { to, rts, .. } = *self.frame(sender);
        self.unpark(to);
        self.contenders[to].set_busy(until, until + eifs);
        self.attempt_failed(sender, rts, until, acknowledged);
    }

    /// A collision; the longest frame ends at `until`.
    fn collide(&mut self, until: Time) {
        let Timing { sifs, ack, cts, eifs, .. } = self.timing;
        self.set_all_busy(until, until + eifs);
        for index in 0..self.senders.len() {
            let sender = self.senders[index];
            let Frame { first, rts, .. } = *self.frame(sender);
            let answer = if rts { cts } else { ack };
            let timeout = self.contenders[sender].start + first + sifs + answer;
            self.attempt_failed(sender, false, until, timeout.max(until));
        }
    }

    fn set_all_busy(&mut self, busy_until: Time, slots_from: Time) {
        self.medium.set_busy(busy_until, slots_from);
        let (contenders, medium) = (&mut self.contenders, &self.medium);
        self.attentive.retain(|&place| {
            let contender = &mut contenders[place];
            contender.set_busy(busy_until, slots_from);
            if contender.head.is_none() {
                contender.park(medium);
            }
            contender.head.is_some()
        });
    }

    /// An attempt has failed, which the sender detects at `timeout`. `long` selects the long retry limit.
    fn attempt_failed(&mut self, sender: usize, long: bool, now: Time, timeout: Time) {
        let BssConfig { short_retry_limit, long_retry_limit, .. } = self.config;
        let frame = self.frame(sender);
        let (failures, limit) = match long {
            true => (&mut frame.long, long_retry_limit),
            false => (&mut frame.short, short_retry_limit),
        };
        *failures += 1;
        let given_up = limit.is_reached(*failures);
        let frame = *frame;
        let from_ap = sender == AP;
        if from_ap {
            self.outcomes.add(Outcome::new(timeout, &frame, LinkOutcome::AttemptFailed, true));
        }
        if given_up {
            self.outcomes.add(Outcome::new(timeout, &frame, LinkOutcome::Discarded, from_ap));
            self.direction_stats(sender, frame.to).discarded += 1;
            self.finish_exchange(sender, now, timeout);
        } else {
            self.contenders[sender].wait(timeout, timeout + self.timing.difs);
            self.contenders[sender].retry();
        }
    }

    /// The exchange ends for the sender at `answer`, after the ACK or the last timeout. The MAC takes the
    /// next packet from the queue.
    fn finish_exchange(&mut self, sender: usize, now: Time, answer: Time) {
        self.contenders[sender].wait(answer, answer + self.timing.difs);
        self.contenders[sender].finish_packet();
        if let Some((packet, to)) = self.queues[sender].pop() {
            let frame = self.frame_of(packet, to);
            self.contenders[sender].take_next(now, frame);
        }
    }
}
