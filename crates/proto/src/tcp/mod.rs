//! One byte-stream TCP, cut at three seams: how much to send ([congestion control](cc)), what to
//! resend ([recovery]), when to give up ([round-trip estimation](RttEstimator)).

mod action;
pub mod cc;
mod delayed_ack;
mod delivery;
mod detection;
mod ecn;
mod filter;
mod packet_control;
mod paws;
mod ranges;
mod reaction;
mod receiver;
mod receiver_reaction;
pub mod recovery;
mod rtt;
mod samples;
mod sender;
mod sent;
mod settings;
mod state;
mod timers;

use lasthop_base::{Bytes, Duration, Time};

use crate::counters::counters;
use crate::packet::{FlowId, HostId};

pub use crate::packet::{EcnCounters, FieldOrder, Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
pub use action::Action;
pub use cc::Congestion;
pub use ecn::{EcnMode, code_of, is_unchanged};
pub use packet_control::{PacketControl, Sign};
pub use paws::RecentTimestamp;
pub use reaction::{Evidence, Hole, Reaction, Reactions, Response};
pub use receiver::Receiver;
pub(crate) use receiver::blocks_beside;
pub use receiver_reaction::{AckResponse, ReceiverReaction, ReceiverReactions};
pub use recovery::{LossReport, LossStage};
pub use rtt::{RttEstimator, Ticks};
pub use sender::Sender;
pub use settings::{
    Changes, Deflation, Detection, Flavour, IdleRestart, InitialThreshold, InitialWindow, Kernel, Override,
    Profile, RttArithmetic, RttSamples, Rules, Settings, SlowStartExit, WindowCounts, WindowSize, no_effect,
};
pub use state::{BLACK_HOLE_AFTER, SenderState};

/// The ends of a connection: data flow from `src` to `dst`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Connection {
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// The flow that their packets belong to.
    pub flow: FlowId,
}

/// A bulk transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Payload in bytes; `None` if unbounded.
    pub bytes: Option<u64>,
    /// Start time.
    pub start: Time,
}

counters! {
    /// Counters of a sender. Wire bytes are those of IP packets, headers included.
    pub struct SenderStats {
        /// Segments sent, of any kind.
        pub segments_sent: u64,
        /// Total size of `segments_sent` as IP packets.
        pub wire_bytes_sent: Bytes,
        /// Total payload of `segments_sent`, retransmissions included.
        pub payload_sent: Bytes,
        /// Segments of which any part had been sent before.
        pub retransmitted_segments: u64,
        /// Total size of `retransmitted_segments` as IP packets, minus their new payload.
        pub retransmitted_bytes: Bytes,
        /// `retransmitted_segments` that reactions requested.
        pub requested_segments: u64,
        /// Retransmission timeouts.
        pub timeouts: u64,
        /// Losses detected by acknowledgements.
        pub fast_retransmits: u64,
        /// Probes of a closed window.
        pub window_probes: u64,
        /// Tail loss probes (RFC 8985 section 7).
        pub tail_loss_probes: u64,
        /// Spurious timeouts, which were undone.
        pub spurious_timeouts: u64,
        /// Window reductions that were undone, those of timeouts included.
        pub undone_reductions: u64,
        /// Acknowledgements that report a mark; the sender responds to one per round trip. With accurate feedback, the number of
        /// marked packets is in `marks`.
        pub echoes: u64,
        /// Packets that accurate feedback reports as marked (RFC 9768).
        pub marks: u64,
        /// Round-trip times measured.
        pub rtt_samples: u64,
        /// The sum of `rtt_samples`.
        pub rtt_sum: Duration,
        /// Time for which pacing delayed segments that the windows allowed.
        pub pacing_wait: Duration,
        /// Control messages received.
        pub notices: u64,
        /// Times that a reaction changed what the sender does: each request that changes something, and each loss that was
        /// detected at a scheme's threshold, classified with an effect on the window, or sent with a scheme's DSCP.
        pub reactions: u64,
        /// Start of the connection, normally the first transmission.
        pub started: Option<Time>,
        /// When all data were acknowledged.
        pub completed: Option<Time>,
        /// When the connection was aborted: by the user timeout, or by a reset of the peer.
        pub aborted: Option<Time>,
    }
}

counters! {
    /// Counters of a receiver.
    pub struct ReceiverStats {
        /// Payload received in order, ready for the application.
        pub delivered: Bytes,
        /// Time of the last in-order arrival.
        pub last_delivery: Time,
        /// Segments with payload received.
        pub segments: u64,
        /// Segments with payload, none of it new.
        pub duplicate_segments: u64,
        /// Segments with payload rejected by PAWS: an older timestamp than one received before (RFC 7323 section 5).
        pub outdated_segments: u64,
        /// Packets of the connection that arrived with a mark (CE), SYN excepted.
        pub marks: u64,
        /// Acknowledgements sent, segments with RST included.
        pub acks_sent: u64,
        /// Acknowledgements that a reaction withheld, changed or, if the sender counts it, repeated.
        pub reactions: u64,
    }
}

/// Whether a rare case is given. Where one test has `EXCLUDED` all of them, they are not looked at again; debug builds check
/// that test.
#[inline(always)]
fn rare<const EXCLUDED: bool>(is_given: bool) -> bool {
    debug_assert!(!(EXCLUDED && is_given), "the test of the usual case has missed another one");
    !EXCLUDED && is_given
}

/// Size of the timestamps option, padded.
pub const TIMESTAMPS: Bytes = Bytes(12);

/// Bytes that the options of a segment add to its header: on SYN the maximum segment size, window
/// scale and "SACK permitted" (RFC 9293, 7323, 2018), else timestamps and SACK blocks, and the AccECN option, each padded as
/// real stacks do. ns-2 counts eight bytes per block and nothing else.
#[inline(always)]
fn option_bytes(segment: &Segment, settings: &Settings) -> Bytes {
    if settings.counts_only_sack_blocks() {
        return Bytes(8 * segment.sack.len() as u64);
    }
    let timestamps = if segment.timestamps.is_some() { TIMESTAMPS.0 } else { 0 };
    let opening = if segment.flags.has(Flags::SYN) { opening_bytes(timestamps > 0, settings) } else { 0 };
    Bytes(opening + timestamps + segment.sack.padded_len())
}

/// Bytes of the options that only SYN carries.
#[cold]
fn opening_bytes(has_timestamps: bool, settings: &Settings) -> u64 {
    let scale = if settings.window.bytes(settings.mss()).0 > 65_535 { 4 } else { 0 };
    // With timestamps, "SACK permitted" takes the place of their padding.
    let permitted = if settings.sack() && !has_timestamps { 4 } else { 0 };
    4 + scale + permitted
}
