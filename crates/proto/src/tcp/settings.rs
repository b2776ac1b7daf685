//! Settings of a TCP connection, and the profiles that define them.
//!
//! [`Settings`] is the schema of the `[tcp]` table in scenario files, where the default profile is `linux`.
//! In code the default is `rfc`.

mod linux;
mod text;
mod unused;

use alloc::string::String;
use alloc::{format, vec::Vec};

use lasthop_base::{Bytes, Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::linux::Kernel;
pub use self::unused::no_effect;
use super::TIMESTAMPS;
use super::cc::{Congestion, Limit};
use super::ecn::EcnMode;
use super::timers::{Ticker, on_wheel};
use crate::packet::{Ecn, SackBlocks, SeqNum};

/// The receive window with which auto-tuning begins, before it is rounded to whole segments.
pub(super) const FIRST_WINDOW: u32 = 65_536;

/// A named set of settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// RFC 5681, 6298, 6582, 6675 and 6928.
    Rfc,
    /// One-way TCP of ns-2.35 with its defaults: windows count segments, not bytes.
    Ns2,
    /// A Linux server with default settings: CUBIC, RACK-TLP, PRR, F-RTO, timestamps, an initial window of
    /// ten segments, a minimum RTO of 200 ms. The default in scenario files.
    #[default]
    Linux,
    /// The same with the rules of Linux 5.15.100, where they have changed since.
    #[serde(rename = "linux-5.15")]
    Linux515,
    /// The Linux server with BBR (version 1) instead of CUBIC.
    LinuxBbr,
    /// The Linux server with BBR version 3, as in the kernel of its authors.
    #[serde(rename = "linux-bbr3")]
    LinuxBbr3,
    /// A FreeBSD 14 server with default settings: CUBIC with HyStart++, SACK loss detection, PRR, no tail
    /// loss probes.
    Freebsd,
    /// TCP of the EBSN paper (TR-96-014 section 3.3): Tahoe, a 100 ms clock, a 4 KB window.
    Ebsn,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flavour {
    /// Fast retransmit, then slow start from one segment (Jacobson 1988).
    Tahoe,
    /// Fast recovery until the first new acknowledgement (RFC 5681).
    Reno,
    /// Fast recovery of all losses in a window (RFC 6582).
    #[default]
    #[serde(rename = "newreno")]
    NewReno,
    /// SACK-based recovery (RFC 6675; with `rules = "ns2"` the older pipe algorithm of ns-2).
    Sack,
    /// For a single hop that delivers in order: if a later transmission is acknowledged first, the gap is
    /// lost. Retransmits everything from the first loss on.
    ///
    /// Every segment carries a unique timestamp, echoed by the acknowledgement that it triggers, so that
    /// copies can be distinguished.
    GoBackN,
    /// Like `GoBackN`, but retransmits only lost segments, using SACK (RFC 2018).
    SelectiveRepeat,
    /// Per-segment records, loss detection by `detection`, and proportional rate reduction (RFC 6937);
    /// optionally with tail loss probes, F-RTO and undo.
    Prr,
}

/// Loss detection with per-segment records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Detection {
    /// By time: a segment is lost if one sent a reordering window later was delivered (RACK, RFC 8985).
    #[default]
    Rack,
    /// By count: a segment is lost if `dupthresh` segments above it were SACKed (RFC 6675).
    Sack,
}

/// End of the initial slow start, for congestion controls that support it, such as CUBIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartExit {
    /// At the first loss.
    Loss,
    /// HyStart: at long ACK trains or a delay increase, from a window of 16 segments on (Ha and Rhee 2011, as in
    /// Linux since 6.14).
    Hystart,
    /// HyStart whose first round begins only when the window has 16 segments, as in Linux 5.16 to 6.13, and 5.15 with its stable
    /// fixes.
    #[serde(rename = "hystart-16")]
    Hystart16,
    /// HyStart++: at a delay increase, after conservative slow start (RFC 9406).
    #[default]
    #[serde(rename = "hystart++")]
    HystartPlusPlus,
}

/// Whether RFCs or ns-2 apply where they differ in detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rules {
    /// Windows are bytes. A loss halves the data in flight, and fast recovery ends with
    /// `cwnd = ssthresh` (RFC 5681, 6582, 6675).
    #[default]
    Rfc,
    /// Windows are counted in segments. A loss halves min(cwnd, rwnd), `ssthresh` in whole segments
    /// but `cwnd` exactly; the acknowledgement that ends recovery grows `cwnd`; during NewReno
    /// recovery at most two segments leave per acknowledgement; SYN counts as a segment; the first
    /// segment is never fast-retransmitted; SACK counts the pipe as ns-2's `Sack1` does.
    Ns2,
}

/// The initial window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InitialWindow {
    /// Two to four segments by their size (RFC 5681 section 3.1).
    Rfc5681,
    /// Ten segments, but at most 14,600 bytes or two segments, whichever is larger (RFC 6928).
    Rfc6928,
    /// A number of segments.
    Segments(u32),
}

impl InitialWindow {
    /// The initial window in bytes for segments of `mss` bytes.
    pub fn bytes(self, mss: u32) -> u32 {
        match self {
            InitialWindow::Rfc5681 if mss > 2190 => 2 * mss,
            InitialWindow::Rfc5681 if mss > 1095 => 3 * mss,
            InitialWindow::Rfc5681 => 4 * mss,
            InitialWindow::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
            InitialWindow::Segments(n) => n * mss,
        }
    }
}

/// The initial slow start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InitialThreshold {
    /// Unlimited: slow start until the first loss (RFC 5681 section 3.1: arbitrarily high).
    Unlimited,
    /// The receive window.
    Window,
    /// A number of segments.
    Segments(u32),
}

/// Arithmetic of the round-trip time estimator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttArithmetic {
    /// Exact time (RFC 6298 section 2); the tick is the clock granularity G of its formulas.
    #[default]
    Exact,
    /// Whole ticks in scaled integers (Jacobson 1988, appendix A); a sample is the number of ticks
    /// of a clock that runs from time zero.
    Ticks,
    /// Whole ticks in scaled integers; a sample is the time measured, to the nearest tick.
    NearestTick,
    /// Exact time as in Linux: the variation is at least the minimum RTO and decreases only once per round
    /// trip; deviations below the average have a reduced weight.
    Linux,
}

/// Which acknowledgements yield a round-trip time sample. Retransmitted data never do (Karn and Partridge
/// 1987), unless timestamps distinguish the copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttSamples {
    /// One segment is timed at a time.
    #[default]
    OneAtATime,
    /// Every acknowledgement of new data.
    EveryAck,
}

/// Size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowSize {
    /// In bytes, of the kind given by [`WindowCounts`].
    Bytes(Bytes),
    /// The payload of this number of full packets.
    Packets(u32),
}

impl WindowSize {
    /// The size in bytes for packets with `mss` bytes of payload.
    pub fn bytes(self, mss: u32) -> Bytes {
        match self {
            WindowSize::Bytes(size) => size,
            WindowSize::Packets(packets) => Bytes(u64::from(mss)) * u64::from(packets),
        }
    }
}

impl From<Bytes> for WindowSize {
    fn from(size: Bytes) -> WindowSize {
        WindowSize::Bytes(size)
    }
}

/// The unit that a window in bytes is charged with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowCounts {
    /// Payload, as in TCP.
    #[default]
    Payload,
    /// Whole packets including headers, as in simulators that count segments: as many as fit.
    Packets,
    /// The nearest number of whole packets including headers, at least one.
    NearestPackets,
}

/// When the end of Reno's fast recovery takes back the inflation of the window by duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deflation {
    /// Always (RFC 5681 section 3.2 step 6).
    #[default]
    Always,
    /// If more duplicates arrived than reveal a loss, as in 4.4BSD.
    Net3,
    /// Never.
    Never,
}

impl Deflation {
    /// Whether the inflation is taken back; `more` tells whether more duplicates arrived than reveal a loss.
    pub(super) fn takes_back(self, more: bool) -> bool {
        match self {
            Deflation::Always => true,
            Deflation::Net3 => more,
            Deflation::Never => false,
        }
    }
}

/// What becomes of the window when the sender was idle for more than one RTO, and no longer knows the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// It stays.
    Never,
    /// It falls to the initial window before the next transmission (RFC 5681 section 4.1).
    #[default]
    InitialWindow,
    /// When the application writes, it is halved for each RTO of idleness, down to the initial window, and slow start leads back to three
    /// quarters of it (RFC 2861, as Linux's `tcp_slow_start_after_idle` does it).
    Halving,
}

/// Defines the settings and their overrides from a single list.
macro_rules! settings {
    ($($(#[doc = $doc:literal])* $(#[serde($serde:meta)])? $(#[schemars($schemars:meta)])? $name:ident: $type:ty,)*) => {
        /// Settings of a TCP connection, for both ends.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Settings {
            /// The profile, which determines all settings not stated.
            pub profile: Profile,
            $($(#[doc = $doc])* $(#[serde($serde)])? $(#[schemars($schemars)])? pub $name: $type,)*
        }

        /// Overrides of settings, except the profile. Empty by default.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default, expecting = "a table")]
        pub struct Changes {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                $(#[schemars($schemars)])?
                pub $name: Option<$type>,
            )*
        }

        /// Overrides for one connection or host: another profile, which replaces all settings, and single
        /// settings. Empty by default.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default, expecting = "a table")]
        pub struct Override {
            /// The profile, which determines all settings not stated here. By default the settings of `[tcp]`
            /// apply.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub profile: Option<Profile>,
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                $(#[schemars($schemars)])?
                pub $name: Option<$type>,
            )*
        }

        impl Override {
            /// Applies the overrides to `settings`.
            pub fn of(&self, settings: &Settings) -> Settings {
                let base = self.profile.map_or_else(|| settings.clone(), Profile::settings);
                Settings {
                    profile: base.profile,
                    $($name: self.$name.clone().unwrap_or_else(|| base.$name.clone()),)*
                }
            }

            /// Whether there are no overrides.
            pub fn is_none(&self) -> bool {
                *self == Override::default()
            }

            /// The keys that are stated, except the profile.
            pub fn stated(&self) -> impl Iterator<Item = &'static str> {
                [$((stringify!($name), self.$name.is_some()),)*]
                    .into_iter()
                    .filter_map(|(key, is_stated)| is_stated.then_some(key))
            }
        }

        impl Settings {
            /// Takes the setting `key` from `other`; the profile, or an unknown key, changes nothing.
            pub fn take(&mut self, key: &str, other: &Settings) {
                match key {
                    $(stringify!($name) => self.$name = other.$name.clone(),)*
                    _ => {}
                }
            }

            /// The keys whose values differ from those of the profile.
            pub fn own_keys(&self) -> impl Iterator<Item = &'static str> {
                let usual = self.profile.settings();
                [$((stringify!($name), self.$name != usual.$name),)*]
                    .into_iter()
                    .filter_map(|(key, differs)| differs.then_some(key))
            }
        }

        impl Changes {
            /// Applies the overrides to `settings`.
            pub fn of(&self, settings: &Settings) -> Settings {
                Settings {
                    profile: settings.profile,
                    $($name: self.$name.clone().unwrap_or_else(|| settings.$name.clone()),)*
                }
            }
        }
    };
}

settings! {
    /// Loss detection and recovery: `"tahoe"`, `"reno"`, `"newreno"` (RFC 6582) or `"sack"` (RFC 6675); or
    /// `"prr"`, as in Linux: a record of each segment in flight, loss detection by `detection`, and
    /// proportional rate reduction (RFC 6937). Or, for a single hop that delivers in order: `"go-back-n"`
    /// retransmits everything from the first loss on, `"selective-repeat"` only lost segments. Both put a
    /// timestamp into every segment.
    flavour: Flavour,
    /// Loss detection. `"rack"`: a segment is lost if a later one was delivered and a reordering window has
    /// passed (RACK, RFC 8985). `"sack"`: a segment is lost if `dupthresh` segments above it were SACKed (RFC
    /// 6675). Flavour `prr` only.
    detection: Detection,
    /// Congestion control. `"bbr"`, `"bbr3"`, `"prague"` and `"westwood"` require flavour `prr`, for its delivery rate samples.
    congestion: Congestion,
    /// End of the initial slow start, CUBIC only. `"loss"`: only at a loss. `"hystart"`: also at long ACK
    /// trains or a delay increase, from 16 segments on (HyStart, Ha and Rhee 2011, as in Linux since 6.14).
    /// `"hystart-16"`: the same, but no round begins before the window has 16 segments, as in Linux 5.16 to
    /// 6.13, and 5.15 with its stable fixes. `"hystart++"`: at a delay increase, after conservative slow start (RFC 9406).
    slow_start_exit: SlowStartExit,
    /// Whether the RFCs or ns-2 apply where they differ in detail: windows count bytes with `"rfc"`, segments
    /// with `"ns2"`.
    rules: Rules,

    /// Maximum packet size, headers and timestamps included: the MTU of the hosts. Timestamps take 12 B, with `rules = "ns2"` none.
    packet_size: Bytes,
    /// Size of IP and TCP headers without options.
    header: Bytes,
    /// The receive buffer, the maximum advertised window: a size, or a number of packets such as `"10
    /// packets"`, which means the payload of that many full packets of `packet_size`.
    window: WindowSize,
    /// What counts against a window given as a size: `"payload"`, or whole `"packets"` with headers.
    window_counts: WindowCounts,
    /// Auto-tuning of the receive window, as in Linux: it begins with 64 KiB, each segment opens it by two
    /// segments, as far as room for twice the bytes of the last round trip allows (more while they increase),
    /// up to `window`. A segment that opens it is acknowledged immediately. For hosts: the buffers of base
    /// stations that split connections are fixed.
    window_autotuning: bool,
    /// The Linux whose rules apply where they have changed: `"linux-6.18"`, or `"linux-5.15"`, with which recovery sends at most what an
    /// acknowledgement delivers, unless it advances the left edge and reveals no loss (before 5.19), the timers of probes and reordering have an allowance of two ticks in
    /// place of 2 ms (before 6.6), and, with the profiles of Linux, a SYN backs off at once (before 6.5). By default 6.18, with
    /// profile `linux-5.15` 5.15.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Kernel>,
    /// Initial window: `"rfc5681"`, `"rfc6928"` or a number of segments.
    initial_window: InitialWindow,
    /// Start with one segment; the initial window applies from the first acknowledgement on (`ns2` rules
    /// only).
    delay_growth: bool,
    /// Initial slow start threshold: `"unlimited"`, `"window"` or a number of segments.
    initial_ssthresh: InitialThreshold,
    /// Initial sequence number. Fixed for reproducible runs, although RFC 9293 section 3.4.1 requires it to
    /// be unpredictable.
    iss: u32,
    /// Open with SYN and SYN-ACK.
    handshake: bool,
    /// Close with FIN from both ends once all data are sent.
    close: bool,

    /// Duplicate ACK threshold (RFC 5681: 3).
    #[schemars(range(min = 1))]
    dupthresh: u32,
    /// Limited transmit: send new data on the first duplicate acknowledgements (RFC 3042).
    limited_transmit: bool,
    /// Maximum number of segments sent at once; 0 for no limit.
    max_burst: u32,
    /// The window after an idle period of more than one RTO: `"initial-window"` (RFC 5681 section 4.1); `"halving"`, for each RTO, down to
    /// the initial window, with slow start back to 3/4 of it, as Linux does when the application writes (RFC 2861,
    /// `tcp_slow_start_after_idle`); or `"never"`: it stays.
    idle_restart: IdleRestart,
    /// Halve exactly; otherwise round down to whole segments (`ns2` rules only).
    halve_exactly: bool,
    /// At most one fast retransmit for each window of data (RFC 6582 section 4.1).
    careful: bool,
    /// Reno: when the end of fast recovery takes back the inflation of a reduced window by duplicates: `"always"` (RFC 5681
    /// section 3.2 step 6); `"net3"`, if more duplicates arrived than reveal a loss, as in 4.4BSD; or `"never"`.
    deflation: Deflation,
    /// NewReno: a partial acknowledgement deflates the window by the bytes acknowledged (RFC 6582 section 3.2 step 3); otherwise
    /// by the whole inflation.
    partial_deflation: bool,
    /// NewReno: only the first partial acknowledgement restarts the timer ("Impatient", RFC 6582 section 3.2 step 3); otherwise each does
    /// ("Slow-but-Steady").
    impatient: bool,
    /// SACK with `ns2` rules: each partial acknowledgement sends two segments.
    partial_ack_sends: bool,

    /// Tail loss probes: probe for the loss of the last segments before the timeout (RFC 8985 section 7).
    /// Flavour `prr` only.
    tlp: bool,
    /// F-RTO: detect spurious timeouts (RFC 5682). Flavour `prr` only.
    frto: bool,
    /// Undo spurious window reductions, detected by timestamps, DSACK or F-RTO (RFC 3708, 4015, 5682).
    /// Flavour `prr` only.
    undo: bool,
    /// Congestion window validation: the window grows only while it limits the sender (RFC 7661). Flavour
    /// `prr` only.
    cwnd_validation: bool,
    /// Explicit congestion notification: queues mark packets instead of dropping them. It is negotiated in the handshake. `true`: the
    /// receiver echoes one mark per round trip, to which the sender responds like to a loss (RFC 3168). `"accurate"`: the receiver
    /// counts marked packets and the bytes in them (AccECN, RFC 9768), which `"dctcp"` and `"prague"` need and always ask for; others
    /// respond as with `true`. Linux: `tcp_ecn` 1 and 3.
    ecn: EcnMode,
    /// Prague recognises a classic queue with ECN by how much round-trip times vary and exceed their minimum, and answers its marks nearly
    /// like a classic control (`prague_ecn_fallback = 1` in the kernel of its authors up to 0.6, off by default). It takes the jitter of a
    /// link, or its ARQ, for such a queue, too.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    ecn_fallback: bool,
    /// Pacing: spread segments over the round-trip time. Flavour `prr` only. BBR and Prague always pace.
    pacing: bool,

    /// Arithmetic of the round-trip estimator: `"exact"` time (RFC 6298); whole `"ticks"` of a running clock;
    /// time rounded to the `"nearest-tick"`; or exact time as in `"linux"`, with a variation of at least
    /// `rto_min` that decreases only once per round trip.
    rtt_arithmetic: RttArithmetic,
    /// Which acknowledgements give a round-trip sample. Retransmitted data give none, unless timestamps
    /// distinguish the copies. `"one-at-a-time"`: one segment is timed at a time. `"every-ack"`: every
    /// acknowledgement of new data.
    rtt_samples: RttSamples,
    /// Clock granularity. With the arithmetic of `"linux"`, timers are rounded up to ticks: from 63 ticks on
    /// to multiples of 8, from 504 on to multiples of 64.
    tick: Duration,
    /// Retransmission timeout before the first sample.
    rto_initial: Duration,
    /// Minimum retransmission timeout, before backoff.
    rto_min: Duration,
    /// Maximum retransmission timeout, after backoff.
    rto_max: Duration,
    /// Maximum factor of the exponential backoff; 0 for no limit except `rto_max`.
    backoff_max: u32,
    /// Whether a timeout restarts the timer before it doubles the RTO, so that the first retransmission waits
    /// for the undoubled one.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    late_backoff: bool,
    /// Number of timeouts of SYN that do not double the RTO. By default none, but with the profiles of Linux 4, as since Linux 6.5
    /// (`tcp_syn_linear_timeouts`), unless `kernel` is 5.15.
    #[serde(skip_serializing_if = "Option::is_none")]
    syn_linear_timeouts: Option<u32>,
    /// The first six timeouts in a row of a thin stream, which has fewer than four segments in flight after its initial slow start, do
    /// not double the RTO (Linux `tcp_thin_linear_timeouts`, off by default). Only flavour `prr` counts short segments as such.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    thin_linear_timeouts: bool,
    /// Detection of path-MTU black holes: after three seconds of timeouts, segments have at most 1024 B of payload, and half of that after
    /// each further timeout (Linux `tcp_mtu_probing = 1`, off by default; RFC 4821). Unlike Linux, it does not search for a larger
    /// size afterwards: an outage of more than three seconds lowers it for good.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    mtu_probing: bool,
    /// User timeout: maximum silence of the peer while data, SYN or FIN are outstanding or a closed window is
    /// probed. The connection is then aborted when the next timer expires. RFC 9293 recommends at least 100
    /// s. By default none, but with the profiles of Linux 924.6 s, which its 15 retransmissions come to
    /// (`tcp_retries2`), and 131 s for SYN, which are 127 s with `kernel` 5.15 or
    /// `syn_linear_timeouts = 0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_timeout: Option<Duration>,

    /// Maximum number of segments per acknowledgement: 2 delays acknowledgements.
    #[schemars(range(min = 1))]
    ack_every: u32,
    /// Number of segments acknowledged immediately at the start and after a duplicate, before delayed
    /// acknowledgements apply, as in Linux.
    quick_acks: u32,
    /// Maximum delay of an acknowledgement (RFC 9293 section 3.8.6.3: below 0.5 s).
    ack_delay: Duration,
    /// Tick of the clock on which the delayed ACK timer expires, as in Linux; zero for an exact timer.
    ack_tick: Duration,
    /// Maximum number of SACK blocks per acknowledgement, 1 to 4; at most 3 with timestamps (RFC 2018 section 3).
    #[schemars(range(min = 1, max = 4))]
    sack_blocks: u32,
    /// DSACK: report duplicate data in the first SACK block (RFC 2883).
    dsack: bool,
    /// The timestamps option (RFC 7323): 12 more header bytes, and a round-trip sample from every
    /// acknowledgement.
    timestamps: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            profile: Profile::Rfc,
            flavour: Flavour::NewReno,
            detection: Detection::Rack,
            congestion: Congestion::Aimd,
            slow_start_exit: SlowStartExit::HystartPlusPlus,
            rules: Rules::Rfc,
            packet_size: Bytes(1500),
            header: Bytes(40),
            window: Bytes(65_535).into(),
            window_counts: WindowCounts::Payload,
            window_autotuning: false,
            kernel: None,
            initial_window: InitialWindow::Rfc6928,
            delay_growth: false,
            initial_ssthresh: InitialThreshold::Unlimited,
            iss: 0,
            handshake: true,
            close: true,
            dupthresh: 3,
            limited_transmit: true,
            max_burst: 0,
            idle_restart: IdleRestart::InitialWindow,
            halve_exactly: true,
            careful: true,
            deflation: Deflation::Always,
            partial_deflation: true,
            impatient: true,
            partial_ack_sends: false,
            tlp: true,
            frto: true,
            undo: true,
            cwnd_validation: true,
            ecn: EcnMode::Off,
            ecn_fallback: false,
            pacing: false,
            rtt_arithmetic: RttArithmetic::Exact,
            rtt_samples: RttSamples::OneAtATime,
            tick: Duration::from_millis(1),
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_secs(60),
            backoff_max: 0,
            late_backoff: false,
            syn_linear_timeouts: None,
            thin_linear_timeouts: false,
            mtu_probing: false,
            user_timeout: None,
            ack_every: 2,
            quick_acks: 0,
            ack_delay: Duration::from_millis(200),
            ack_tick: Duration::ZERO,
            sack_blocks: 3,
            dsack: false,
            timestamps: false,
        }
    }
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 8] = [
        Profile::Rfc,
        Profile::Linux,
        Profile::Linux515,
        Profile::LinuxBbr,
        Profile::LinuxBbr3,
        Profile::Freebsd,
        Profile::Ns2,
        Profile::Ebsn,
    ];

    /// The name in scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Rfc => "rfc",
            Profile::Linux => "linux",
            Profile::Linux515 => "linux-5.15",
            Profile::LinuxBbr => "linux-bbr",
            Profile::LinuxBbr3 => "linux-bbr3",
            Profile::Freebsd => "freebsd",
            Profile::Ns2 => "ns2",
            Profile::Ebsn => "ebsn",
        }
    }

    /// The profile called `name` in scenario files.
    pub fn named(name: &str) -> Option<Profile> {
        Profile::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// Whether a system with this profile finds the MTU of its path (RFC 1191). Simulated senders do not: their packets have
    /// `packet_size` bytes.
    pub fn finds_mtu(self) -> bool {
        !matches!(self, Profile::Rfc | Profile::Ns2 | Profile::Ebsn)
    }

    /// The settings of the profile.
    pub fn settings(self) -> Settings {
        match self {
            Profile::Rfc => Settings::default(),
            Profile::Linux => Settings {
                profile: self,
                flavour: Flavour::Prr,
                detection: Detection::Rack,
                congestion: Congestion::Cubic,
                slow_start_exit: SlowStartExit::Hystart,
                // Rarely the limit: the third value of tcp_rmem up to Linux 6.15; 32 MiB since.
                window: Bytes(6 << 20).into(),
                window_autotuning: true,
                initial_window: InitialWindow::Segments(10),
                idle_restart: IdleRestart::Halving,
                rtt_arithmetic: RttArithmetic::Linux,
                rto_min: Duration::from_millis(200),
                rto_max: Duration::from_secs(120),
                // As in Debian's kernels: CONFIG_HZ is 250.
                tick: Duration::from_millis(4),
                ack_delay: Duration::from_millis(40),
                ack_tick: Duration::from_millis(4),
                quick_acks: 16,
                dsack: true,
                timestamps: true,
                ..Settings::default()
            },
            // Linux 5.15.100. Half of the third value of tcp_rmem (tcp_adv_win_scale); net/ipv4/tcp_cubic.c, with the fix of 5.16.
            Profile::Linux515 => Settings {
                profile: self,
                slow_start_exit: SlowStartExit::Hystart16,
                window: Bytes(3 << 20).into(),
                ..Profile::Linux.settings()
            },
            Profile::LinuxBbr => {
                Settings { profile: self, congestion: Congestion::Bbr, ..Profile::Linux.settings() }
            }
            Profile::LinuxBbr3 => {
                Settings { profile: self, congestion: Congestion::Bbr3, ..Profile::Linux.settings() }
            }
            // sys/netinet of FreeBSD 14: a minimum RTO of 30 ms plus a slop of 200 ms.
            Profile::Freebsd => Settings {
                profile: self,
                flavour: Flavour::Prr,
                detection: Detection::Sack,
                congestion: Congestion::Cubic,
                slow_start_exit: SlowStartExit::HystartPlusPlus,
                window: Bytes(2 << 20).into(),
                initial_window: InitialWindow::Segments(10),
                tlp: false,
                frto: false,
                rto_min: Duration::from_millis(230),
                ack_delay: Duration::from_millis(40),
                dsack: true,
                timestamps: true,
                ..Settings::default()
            },
            Profile::Ns2 => Settings {
                profile: self,
                rules: Rules::Ns2,
                initial_window: InitialWindow::Segments(2),
                delay_growth: true,
                initial_ssthresh: InitialThreshold::Window,
                window: Bytes(20 * 1460).into(),
                handshake: true,
                close: false,
                rtt_arithmetic: RttArithmetic::Ticks,
                tick: Duration::from_millis(10),
                rto_initial: Duration::from_secs(3),
                rto_min: Duration::from_millis(200),
                ack_every: 1,
                ack_delay: Duration::from_millis(100),
                ..Settings::default()
            },
            // Stated in the paper: Tahoe, 576 B packets with 40 B headers, 4 KB window, 100 ms clock. The
            // paper leaves everything else open; the values are those of contemporary simulators. The minimum
            // RTO is two ticks, because one tick would expire within a tick of the sample that set it.
            // Samples from every acknowledgement, in ticks of a running clock, make the worked example time
            // out for packet 27 at 13.75 s as printed; measured to the nearest tick they yield 13.65 s; with
            // one segment timed at a time there is no timeout at all.
            Profile::Ebsn => Settings {
                profile: self,
                flavour: Flavour::Tahoe,
                rules: Rules::Ns2,
                packet_size: Bytes(576),
                window: Bytes(4096).into(),
                window_counts: WindowCounts::Packets,
                initial_window: InitialWindow::Segments(1),
                initial_ssthresh: InitialThreshold::Window,
                handshake: false,
                close: false,
                limited_transmit: false,
                rtt_arithmetic: RttArithmetic::Ticks,
                rtt_samples: RttSamples::EveryAck,
                tick: Duration::from_millis(100),
                rto_initial: Duration::from_secs(6),
                rto_min: Duration::from_millis(200),
                rto_max: Duration::from_secs(64),
                backoff_max: 64,
                ack_every: 1,
                ..Settings::default()
            },
        }
    }
}

impl Override {
    /// The `settings` of a sender after its handshake with a host that has these overrides: packets no larger than the host's
    /// (RFC 9293 section 3.7.1), and timestamps only if the host uses them (RFC 7323 section 3.2). What the overrides leave
    /// open, the host answers as it is asked. ECN is agreed on by flags: see [`Receiver::with_ecn`](super::Receiver::with_ecn).
    pub fn agreed(&self, settings: Settings) -> Settings {
        let host = self.of(&settings);
        let timestamps = settings.timestamps && host.timestamps;
        Settings { packet_size: settings.packet_size.min(host.packet_size), timestamps, ..settings }
    }
}

impl Settings {
    /// Maximum payload of a segment in bytes.
    pub fn mss(&self) -> u32 {
        (self.packet_size.0 - self.segment_header().0) as u32
    }

    /// The maximum segment size that SYN announce, which leaves no room for options (RFC 6691).
    pub fn announced_mss(&self) -> u16 {
        u16::try_from((self.packet_size - self.header).0).unwrap_or(u16::MAX)
    }

    /// These settings with segments of up to `mss` bytes of payload.
    pub fn with_mss(self, mss: u32) -> Settings {
        Settings { packet_size: self.segment_header() + Bytes(mss.into()), ..self }
    }

    /// Size of the headers of each segment, with the options that each has.
    pub fn segment_header(&self) -> Bytes {
        let has_options = self.stamps() && !self.counts_only_sack_blocks();
        self.header + if has_options { TIMESTAMPS } else { Bytes::ZERO }
    }

    /// Deadline of the delayed acknowledgement of a segment that arrives at `now`.
    pub(super) fn ack_due(&self, now: Time) -> Time {
        if self.ack_tick.is_zero() {
            now + self.ack_delay
        } else {
            on_wheel(now, self.ack_delay, Ticker::new(self.ack_tick))
        }
    }

    /// The window in bytes of payload.
    pub fn window_payload(&self) -> u32 {
        match self.window_packets() {
            Some(packets) => packets * self.mss(),
            None => self.window.bytes(self.mss()).0 as u32,
        }
    }

    /// The packets in a window that counts whole ones.
    pub(crate) fn window_packets(&self) -> Option<u32> {
        let packet = self.packet_size.0.max(1);
        let packets = match (self.window, self.window_counts) {
            (WindowSize::Packets(packets), _) => u64::from(packets),
            (WindowSize::Bytes(_), WindowCounts::Payload) => return None,
            (WindowSize::Bytes(size), WindowCounts::Packets) => size.0 / packet,
            (WindowSize::Bytes(size), WindowCounts::NearestPackets) => {
                (size.0.saturating_add(packet / 2) / packet).max(1)
            }
        };
        Some(u32::try_from(packets).unwrap_or(u32::MAX))
    }

    /// Whether the receive window is tuned automatically: windows of at most 64 KiB are not.
    pub(super) fn is_autotuned(&self) -> bool {
        self.window_autotuning && self.window_payload() > FIRST_WINDOW
    }

    /// The window that the receiver offers at first, in bytes of payload.
    pub(super) fn first_window(&self) -> u32 {
        if self.is_autotuned() { FIRST_WINDOW / self.mss() * self.mss() } else { self.window_payload() }
    }

    /// These settings with the path parameters of `other` that differ from its profile: packet and window
    /// sizes, handshake and close.
    pub fn on_path_of(&self, other: &Settings) -> Settings {
        let usual = other.profile.settings();
        macro_rules! of_path {
            ($($name:ident),*) => {
                Settings {
                    $($name: if other.$name == usual.$name { self.$name } else { other.$name },)*
                    ..self.clone()
                }
            };
        }
        of_path!(
            packet_size,
            header,
            window,
            window_counts,
            window_autotuning,
            iss,
            handshake,
            close,
            user_timeout
        )
    }

    /// These settings with the receiver parameters of `receiver`: its window and acknowledgement policy.
    pub fn with_receiver(&self, receiver: &Settings) -> Settings {
        Settings {
            window: receiver.window,
            window_counts: receiver.window_counts,
            window_autotuning: receiver.window_autotuning,
            ack_every: receiver.ack_every,
            quick_acks: receiver.quick_acks,
            ack_delay: receiver.ack_delay,
            ack_tick: receiver.ack_tick,
            sack_blocks: receiver.sack_blocks,
            dsack: receiver.dsack,
            ..self.clone()
        }
    }

    /// The feedback of ECN marks that connections ask for: the stated one, or what the congestion control needs.
    pub fn ecn_mode(&self) -> EcnMode {
        self.ecn.max(self.congestion.control().needs_ecn)
    }

    /// The feedback of marks from the start: without a handshake, that of the settings.
    pub(super) fn first_ecn_mode(&self) -> EcnMode {
        if self.handshake { EcnMode::Off } else { self.ecn_mode() }
    }

    /// The code point of ECN-capable packets.
    pub(super) fn codepoint(&self) -> Ecn {
        self.congestion.control().codepoint
    }

    /// End of the first segment: the SYN, or the first data without a handshake.
    pub(super) fn first_end(&self) -> SeqNum {
        SeqNum(self.iss) + if self.handshake { 1 } else { self.mss() }
    }

    /// Whether congestion control limits the data in flight.
    pub fn is_controlled(&self) -> bool {
        self.congestion.control().limit != Limit::Receiver
    }

    /// Whether SACK is permitted and used at both ends (RFC 2018).
    pub fn sack(&self) -> bool {
        matches!(self.flavour, Flavour::Sack | Flavour::SelectiveRepeat | Flavour::Prr)
    }

    /// Whether recovery uses per-segment records.
    pub fn keeps_records(&self) -> bool {
        self.flavour == Flavour::Prr
    }

    /// Whether segments carry timestamps, at both ends.
    pub fn stamps(&self) -> bool {
        self.timestamps || self.timestamps_are_unique()
    }

    /// Whether timestamps are unique per segment, and an acknowledgement echoes that of the segment that
    /// triggers it, not of the one that advanced its edge (RFC 7323 section 4.3).
    pub(super) fn timestamps_are_unique(&self) -> bool {
        matches!(self.flavour, Flavour::GoBackN | Flavour::SelectiveRepeat)
    }

    /// Whether a SYN is treated like a data segment, as in ns-2: its acknowledgement opens the window and is
    /// answered by data only, and its loss sets ssthresh.
    pub(super) fn syn_is_like_data(&self) -> bool {
        self.rules == Rules::Ns2
    }

    /// Whether only SACK blocks count as option bytes, eight bytes each, as in ns-2.
    pub(super) fn counts_only_sack_blocks(&self) -> bool {
        self.rules == Rules::Ns2
    }

    /// Invalid settings, each with its key and the problem; empty if the settings are valid.
    pub fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let mut check = |key, holds: bool, fault: &dyn Fn() -> String| {
            if !holds {
                faults.push((key, fault()));
            }
        };
        check("header", self.header.0 > 0, &|| {
            String::from("found 0 B, expected at least 1 B, so that an ACK has a length; a header is 40 B")
        });
        let header = self.segment_header();
        let fits = header < self.packet_size && self.packet_size.0 <= 65_535;
        check("packet_size", fits, &|| {
            let stamped = if header > self.header { ", with timestamps" } else { "" };
            let found = self.packet_size;
            format!("found {found}, expected more than the header ({header}{stamped}) and at most 65535 B")
        });
        if fits {
            let bounded = self.window.bytes(self.mss()).0 <= 1 << 30;
            check("window", bounded, &|| {
                format!("found {}, expected at most 1073741824 B (RFC 7323 section 2.3)", self.window)
            });
            check("window", !bounded || self.window_payload() >= self.mss(), &|| {
                format!(
                    "found {}, expected room for at least one packet of {}",
                    self.window, self.packet_size
                )
            });
        }
        let control = self.congestion.control();
        check("congestion", !control.needs_samples || self.keeps_records(), &|| {
            format!(
                "found \"{}\", which needs the delivery rate samples of flavour \"prr\"; expected that flavour, or \
                 another congestion, such as \"reno\"",
                control.name
            )
        });
        let standard = self.rules == Rules::Rfc;
        check("rules", standard || !self.keeps_records(), &|| {
            String::from("found \"ns2\", which does not support flavour \"prr\"; expected \"rfc\"")
        });
        check("dupthresh", self.dupthresh >= 1, &|| String::from("found 0, expected at least 1"));
        check("ack_every", self.ack_every >= 1, &|| String::from("found 0, expected at least 1"));
        check("tick", !self.tick.is_zero(), &|| String::from("found 0 s, expected a tick above zero"));
        check("rto_initial", !self.rto_initial.is_zero(), &|| {
            String::from("found 0 s, expected more than zero")
        });
        check("rto_max", self.rto_max >= self.rto_min.max(self.tick), &|| {
            format!(
                "found {}, expected at least rto_min ({}) and one tick ({})",
                self.rto_max, self.rto_min, self.tick
            )
        });
        let waits = self.user_timeout.is_none_or(|timeout| !timeout.is_zero());
        check("user_timeout", waits, &|| String::from("found 0 s, expected more than zero"));
        let blocks = 1..=SackBlocks::MAX as u32;
        check("sack_blocks", blocks.contains(&self.sack_blocks), &|| {
            format!("found {}, expected 1 to 4", self.sack_blocks)
        });
        faults
    }
}
