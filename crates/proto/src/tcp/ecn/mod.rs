//! Explicit congestion notification (RFC 3168) and its accurate feedback (RFC 9768): negotiation, what an end has received, and
//! what its peer reports.

mod received;
mod reported;

use alloc::string::String;
use core::fmt;

use lasthop_base::{inline_schema, schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Serialize};

use crate::packet::{Ecn, Flags};

pub(super) use received::Received;
pub(super) use reported::{Delivered, Reported};

/// How ECN marks are fed back: the value of `ecn` in scenario files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EcnMode {
    /// Not at all: no packet is ECN-capable.
    #[default]
    Off,
    /// One mark per round-trip time, by the flags ECE and CWR (RFC 3168).
    Classic,
    /// The number of marked packets and the bytes in them, by the ACE field and the AccECN option (RFC 9768).
    Accurate,
}

/// What a SYN-ACK tells about the ECN field of the SYN, by its ACE field (RFC 9768 table 2).
const SYN_CODES: [(Ecn, u8); 4] =
    [(Ecn::NotEct, 0b010), (Ecn::Ect1, 0b011), (Ecn::Ect0, 0b100), (Ecn::Ce, 0b110)];

impl EcnMode {
    /// The ECN flags of a SYN that asks for this mode (RFC 9768 section 3.1.1).
    pub const fn syn_flags(self) -> Flags {
        Flags(0).with_ace(match self {
            EcnMode::Off => 0b000,
            EcnMode::Classic => 0b011,
            EcnMode::Accurate => 0b111,
        })
    }

    /// The mode in which a host of this mode answers a SYN with `flags`. Combinations without a meaning of their own ask for
    /// accurate feedback (RFC 9768 section 3.1.3). A host of classic feedback ignores AE.
    pub fn answering(self, flags: Flags) -> EcnMode {
        match (self, flags.ace()) {
            (EcnMode::Off, _) | (_, 0) => EcnMode::Off,
            (EcnMode::Classic, _) if !flags.has(Flags::ECE | Flags::CWR) => EcnMode::Off,
            (EcnMode::Classic, _) | (EcnMode::Accurate, 0b011) => EcnMode::Classic,
            (EcnMode::Accurate, _) => EcnMode::Accurate,
        }
    }

    /// The ECN flags of a SYN-ACK in this mode, for a SYN that arrived with the ECN field `arrived`.
    pub fn syn_ack_flags(self, arrived: Ecn) -> Flags {
        match self {
            EcnMode::Off => Flags::default(),
            EcnMode::Classic => Flags::ECE,
            EcnMode::Accurate => Flags::default().with_ace(code_of(arrived)),
        }
    }

    /// The mode that a host whose SYN asked for this mode takes from a SYN-ACK with `flags` (RFC 9768 table 2). An ACE field of
    /// seven is the SYN's own, reflected by a host that knows no ECN.
    pub fn agreed_by(self, flags: Flags) -> EcnMode {
        match (self, flags.ace()) {
            (EcnMode::Off, _) | (EcnMode::Accurate, 0b000 | 0b111) => EcnMode::Off,
            (EcnMode::Classic, code) if code & 0b011 != 0b001 => EcnMode::Off,
            (EcnMode::Classic, _) | (EcnMode::Accurate, 0b001) => EcnMode::Classic,
            (EcnMode::Accurate, _) => EcnMode::Accurate,
        }
    }
}

/// The ACE field that reports the ECN field of a SYN on the SYN-ACK, and that of a SYN-ACK on the ACK that follows (RFC 9768 tables 2
/// and 3).
pub fn code_of(arrived: Ecn) -> u8 {
    SYN_CODES.iter().find(|(ecn, _)| *ecn == arrived).map_or(0, |(_, code)| *code)
}

/// Whether a SYN or SYN-ACK, which are never ECN-capable here, arrived at the peer as it was sent, according to the ACE field of the
/// answer. Otherwise the path changes the ECN field, and ECN-capable packets are not to be sent (RFC 9768 section 3.2.2.3). Codes
/// without a meaning say nothing.
pub fn is_unchanged(answer: Flags) -> bool {
    let arrived = SYN_CODES.iter().find(|(_, code)| *code == answer.ace());
    arrived.is_none_or(|(ecn, _)| *ecn == Ecn::NotEct)
}

const WORD: &str = "accurate";
const EXPECTED: &str = "true (classic feedback), \"accurate\" or false";

inline_schema!(EcnMode, |generator| schema::any([generator.subschema_for::<bool>(), schema::words(&[WORD])]));

/// As in scenario files: `false`, `true` for classic feedback, or `"accurate"`.
impl Serialize for EcnMode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            EcnMode::Off => serializer.serialize_bool(false),
            EcnMode::Classic => serializer.serialize_bool(true),
            EcnMode::Accurate => serializer.serialize_str(WORD),
        }
    }
}

impl<'de> Deserialize<'de> for EcnMode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<EcnMode, D::Error> {
        struct Stated;
        impl Visitor<'_> for Stated {
            type Value = EcnMode;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_bool<E: de::Error>(self, is_on: bool) -> Result<EcnMode, E> {
                Ok(if is_on { EcnMode::Classic } else { EcnMode::Off })
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<EcnMode, E> {
                if word == WORD { Ok(EcnMode::Accurate) } else { Err(E::custom(unknown(word))) }
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

fn unknown(word: &str) -> String {
    alloc::format!("found \"{word}\", expected {EXPECTED}")
}
