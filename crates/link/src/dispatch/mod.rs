//! Dispatchers: schedulers that choose the mobile host that a base station serves next.
//!
//! # Adding a dispatcher
//! A dispatcher is one module and one variant of [`Dispatch`]; the shared radio does not change.

mod channel_state;
mod fifo;
mod ideal;
mod round_robin;

use lasthop_base::{Duration, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use channel_state::ChannelState;
use fifo::Fifo;
use ideal::Ideal;
use round_robin::RoundRobin;

/// Chooses the mobile host that is served next.
pub trait Dispatcher: Send {
    /// The next action while the air is free, given the backlog of each mobile host.
    fn choose(&mut self, now: Time, offers: &[Offer]) -> Choice;

    /// An attempt to a mobile host ended; `arrived` tells whether it was acknowledged.
    fn ended(&mut self, _now: Time, _mobile: usize, _arrived: bool) {}

    /// Whether [`Offer::good`] is needed.
    fn knows_channels(&self) -> bool {
        false
    }

    /// Whether all packets wait in one queue, in the order of their arrival.
    fn has_one_queue(&self) -> bool {
        false
    }
}

/// The backlog of a mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Earliest time at which a unit can be sent, subject to ARQ backoff. [`Time::NEVER`] without a unit.
    pub ready: Time,
    /// Arrival number of its oldest packet at the base station; `None` without packets.
    pub oldest: Option<u64>,
    /// Whether its channel is in the good state, if the dispatcher [knows](Dispatcher::knows_channels).
    pub good: bool,
}

/// The next action of a base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Serve this mobile host, which is ready.
    Serve(usize),
    /// Choose again at this later instant, or when a packet arrives.
    Wait(Time),
}

/// The turn of a round robin.
#[derive(Default)]
pub struct Turn {
    mobile: usize,
}

impl Turn {
    /// The first ready mobile host from the turn on, in a circle, that `suits`.
    pub fn find(&self, now: Time, offers: &[Offer], suits: impl Fn(usize, &Offer) -> bool) -> Option<usize> {
        let mut circle = (0..offers.len()).map(|step| (self.mobile + step) % offers.len());
        circle.find(|&mobile| offers[mobile].ready <= now && suits(mobile, &offers[mobile]))
    }

    /// Serves `chosen`, and passes the turn to the next mobile host. Without one, waits until a mobile host is ready.
    pub fn pass(&mut self, chosen: Option<usize>, offers: &[Offer]) -> Choice {
        match chosen {
            Some(mobile) => {
                self.mobile = mobile + 1;
                Choice::Serve(mobile)
            }
            None => Choice::Wait(offers.iter().map(|offer| offer.ready).min().unwrap_or(Time::NEVER)),
        }
    }
}

/// The dispatcher of a shared radio and its parameters, as in scenario files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dispatch {
    /// One queue, in the order of arrival. The default: what base stations do.
    #[default]
    Fifo,
    /// A queue for each mobile host; after each attempt the next one has its turn.
    RoundRobin,
    /// Round robin that defers a mobile host whose acknowledgement did not come.
    ChannelState(Params),
    /// Round robin that knows the state of every channel, and defers mobile hosts in a fade.
    Ideal,
}

/// Channel-state dependent packet scheduling (CSDP): Bhagwat, Bhattacharya, Krishna and Tripathi, "Enhancing
/// throughput over wireless LANs using channel state dependent packet scheduling", INFOCOM 1996. After a
/// missing acknowledgement, the queue of the mobile host is skipped for some time; the next attempt tests
/// whether the fade is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "ChannelState")]
pub struct Params {
    /// Time for which a mobile host is deferred. By default 100 ms: a probe of 1500 bytes at 2 Mb/s then
    /// takes a twentieth of the time.
    pub wait: Duration,
}

impl Default for Params {
    fn default() -> Params {
        Params { wait: Duration::from_millis(100) }
    }
}

impl Dispatch {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// A wait of zero.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self {
            Dispatch::ChannelState(Params { wait: Duration::ZERO }) => {
                Err(Invalid { field: "channel-state.wait", problem: "found 0 s, expected more than zero" })
            }
            _ => Ok(()),
        }
    }

    /// Whether all packets wait in one queue.
    pub fn has_one_queue(&self) -> bool {
        self.build(0).has_one_queue()
    }

    /// The dispatcher of a base station with this number of mobile hosts.
    pub fn build(self, mobiles: usize) -> Box<dyn Dispatcher> {
        match self {
            Dispatch::Fifo => Box::new(Fifo),
            Dispatch::RoundRobin => Box::new(RoundRobin::default()),
            Dispatch::ChannelState(params) => Box::new(ChannelState::new(params.wait, mobiles)),
            Dispatch::Ideal => Box::new(Ideal::default()),
        }
    }
}
