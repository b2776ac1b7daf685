//! Variable segment size: losses reduce the segment size instead of the window.
//!
//! **What it does.** A split connection as in METP. On the wireless part, the sender uses small segments
//! while losses are frequent, because these are hit less often and cost less to retransmit, and large
//! segments while losses are rare, because these have less header overhead.
//! **Source.** Park, Park and Park, "Enhancing TCP Performance over Wireless Network with Variable Segment
//! Size", section IV-B and table 3.
//! **Parameters.** `method`: 1, a loss halves the size and an acknowledgement increases it; 2, the size
//! follows the loss rate: if more than `wanted_loss` (e_w, 0.1) of the last `loss_window` (L_w, 5) packets
//! were lost, it decreases, by half if it is above half the largest size and by one step otherwise; below
//! that rate it increases. `losses`: what counts as a loss, besides a timeout: `"duplicates"`, each duplicate ACK,
//! which "means that a non-congestion loss occurs"; or `"segments"`, each lost segment, once. `growth`: one step
//! `"per-ack"`, as printed, or `"per-window"` of acknowledgements. `loss_rate`: how method 2 measures the loss rate, the
//! `"average"` over these packets, or a `"low-pass"` filter, which the paper names as an alternative: each packet has the
//! weight 2/(L_w + 1), so that the packets counted are as old on average. `initial_size` (s_i, 512 B), `largest_size`
//! (s_mx, 1024 B), `smallest_size` (s_mn, 128 B) and `step` (Δs, 128 B) are bytes of payload. `recovery`, `buffer`,
//! `wireless` and `handoff` as in `metp`, except that `packet_size` is set by the scheme: the largest size plus
//! headers. `split = false` leaves the connection whole, as section VI suggests: the source controls the size of its
//! segments by the losses that another scheme of the combination, such as `eln` or `lhack`, ascribes to the wireless link.
//! **Differences from the paper.** The paper's segment includes the TCP header (section I). An acknowledgement counts as
//! one packet, however much it covers; that of a SYN does not count. Sizes are rounded down to multiples of 8 B, the
//! granularity of memory blocks, and the smallest must be a multiple. If the wireless part counts its window in packets
//! (`window`, `window_counts`), these are packets of the current size.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::split::{LossRecovery, Split, StateTransfer};
use crate::tcp::{
    Action, Changes, Evidence, Flags, Hole, Reaction, Response, Segment, SenderState, SeqNum, Settings,
    WindowCounts, WindowSize,
};

/// Granularity of sizes in bytes.
const GRAIN: f64 = 8.0;

/// Variable segment size.
///
/// As `metp`, with a segment size on the wireless part that decreases on losses and otherwise grows. Sizes
/// are in bytes of payload, rounded down to multiples of 8 B. The paper's symbols are in parentheses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VsTcp {
    /// Whether the base station splits the connection, all of whose losses on the wireless part then count. Otherwise the
    /// source controls the size, up to that of its packets, and each loss counts that another scheme of the combination,
    /// such as `eln` or `lhack`, ascribes to the wireless link; alone, the size only grows. `losses` then has no effect, and
    /// `recovery`, `buffer`, `wireless` and `handoff` are refused; so is `lhack` before a link with a limited queue, whose drops
    /// it ascribes to the link as well.
    pub split: bool,
    /// Method 1: a loss halves the size, acknowledgements increase it. Method 2: the size follows the loss
    /// rate. Above `wanted_loss`, the size is halved if it exceeds half of the maximum, otherwise reduced by
    /// a step; below, it grows.
    pub method: Method,
    /// Initial size (s_i).
    pub initial_size: Bytes,
    /// Maximum size (s_mx).
    pub largest_size: Bytes,
    /// Minimum size (s_mn).
    pub smallest_size: Bytes,
    /// Step (Δs).
    pub step: Bytes,
    /// Growth by a step: `"per-ack"`, for each acknowledgement, as printed; or `"per-window"`, for a window of
    /// acknowledgements, in proportional parts, as in congestion avoidance.
    pub growth: Growth,
    /// What counts as a loss, besides a timeout: `"duplicates"`, each duplicate ACK, as printed; or `"segments"`,
    /// each lost segment, once.
    pub losses: Losses,
    /// Target loss rate of method 2 (e_w).
    pub wanted_loss: Probability,
    /// Number of packets over which method 2 counts losses (L_w), 1 to 1000.
    pub loss_window: u32,
    /// How method 2 measures the loss rate: `"average"`, over these packets; or `"low-pass"`, a filter in
    /// which each packet has the weight 2 / (L_w + 1), so that the counted packets have the same mean age.
    pub loss_rate: LossRate,
    /// Loss recovery on the wireless part: `"go-back-n"` retransmits everything from the loss on,
    /// `"selective-repeat"` only lost segments.
    pub recovery: LossRecovery,
    /// Buffer of the base station per connection: bytes acknowledged to one side and not yet by the other.
    pub buffer: Bytes,
    /// TCP overrides for the wireless part, except `flavour` and `congestion`, which the scheme sets, and
    /// `packet_size`, which it sets to the maximum size plus headers. A window in packets, or one that counts packets,
    /// holds that many packets of the current size.
    pub wireless: Changes,
    /// How the connections move with a moving host.
    pub handoff: StateTransfer,
}

/// Control method of the segment size (section IV-B.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u8", into = "u8")]
#[schemars(extend("minimum" = 1, "maximum" = 2))]
pub enum Method {
    /// Each loss halves the size.
    Halve,
    /// The loss rate controls the size.
    Rate,
}

impl TryFrom<u8> for Method {
    type Error = String;

    fn try_from(number: u8) -> Result<Method, String> {
        match number {
            1 => Ok(Method::Halve),
            2 => Ok(Method::Rate),
            _ => Err(format!("found {number}, expected 1 or 2")),
        }
    }
}

impl From<Method> for u8 {
    fn from(method: Method) -> u8 {
        match method {
            Method::Halve => 1,
            Method::Rate => 2,
        }
    }
}

/// When the size grows by a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// Once per window of acknowledgements, in proportion to each.
    PerWindow,
    /// With each acknowledgement.
    PerAck,
}

/// What counts as a loss, besides a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// Each duplicate ACK.
    Duplicates,
    /// Each lost segment, once.
    Segments,
}

/// Measurement of the loss rate (section IV-B.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossRate {
    /// The share of losses among the last packets.
    Average,
    /// An exponentially weighted average of all packets.
    LowPass,
}

impl Default for VsTcp {
    fn default() -> VsTcp {
        VsTcp {
            split: true,
            method: Method::Halve,
            initial_size: Bytes(512),
            largest_size: Bytes(1024),
            smallest_size: Bytes(128),
            step: Bytes(128),
            growth: Growth::PerAck,
            losses: Losses::Duplicates,
            wanted_loss: Probability::new(0.1).expect("a probability"),
            loss_window: 5,
            loss_rate: LossRate::Average,
            recovery: LossRecovery::default(),
            buffer: Bytes(65_536),
            wireless: Changes::default(),
            handoff: StateTransfer::default(),
        }
    }
}

impl VsTcp {
    fn split(&self, tcp: &Settings) -> Split {
        let split = Split::new(&self.wireless, tcp, self.buffer, self.handoff);
        let asked = split.wireless;
        let window = asked.window_packets().map_or(asked.window, WindowSize::Packets);
        let wireless = Settings { window, ..asked };
        let split = self.recovery.without_congestion_control(Split { wireless, ..split });
        // Sizes too large for a packet are reported by `faults`; until then the number must be valid.
        let mss = u32::try_from(self.largest_size.0).unwrap_or(u32::MAX);
        Split { wireless: split.wireless.with_mss(mss), ..split }
    }

    /// What is wrong with the wireless part.
    fn faults_of_split(&self, tcp: &Settings) -> Vec<(String, String)> {
        let mut faults = self.recovery.faults(&self.split(tcp), &self.wireless);
        let Settings { window, window_counts, packet_size, .. } = self.wireless.of(tcp);
        let is_short = window_counts == WindowCounts::Packets
            && matches!(window, WindowSize::Bytes(size) if size < packet_size);
        for (key, problem) in &mut faults {
            // The packet size is given here by its payload; a window in packets refers to the packet size of
            // the settings.
            if key == "wireless.packet_size" {
                *key = String::from("largest_size");
                *problem = format!("with the header, {problem}");
            } else if key == "wireless.window" && is_short {
                *problem = format!("found {window}, expected room for at least one packet of {packet_size}");
            }
        }
        if self.wireless.packet_size.is_some() {
            let problem = "found it, but the scheme sets it; choose by largest_size";
            faults.push((String::from("wireless.packet_size"), String::from(problem)));
        }
        faults
    }

    /// What is wrong without a wireless part of its own.
    fn faults_of_whole(&self, tcp: &Settings) -> Vec<(String, String)> {
        let plain = VsTcp::default();
        let stated = [
            ("recovery", self.recovery != plain.recovery),
            ("buffer", self.buffer != plain.buffer),
            ("wireless", self.wireless != plain.wireless),
            ("handoff", self.handoff != plain.handoff),
        ];
        let problem = "found it beside split = false, which leaves no wireless part to which it applies";
        let stated = stated.into_iter().filter(|(_, is_stated)| *is_stated);
        let mut faults: Vec<_> = stated.map(|(key, _)| (String::from(key), String::from(problem))).collect();
        let most = Bytes(tcp.mss().into());
        if self.largest_size > most {
            let found = self.largest_size;
            let problem =
                format!("found {found}, expected at most {most}, the payload of a packet of the source");
            faults.push((String::from("largest_size"), problem));
        }
        faults
    }
}

impl Scheme for VsTcp {
    fn name(&self) -> &'static str {
        "vs-tcp"
    }

    fn summary(&self) -> &'static str {
        "like metp; the segment size on the last hop follows the loss rate"
    }

    fn source(&self) -> &'static str {
        "Park et al. section IV"
    }

    fn with_real_hosts(&self) -> Option<[&'static str; 3]> {
        Some(["recovery", "selective-repeat", "RACK stands in"])
    }

    fn faults(&self, tcp: &Settings) -> Vec<(String, String)> {
        let mut faults = match self.split {
            true => self.faults_of_split(tcp),
            false => self.faults_of_whole(tcp),
        };
        let mut check = |holds: bool, key: &str, problem: String| {
            if !holds {
                faults.push((String::from(key), problem));
            }
        };
        let VsTcp { initial_size, largest_size, smallest_size, step, loss_window, .. } = *self;
        let grain = Bytes(GRAIN as u64);
        check(
            smallest_size >= grain && smallest_size.0 % grain.0 == 0,
            "smallest_size",
            format!("found {smallest_size}, expected a multiple of {grain}, as sizes are"),
        );
        check(
            largest_size >= smallest_size,
            "largest_size",
            format!("found {largest_size}, expected at least the smallest size, {smallest_size}"),
        );
        let between = initial_size >= smallest_size && initial_size <= largest_size;
        check(
            between || largest_size < smallest_size,
            "initial_size",
            format!(
                "found {initial_size}, expected {smallest_size} to {largest_size}: the smallest and largest size"
            ),
        );
        check(step > Bytes::ZERO, "step", String::from("found 0 B, expected more than zero"));
        check(
            (1..=1000).contains(&loss_window),
            "loss_window",
            format!("found {loss_window}, expected 1 to 1000"),
        );
        faults
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        if self.split {
            installer.split(|tcp| self.split(tcp));
        }
        installer.at_sender(&[Action::SetSegmentSize], || SizeController {
            scheme: self.clone(),
            size: self.initial_size.0 as f64,
            packets: None,
            outcomes: Outcomes::of(self),
            sent: VecDeque::new(),
            counted: None,
            repairs: false,
        });
    }
}

/// Controls the segment size.
#[derive(Debug)]
struct SizeController {
    scheme: VsTcp,
    /// The size before rounding.
    size: f64,
    /// Packets in a window that is counted in packets.
    packets: Option<u32>,
    outcomes: Outcomes,
    /// Segments in flight without a split, first and one past the last sequence number.
    sent: VecDeque<(SeqNum, SeqNum)>,
    /// The end of the last hole without a split that was counted, until it is acknowledged.
    counted: Option<SeqNum>,
    /// Whether the sender's size is that of a lost segment, for its repair.
    repairs: bool,
}

impl SizeController {
    fn note(&mut self, lost: bool, sender: &mut SenderState) {
        self.count(lost, sender);
        self.apply(sender);
    }

    fn count(&mut self, lost: bool, sender: &SenderState) {
        match self.scheme.method {
            Method::Halve if lost => self.halve(),
            Method::Halve => self.grow(sender),
            Method::Rate => {
                let (e_c, e_w) = (self.outcomes.note(lost), self.scheme.wanted_loss.get());
                let half_of_largest = self.scheme.largest_size.0 as f64 / 2.0;
                if e_c > e_w && self.size > half_of_largest {
                    self.halve();
                } else if e_c > e_w {
                    self.size -= self.scheme.step.0 as f64;
                } else if e_c < e_w {
                    self.grow(sender);
                }
            }
        }
    }

    /// A hole that another scheme ascribes to the link counts once. Its repair has the size of the lost segment: the
    /// acknowledgement of a smaller one would end Reno's recovery, and leave the rest to a timeout.
    fn note_hole(&mut self, seq: SeqNum, sender: &mut SenderState) {
        let lost = self.sent.iter().find(|(start, end)| *start <= seq && seq < *end);
        let (_, end) = *lost.unwrap_or(&(seq, seq + sender.mss()));
        if self.counted.is_none_or(|counted| counted <= seq) {
            self.count(true, sender);
            self.counted = Some(end);
        }
        // New data may leave before the next acknowledgement, in segments no smaller than usual.
        sender.set_mss((end - seq).max(self.scheme.smallest_size.0 as u32));
        self.repairs = true;
    }

    fn counts_duplicates(&self) -> bool {
        self.scheme.split && self.scheme.losses == Losses::Duplicates
    }

    fn halve(&mut self) {
        self.size /= 2.0;
    }

    fn grow(&mut self, sender: &SenderState) {
        let step = self.scheme.step.0 as f64;
        self.size += match self.scheme.growth {
            Growth::PerAck => step,
            Growth::PerWindow => step / (f64::from(sender.usable_window()) / self.size).max(1.0),
        };
    }

    fn apply(&mut self, sender: &mut SenderState) {
        let VsTcp { smallest_size, largest_size, .. } = self.scheme;
        self.size = self.size.clamp(smallest_size.0 as f64, largest_size.0 as f64);
        let mut mss = ((self.size / GRAIN) as u32) * GRAIN as u32;
        if !self.scheme.split {
            // The part of another scheme's split may have smaller packets than the flow.
            mss = mss.min(sender.settings().mss());
        }
        sender.set_mss(mss);
        if let Some(packets) = self.packets {
            sender.set_window(packets * mss);
        }
    }
}

impl Reaction for SizeController {
    fn on_start(&mut self, _now: Time, sender: &mut SenderState) {
        self.packets = match sender.settings().window {
            WindowSize::Packets(packets) if self.scheme.split => Some(packets),
            WindowSize::Bytes(_) | WindowSize::Packets(_) => None,
        };
        self.apply(sender);
    }

    fn on_sent(&mut self, _now: Time, start: SeqNum, end: SeqNum, again: bool) {
        if self.scheme.split {
            return;
        }
        if again {
            self.sent.retain(|(from, to)| *to <= start || *from >= end);
        }
        let place =
            if again { self.sent.partition_point(|(from, _)| *from < start) } else { self.sent.len() };
        self.sent.insert(place, (start, end));
    }

    fn on_segment(&mut self, _now: Time, segment: &Segment, sender: &mut SenderState) {
        while self.sent.front().is_some_and(|(_, end)| *end <= segment.ack) {
            self.sent.pop_front();
        }
        self.counted = self.counted.filter(|end| *end > segment.ack);
        if core::mem::take(&mut self.repairs) {
            self.apply(sender);
        }
        // The acknowledgement of a SYN does not count as a packet, and a lost SYN does not count as a loss.
        if segment.ack > sender.snd_una() && !segment.flags.has(Flags::SYN) {
            self.note(false, sender);
        } else if self.counts_duplicates() && sender.is_duplicate(segment) {
            self.note(true, sender);
        }
    }

    fn judge(&mut self, _now: Time, hole: Hole, sender: &mut SenderState) -> Response {
        if !self.scheme.split {
            return Response::Congestion;
        }
        // The duplicate that reveals a loss was counted.
        if hole.evidence == Evidence::Timeout || !self.counts_duplicates() {
            self.note(true, sender);
        }
        Response::Corruption
    }

    fn on_judged(&mut self, _now: Time, hole: Hole, response: Response, sender: &mut SenderState) {
        if self.scheme.split || response == Response::Congestion {
            return;
        }
        match hole.evidence {
            // A queue marked it; the link lost nothing.
            Evidence::Mark => (),
            // Everything is sent again, in segments of the new size.
            Evidence::Timeout => self.note(true, sender),
            _ => self.note_hole(hole.seq, sender),
        }
    }

    fn is_corruption(&self, _seq: SeqNum) -> bool {
        self.scheme.split
    }
}

/// Outcomes of the most recent packets.
#[derive(Debug)]
enum Outcomes {
    /// Those of the last packets, oldest first.
    Window { lost: VecDeque<bool>, losses: u32 },
    /// The loss rate, and the weight of the next packet in it.
    Filter { rate: f64, weight: f64 },
}

impl Outcomes {
    /// Without losses.
    fn of(scheme: &VsTcp) -> Outcomes {
        let count = scheme.loss_window;
        match scheme.loss_rate {
            LossRate::Average => Outcomes::Window { lost: (0..count).map(|_| false).collect(), losses: 0 },
            // Packets are (1 - w) / w older than the last on average, those of a window (L_w - 1) / 2.
            LossRate::LowPass => Outcomes::Filter { rate: 0.0, weight: 2.0 / (f64::from(count) + 1.0) },
        }
    }

    /// Adds an outcome and returns the loss rate.
    fn note(&mut self, is_lost: bool) -> f64 {
        match self {
            Outcomes::Window { lost, losses } => {
                lost.push_back(is_lost);
                let oldest = lost.pop_front().unwrap_or(false);
                *losses = *losses + u32::from(is_lost) - u32::from(oldest);
                f64::from(*losses) / lost.len() as f64
            }
            Outcomes::Filter { rate, weight } => {
                *rate += *weight * (f64::from(u8::from(is_lost)) - *rate);
                *rate
            }
        }
    }
}
