//! Accounting of one connection: derived from its segments and compared with the state of its endpoints.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::tcp::cc::Limit;
use lasthop_proto::tcp::{
    Congestion, Flavour, IdleRestart, LossStage, Receiver, Segment, Sender, SenderStats, SeqNum, Settings,
};
use lasthop_proto::{Component, ComponentId, Packet, Probe};

/// Tolerance of pacing: gaps are rounded to nanoseconds.
const ROUNDING: Duration = Duration::from_nanos(2);

/// Checks the segments and counters of a connection.
pub(crate) struct Account {
    settings: Settings,
    /// Bytes by which the sender may exceed its window, and whether it has a reaction.
    slack: u32,
    reacting: bool,
    sender: Option<ComponentId>,
    before: Option<View>,
    /// Segments sent that have not crossed the wire yet, all at the same instant.
    sendings: VecDeque<Sending>,
    last: Option<Departure>,
    sent_at: Time,
    /// The initial window, from which the sender restarts after an idle time: a segment if SYN was lost.
    initial: u32,
    /// Windows before reductions that may be undone.
    reduced: Vec<(f64, f64)>,
    /// Whether such a window was never visible: Westwood+ ends a recovery with an estimate of its own, which the next
    /// loss may reduce at once.
    unseen: bool,
    counted: Counted,
    /// One past the highest sequence number seen.
    max: Option<SeqNum>,
}

/// The sender's state at the last check.
#[derive(Clone, Copy)]
struct View {
    stats: SenderStats,
    cwnd: f64,
    ssthresh: f64,
    una: SeqNum,
    max: SeqNum,
    /// Bytes reported by SACK.
    sacked: u32,
    recovers: bool,
}

impl View {
    /// Bytes acknowledged or reported since `before`.
    fn delivered_since(&self, before: &View) -> u32 {
        (self.una - before.una + self.sacked).saturating_sub(before.sacked)
    }
}

/// An event in which segments were sent.
struct Sending {
    segments: u64,
    /// Pacing rate in bytes of payload per second.
    rate: Option<f64>,
    /// Whether something may be sent regardless of the rate.
    urgent: bool,
}

/// A segment that was sent.
struct Departure {
    at: Time,
    /// Earliest time of the next segment.
    next: Time,
}

/// Counters of segments sent by sender and receiver.
#[derive(Default)]
struct Counted {
    segments: u64,
    wire_bytes: Bytes,
    payload: Bytes,
    again: u64,
    bytes_again: Bytes,
    /// New payload.
    new: u64,
    answers: u64,
}

struct PacingRate(Option<f64>);

impl Probe for PacingRate {
    fn value(&mut self, name: &'static str, value: f64) {
        if name == "pacing_rate_bps" {
            self.0 = Some(value / 8.0).filter(|rate| rate.is_finite() && *rate > 0.0);
        }
    }
}

impl Account {
    pub(crate) fn new(settings: &Settings, slack: u32, reacting: bool) -> Account {
        Account {
            settings: settings.clone(),
            slack,
            reacting,
            sender: None,
            before: None,
            sendings: VecDeque::new(),
            last: None,
            sent_at: Time::ZERO,
            initial: settings.initial_window.bytes(settings.mss()),
            reduced: Vec::new(),
            unseen: false,
            counted: Counted::default(),
            max: None,
        }
    }

    /// A segment crosses a wire.
    pub(crate) fn note_segment(&mut self, now: Time, from: ComponentId, packet: &Packet, segment: &Segment) {
        if self.sender == Some(from) {
            self.note_sent(now, packet, segment);
        }
    }

    /// The receiver sent a segment.
    pub(crate) fn note_answer(&mut self) {
        self.counted.answers += 1;
    }

    fn note_sent(&mut self, now: Time, packet: &Packet, segment: &Segment) {
        let sending = self.sendings.front_mut().expect("an uncounted segment");
        sending.segments -= 1;
        let (rate, urgent) = (sending.rate, sending.urgent);
        if sending.segments == 0 {
            self.sendings.pop_front();
        }
        self.sent_at = now;
        self.counted.segments += 1;
        self.counted.wire_bytes += packet.size;
        self.counted.payload += Bytes(u64::from(segment.len));
        let occupied = segment.seq_len();
        if occupied == 0 {
            return;
        }
        let end = segment.seq + segment.len;
        let max = self.max.unwrap_or(segment.seq);
        let fresh = if end > max { end - max.max(segment.seq) } else { 0 };
        self.counted.new += u64::from(fresh);
        if segment.seq < max {
            self.counted.again += 1;
            self.counted.bytes_again += packet.size - Bytes(u64::from(fresh));
        }
        self.max = Some(max.max(segment.seq + occupied));
        if let Some(last) = &self.last {
            let early = now + ROUNDING < last.next;
            assert!(
                !early || urgent,
                "{now}: {segment:?} leaves before {}, sent after {}",
                last.next,
                last.at
            );
        }
        self.last = rate.map(|rate| {
            let gap = Duration::from_secs_f64(f64::from(occupied) / rate);
            Departure { at: now, next: now + gap }
        });
    }

    /// The sender handled an event.
    pub(crate) fn check_sender(&mut self, now: Time, id: ComponentId, sender: &Sender) {
        assert!(self.sender.is_none_or(|known| known == id), "a second sender");
        self.sender = Some(id);
        let stats = *sender.stats();
        let view = View {
            stats,
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            una: sender.snd_una(),
            max: sender.snd_max(),
            sacked: sender.reported().map(|block| block.end - block.start).sum(),
            recovers: sender.loss_report().stage == LossStage::Recovery,
        };
        let Some(before) = self.before.replace(view) else { return self.note_sendings(sender, &stats) };
        let did = stats.since(&before.stats);
        if did.timeouts > 0 && before.una == SeqNum(self.settings.iss) && self.settings.handshake {
            self.initial = self.settings.mss();
        }
        self.note_sendings(sender, &did);
        self.check_window(now, sender, &before, &did);
        let idle = view.una >= before.max && now.since(self.sent_at) > sender.rtt().rto();
        self.check_undo(now, &before, &view, &did, idle);
    }

    fn note_sendings(&mut self, sender: &Sender, did: &SenderStats) {
        if did.segments_sent > 0 {
            let mut rate = PacingRate(None);
            if self.settings.flavour == Flavour::Prr {
                sender.show(&mut rate);
            }
            // Tail loss probes and window probes have timers of their own; retransmissions requested by a
            // reaction are not paced.
            let urgent = did.tail_loss_probes + did.window_probes + did.notices + did.requested_segments > 0;
            self.sendings.push_back(Sending { segments: did.segments_sent, rate: rate.0, urgent });
        }
    }

    /// The last segment sent fits the window, except a probe, the single segment that may always be in
    /// flight, the first retransmission of a loss, and those that reactions request.
    fn check_window(&self, now: Time, sender: &Sender, before: &View, did: &SenderStats) {
        let new = sender.snd_max() > before.max;
        let by_records = self.settings.flavour == Flavour::Prr;
        let exempt = match self.settings.flavour {
            Flavour::Prr => 0,
            // All lost segments are sent in one burst.
            Flavour::SelectiveRepeat => u64::MAX,
            // Going back skips SACKed segments, and counts them.
            Flavour::Sack if sender.reported().next().is_some() => u64::MAX,
            _ => 1,
        };
        let governed = new || did.retransmitted_segments > exempt.saturating_add(did.requested_segments);
        if !governed || did.window_probes + did.notices > 0 {
            return;
        }
        let by_itself = did.segments_sent == 1;
        if by_itself && did.tail_loss_probes > 0 {
            return;
        }
        let slack = if by_records && !self.reacting { 0 } else { self.slack };
        let (pipe, window) = (sender.pipe(), sender.usable_window());
        let alone = by_itself && pipe <= self.settings.mss() + 1;
        // FIN occupies a sequence number but no buffer space.
        assert!(alone || pipe <= window + slack + 1, "{now}: {pipe} bytes in the network, window {window}");
    }

    /// After an undo the window has its previous value, plus growth of at most the bytes acknowledged or
    /// reported at that moment. Recovery ends, and most controllers grow, in whole segments: the rest of one is
    /// dropped. `idle` if nothing was outstanding, and nothing was sent for a timeout: the window may have
    /// restarted from its initial value.
    fn check_undo(&mut self, now: Time, before: &View, view: &View, did: &SenderStats, idle: bool) {
        let found = did.fast_retransmits + did.timeouts > 0;
        let own = self.settings.congestion.control().limit != Limit::Window;
        let mss = f64::from(self.settings.mss());
        if did.undone_reductions > 0 && !found && !own {
            // Hybla grows by more than the bytes acknowledged.
            let growth = match self.settings.congestion {
                Congestion::Hybla => f64::INFINITY,
                _ => f64::from(view.delivered_since(before)) + 2.0 * mss,
            };
            // A reaction may have opened the window to that of the receiver.
            let opened = if self.reacting { f64::from(self.settings.window_payload()) } else { 0.0 };
            let initial = f64::from(self.initial);
            let restarted = idle && self.settings.idle_restart != IdleRestart::Never;
            // Vegas may leave slow start with a smaller window, or lift its threshold to three quarters of a window that
            // grows; CUBIC may leave slow start.
            let (shrunk, moved) = match self.settings.congestion {
                Congestion::Vegas => (view.ssthresh == view.cwnd - mss, view.ssthresh == 0.75 * view.cwnd),
                Congestion::Cubic => (false, view.ssthresh == view.cwnd),
                _ => (false, false),
            };
            let restored = |&(cwnd, ssthresh): &(f64, f64)| {
                let least = if restarted { cwnd.min(initial) } else { cwnd - cwnd % mss };
                let high_enough = view.cwnd >= least || shrunk;
                let low_enough = view.cwnd <= cwnd.max(before.cwnd).max(opened) + growth;
                let threshold = shrunk || moved || view.ssthresh == ssthresh.max(before.ssthresh);
                high_enough && low_enough && threshold
            };
            // The threshold shows the window that was not seen.
            let unseen = (view.ssthresh, view.ssthresh);
            let found = self.reduced.iter().any(restored) || (self.unseen && restored(&unseen));
            assert!(
                found,
                "{now}: undone to {} and {}, reduced from {:?}",
                view.cwnd, view.ssthresh, self.reduced
            );
        }
        if did.undone_reductions > 0 && found {
            // The restored window was reduced again immediately.
            for (cwnd, ssthresh) in &mut self.reduced {
                (*cwnd, *ssthresh) = (cwnd.max(before.cwnd), ssthresh.max(before.ssthresh));
            }
        } else if did.undone_reductions > 0 {
            self.reduced.clear();
            self.unseen = false;
        }
        let is_westwood = self.settings.congestion == Congestion::Westwood;
        self.unseen |= is_westwood && did.fast_retransmits > 0 && before.recovers;
        // A threshold of two segments is not reduced further.
        let at_least = view.cwnd < before.cwnd && view.cwnd == view.ssthresh;
        if found || at_least || view.ssthresh < before.ssthresh {
            // With the same acknowledgement a recovery may have ended at the threshold and the next one
            // begun.
            for window in [(before.cwnd, before.ssthresh), (before.ssthresh, before.ssthresh)] {
                if !self.reduced.contains(&window) {
                    self.reduced.push(window);
                }
            }
        }
    }

    /// Checks after the run that the endpoints' counters match.
    pub(crate) fn check_end(&self, sender: &Sender, receiver: &Receiver, bytes: u64) {
        let (stats, counted) = (sender.stats(), &self.counted);
        assert_eq!(stats.segments_sent, counted.segments, "segments sent");
        assert_eq!(stats.wire_bytes_sent, counted.wire_bytes, "their size");
        assert_eq!(stats.payload_sent, counted.payload, "their payload");
        assert_eq!(stats.retransmitted_segments, counted.again, "retransmitted segments");
        assert_eq!(stats.retransmitted_bytes, counted.bytes_again, "their size");
        assert_eq!(counted.new, bytes, "payload sent for the first time");
        assert_eq!((sender.acknowledged(), sender.unsent(), sender.flight_size()), (bytes, 0, 0));
        assert_eq!(receiver.stats().acks_sent, counted.answers, "acknowledgements");
        assert!(receiver.stats().duplicate_segments <= receiver.stats().segments);
    }
}
