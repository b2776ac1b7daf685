//! The best rate at a known signal-to-noise ratio.

use lasthop_base::{Bytes, Stream, Time};

use super::{Parameters, RateControl, Selection};
use crate::wifi::noise::NoiseErrors;
use crate::wifi::phy::{PpduFormat, Rate};

pub(super) const SUMMARY: &str = "The rate with the highest product of bit rate and survival of full packets at the station's \
                                  signal, which it knows.";

/// The size of a full MPDU.
const FULL: Bytes = Bytes(1538);

/// The selection of this control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ideal;

impl Parameters for Ideal {
    fn build(
        &self,
        format: PpduFormat,
        streams: u8,
        noise: Option<&NoiseErrors>,
        _random: Stream,
    ) -> Box<dyn RateControl> {
        Box::new(Best::new(format, streams, noise))
    }
}

/// The rate with the highest product of bit rate and survival.
#[derive(Clone, Copy, Debug)]
struct Best {
    format: PpduFormat,
    streams: u8,
    rate: Rate,
}

impl Best {
    fn new(format: PpduFormat, streams: u8, noise: Option<&NoiseErrors>) -> Best {
        let goodput = |rate: &Rate| {
            let survival = noise.map_or(1.0, |noise| noise.survival(rate.mcs, FULL));
            format.bit_rate(*rate).as_bps() as f64 * survival
        };
        let best = format.rates(streams).max_by(|a, b| goodput(a).total_cmp(&goodput(b)).then(b.cmp(a)));
        Best { format, streams, rate: best.expect("every format has MCS 0") }
    }
}

impl RateControl for Best {
    fn hear(&mut self, noise: &NoiseErrors) {
        *self = Best::new(self.format, self.streams, Some(noise));
    }

    fn select(&mut self, _now: Time) -> Selection {
        Selection::of(self.rate)
    }

    fn report(&mut self, _now: Time, _rate: Rate, _sent: u32, _acknowledged: u32) {}
}

#[cfg(test)]
mod tests {
    use lasthop_base::Decibels;

    use super::*;
    use crate::wifi::Standard;

    #[test]
    fn the_rate_follows_the_signal() {
        let format = PpduFormat { standard: Standard::Ax, ..PpduFormat::default() };
        let best = |snr_db: f64| {
            let noise = NoiseErrors::new(Decibels::new(snr_db).unwrap());
            Best::new(format, 1, Some(&noise)).rate.mcs
        };
        // Those of the fixed rates with the highest goodput of ns-3, but with LDPC above MCS 9.
        let expected = [
            (3.0, 0),
            (6.0, 2),
            (12.0, 3),
            (18.0, 5),
            (21.0, 7),
            (24.0, 8),
            (26.0, 9),
            (27.5, 10),
            (33.0, 11),
        ];
        for (snr_db, mcs) in expected {
            assert_eq!(best(snr_db), mcs, "{snr_db} dB");
        }
        // Without a signal, the lowest rate.
        assert_eq!(best(-10.0), 0);
        assert_eq!(Best::new(format, 2, None).rate, Rate { mcs: 11, streams: 2 });
    }
}
