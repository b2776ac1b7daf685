//! Automatic repeat request: what the sending end of a link does with units.
//!
//! A unit is what a link puts on the air at a time: a packet, or a fragment of one. A scheme is told
//! of the packets that begin ([`begin`](Arq::begin)) and of how each attempt ended
//! ([`ended`](Arq::ended)), and answers one question: what may go on the air now
//! ([`next`](Arq::next))? It holds numbers only. The link holds the packets, keeps the queue in
//! front, asks the channel, and does what the receiving end does: it puts fragments together and
//! delivers packets in the order in which they began, skipping those that were given up.
//!
//! # What a scheme may do
//!
//! Any number of packets can be under way, their units can take turns in any order, and any instant
//! can be named to wait for. So a scheme is one file and one variant of [`Config`], and the link does
//! not change. Two show the range: [stop-and-wait](stop_and_wait), with one unit outstanding, and
//! [selective repeat](selective_repeat), with many.

mod backoff;
mod retransmissions;
pub mod selective_repeat;
pub mod stop_and_wait;

use alloc::boxed::Box;

use lasthop_base::{Invalid, Stream, Time};
use serde::{Deserialize, Serialize};

pub use backoff::Backoff;
pub use retransmissions::Retransmissions;
pub use selective_repeat::SelectiveRepeat;
pub use stop_and_wait::StopAndWait;

/// The sending end's scheme for one direction of a link.
///
/// One unit is on the air at a time: after [`Next::Send`] the next call is [`ended`](Arq::ended).
pub trait Arq: Send {
    /// Packet number `packet` begins, as `units` units, one at least. Packets are numbered in the
    /// order in which they begin.
    fn begin(&mut self, packet: u64, units: u32);

    /// What the link shall do now that the air is free. `backlog` says whether another packet could
    /// begin. A pure function of the state and its arguments.
    fn next(&self, now: Time, backlog: bool) -> Next;

    /// An attempt is over, at `now`; `arrived` says whether the unit is at the other end without an
    /// error. A scheme without acknowledgements must not look at it.
    fn ended(&mut self, now: Time, attempt: Attempt, arrived: bool) -> Verdict;
}

/// One unit's turn on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The packet's number.
    pub packet: u64,
    /// Which of the packet's units, counted from zero.
    pub unit: u32,
    /// How many times the unit has been sent with this attempt, from 1.
    pub number: u32,
}

/// What a link whose air is free shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// Put this unit on the air at once.
    Send(Attempt),
    /// Take the next packet from the queue and [`begin`](Arq::begin) it; then ask again.
    Begin,
    /// Ask again at this instant, which is later than now, or when a packet has come, if that is
    /// earlier. [`Time::NEVER`] if there is nothing to do without another packet.
    Wait(Time),
}

/// What the end of an attempt means to the sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The unit arrived.
    Delivered,
    /// The unit did not arrive and will be sent again.
    Again,
    /// The unit did not arrive, and nothing more of its packet will be sent.
    GiveUp,
}

/// A scheme and its parameters, as a scenario file says it.
///
/// The scheme's name is the last part of the table's:
///
/// ```toml
/// [radio.arq.stop-and-wait]
/// retransmissions = 13
/// backoff.uniform = "700 ms"
/// ```
///
/// and one without parameters is its name: `arq = "none"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// Each unit once. The default: the papers' "basic" TCP is the yardstick, and local recovery is
    /// what a scenario adds.
    #[default]
    None,
    /// One unit at a time, again and again, with random waits in between.
    StopAndWait(stop_and_wait::Params),
    /// Fresh units go out while word of failed ones comes back.
    SelectiveRepeat(selective_repeat::Params),
}

impl Config {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// A random backoff without any spread.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self {
            Config::None | Config::SelectiveRepeat(_) => Ok(()),
            Config::StopAndWait(params) => params.validate(),
        }
    }

    /// The scheme, with nothing to send; `backoff` is its randomness. `None` if there is none: then each
    /// unit goes on the air once, and what becomes of it changes nothing.
    ///
    /// # Panics
    /// If the parameters are not [valid](Config::validate).
    pub fn build(&self, backoff: Stream) -> Option<Box<dyn Arq>> {
        if let Err(invalid) = self.validate() {
            panic!("{invalid}");
        }
        match *self {
            Config::None => None,
            Config::StopAndWait(params) => Some(Box::new(StopAndWait::new(params, backoff))),
            Config::SelectiveRepeat(params) => Some(Box::new(SelectiveRepeat::new(params))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use lasthop_base::Duration;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer};

    /// A table with one key, as a file's reader hands it over.
    fn table<'a, V: IntoDeserializer<'a, Error>>(
        key: &'a str,
        value: V,
    ) -> MapAccessDeserializer<MapDeserializer<'a, core::array::IntoIter<(&'a str, V), 1>, Error>> {
        MapAccessDeserializer::new(MapDeserializer::new([(key, value)].into_iter()))
    }

    fn read_as<'a>(
        scheme: &'a str,
        key: &'a str,
        value: impl IntoDeserializer<'a, Error>,
    ) -> Result<Config, String> {
        Config::deserialize(table(scheme, table(key, value))).map_err(|error| error.to_string())
    }

    fn read<'a>(key: &'a str, value: impl IntoDeserializer<'a, Error>) -> Result<Config, String> {
        read_as("stop-and-wait", key, value)
    }

    fn stop_and_wait(retransmissions: Retransmissions, backoff: Backoff) -> Config {
        Config::StopAndWait(stop_and_wait::Params { retransmissions, backoff })
    }

    #[test]
    fn what_a_file_leaves_out_has_its_documented_value() {
        let (unlimited, tenth) = (Retransmissions::Unlimited, Duration::from_millis(100));
        let uniform = Backoff::Uniform(tenth);
        assert_eq!(read("retransmissions", 13), Ok(stop_and_wait(Retransmissions::AtMost(13), uniform)));
        assert_eq!(read("retransmissions", "unlimited"), Ok(stop_and_wait(unlimited, uniform)));
        for (law, backoff) in [
            ("uniform", Backoff::Uniform(tenth * 7)),
            ("exponential", Backoff::Exponential(tenth * 7)),
            ("fixed", Backoff::Fixed(tenth * 7)),
        ] {
            assert_eq!(read("backoff", table(law, "700 ms")), Ok(stop_and_wait(unlimited, backoff)));
        }
        let name: serde::de::value::StrDeserializer<'_, Error> = "none".into_deserializer();
        assert_eq!(Config::deserialize(name), Ok(Config::default()));
    }

    #[test]
    fn selective_repeat_has_the_values_of_its_paper_where_a_file_says_nothing() {
        let ms = Duration::from_millis;
        let paper = selective_repeat::Params {
            retransmissions: Retransmissions::AtMost(5),
            feedback_delay: ms(60),
            slot: Duration::ZERO,
        };
        let changed = |change: fn(&mut selective_repeat::Params)| {
            let mut params = paper;
            change(&mut params);
            Ok(Config::SelectiveRepeat(params))
        };
        let read = |key, value: &'static str| read_as("selective-repeat", key, value);
        assert_eq!(selective_repeat::Params::default(), paper);
        assert_eq!(
            read("retransmissions", "unlimited"),
            changed(|it| it.retransmissions = Retransmissions::Unlimited)
        );
        assert_eq!(read("feedback_delay", "0 s"), changed(|it| it.feedback_delay = Duration::ZERO));
        assert_eq!(read("slot", "10 ms"), changed(|it| it.slot = Duration::from_millis(10)));
        assert!(read("window", "8").unwrap_err().starts_with("unknown field `window`, expected"));
        assert_eq!(read("slot", "10 ms").unwrap().validate(), Ok(()));
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_reason() {
        let reason = |result: Result<Config, String>| result.unwrap_err();
        assert!(reason(read("retries", 13)).starts_with("unknown field `retries`, expected"));
        assert!(reason(read("backoff", table("gaussian", "1 s"))).starts_with("unknown variant `gaussian`"));
        for wrong in [reason(read("retransmissions", "many")), reason(read("retransmissions", -1))] {
            assert!(wrong.ends_with("expected a number such as 13, or \"unlimited\""), "{wrong}");
        }
    }

    #[test]
    fn a_random_wait_needs_a_spread() {
        let check = |backoff| stop_and_wait(Retransmissions::Unlimited, backoff).validate();
        assert_eq!(check(Backoff::Fixed(Duration::ZERO)), Ok(()));
        assert_eq!(check(Backoff::Uniform(Duration::from_nanos(1))), Ok(()));
        for (backoff, field) in [
            (Backoff::Uniform(Duration::ZERO), "stop-and-wait.backoff.uniform"),
            (Backoff::Exponential(Duration::ZERO), "stop-and-wait.backoff.exponential"),
        ] {
            assert_eq!(check(backoff).unwrap_err().field, field);
        }
    }
}
