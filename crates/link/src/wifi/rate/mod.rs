//! Rate control: which rate an end of a link uses next. Each control is a module here that implements `Parameters` and
//! [`RateControl`].

mod minstrel;
mod registry;

use lasthop_base::{Duration, Invalid, Stream, Time};

use super::noise::NoiseErrors;
use super::phy::{PpduFormat, Rate};

registry::register! {
    fixed: Fixed(FixedRate),
    ideal: Ideal,
    minstrel_ht: MinstrelHt,
    minstrel_ht_ewma: MinstrelHtEwma,
}

/// A rate control as a scenario selects it: its parameters, if it has any.
trait Parameters {
    /// Checks what the parameters' types cannot express, for stations with this format and number of streams.
    ///
    /// # Errors
    /// The first invalid parameter, with the name of the control: `rate.fixed.mcs`.
    fn validate(&self, _format: &PpduFormat, _streams: u8) -> Result<(), Invalid> {
        Ok(())
    }

    /// The control of one end, as [`RateSelection::build`] returns it.
    fn build(
        &self,
        format: PpduFormat,
        streams: u8,
        noise: Option<&NoiseErrors>,
        random: Stream,
    ) -> Box<dyn RateControl>;
}

/// A rate control of one end of a link, for one peer.
pub trait RateControl: Send {
    /// The link begins at `now` instead of at the start of the run.
    fn associate(&mut self, _now: Time) {}

    /// The signal has changed to one with these errors by noise, for a control that knows them.
    fn hear(&mut self, _noise: &NoiseErrors) {}

    /// The rate of a PPDU that is sent at `now`.
    fn select(&mut self, now: Time) -> Selection;

    /// The outcome of a PPDU at `rate`: the number of its MPDUs, and how many of them were acknowledged.
    fn report(&mut self, now: Time, rate: Rate, sent: u32, acknowledged: u32);
}

/// What a rate control selects for one PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The rate.
    pub rate: Rate,
    /// Bound of the air time, in addition to that of the BSS.
    pub longest: Duration,
    /// Whether RTS and CTS precede the PPDU.
    pub rts: bool,
}

impl Selection {
    /// A rate without further conditions.
    pub const fn of(rate: Rate) -> Selection {
        Selection { rate, longest: Duration::MAX, rts: false }
    }
}

// It cannot be derived, as variants are lines of the registry.
#[allow(clippy::derivable_impls)]
impl Default for RateSelection {
    fn default() -> RateSelection {
        RateSelection::Ideal
    }
}

impl RateSelection {
    pub(super) fn validate(&self, format: &PpduFormat, streams: u8) -> Result<(), Invalid> {
        self.params().validate(format, streams)
    }

    /// A control for a peer that is heard with these errors by noise, if any; `random` is its own stream.
    pub fn build(
        &self,
        format: PpduFormat,
        streams: u8,
        noise: Option<&NoiseErrors>,
        random: Stream,
    ) -> Box<dyn RateControl> {
        self.params().build(format, streams, noise, random)
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::{Decibels, Streams};

    use super::*;
    use crate::wifi::{GuardInterval, Standard, Width};

    /// A control that begins later does the same later.
    #[test]
    fn controls_begin_when_they_are_associated() {
        let format =
            PpduFormat { standard: Standard::Ac, width: Width::Mhz40, guard_interval: GuardInterval::Ns800 };
        let (later, mut random) = (Duration::from_secs(7), Streams::new(2, 0).stream("outcomes"));
        for selection in RateSelection::examples() {
            let [mut first, mut second] =
                [(); 2].map(|()| selection.build(format, 2, None, Streams::new(1, 0).stream("rate")));
            second.associate(Time::ZERO + later);
            for number in 1..500 {
                let now = Time::ZERO + Duration::from_millis(number);
                let selected = first.select(now);
                assert_eq!(selected, second.select(now + later), "{selection:?} at {now}");
                let acknowledged = random.below(31) as u32;
                first.report(now, selected.rate, 30, acknowledged);
                second.report(now + later, selected.rate, 30, acknowledged);
            }
        }
    }

    /// Every control selects rates that the format and the station have, whatever the outcomes, and the same ones for the same
    /// stream.
    #[test]
    fn registered_controls_select_rates_of_the_station() {
        let noise = NoiseErrors::new(Decibels::new(12.0).expect("a level"));
        for selection in RateSelection::examples() {
            for (standard, width) in
                [(Standard::N, Width::Mhz20), (Standard::Ac, Width::Mhz80), (Standard::Ax, Width::Mhz160)]
            {
                let format = PpduFormat { standard, width, guard_interval: GuardInterval::Ns800 };
                for streams in [1, 2] {
                    assert_eq!(selection.validate(&format, streams), Ok(()), "{selection:?}");
                    let build =
                        || selection.build(format, streams, Some(&noise), Streams::new(1, 0).stream("rate"));
                    let (mut control, mut copy) = (build(), build());
                    let (mut now, mut random) = (Time::ZERO, Streams::new(2, 0).stream("outcomes"));
                    for _ in 0..2_000 {
                        let selected = control.select(now);
                        assert_eq!(selected, copy.select(now), "{selection:?}");
                        assert!(format.rates(streams).any(|rate| rate == selected.rate), "{selection:?}");
                        let sent = 1 + random.below(30) as u32;
                        let acknowledged = random.below(u64::from(sent) + 1) as u32;
                        now += Duration::from_millis(1);
                        control.report(now, selected.rate, sent, acknowledged);
                        copy.report(now, selected.rate, sent, acknowledged);
                    }
                }
            }
        }
    }
}
