//! Losses of packets by their share and mean burst.

use alloc::boxed::Box;

use lasthop_base::{Duration, Invalid, Probability, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::alternating::{PerState, Start};
use crate::markov::{Bursts, Chain, Law, Span};
use crate::{Channel, ChannelModel, ClosedForm};

/// Bursty losses given by measured quantities: loss rate and mean burst length. The bad state loses every
/// unit, the good state none (E. N. Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal
/// 39(5), 1960, in this simple form).
///
/// ```toml
/// [radio.channel.gilbert]
/// loss = "2 %"
/// burst = 5            # packets; or a duration such as "40 ms"
/// ```
///
/// **By packets** (a number): the state changes before each unit on the air, whatever its size and the time
/// since the previous unit, from good to bad with probability p and back with probability r. The state
/// depends on the traffic of its direction. Use it for losses in buffers or code words.
///
/// **By time** (a duration): the state changes in continuous time, and the state at the start of a
/// transmission determines the loss. Both directions and all schemes meet the same periods. Use it for
/// shadowing.
///
/// For packets every Δ seconds:
///
/// | | by packets | by time, mean stays G and B |
/// |---|---|---|
/// | loss | p / (p + r) | B / (G + B) |
/// | mean burst of losses | 1 / r packets | B seconds |
/// | mean gap between bursts | 1 / p packets | G seconds |
/// | p | loss / (1 − loss) / burst | loss · (1 − e^(−Δ/G − Δ/B)) |
/// | r | 1 / burst | (1 − loss) · (1 − e^(−Δ/G − Δ/B)) |
///
/// Burst lengths are geometric, or exponential in time. Independent losses have a mean burst length of 1 / (1
/// − loss) packets; smaller values are rejected. `tc netem loss gemodel p r` is the chain by packets.
/// `lasthop run` and `lasthop check` print the channel in both forms, for back-to-back packets of
/// `tcp.packet_size`; `Scenario.channel_bursts` returns it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gilbert {
    /// Share of units lost.
    pub loss: Probability,
    /// Mean burst length, in consecutive lost units (`5` or `"5 packets"`) or in time (`"40 ms"`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Span>,
    /// State of the first unit, or at time zero: `"stationary"`, `"good"` or `"bad"`. By default stationary,
    /// so that the loss is as stated from the beginning.
    #[serde(default = "stationary")]
    pub start: Start,
}

fn stationary() -> Start {
    Start::Stationary
}

impl Gilbert {
    fn chain(&self) -> Chain {
        let loss = self.loss.get();
        let law = match self.burst {
            // Also where a loss of 0 or 1 leaves no bursts.
            None => Law::Packets { p: loss, r: 1.0 - loss },
            Some(Span::Packets(burst)) => {
                let r = 1.0 / burst;
                // Rounding may exceed 1 for independent losses.
                Law::Packets { p: (r * loss / (1.0 - loss)).min(1.0), r }
            }
            Some(Span::Time(bad)) => {
                let good = Duration::from_secs_f64(bad.as_secs_f64() * (1.0 - loss) / loss);
                Law::Time(PerState { good, bad })
            }
        };
        Chain { law, loss: PerState { good: 0.0, bad: 1.0 }, start: self.start }
    }
}

impl ChannelModel for Gilbert {
    fn examples() -> &'static [&'static str] {
        &["loss = 0.02, burst = 3, start = \"stationary\"", "loss = 0.02, burst = \"40 ms\""]
    }

    fn validate(&self) -> Result<(), Invalid> {
        let wrong = |problem| Err(Invalid { field: "gilbert.burst", problem });
        let loss = self.loss.get();
        match self.burst {
            None => Ok(()),
            Some(_) if loss == 0.0 => wrong(
                "found a burst with a loss of 0, which has none; state a loss above 0, or leave burst out",
            ),
            Some(_) if loss == 1.0 => wrong(
                "found a burst with a loss of 1, which never ends; state a loss below 1, or leave burst out",
            ),
            Some(Span::Packets(packets)) if packets * (1.0 - loss) < 1.0 - 1e-9 => wrong(
                "found a mean burst below 1 / (1 - loss) packets, that of independent losses; state a longer one, or \
                 leave burst out for independent losses",
            ),
            Some(Span::Time(time)) if time.is_zero() => {
                wrong("found a length of zero, expected one above zero, such as \"40 ms\"")
            }
            Some(_) => Ok(()),
        }
    }

    fn channel(&self, stream: Stream) -> Box<dyn Channel> {
        self.chain().channel(stream)
    }

    fn availability(&self) -> f64 {
        self.chain().availability()
    }

    fn mean_cycle_s(&self) -> Option<f64> {
        self.chain().mean_cycle_s()
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }

    fn bursts(&self, interval: Duration) -> Option<Bursts> {
        Some(self.chain().bursts(interval))
    }
}

impl ClosedForm for Gilbert {
    fn loss_probability(&self, frames: u32, _bits: u64, on_air: Duration) -> f64 {
        self.chain().loss_probability(frames, on_air)
    }
}
