//! Losses of whole packets by a chain of two states, by packets or by time: Gilbert and Gilbert-Elliott.
//!
//! # Conversions
//! By packets, the state changes before a packet from good to bad with probability p and from bad to good with
//! probability r. The share of packets in the bad state is π = p/(p + r), and a stay there lasts 1/r packets on
//! average. If the bad state loses every packet and the good one none, π is the loss and 1/r the mean burst:
//!
//! > r = 1/burst, p = r · loss/(1 − loss).
//!
//! By time, the mean stays are G and B seconds; π = B/(G + B). For packets every Δ seconds that is a chain by packets with
//!
//! > p = π (1 − e^(−Δ/G − Δ/B)), r = (1 − π) (1 − e^(−Δ/G − Δ/B)),
//!
//! and conversely 1/G + 1/B = −ln(1 − p − r)/Δ. The longer the gap between packets, the more independent their losses.

use alloc::boxed::Box;
use core::fmt;

use lasthop_base::{
    Amount, Duration, FromNumber, Number, Probability, Stream, Time, inline_schema, number, schema,
};
use schemars::json_schema;
use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::alternating::{ByTime, PerState, Start};
use crate::{Channel, Sojourn, State};

/// A mean length, in packets or in time. In a scenario a number, `"5 packets"`, or a duration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Span {
    /// A number of packets, possibly fractional since it is a mean.
    Packets(f64),
    /// A duration.
    Time(Duration),
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Span::Packets(packets) => serializer.serialize_f64(*packets),
            Span::Time(time) if serializer.is_human_readable() => time.serialize(serializer),
            // A bare number is one of packets.
            Span::Time(time) => number::write(Amount::Real(time.as_secs_f64()), Some("s"), serializer),
        }
    }
}

inline_schema!(Span, |generator| schema::any([
    json_schema!({"type": "number", "minimum": 1}),
    schema::count("packet", "5 packets"),
    generator.subschema_for::<Duration>(),
]));

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of packets such as 5, or a duration such as \"40 ms\"")
            }
            fn visit_f64<E: de::Error>(self, packets: f64) -> Result<Span, E> {
                match packets >= 1.0 && packets.is_finite() {
                    true => Ok(Span::Packets(packets)),
                    false => Err(E::invalid_value(de::Unexpected::Float(packets), &"at least 1 packet")),
                }
            }
            fn visit_i64<E: de::Error>(self, packets: i64) -> Result<Span, E> {
                self.visit_f64(packets as f64)
            }
            fn visit_u64<E: de::Error>(self, packets: u64) -> Result<Span, E> {
                self.visit_f64(packets as f64)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<Span, D::Error> {
                let number = Number::deserialize(number)?;
                match number.unit.as_deref() {
                    None | Some("packet" | "packets") => self.visit_f64(number.amount.real()),
                    Some(_) => Duration::from_number(&number).map(Span::Time).map_err(de::Error::custom),
                }
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
                match number.map(|number| number.trim().parse()) {
                    Some(Ok(packets)) => self.visit_f64(packets),
                    Some(Err(_)) => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                    None => text.parse().map(Span::Time).map_err(E::custom),
                }
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

/// A chain of two states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) law: Law,
    /// Loss probability of a packet.
    pub(crate) loss: PerState<f64>,
    pub(crate) start: Start,
}

/// How the state changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Law {
    /// Before each packet, with these probabilities.
    Packets { p: f64, r: f64 },
    /// With time; mean stays, exponential.
    Time(PerState<Duration>),
}

impl Chain {
    /// The long-run share of packets, or of time, in the good state.
    pub(crate) fn availability(&self) -> f64 {
        match self.law {
            // A loss of 0 or 1 without bursts has one of them at 1.
            Law::Packets { p, r } => r / (p + r),
            Law::Time(means) => means.availability(),
        }
    }

    pub(crate) fn mean_cycle_s(&self) -> Option<f64> {
        match self.law {
            Law::Packets { .. } => None,
            Law::Time(PerState { good, bad }) => Some(good.as_secs_f64() + bad.as_secs_f64()),
        }
    }

    /// The chain by packets for packets every `interval`; the same for every interval if the state changes by packets.
    fn by_packets(&self, interval: Duration) -> (f64, f64) {
        match self.law {
            Law::Packets { p, r } => (p, r),
            Law::Time(means) => {
                let rate = 1.0 / means.good.as_secs_f64() + 1.0 / means.bad.as_secs_f64();
                let moved = -libm::expm1(-rate * interval.as_secs_f64());
                let good = means.availability();
                ((1.0 - good) * moved, good * moved)
            }
        }
    }

    pub(crate) fn loss_probability(&self, frames: u32, on_air: Duration) -> f64 {
        let between = Duration::from_secs_f64(on_air.as_secs_f64() / f64::from(frames.max(1)));
        let (p, r) = self.by_packets(between);
        let PerState { good, bad } = self.loss;
        let availability = self.availability();
        let mut alive = (availability * (1.0 - good), (1.0 - availability) * (1.0 - bad));
        for _ in 1..frames {
            let (in_good, in_bad) = (alive.0 * (1.0 - p) + alive.1 * r, alive.0 * p + alive.1 * (1.0 - r));
            alive = (in_good * (1.0 - good), in_bad * (1.0 - bad));
        }
        (1.0 - (alive.0 + alive.1)).clamp(0.0, 1.0)
    }

    /// The chain in both forms, for packets every `interval`.
    pub(crate) fn bursts(&self, interval: Duration) -> Bursts {
        let (p, r) = self.by_packets(interval);
        let availability = self.availability();
        let PerState { good, bad } = self.loss;
        let loss = availability * good + (1.0 - availability) * bad;
        // A burst ends where a lost packet is followed by one that is not.
        let ends = availability * good * ((1.0 - p) * (1.0 - good) + p * (1.0 - bad))
            + (1.0 - availability) * bad * (r * (1.0 - good) + (1.0 - r) * (1.0 - bad));
        let stays = match self.law {
            Law::Time(PerState { good, bad }) => Some((good.as_secs_f64(), bad.as_secs_f64())),
            // The chain of a process in time never changes state more readily than by chance.
            Law::Packets { p, r } if p + r < 1.0 && p > 0.0 && r > 0.0 => {
                let rate = -libm::log1p(-(p + r)) / interval.as_secs_f64();
                Some((1.0 / (rate * (1.0 - availability)), 1.0 / (rate * availability)))
            }
            Law::Packets { .. } => None,
        };
        Bursts {
            by_packets: matches!(self.law, Law::Packets { .. }),
            p,
            r,
            loss_good: good,
            loss_bad: bad,
            loss,
            burst_packets: (ends > 0.0).then(|| loss / ends),
            gap_packets: (ends > 0.0).then(|| (1.0 - loss) / ends),
            good_s: stays.map(|stays| stays.0),
            bad_s: stays.map(|stays| stays.1),
        }
    }

    pub(crate) fn channel(self, mut stream: Stream) -> Box<dyn Channel> {
        let start = self.start.draw(self.availability(), &mut stream);
        match self.law {
            Law::Packets { p, r } => {
                let change = PerState { good: p, bad: r };
                Box::new(ByPackets { change, loss: self.loss, next: start, stream })
            }
            Law::Time(means) => {
                Box::new(ByTime::new(start, self.loss, move |state| stream.exponential(means.of(state))))
            }
        }
    }
}

/// A channel with two states, by packets and by time: what [`Model::bursts`](crate::Model::bursts) converts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Whether the state changes by packets; by time otherwise.
    pub by_packets: bool,
    /// Probability of a change from good to bad between two packets.
    pub p: f64,
    /// Probability of a change from bad to good between two packets.
    pub r: f64,
    /// Probability that a packet is lost in the good state.
    pub loss_good: f64,
    /// Probability that a packet is lost in the bad state.
    pub loss_bad: f64,
    /// Share of packets that are lost.
    pub loss: f64,
    /// Mean number of consecutive packets that are lost; `None` if bursts do not end or do not exist.
    pub burst_packets: Option<f64>,
    /// Mean number of packets between two bursts; `None` if bursts do not end or do not exist.
    pub gap_packets: Option<f64>,
    /// Mean stay in the good state, in seconds; `None` if no process in time has these losses.
    pub good_s: Option<f64>,
    /// Mean stay in the bad state, in seconds; `None` if no process in time has these losses.
    pub bad_s: Option<f64>,
}

struct ByPackets {
    /// Probability of leaving each state after a packet.
    change: PerState<f64>,
    loss: PerState<f64>,
    /// State of the next packet.
    next: State,
    stream: Stream,
}

impl ByPackets {
    /// The probability that the next packet survives.
    fn next(&mut self) -> f64 {
        let state = self.next;
        if self.stream.bernoulli(self.change.of(state)) {
            self.next = state.other();
        }
        1.0 - self.loss.of(state)
    }
}

impl Channel for ByPackets {
    fn survival(&mut self, _start: Time, _end: Time, _bits: u64) -> f64 {
        self.next()
    }

    fn exposure(&mut self, _start: Time, _end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, Probability::default());
        self.next()
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn::FOREVER
    }
}
