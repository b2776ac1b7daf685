//! Arriving segments: data, duplicates, SYN and RST.

use lasthop_base::Time;

use super::{Receiver, whole};
use crate::component::Out;
use crate::packet::{Ecn, Flags, Segment, SeqNum};
use crate::tcp::delayed_ack::Arrival;
use crate::tcp::rare;
use crate::tcp::timers::Timer;

impl Receiver {
    /// Processes a segment that has arrived with this ECN field.
    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        if self.is_next(segment) {
            self.take::<true>(now, segment, ecn, out);
        } else {
            self.take_any(now, segment, ecn, out);
        }
    }

    /// Whether the segment has nothing but the next data, within the window, and there are neither gaps nor reactions.
    #[inline(always)]
    fn is_next(&self, segment: &Segment) -> bool {
        let is_data = segment.flags == Flags::ACK && segment.len > 0 && segment.len <= self.window();
        let continues = segment.seq == self.rcv_nxt && self.queue.is_empty() && self.fin.is_none();
        is_data && continues && self.established && self.reactions.is_empty()
    }

    #[inline(never)]
    pub(in crate::tcp) fn take_any(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        self.take::<false>(now, segment, ecn, out);
    }

    /// Processes a segment; `NEXT` if it [is next](Receiver::is_next).
    #[inline(always)]
    fn take<const NEXT: bool>(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        if rare::<NEXT>(segment.flags & (Flags::SYN | Flags::RST) != Flags::default()) {
            return self.on_syn_or_rst(now, segment, ecn, out);
        }
        if rare::<NEXT>(!self.established) {
            if self.reset {
                self.refuse(now, segment, out);
            }
            return;
        }
        if self.is_outdated(now, segment) {
            return self.answer_outdated(now, segment, out);
        }
        if rare::<NEXT>(!self.reactions.is_empty()) {
            self.call_reactions(|reaction, receiver| reaction.on_segment(now, segment, receiver));
        }
        let is_unexpected = rare::<NEXT>(segment.seq != self.rcv_nxt || self.fin.is_some());
        let acceptable = !is_unexpected || self.is_acceptable(segment);
        if acceptable {
            self.note_timestamp(now, segment);
        }
        self.stats.marks += u64::from(ecn == Ecn::Ce);
        let marks_are_due = self.marks.on_packet(ecn, segment);
        if rare::<NEXT>(segment.seq_len() == 0) {
            if marks_are_due {
                self.acknowledge(now, None, out);
            }
            return;
        }
        if !acceptable {
            return self.acknowledge(now, None, out);
        }
        self.stats.segments += 1;
        let had_gap = rare::<NEXT>(!self.queue.is_empty());
        let in_order = !rare::<NEXT>(segment.seq != self.rcv_nxt);
        let repeated = if NEXT { None } else { self.repeated_part(segment) };
        if NEXT {
            self.deliver(now, self.rcv_nxt + segment.len);
        } else {
            self.store(now, segment);
        }
        let is_duplicate = repeated.is_some_and(|part| part == whole(segment));
        if is_duplicate {
            self.stats.duplicate_segments += 1;
        } else if self.autotuning.is_some() {
            self.tune(now, segment, in_order && !had_gap);
        }
        if rare::<NEXT>(self.fin.is_some() || segment.flags.has(Flags::FIN)) {
            self.take_fin(segment);
        }
        let arrival = Arrival {
            is_first: segment.seq == SeqNum(self.settings.iss),
            in_order,
            // A FIN is acknowledged immediately: no data follow that a delayed ACK could wait for.
            at_edge: !rare::<NEXT>(self.rcv_nxt != whole(segment).end),
            had_gap,
            has_gap: rare::<NEXT>(!self.queue.is_empty()),
            repeated: is_duplicate,
        };
        if self.delayed_ack.is_due(&arrival) || marks_are_due {
            let latest = Some((segment, repeated));
            if NEXT {
                self.acknowledge_as::<true>(now, latest, out);
            } else {
                self.acknowledge(now, latest, out);
            }
        } else if !self.timers.runs(Timer::DelayedAck) {
            self.timers.set(Timer::DelayedAck, self.settings.ack_due(now));
        }
    }

    /// Whether the segment is older than one that has moved the left edge (RFC 7323 section 5.3, R1).
    /// Timestamps that are unique per segment only identify it, and have no order.
    fn is_outdated(&self, now: Time, segment: &Segment) -> bool {
        let stamped = segment.timestamps.filter(|_| !self.settings.timestamps_are_unique());
        stamped.is_some_and(|ts| self.ts_recent.lead(now, ts.value).is_some())
    }

    /// Acknowledges an outdated segment without processing it. As in Linux, DSACK may report it as a duplicate, and data
    /// below the left edge cause quick acknowledgements.
    fn answer_outdated(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        if segment.seq_len() > 0 {
            let repeated = self.repeated_part(segment);
            self.stats.segments += 1;
            self.stats.outdated_segments += 1;
            self.stats.duplicate_segments += u64::from(repeated == Some(whole(segment)));
            if segment.seq < self.rcv_nxt {
                self.delayed_ack.on_duplicate();
            }
            self.acknowledge(now, Some((segment, repeated)), out);
        }
    }

    fn on_syn_or_rst(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut Out) {
        if segment.flags.has(Flags::RST) {
            self.on_rst(segment);
        } else if self.reset {
            self.refuse(now, segment, out);
        } else {
            self.on_syn(now, segment, ecn, out);
        }
    }
}
