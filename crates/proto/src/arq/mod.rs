//! Automatic repeat request (ARQ): the protocol of a link's sending end.
//!
//! A unit is one transmission on a link: a packet, or a fragment of a packet. An ARQ is notified when a
//! packet starts ([`begin`](Arq::begin)) and when an attempt ends ([`ended`](Arq::ended)), and decides what
//! is sent next ([`next`](Arq::next)). It handles indices only. The link holds the packets and the queue,
//! queries the channel, and implements the receiving end: it reassembles fragments and delivers packets in
//! the order in which they started, skipping those that were given up.
//!
//! # Adding an ARQ
//!
//! Any number of packets may be in transmission, their units may be interleaved in any order, and the ARQ may
//! wait until any instant. An ARQ is one module with a [`Protocol`], and one line in the list below; the link does
//! not change. [Stop-and-wait](stop_and_wait) has one outstanding unit, [selective repeat](selective_repeat) many, and the
//! [window with status messages](status_window) a limited number. The [radio link protocol](rlp) cuts the bytes of packets
//! into frames itself: its units are single bytes. The last two have the optional part [`Statuses`].

mod backoff;
mod config;
pub mod frame_size;
mod registry;
mod retransmissions;

use lasthop_base::{Bytes, Time};

pub use backoff::Backoff;
pub use config::Protocol;
pub use retransmissions::Retransmissions;

use crate::component::{FrameSizes, LinkOutcome};

registry::register! {
    /// One unit at a time, retransmitted until it arrives, with random waits in between.
    stop_and_wait: StopAndWait,
    /// New units are sent while the feedback on failed ones is pending.
    selective_repeat: SelectiveRepeat,
    /// A window of units, and status messages about all of them.
    status_window: StatusWindow,
    /// Frames cut from the bytes of packets, with selective reject; their size may adapt to the channel.
    rlp: Rlp,
}

/// The ARQ of the sending end, for one direction of a link.
///
/// One unit is on the air at a time: [`Next::Send`] is followed by a call of [`ended`](Arq::ended).
pub trait Arq: Send {
    /// Packet `packet` starts, as `units` units, at least one. The link numbers packets in the order in which
    /// they start.
    fn begin(&mut self, packet: u64, units: u32);

    /// The next action of the link while the air is free. `backlog` tells whether another packet can start. A
    /// pure function of the state and its arguments.
    fn next(&self, now: Time, backlog: bool) -> Next;

    /// Whether the next unit of a packet follows at once when one arrives, whatever else happens. The link may then look
    /// ahead.
    fn is_sequential(&self) -> bool {
        false
    }

    /// An attempt ended at `now`; `arrived` tells whether the unit arrived without errors. Protocols without
    /// acknowledgements must ignore it.
    fn ended(&mut self, now: Time, attempt: Attempt, arrived: bool) -> Verdict;

    /// All packets that have started are given up, and so is the attempt on the air, if there is one.
    fn give_up_all(&mut self);

    /// The optional part for messages about several units; always there, or never.
    fn statuses(&mut self) -> Option<&mut dyn Statuses> {
        None
    }
}

/// The part of an [`Arq`] whose receiving end sends messages about several units.
pub trait Statuses {
    /// The attempt that [`next`](Arq::next) has selected starts at `now`. Returns the form in which it is sent.
    fn start(&mut self, now: Time) -> Form;

    /// Number of messages that the receiving end has sent since the last call.
    fn take_messages(&mut self) -> u64 {
        0
    }

    /// The frame that has [ended](Arq::ended) last, which replaces the verdict; `None` unless the ARQ [cuts
    /// frames](Config::cuts_frames).
    fn ended_frame(&self) -> Option<EndedFrame<'_>> {
        None
    }
}

/// The form in which an attempt is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whether it is coded, if the link codes [on request](crate::fec::Covers::Requested).
    pub is_coded: bool,
    /// Size of the frame, overhead included, if the ARQ [cuts frames](Config::cuts_frames).
    pub frame: Option<Bytes>,
}

/// A frame whose attempt has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedFrame<'a> {
    /// Its size, and that of full frames.
    pub sizes: FrameSizes,
    /// Its effects on packets.
    pub shares: &'a [Share],
}

/// What the end of a frame means for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The packet's number.
    pub packet: u64,
    /// Number of units of the packet in the frame.
    pub units: u32,
    /// Whether these units arrived, or the packet is given up.
    pub outcome: LinkOutcome,
}

/// One transmission of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// The packet's number.
    pub packet: u64,
    /// Index of the unit within the packet, from zero.
    pub unit: u32,
    /// Number of this transmission of the unit, from 1.
    pub number: u32,
}

/// The next action of a link whose air is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Next {
    /// Send this unit at once.
    Send(Attempt),
    /// Take the next packet from the queue, [`begin`](Arq::begin) it, then poll again.
    Begin,
    /// Poll again at this later instant, or when a packet arrives if that is earlier. [`Time::NEVER`] if
    /// there is nothing to send without a new packet.
    Wait(Time),
}

/// The result of an attempt for the sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The unit arrived.
    Delivered,
    /// The unit did not arrive and will be retransmitted.
    Again,
    /// The unit did not arrive and its packet is given up.
    GiveUp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use lasthop_base::Duration;
    use serde::Deserialize;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer};

    /// A table with one key, as a deserializer yields it.
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
        for (name, backoff) in [
            ("uniform", Backoff::Uniform(tenth * 7)),
            ("exponential", Backoff::Exponential(tenth * 7)),
            ("fixed", Backoff::Fixed(tenth * 7)),
        ] {
            assert_eq!(read("backoff", table(name, "700 ms")), Ok(stop_and_wait(unlimited, backoff)));
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
