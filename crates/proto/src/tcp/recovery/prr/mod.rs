//! Modern recovery: a [loss detector](crate::tcp::detection) on the records of sent segments, proportional
//! rate reduction (RFC 6937), tail loss probes (RFC 8985 section 7), and the undo of spurious reductions (RFC
//! 3522, 3708, 4015, 5682). Follows Linux where the RFCs leave a choice.

mod probe;
mod reduction;
mod spurious;
mod undo;

use alloc::boxed::Box;

use lasthop_base::{Duration, Time};

use self::probe::TailLossProbe;
use self::reduction::Reduction;
use self::undo::Undo;
use super::{LossReport, LossStage, Recovery};
use crate::component::Out;
use crate::packet::{SackBlock, Segment, SeqNum};
use crate::tcp::action::Action;
use crate::tcp::cc::Window;
use crate::tcp::delivery::RateSample;
use crate::tcp::detection::{self, Acknowledgement, Context, Found, LossDetector};
use crate::tcp::ecn::Delivered;
use crate::tcp::filter::Minimum;
use crate::tcp::reaction::{Evidence, Hole};
use crate::tcp::sent::{SegmentState, SentSegment};
use crate::tcp::settings::Settings;
use crate::tcp::state::SenderState;
use crate::tcp::timers::Timer;

/// Length of the window of the minimum round-trip time.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);
/// Reordering that every sender tolerates, segments.
const USUAL_REORDERING: u32 = 3;
/// Upper bound of the reordering estimate, segments.
const MAX_REORDERING: u32 = 300;

/// The congestion state of the sender (Linux `tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// No loss, no reordering.
    Open,
    /// Segments arrived out of order or twice.
    Disorder,
    /// The window is being reduced for a mark.
    Reduced(Reduction),
    /// Losses are being repaired.
    Recovery(Reduction),
    /// After a timeout.
    Loss(AfterTimeout),
}

impl Stage {
    fn is_calm(self) -> bool {
        matches!(self, Stage::Open | Stage::Disorder)
    }

    fn reduction(&mut self) -> Option<&mut Reduction> {
        if let Stage::Reduced(reduction) | Stage::Recovery(reduction) = self { Some(reduction) } else { None }
    }
}

/// What a transmission consists of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// Lost segments, then new data.
    LostFirst,
    /// New data, then lost segments (RFC 5682 section 3.1 step 2b).
    NewFirst,
    /// New data alone.
    NewOnly,
}

/// The state of F-RTO (RFC 5682).
#[derive(Clone, Copy, Debug, PartialEq)]
enum AfterTimeout {
    /// The timeout was genuine, or F-RTO is off.
    Justified,
    /// The timeout may be spurious; the next acknowledgements decide.
    Doubted,
}

/// Recovery with a record of each outstanding segment.
#[derive(Debug)]
pub(in crate::tcp) struct Prr {
    detector: Box<dyn LossDetector>,
    stage: Stage,
    /// `snd_max` at the start of the stage, which ends when this is acknowledged.
    high: SeqNum,
    undo: Undo,
    probe: Option<TailLossProbe>,
    /// Whether to restart the probe timer after the transmissions of the current event.
    probe_is_due: bool,
    /// Timeouts since the left edge last moved.
    timeouts: u32,
    /// First sequence number of the segment whose loss started recovery, until it is retransmitted; its cause
    /// was already determined.
    judged: Option<SeqNum>,
    /// What the next transmission consists of.
    order: Order,
    /// Reordering estimate: distance of the observed reordering, segments.
    reordering: u32,
    min_rtt: Option<Minimum<u64>>,
    /// Whether the detector responds to a reported duplicate with the next delivery.
    reported: bool,
    usage: Usage,
    /// End of the current round: the round-trip variation may shrink once per round.
    round_ends: SeqNum,
}

/// Whether the congestion window limited sending (RFC 7661; Linux `tcp_cwnd_validate`).
#[derive(Clone, Copy, Debug)]
struct Usage {
    limited: bool,
    /// The maximum number of outstanding segments in this flight.
    most_out: u32,
    flight_ends: SeqNum,
}

/// The effects of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    /// Whether the left edge advances.
    advances: bool,
    /// Newly delivered segments, and their bytes.
    segments: u32,
    bytes: u32,
    /// Whether anything was newly reported by SACK.
    sacks: bool,
    /// Whether it reports a duplicate (DSACK).
    duplicate: bool,
    /// Whether the duplicate was a retransmission other than a tail loss probe.
    needless: bool,
    /// Whether an original transmission from before the current stage was delivered.
    original: bool,
    /// Whether a retransmission was acknowledged cumulatively.
    resent: bool,
    /// Transmission times of the first and the last original acknowledged cumulatively, and of those reported
    /// by SACK.
    acked: Option<(Time, Time)>,
    sacked: Option<(Time, Time)>,
    /// The lowest original delivered after a segment with a higher sequence number.
    late: Option<SeqNum>,
}

impl News {
    fn take(
        &mut self,
        segment: &SentSegment,
        high: SeqNum,
        highest_report: Option<SeqNum>,
        cumulative: bool,
    ) {
        self.segments += 1;
        self.bytes += segment.len();
        self.sacks |= !cumulative;
        if segment.is_retransmission() {
            self.resent |= cumulative;
            return;
        }
        self.original |= segment.end <= high;
        if highest_report.is_some_and(|highest| segment.start < highest) {
            self.late = Some(self.late.map_or(segment.start, |late| late.min(segment.start)));
        }
        let times = if cumulative { &mut self.acked } else { &mut self.sacked };
        let (first, last) = times.unwrap_or((segment.sent_at, segment.sent_at));
        *times = Some((first.min(segment.sent_at), last.max(segment.sent_at)));
    }
}

impl Prr {
    pub(in crate::tcp) fn new(settings: &Settings) -> Prr {
        let iss = SeqNum(settings.iss);
        Prr {
            detector: detection::of(settings),
            stage: Stage::Open,
            high: iss,
            undo: Undo::default(),
            probe: None,
            probe_is_due: false,
            timeouts: 0,
            judged: None,
            order: Order::LostFirst,
            reordering: 0,
            min_rtt: None,
            reported: false,
            usage: Usage { limited: false, most_out: 0, flight_ends: iss },
            round_ends: iss,
        }
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.map(|filter| Duration::from_nanos(filter.get()))
    }

    fn context(&self, tcp: &SenderState, now: Time) -> Context {
        Context {
            now,
            srtt: tcp.rtt.srtt(),
            min_rtt: self.min_rtt(),
            in_recovery: matches!(self.stage, Stage::Recovery(_) | Stage::Loss(_)),
            dupthresh: tcp.dupthresh().max(self.reordering),
        }
    }

    /// The window in whole segments.
    fn cwnd(tcp: &SenderState) -> u32 {
        (tcp.cwnd() / f64::from(tcp.mss)) as u32
    }

    fn in_flight(tcp: &SenderState) -> u32 {
        tcp.records.segments.counts().in_flight
    }

    /// The window that allows `more` segments beyond those in flight, in bytes.
    fn window_for(tcp: &SenderState, more: u32) -> f64 {
        f64::from(tcp.records.segments.bytes_in_flight()) + f64::from(more) * f64::from(tcp.mss)
    }

    fn on_segment(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment) {
        let prior_una = tcp.snd_una;
        let prior_in_flight = Self::in_flight(tcp);
        let mut news = News { advances: segment.ack > tcp.snd_una, ..News::default() };
        self.take_news(tcp, now, segment, &mut news);
        if news.advances {
            tcp.advance(segment.ack);
            self.timeouts = 0;
        }
        let delivered = Delivered { packets: news.segments, bytes: news.bytes };
        if tcp.count_marks(now, segment, delivered) {
            self.on_mark(tcp, now);
        }
        let rtt = self.measure(tcp, now, segment, &news);
        if let Some(probe) = self.probe {
            self.on_probed(tcp, now, probe, segment, &news);
        }
        let dubious = news.sacks || news.duplicate || self.stage != Stage::Open;
        let lost = if dubious { self.alert(tcp, now, segment, &news, prior_una) } else { 0 };
        self.control(tcp, now, &news, rtt, lost, prior_una, prior_in_flight);
        if news.advances || self.repair_is_younger(tcp, &news) {
            // RFC 6298 section 5.3; RFC 8985 section 7.2.
            tcp.rearm(now);
            self.probe_is_due = true;
        }
    }

    /// Whether the reported segments were sent before the last transmission of the first outstanding segment:
    /// they show that the path is alive, but not that this segment is overdue (Linux `tcp_clean_rtx_queue`).
    fn repair_is_younger(&self, tcp: &SenderState, news: &News) -> bool {
        let (Some((first, _)), Some(head)) = (news.sacked, tcp.records.segments.first()) else {
            return false;
        };
        first < head.sent_at
    }

    /// Updates the records from the acknowledgement.
    fn take_news(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, news: &mut News) {
        if let Some(twice) = duplicate_report(segment, tcp.snd_una, tcp.snd_max) {
            news.duplicate = true;
            let segments = (twice.end - twice.start).div_ceil(tcp.mss);
            self.undo.on_duplicate_report(twice.start, segments);
            news.needless = self.probe.is_none_or(|probe| probe.high != twice.end);
        }
        let ack = Acknowledgement { now, min_rtt: self.min_rtt(), echo: None };
        let (high, una, max) = (self.high, tcp.snd_una.max(segment.ack), tcp.snd_max);
        let highest = tcp.sacked.end().filter(|_| !tcp.sacked.is_empty());
        for block in segment.sack.iter().filter(|block| block.is_news(una, max)) {
            let records = &mut tcp.records;
            tcp.sacked.insert(block.start, block.end, |part| {
                records.segments.sack(part.start, part.end, |sent| {
                    records.rate.on_delivered(now, sent.len(), sent.sent_at, &sent.snapshot);
                    self.detector.on_delivered(&ack, sent);
                    news.take(sent, high, highest, false);
                });
            });
        }
        if news.advances {
            let echo = segment.timestamps.map(|timestamps| timestamps.echo);
            let ack = Acknowledgement { echo, ..ack };
            let records = &mut tcp.records;
            records.segments.acknowledge(segment.ack, |sent| {
                if sent.state != SegmentState::Sacked {
                    records.rate.on_delivered(now, sent.len(), sent.sent_at, &sent.snapshot);
                    self.detector.on_delivered(&ack, sent);
                    news.take(sent, high, highest, true);
                } else {
                    news.resent |= sent.is_retransmission();
                }
            });
        }
        if let (Some(late), Some(highest)) = (news.late, highest) {
            self.note_reordering(highest - late, tcp.mss);
        }
        if news.needless {
            self.reported |= self.detector.on_duplicate_report();
        }
        if news.segments > 0 && core::mem::take(&mut self.reported) {
            let rate = &tcp.records.rate;
            self.detector.on_delivery_after_report(rate.prior_delivered(), rate.delivered());
        }
    }

    /// Records that data arrived after data up to `bytes` above them.
    fn note_reordering(&mut self, bytes: u32, mss: u32) {
        self.reordering = self.reordering.max(bytes.div_ceil(mss).min(MAX_REORDERING));
        self.detector.on_reordering();
    }

    /// Round-trip samples (RFC 6298; RFC 7323 section 4 where only timestamps tell): the first acknowledged
    /// original feeds the retransmission timeout, the last one the path delay.
    fn measure(
        &mut self,
        tcp: &mut SenderState,
        now: Time,
        segment: &Segment,
        news: &News,
    ) -> Option<Duration> {
        let echoed = || if news.advances { tcp.echoed_at(now, segment).map(|at| (at, at)) } else { None };
        let (first, last) = match (news.acked.filter(|_| !news.resent), news.sacked) {
            (Some((first, _)), Some((_, last))) => (first, last),
            (Some(times), None) | (None, Some(times)) => times,
            (None, None) => echoed()?,
        };
        let rtt = now.since(last);
        let nanos = rtt.as_nanos();
        let (time, window) = (now.as_nanos(), MIN_RTT_WINDOW.as_nanos());
        let filter = self.min_rtt.get_or_insert_with(|| Minimum::new(time, nanos));
        filter.update(window, time, nanos);
        let ends_round = tcp.snd_una > self.round_ends;
        tcp.rtt.sample(first, now);
        if ends_round {
            tcp.rtt.end_round();
            self.round_ends = tcp.snd_max;
        }
        tcp.count_rtt(rtt);
        tcp.note_rtt(now, rtt);
        Some(rtt)
    }

    /// Processes signs of loss; returns the number of segments marked lost.
    // Not inlined, like the other responses to losses, so that the usual acknowledgement pays only for what it needs.
    #[inline(never)]
    fn alert(
        &mut self,
        tcp: &mut SenderState,
        now: Time,
        segment: &Segment,
        news: &News,
        prior_una: SeqNum,
    ) -> u32 {
        if matches!(self.stage, Stage::Recovery(_)) {
            let original = tcp.settings.undo && self.echoes_an_original(segment);
            if tcp.snd_una >= self.high {
                if tcp.settings.undo && self.undo.is_due(original) {
                    self.undo_reduction(tcp, false);
                }
                self.end_recovery(tcp);
            } else if news.advances && original {
                if let Some(highest) = tcp.sacked.end().filter(|&highest| highest > prior_una) {
                    self.note_reordering(highest - prior_una, tcp.mss);
                }
                // The segment was late, not lost. While retransmissions are in flight, no other is sent.
                if Self::resent_in_flight(tcp).next().is_some() {
                    self.order = Order::NewOnly;
                    return 0;
                }
                self.undo_reduction(tcp, true);
                self.end_recovery(tcp);
            }
        } else if matches!(self.stage, Stage::Loss(_)) {
            self.on_news_after_timeout(tcp, segment, news);
        } else if matches!(self.stage, Stage::Reduced(_)) && tcp.snd_una >= self.high {
            self.end_recovery(tcp);
        }
        if tcp.settings.undo && self.undo.all_explained() && !matches!(self.stage, Stage::Loss(_)) {
            self.undo_reduction(tcp, false);
            self.end_recovery(tcp);
        }
        if news.advances {
            tcp.duplicates.end_row();
        } else if news.sacks {
            tcp.duplicates.count += 1;
        }
        let found = self.detect(tcp, now);
        let counts = tcp.records.segments.counts();
        match self.stage {
            Stage::Recovery(_) => {}
            Stage::Loss(_) if !found.retransmission => {}
            // As in Linux, losses of the last recovery whose repair has not arrived start the next recovery.
            _ if counts.lost + counts.repairs > 0 => self.enter_recovery(tcp, now),
            _ => self.keep_open(tcp),
        }
        found.lost
    }

    /// Runs the loss detector and sets the reordering timer.
    fn detect(&mut self, tcp: &mut SenderState, now: Time) -> Found {
        let context = self.context(tcp, now);
        let found = self.detector.detect(&context, &mut tcp.records.segments);
        match found.look_again {
            Some(at) => {
                let due = tcp.expiry(now, at.since(now) + tcp.settings.timer_allowance());
                tcp.timers.set(Timer::Reordering, due);
            }
            None => tcp.timers.stop(Timer::Reordering),
        }
        found
    }

    /// Outside recovery, updates the stage to open or disorder.
    fn keep_open(&mut self, tcp: &SenderState) {
        if matches!(self.stage, Stage::Open | Stage::Disorder) {
            let counts = tcp.records.segments.counts();
            self.stage = if counts.sacked + counts.lost > 0 { Stage::Disorder } else { Stage::Open };
        }
    }

    /// Enters recovery after a loss revealed by acknowledgements or by the reordering timer.
    fn enter_recovery(&mut self, tcp: &mut SenderState, now: Time) {
        tcp.timers.stop(Timer::Probe);
        let lost = tcp.records.segments.next_lost().map_or(tcp.snd_una, |lost| lost.start);
        let hole = Hole { seq: lost, evidence: Evidence::Sack };
        if let Stage::Reduced(mut reduction) = self.stage {
            // The window already comes down, and does so as long as it would have without a loss: losses of later data begin
            // a recovery of their own (Linux `tcp_enter_recovery`).
            self.probe = None;
            let before = *tcp.window();
            if tcp.answer_loss_after_mark(now, hole) {
                self.judged = Some(lost);
                reduction.lower_target(Self::target(tcp, &before));
            }
            self.stage = Stage::Recovery(reduction);
            return;
        }
        self.high = tcp.snd_max;
        self.begin_undo(tcp);
        self.probe = None;
        let (before, prior) = (*tcp.window(), Self::cwnd(tcp));
        tcp.answer_records_loss(now, hole);
        self.judged = Some(lost);
        self.stage = Stage::Recovery(Self::reduction(tcp, &before, prior));
    }

    /// The reduction towards the controller's target after a loss. The window itself shrinks gradually.
    fn reduction(tcp: &mut SenderState, before: &Window, prior: u32) -> Reduction {
        Reduction::new(prior, Self::target(tcp, before), tcp.settings.kernel().banks_deliveries())
    }

    /// The window that the controller has set, in segments: the window itself starts from what it was before.
    fn target(tcp: &mut SenderState, before: &Window) -> u32 {
        let target = Self::cwnd(tcp).max(1);
        if !tcp.governs_recovery() {
            tcp.window_mut().set_cwnd(before.cwnd());
        }
        target
    }

    /// Ends the stage: all data outstanding at its start are acknowledged, or its reduction was undone.
    fn end_recovery(&mut self, tcp: &mut SenderState) {
        if let Some(reduction) = self.stage.reduction() {
            // A window that losses do not reduce may have grown beyond 4 GiB.
            tcp.end_reduction(reduction.target().saturating_mul(tcp.mss));
            self.detector.on_recovered();
        }
        self.stage = Stage::Open;
        self.keep_open(tcp);
    }

    /// Notifies the controller, or reduces the window proportionally.
    #[expect(clippy::too_many_arguments, reason = "all that an acknowledgement changes")]
    fn control(
        &mut self,
        tcp: &mut SenderState,
        now: Time,
        news: &News,
        rtt: Option<Duration>,
        lost: u32,
        prior_una: SeqNum,
        prior_in_flight: u32,
    ) {
        if self.stage.reduction().is_some() {
            if news.segments > 0 {
                self.reduce(tcp, news.segments, news.advances && lost == 0);
            }
        } else if self.may_grow(news) && !tcp.governs_recovery() && self.usage_allows_growth(tcp) {
            tcp.grow(now, news.bytes, self.stage == Stage::Open);
        }
        tcp.report_losses(now);
        if !tcp.takes_samples() {
            return tcp.skip_sample();
        }
        let least = self.min_rtt().unwrap_or_default();
        let mss = tcp.mss;
        let mut sample = RateSample {
            now,
            rtt,
            newly_lost: u64::from(lost) * u64::from(mss),
            prior_in_flight: u64::from(prior_in_flight) * u64::from(mss),
            ack_delayed: news.advances && news.segments == 1 && tcp.snd_una - prior_una < mss,
            in_recovery: matches!(self.stage, Stage::Recovery(_)),
            in_loss: matches!(self.stage, Stage::Loss(_)),
            ..RateSample::default()
        };
        tcp.records.complete_sample(&mut sample, least, mss);
        tcp.on_sample(&sample);
    }

    /// Whether the acknowledgement grows the window: on a reordering path, SACK reports do so too (Linux
    /// `tcp_may_raise_cwnd`).
    fn may_grow(&self, news: &News) -> bool {
        news.advances || (news.sacks && self.reordering > USUAL_REORDERING)
    }

    /// Whether the window was fully used and may grow (Linux `tcp_is_cwnd_limited`).
    fn usage_allows_growth(&self, tcp: &SenderState) -> bool {
        let doubles = tcp.cwnd() < tcp.ssthresh() && Self::cwnd(tcp) < 2 * self.usage.most_out;
        !tcp.settings.cwnd_validation || self.usage.limited || doubles
    }

    /// Called after sending: records whether the window was the limit. Controllers that set the window during
    /// recovery, too, do not ask for it.
    fn note_usage(&mut self, tcp: &SenderState, limited: bool) {
        let counts = tcp.records.segments.counts();
        let out = counts.in_flight + counts.sacked + counts.lost;
        let flight_is_over = tcp.snd_una >= self.usage.flight_ends;
        if flight_is_over || limited || (!self.usage.limited && out > self.usage.most_out) {
            self.usage = Usage { limited, most_out: out, flight_ends: tcp.snd_max };
        }
    }

    /// Whether the congestion window has room for the next segment: the first `lost` one, or new data.
    fn window_has_room(tcp: &SenderState, lost: Option<SackBlock>) -> bool {
        let in_flight = tcp.records.segments.bytes_in_flight();
        let len = lost.map_or_else(|| tcp.len_at(tcp.snd_max), |lost| lost.end - lost.start);
        in_flight == 0 || f64::from(in_flight + len) <= tcp.cwnd()
    }

    /// Sends what the window and pacing allow. Returns whether the window was the limit.
    #[inline]
    fn fill_window(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) -> bool {
        let burst = tcp.settings.max_burst;
        let mut sent = 0;
        while burst == 0 || sent < burst {
            let lost = if self.order == Order::LostFirst { tcp.records.segments.next_lost() } else { None };
            if !Self::window_has_room(tcp, lost) {
                return true;
            }
            // Data that a shrunk window leaves out wait until it opens again, as in Linux; the timer probes it.
            if lost.is_some_and(|lost| !tcp.window_reaches(lost.start)) {
                break;
            }
            if !tcp.pacing_lets_out(now) {
                break;
            }
            if !self.send_one(tcp, now, lost, out) {
                if self.order == Order::NewFirst {
                    self.order = Order::LostFirst;
                    continue;
                }
                let counts = tcp.records.segments.counts();
                if tcp.unsent < u64::from(tcp.mss) && counts.lost == 0 && counts.in_flight < Self::cwnd(tcp) {
                    tcp.note_application_limited();
                }
                break;
            }
            sent += 1;
        }
        false
    }

    /// Sends the first `lost` segment, or new data; returns `false` if there is nothing to send.
    fn send_one(&mut self, tcp: &mut SenderState, now: Time, lost: Option<SackBlock>, out: &mut Out) -> bool {
        if let Some(lost) = lost {
            self.resend(tcp, now, lost, out);
            return true;
        }
        let sent = tcp.send_new(now, out);
        if sent {
            self.count_sent();
            self.probe_is_due = true;
        }
        sent
    }

    fn count_sent(&mut self) {
        if let Some(reduction) = self.stage.reduction() {
            reduction.on_sent();
        }
    }

    /// Retransmits a segment, or its first part if the segment size has decreased.
    #[inline(never)]
    fn resend(&mut self, tcp: &mut SenderState, now: Time, hole: SackBlock, out: &mut Out) {
        // The hole that started recovery was judged at that time.
        let judged = self.judged.take_if(|&mut judged| judged == hole.start).is_some();
        if matches!(self.stage, Stage::Recovery(_)) && !judged {
            let (before, prior) = (*tcp.window(), Self::cwnd(tcp));
            if tcp.judge(now, Hole { seq: hole.start, evidence: Evidence::Sack }) {
                // This is the first hole of the episode attributed to congestion.
                self.stage = Stage::Recovery(Self::reduction(tcp, &before, prior));
            }
        }
        let len = tcp.len_at(hole.start).min(hole.end - hole.start);
        tcp.emit(now, hole.start, len, out);
        if hole.start == tcp.snd_una {
            tcp.rearm(now);
        }
        self.on_resent(now);
    }

    fn on_resent(&mut self, now: Time) {
        self.undo.on_resent(now);
        self.count_sent();
    }
}

/// The duplicate reported by the first block (RFC 2883 section 4): already acknowledged data, or data within
/// the second block. Blocks never sent or too old are ignored.
fn duplicate_report(segment: &Segment, una: SeqNum, max: SeqNum) -> Option<SackBlock> {
    let first = *segment.sack.first()?;
    let (acked, within) = (first.end <= segment.ack, segment.sack.get(1).copied());
    let within = within.is_some_and(|second| second.start <= first.start && first.end <= second.end);
    let window = max - una;
    let valid = first.start < first.end && first.end <= max && first.start + (1 << 30) > una;
    let short = valid && first.end - first.start <= window.max(1 << 20);
    (short && (acked || within)).then_some(first)
}

impl Recovery for Prr {
    fn ignores(&self, action: Action) -> Option<&'static str> {
        super::ignores_bare_duplicates(action)
    }

    fn report(&self, tcp: &SenderState) -> LossReport {
        let counts = tcp.records.segments.counts();
        let stage = match self.stage {
            Stage::Open => LossStage::Open,
            Stage::Disorder => LossStage::Disorder,
            Stage::Reduced(_) => LossStage::Reduced,
            Stage::Recovery(_) => LossStage::Recovery,
            Stage::Loss(_) => LossStage::Loss,
        };
        let reordering = tcp.dupthresh().max(self.reordering);
        LossReport { stage, lost: counts.lost + counts.repairs, reordering }
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, _acked: u32, _out: &mut Out) {
        self.on_segment(tcp, now, segment);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, _out: &mut Out) {
        self.on_segment(tcp, now, segment);
    }

    /// As in Linux, a mark during recovery causes no further reduction, and a response to a mark ends the
    /// possibility of an undo.
    fn on_mark(&mut self, tcp: &mut SenderState, now: Time) {
        // A mark is answered once per window of data: the acknowledgement is beyond that of the last response, and ends it.
        if matches!(self.stage, Stage::Reduced(_)) {
            self.end_recovery(tcp);
        }
        if !self.stage.is_calm() {
            return tcp.note_reduction();
        }
        let (before, prior) = (*tcp.window(), Self::cwnd(tcp));
        self.undo = Undo::default();
        self.high = tcp.snd_max;
        tcp.respond_to_mark(now);
        self.stage = Stage::Reduced(Self::reduction(tcp, &before, prior));
    }

    fn on_reaction_resent(&mut self, now: Time) {
        self.on_resent(now);
    }

    fn pipe(&self, tcp: &SenderState) -> u32 {
        tcp.records.segments.bytes_in_flight()
    }

    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        self.time_out(tcp, now);
    }

    fn on_timer(&mut self, tcp: &mut SenderState, now: Time, timer: Timer, out: &mut Out) {
        match timer {
            Timer::Reordering => self.on_reordering_timer(tcp, now),
            Timer::Probe => self.send_probe(tcp, now, out),
            _ => {}
        }
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        if tcp.take_window_was_set()
            && let Some(reduction) = self.stage.reduction()
        {
            reduction.lower_target(Self::cwnd(tcp));
        }
        tcp.begin_sending(now);
        // Until the pacing timer expires, nothing leaves, and only `note_usage` asks whether the window has room.
        let waits = tcp.governs_recovery() && tcp.waits_for_departure(now);
        let limited = !waits && self.fill_window(tcp, now, out);
        self.order = Order::LostFirst;
        if core::mem::take(&mut self.probe_is_due) {
            self.schedule_probe(tcp, now);
        }
        if !tcp.governs_recovery() {
            self.note_usage(tcp, limited);
        }
    }
}

impl Prr {
    /// The reordering timer has expired (RFC 8985 section 6.3).
    fn on_reordering_timer(&mut self, tcp: &mut SenderState, now: Time) {
        if self.detect(tcp, now).lost == 0 {
            return;
        }
        let begins = !matches!(self.stage, Stage::Recovery(_));
        if begins {
            self.enter_recovery(tcp, now);
        }
        tcp.report_losses(now);
        if begins {
            self.reduce(tcp, 1, false);
        }
        tcp.rearm(now);
    }

    /// During recovery, the window is the data in flight plus the allowance of the reduction.
    fn reduce(&mut self, tcp: &mut SenderState, delivered: u32, advances: bool) {
        let in_flight = Self::in_flight(tcp);
        if let (Some(reduction), false) = (self.stage.reduction(), tcp.governs_recovery()) {
            let allowed = reduction.on_delivered(delivered, in_flight, advances);
            let window = Self::window_for(tcp, allowed);
            tcp.window_mut().set_cwnd(window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SackBlocks;
    use crate::tcp::delivery::Snapshot;
    use crate::tcp::sent::SentSegments;
    use alloc::vec;
    use alloc::vec::Vec;

    /// The times are those of the first and the last original, in whichever order an acknowledgement reports them.
    #[test]
    fn news_have_the_first_and_the_last_time_of_what_was_delivered() {
        let (mut sent, mut news, at) = (SentSegments::default(), News::default(), Time::from_nanos);
        for n in 0..3 {
            let start = SeqNum(1_000) + n * 1_000;
            sent.on_sent(at(3 + 2 * u64::from(n)), start, start + 1_000, Snapshot::default());
        }
        let segments: Vec<_> = sent.iter().copied().collect();
        for segment in [1, 0, 2].map(|place| &segments[place]) {
            news.take(segment, SeqNum(9_000), None, true);
            news.take(segment, SeqNum(9_000), None, false);
        }
        assert_eq!((news.acked, news.sacked), (Some((at(3), at(7))), Some((at(3), at(7)))));
    }

    fn report(ack: u32, blocks: &[(u32, u32)]) -> Option<(u32, u32)> {
        let mut sack = SackBlocks::default();
        for &(start, end) in blocks {
            sack.push(SackBlock { start: SeqNum(start), end: SeqNum(end) });
        }
        let segment = Segment { ack: SeqNum(ack), sack, ..Segment::default() };
        let found = duplicate_report(&segment, SeqNum(10_000_000), SeqNum(10_009_000));
        found.map(|block| (block.start.0, block.end.0))
    }

    /// The first block reports a duplicate if it lies below the acknowledgement or within the second block
    /// (RFC 2883 sections 4.1, 4.2).
    #[test]
    fn a_duplicate_is_acknowledged_or_within_the_second_block() {
        const ACK: u32 = 10_000_000;
        for (blocks, found) in [
            (vec![(ACK - 1000, ACK)], true),
            (vec![(ACK - 1000, ACK + 1)], false),
            (vec![(ACK + 1000, ACK + 2000)], false),
            // At the beginning of the second block, at its end, all of it, and beyond it on either side.
            (vec![(ACK + 3000, ACK + 4000), (ACK + 3000, ACK + 6000)], true),
            (vec![(ACK + 5000, ACK + 6000), (ACK + 3000, ACK + 6000)], true),
            (vec![(ACK + 3000, ACK + 6000), (ACK + 3000, ACK + 6000)], true),
            (vec![(ACK + 2999, ACK + 4000), (ACK + 3000, ACK + 6000)], false),
            (vec![(ACK + 5000, ACK + 6001), (ACK + 3000, ACK + 6000)], false),
            // Up to the last byte sent, and beyond it.
            (vec![(ACK + 8000, ACK + 9000), (ACK + 8000, ACK + 9000)], true),
            (vec![(ACK + 8000, ACK + 9001), (ACK + 8000, ACK + 9001)], false),
            // Empty, and as long as the largest that is believed while little is in flight.
            (vec![(ACK - 1000, ACK - 1000)], false),
            (vec![(ACK - (1 << 20), ACK)], true),
            (vec![(ACK - (1 << 20) - 1, ACK)], false),
        ] {
            assert_eq!(report(ACK, &blocks), found.then_some(blocks[0]), "{blocks:?}");
        }
        assert_eq!(report(ACK, &[]), None);
    }
}
