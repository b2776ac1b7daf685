//! The options of SYN (RFC 9293 section 3.2, RFC 2018, RFC 7323).

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Congestion, EcnMode, Flavour, Segment, Settings, TIMESTAMPS, WindowCounts};
use lasthop_wire::TcpHeader;

use crate::config::Config;

/// The MSS of a peer that sends no MSS option (RFC 9293 section 3.7.1).
const DEFAULT_MSS_V4: u16 = 536;
const DEFAULT_MSS_V6: u16 = 1220;

/// Lower bound of the MSS, as in Linux (`TCP_MIN_SND_MSS`), so that packets are not mostly headers.
const LEAST_MSS: u16 = 48;

/// Bytes of the options of each segment.
pub(crate) fn options_len(timestamps: bool) -> u32 {
    if timestamps { TIMESTAMPS.0 as u32 } else { 0 }
}

/// The options that a SYN offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    mss: u16,
    window_scale: Option<u8>,
    sack: bool,
    timestamps: bool,
}

/// The negotiated options: those that both ends have offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// Size of IP and TCP headers without options.
    pub(crate) header: Bytes,
    /// Payload of a full segment that we send, without the options of every segment (RFC 6691).
    pub(crate) mss: u32,
    /// Shift of the windows that we receive.
    pub(crate) their_scale: u8,
    /// Shift of the windows that we send.
    pub(crate) our_scale: u8,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
}

/// Size of IP and TCP headers without options.
pub(crate) fn header_len(is_v4: bool) -> Bytes {
    Bytes(if is_v4 { 40 } else { 60 })
}

impl Agreement {
    /// The settings of one half of a connection, of the endpoint's own `config`, with feedback of ECN marks by `ecn`. `iss` is
    /// the first sequence number of its stream, and `window` the receive window of that stream in bytes: the peer's for the
    /// sender, ours for the receiver.
    pub(crate) fn settings(&self, config: &Config, ecn: EcnMode, iss: u32, window: u32) -> Settings {
        let mut settings = config.settings.clone();
        if !self.sack && settings.sack() {
            settings.flavour = Flavour::NewReno;
            if settings.congestion.control().needs_samples {
                // These need delivery rate samples, which need SACK.
                settings.congestion = Congestion::Cubic;
            }
        }
        if ecn < settings.congestion.control().needs_ecn {
            // As in Linux.
            settings.congestion = Congestion::Reno;
        }
        Settings {
            header: self.header,
            window: Bytes(window.into()).into(),
            window_counts: WindowCounts::Payload,
            // The buffer is the one that the application has asked for.
            window_autotuning: false,
            iss,
            handshake: false,
            // The sender sends FIN. The endpoint rewrites the receiver's ACKs, so this does not affect them.
            close: true,
            timestamps: self.timestamps,
            ecn,
            ..settings
        }
        .with_mss(self.mss)
    }
}

impl Offer {
    /// Our offer, over IPv4 or IPv6.
    pub(crate) fn ours(config: &Config, is_v4: bool) -> Offer {
        let window = config.settings.window_payload();
        let scale = (0..14).find(|scale| window >> scale <= 0xffff).unwrap_or(14);
        let room = config.settings.packet_size.0.saturating_sub(header_len(is_v4).0);
        Offer {
            mss: (room as u16).max(LEAST_MSS),
            window_scale: config.window_scaling.then_some(scale),
            sack: config.settings.sack(),
            timestamps: config.settings.timestamps,
        }
    }

    /// The peer's offer in a SYN or SYN-ACK.
    pub(crate) fn theirs(header: &TcpHeader, is_v4: bool) -> Offer {
        Offer {
            mss: header.mss.unwrap_or(if is_v4 { DEFAULT_MSS_V4 } else { DEFAULT_MSS_V6 }).max(LEAST_MSS),
            window_scale: header.window_scale,
            sack: header.sack_permitted,
            timestamps: header.segment.timestamps.is_some(),
        }
    }

    /// The offer of a SYN-ACK: the options that the peer has also offered.
    pub(crate) fn answering(self, theirs: &Offer) -> Offer {
        Offer {
            mss: self.mss,
            window_scale: self.window_scale.filter(|_| theirs.window_scale.is_some()),
            sack: self.sack && theirs.sack,
            timestamps: self.timestamps && theirs.timestamps,
        }
    }

    pub(crate) fn timestamps(&self) -> bool {
        self.timestamps
    }

    /// The options negotiated with a peer that has offered `theirs`.
    pub(crate) fn agree(&self, theirs: &Offer, is_v4: bool) -> Agreement {
        let both = self.answering(theirs);
        let scales = both.window_scale.and(self.window_scale.zip(theirs.window_scale));
        let (our_scale, their_scale) = scales.unwrap_or_default();
        Agreement {
            header: header_len(is_v4),
            mss: u32::from(self.mss.min(theirs.mss)) - options_len(both.timestamps),
            their_scale,
            our_scale,
            sack: both.sack,
            timestamps: both.timestamps,
        }
    }

    /// Writes the offer on a SYN or SYN-ACK, except the timestamps.
    pub(crate) fn write(&self, segment: Segment) -> TcpHeader {
        TcpHeader {
            segment,
            mss: Some(self.mss),
            window_scale: self.window_scale,
            sack_permitted: self.sack,
            ..TcpHeader::default()
        }
    }
}
