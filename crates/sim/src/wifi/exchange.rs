//! Exchanges: PPDUs on the air, their responses, and collisions.

use lasthop_base::{Duration, Time};
use lasthop_link::wifi::{Category, ControlRate, EIFS_EXTENSION, RESPONSE_TIMEOUT, SIFS};
use lasthop_proto::{DropReason, LinkEvent, LinkOutcome, Out, Packet, Signal};

use super::agreement::{Agreement, Mpdu};
use super::{AP, CATEGORIES, FOREIGN, WifiBss};

/// State of the medium.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Idle; the next transmission is due at `due`.
    Idle { due: Time },
    /// The PPDU of a single sender, until `until`. The next MPDU that arrives is frame `next`, at `at`.
    OnAir { sender: usize, start: Time, next: usize, at: Time, until: Time, txop_ends: Time },
    /// The RTS of a station that others do not hear, from `start` until `until`.
    Asking { sender: usize, start: Time, until: Time, txop_ends: Time },
    /// Its response, until `until`.
    Response { sender: usize, until: Time, txop_ends: Time },
    /// The announcement of the early end of a TXOP.
    Ending { sender: usize, until: Time },
    /// A collision; the longest frame ends at `until`.
    Collision { until: Time },
    /// A burst of interference, until `until`.
    Jammed { until: Time },
}

impl WifiBss {
    /// The next deadline.
    pub(super) fn due(&self) -> Time {
        let due = match self.phase {
            Phase::Idle { due } if self.hidden.is_clear() => due.min(self.burst).min(self.roams),
            Phase::Idle { due } => due,
            Phase::OnAir { at, .. } => at,
            Phase::Asking { until, .. }
            | Phase::Response { until, .. }
            | Phase::Ending { until, .. }
            | Phase::Collision { until }
            | Phase::Jammed { until } => until,
        };
        self.neighbour
            .as_ref()
            .map_or(due, |foreign| due.min(foreign.next))
            .min(self.release)
            .min(self.held_until)
            .min(self.hidden.due)
    }

    /// Processes everything that is due by `now`.
    pub(super) fn advance(&mut self, now: Time, out: &mut Out) {
        let mut steps = 0u32;
        loop {
            let at = self.due();
            if at > now {
                return;
            }
            steps += 1;
            debug_assert!(steps < 1_000_000, "what is due at {at} never ends: {:?}", self.phase);
            self.step(at, out);
            self.schedule_hidden();
        }
    }

    /// Processes the next event, which is due at `at`.
    fn step(&mut self, at: Time, out: &mut Out) {
        if self.neighbour.as_ref().is_some_and(|foreign| foreign.next == at) {
            return self.arrive_foreign(at);
        }
        if self.release == at {
            return self.announce(at);
        }
        if self.held_until == at {
            return self.expire(at, out);
        }
        if self.hidden.due == at && self.garbled_end() == at {
            return self.end_garbled(at, out);
        }
        match self.phase {
            Phase::Idle { .. } if self.roams == at && self.hidden.is_clear() => {
                self.roam(at.max(self.idle_from), out)
            }
            Phase::Idle { due } if due == at => self.begin(due, out),
            Phase::Idle { .. } => self.jam(at),
            Phase::OnAir { sender, next, at: due, until, .. }
                if due == at && next < self.ppdus[sender].frames.len() =>
            {
                self.deliver(sender, next, at, out);
                let (next, at) = self.next_arrival(sender, next + 1, until);
                if let Phase::OnAir { next: old, at: before, .. } = &mut self.phase {
                    (*old, *before) = (next, at);
                }
            }
            Phase::OnAir { sender, start, until, txop_ends, .. } if until == at => {
                self.end_ppdu(sender, start, until, txop_ends, out);
            }
            Phase::Asking { sender, start, until, txop_ends } if until == at => {
                self.end_asking(sender, start, until, txop_ends);
            }
            Phase::OnAir { .. } | Phase::Asking { .. } => self.intrude(at, out),
            Phase::Response { sender, until, txop_ends } => self.end_response(sender, until, txop_ends, out),
            Phase::Ending { sender, until } => self.end_access(sender, until),
            Phase::Collision { until } => self.end_collision(until, out),
            Phase::Jammed { until } => {
                self.stats.interference_time += until.since(self.idle_from);
                self.release_medium(until);
                self.schedule();
            }
        }
    }

    fn arrive_foreign(&mut self, now: Time) {
        let foreign = self.neighbour.as_mut().expect("an exchange arrived");
        foreign.schedule();
        foreign.backlog += 1;
        let place = foreign.place;
        if foreign.backlog == 1 {
            self.add_ready(CATEGORIES * place + Category::BestEffort as usize, FOREIGN, now);
        }
    }

    /// Computes the next transmission on the idle medium, unless a burst has begun before it became idle.
    pub(super) fn schedule(&mut self) {
        let heard = self.bursts.as_ref().filter(|bursts| bursts.source().heard && self.hidden.is_clear());
        if let Some(bursts) = heard {
            if let Some(until) = bursts.end(self.idle_from) {
                self.phase = Phase::Jammed { until };
                self.occupy(AP);
                return;
            }
            self.burst = bursts.next(self.idle_from);
        }
        let due = self
            .used
            .iter()
            .map(|&function| self.functions[function].due(self.idle_since(function / CATEGORIES)));
        self.phase = Phase::Idle { due: due.min().unwrap_or(Time::NEVER) };
    }

    /// The functions that are due at `now` transmit.
    fn begin(&mut self, now: Time, out: &mut Out) {
        self.start_due(now, out);
        if now > self.idle_from && !self.senders.is_empty() {
            self.stats.idle_time += now.since(self.idle_from);
        }
        match self.senders[..] {
            [] => self.schedule(),
            [sender] if self.hidden.is_clear() => {
                let ppdu = &self.ppdus[sender];
                let (rts, txop_ends) = (ppdu.protection, now + self.functions[ppdu.function].txop);
                match (self.occupy(sender), rts) {
                    (true, Some([rts, _])) => {
                        self.phase = Phase::Asking { sender, start: now, until: now + rts, txop_ends };
                    }
                    _ => self.transmit(sender, now, txop_ends),
                }
            }
            _ if self.hidden.exist() => {
                self.garble(now);
                self.schedule();
            }
            _ => self.collide(now),
        }
    }

    /// Builds the PPDUs of the functions that are due at `now`, and finds their senders.
    pub(super) fn start_due(&mut self, now: Time, out: &mut Out) {
        self.senders.clear();
        self.losers.clear();
        // From the first category of each contender to the last.
        for place in (0..self.used.len()).rev() {
            let function = self.used[place];
            let sender = function / CATEGORIES;
            if !self.is_idle(sender, now) || self.functions[function].due(self.idle_since(sender)) != now {
                continue;
            }
            if self.senders.last() == Some(&sender) {
                self.losers.push(function);
            } else if self.build(function, now, None, out) {
                self.senders.push(sender);
            }
        }
        if self.senders.is_empty() {
            return;
        }
        self.count_down(now);
        // Their new backoffs begin after this busy period.
        for &function in &self.losers {
            let contender = &mut self.contenders[function / CATEGORIES];
            self.functions[function].fail(now, &mut contender.backoff);
        }
    }

    /// The medium becomes busy at `now` for those for whom it is idle.
    pub(super) fn count_down(&mut self, now: Time) {
        for place in 0..self.used.len() {
            let function = self.used[place];
            let sender = function / CATEGORIES;
            if self.is_idle(sender, now) {
                let idle_from = self.idle_since(sender);
                self.functions[function].count_down(now, idle_from);
            }
        }
    }

    /// A burst begins on the idle medium.
    fn jam(&mut self, now: Time) {
        self.count_down(now);
        self.stats.idle_time += now.since(self.idle_from);
        self.idle_from = now;
        self.schedule();
    }

    /// The PPDU of a single sender goes on the air at `start`, after its RTS and CTS.
    pub(super) fn transmit(&mut self, sender: usize, start: Time, txop_ends: Time) {
        self.count_attempts(sender, false);
        let ppdu = &mut self.ppdus[sender];
        if let Some([rts, cts]) = ppdu.protection {
            self.stats.control_time += rts + cts;
            self.stats.gap_time += SIFS * 2;
            self.functions[ppdu.function].protected.push(ppdu.agreement);
        }
        let first_bit = start + ppdu.lead();
        let until = first_bit + ppdu.duration;
        if ppdu.agreement != FOREIGN && !ppdu.is_request {
            self.draw_survival(sender, first_bit, until);
        }
        let (next, at) = self.next_arrival(sender, 0, until);
        self.phase = Phase::OnAir { sender, start, next, at, until, txop_ends };
    }

    /// Decides which MPDUs of a PPDU arrive, and when.
    fn draw_survival(&mut self, sender: usize, start: Time, until: Time) {
        let (station, up) = self.peer_of(self.ppdus[sender].agreement);
        let (ppdu, peer) = (&mut self.ppdus[sender], &mut self.peers[station]);
        let payload_from = start + self.config.format.preamble(ppdu.rate.streams);
        let payload = until.since(payload_from).as_nanos();
        let mut begin = payload_from;
        let bursts = self.bursts;
        let hits_preamble = bursts.is_some_and(|bursts| bursts.meet(start, payload_from));
        for frame in &mut ppdu.frames {
            let end = payload_from + Duration::from_nanos(payload * frame.end.0 / ppdu.psdu.0);
            let noise = peer.noise.as_ref().map_or(1.0, |noise| noise.survival(ppdu.rate.mcs, frame.size));
            let channel = peer.channel.survival(begin, end, frame.size.bits());
            let burst = bursts
                .filter(|bursts| hits_preamble || bursts.meet(begin, end))
                .map_or(1.0, |bursts| 1.0 - bursts.source().loss.get());
            let survival = noise * peer.survival[usize::from(up)] * channel * burst;
            frame.arrives = survival >= 1.0 || peer.bits[usize::from(up)].bernoulli(survival);
            frame.at = end;
            begin = end;
        }
    }

    /// The first frame from number `from` on that arrives, and when; behind the last, when the PPDU ends.
    fn next_arrival(&self, sender: usize, from: usize, until: Time) -> (usize, Time) {
        let frames = &self.ppdus[sender].frames;
        let next = (from..frames.len()).find(|&index| frames[index].arrives);
        next.map_or((frames.len(), until), |index| (index, frames[index].at))
    }

    /// MPDU number `frame` of a PPDU arrives.
    fn deliver(&mut self, sender: usize, frame: usize, now: Time, out: &mut Out) {
        let ppdu = &self.ppdus[sender];
        let (agreement, index) = (ppdu.agreement, ppdu.frames[frame].index);
        let late = self.agreements[agreement].arrive(index, now, &mut self.released);
        self.held_until = self.held_until.min(self.agreements[agreement].held_until());
        let (station, up) = self.peer_of(agreement);
        if let Some(packet) = late {
            self.peers[station].stats_mut(up).packets.corrupted += 1;
            out.corrupt(WifiBss::outlet(station, up), packet);
        }
        self.hand_on(station, up, now, out);
    }

    /// Receivers go on without MPDUs behind which others have waited for the time-out.
    fn expire(&mut self, now: Time, out: &mut Out) {
        for index in 0..self.agreements.len() {
            if self.agreements[index].held_until() <= now {
                self.agreements[index].expire(now, &mut self.released);
                let (station, up) = self.peer_of(index);
                self.hand_on(station, up, now, out);
            }
        }
        let held = self.agreements.iter().map(Agreement::held_until);
        self.held_until = held.min().unwrap_or(Time::NEVER);
    }

    /// A PPDU without a collision ends.
    fn end_ppdu(&mut self, sender: usize, start: Time, now: Time, txop_ends: Time, out: &mut Out) {
        let ppdu = &self.ppdus[sender];
        if ppdu.agreement == FOREIGN {
            self.stats.neighbour_time += ppdu.duration;
            return self.end_foreign(sender, now);
        }
        let is_answered = ppdu.is_request || ppdu.frames.iter().any(|frame| frame.arrives);
        let (exchange, agreement, is_request) = (ppdu.exchange(), ppdu.agreement, ppdu.is_request);
        let air_time = if is_answered { exchange } else { now.since(start) };
        if is_request {
            self.stats.control_time += ppdu.duration;
        } else {
            self.stats.data_time += ppdu.duration;
            if self.hidden.exist() && ppdu.frames.iter().any(|frame| frame.collides) {
                self.stats.collided += 1;
            } else {
                self.stats.ppdus += 1;
                self.stats.unanswered += u64::from(!is_answered);
            }
        }
        self.charge(agreement, air_time, now);
        if is_answered {
            let response = self.ppdus[sender].response;
            self.silence(now + SIFS);
            self.stats.gap_time += SIFS;
            self.stats.control_time += response;
            self.phase = Phase::Response { sender, until: now + SIFS + response, txop_ends };
        } else {
            self.release_medium(now);
            self.miss_response(sender, false, now, now + RESPONSE_TIMEOUT, out);
            self.schedule();
        }
    }

    /// Charges a station for the air time of an exchange in either direction. One to which nothing is sent runs up no debt, as in
    /// Linux since 6.0: it would pay all at once when something is.
    fn charge(&mut self, agreement: usize, air_time: Duration, now: Time) {
        let (station, up) = self.peer_of(agreement);
        self.peers[station].stats_mut(up).air_time += air_time;
        let down = match up {
            false => agreement,
            true => self.agreement(AP, station + 1, Category::ALL[agreement % CATEGORIES]),
        };
        let state = &mut self.agreements[down];
        if state.is_active(now) {
            state.deficit -= air_time.as_nanos() as i64;
        }
    }

    fn end_foreign(&mut self, sender: usize, now: Time) {
        let foreign = self.neighbour.as_mut().expect("a foreign exchange has a BSS");
        foreign.backlog -= 1;
        if foreign.backlog == 0 {
            self.functions[self.ppdus[sender].function].ready.clear();
        }
        self.end_access(sender, now);
    }

    /// The response to a PPDU ends.
    fn end_response(&mut self, sender: usize, now: Time, txop_ends: Time, out: &mut Out) {
        let (function, agreement) = (self.ppdus[sender].function, self.ppdus[sender].agreement);
        self.report(sender, now, out);
        self.agreements[agreement].requests = false;
        self.serve_next(function, agreement);
        let (station, up) = self.peer_of(agreement);
        self.keep_awake(station, up, now);
        let rest = if txop_ends > now { txop_ends.since(now).saturating_sub(SIFS) } else { Duration::ZERO };
        if rest.is_zero() {
            return self.end_access(sender, now);
        }
        if self.build(function, now, Some(rest), out) {
            self.stats.gap_time += SIFS;
            return self.transmit(sender, now + SIFS, txop_ends);
        }
        let end = ControlRate::cf_end();
        if rest < end {
            return self.end_access(sender, now);
        }
        self.stats.gap_time += SIFS;
        self.stats.control_time += end;
        self.phase = Phase::Ending { sender, until: now + SIFS + end };
    }

    /// A successful access ends.
    fn end_access(&mut self, sender: usize, now: Time) {
        self.release_medium(now);
        let function = self.ppdus[sender].function;
        self.functions[function].succeed(now, &mut self.contenders[sender].backoff);
        self.schedule();
    }

    /// Several senders begin at `now`.
    fn collide(&mut self, now: Time) {
        self.stats.collisions += 1;
        let mut until = now;
        for place in 0..self.senders.len() {
            let sender = self.senders[place];
            self.count_attempts(sender, true);
            let ppdu = &mut self.ppdus[sender];
            ppdu.frames.iter_mut().for_each(|frame| (frame.arrives, frame.collides) = (false, true));
            let first = ppdu.protection.map_or(ppdu.duration, |[rts, _]| rts);
            until = until.max(now + first);
            self.contenders[sender].hold = now + first + RESPONSE_TIMEOUT;
        }
        self.stats.collision_time += until.since(now);
        self.phase = Phase::Collision { until };
    }

    fn end_collision(&mut self, now: Time, out: &mut Out) {
        self.idle_from = now;
        if self.config.eifs {
            for (place, contender) in self.contenders.iter_mut().enumerate() {
                if !self.senders.contains(&place) {
                    contender.hold = now + EIFS_EXTENSION;
                }
            }
        }
        for place in 0..self.senders.len() {
            let sender = self.senders[place];
            let hold = self.contenders[sender].hold;
            self.miss_response(sender, true, now, hold, out);
        }
        self.schedule();
    }

    /// No response comes, which the sender knows at `timeout`, after a collision or not.
    pub(super) fn miss_response(
        &mut self,
        sender: usize,
        collided: bool,
        now: Time,
        timeout: Time,
        out: &mut Out,
    ) {
        self.contenders[sender].hold = timeout;
        let ppdu = &self.ppdus[sender];
        let (function, agreement) = (ppdu.function, ppdu.agreement);
        let was_sent = !ppdu.is_request && (ppdu.protection.is_none() || !collided);
        let is_aggregated = ppdu.frames.len() > 1;
        if agreement != FOREIGN {
            if was_sent {
                self.report(sender, now, out);
                self.agreements[agreement].requests = self.config.requests_block_ack && is_aggregated;
            }
            self.serve_next(function, agreement);
        }
        self.functions[function].fail(timeout.max(now), &mut self.contenders[sender].backoff);
    }

    /// Counts the attempts of a PPDU's MPDUs; in a collision, none if only an RTS was sent.
    pub(super) fn count_attempts(&mut self, sender: usize, collides: bool) {
        let ppdu = &self.ppdus[sender];
        if ppdu.agreement == FOREIGN || ppdu.is_request || collides && ppdu.protection.is_some() {
            return;
        }
        let (station, up) = self.peer_of(ppdu.agreement);
        let way = self.peers[station].stats_mut(up);
        let sent = ppdu.frames.len() as u64;
        way.ppdus += 1;
        way.packets.attempts += sent;
        if collides {
            way.packets.collided += sent;
            self.stats.collided += 1;
        }
        for frame in &ppdu.frames {
            let mpdu = self.agreements[ppdu.agreement].mpdu_mut(frame.index);
            mpdu.attempts += 1;
            way.packets.retries += u64::from(mpdu.attempts > 1);
        }
    }

    /// The sender knows which MPDUs of its PPDU have arrived.
    fn report(&mut self, sender: usize, now: Time, out: &mut Out) {
        let index = self.ppdus[sender].agreement;
        if self.ppdus[sender].is_request {
            return;
        }
        let (station, up) = self.peer_of(index);
        let mut delivered = 0;
        for place in 0..self.ppdus[sender].frames.len() {
            let frame = self.ppdus[sender].frames[place];
            let agreement = &mut self.agreements[index];
            let Mpdu { ref packet, attempts, .. } = agreement.window()[frame.index];
            let is_final = frame.arrives || self.config.retry_limit.is_reached(attempts);
            let size = packet.size;
            let signal = |packet: &Packet, outcome, out: &mut Out| {
                if !up && out.needs(outcome) {
                    out.signal(Signal::Link(LinkEvent { outcome, packet: *packet, attempt: attempts }));
                }
            };
            let stats = &mut self.peers[station].stats_mut(up).packets;
            if frame.arrives {
                delivered += 1;
                signal(packet, LinkOutcome::Delivered, out);
                agreement.acknowledge(frame.index);
            } else {
                stats.lost += u64::from(!frame.collides);
                signal(packet, LinkOutcome::AttemptFailed, out);
                if is_final {
                    stats.discarded += 1;
                    signal(packet, LinkOutcome::Discarded, out);
                    out.drop(*packet, DropReason::AttemptsExhausted);
                    agreement.give_up(frame.index, &mut self.released);
                }
            }
            if is_final && self.shares_queue(up) {
                let (packets, bytes) = &mut self.shared[index / self.peers.len()];
                *packets -= 1;
                *bytes = *bytes - size;
            }
        }
        self.agreements[index].advance();
        let (rate, sent) = (self.ppdus[sender].rate, self.ppdus[sender].frames.len() as u32);
        self.peers[station].rates[usize::from(up)].report(now, rate, sent, delivered);
        self.hand_on(station, up, now, out);
    }
}
