//! Observation of a mobile host's radio signal.

use lasthop_base::{Duration, Time};
use lasthop_channel::{Channel, State};
use lasthop_proto::{Component, Out, Packet, Port, Reach, Signal};

/// Notifies its watchers of changes of a mobile host's radio signal ([`Signal::Reach`]). It has no ports.
///
/// The signal is present while a channel to one of the host's base stations is in its good state. When the host changes
/// from one base station to another, the signal is lost and back, even if no time passes between. At the start of a run the
/// signal is present unless its loss is reported.
///
/// The meter knows the future, from its own copies of the channels. A real host would have to predict fades.
#[allow(missing_debug_implementations, reason = "it holds channels")]
pub struct SignalMeter {
    /// The channel to each base station.
    channels: Vec<Box<dyn Channel>>,
    /// Lead time of [`Reach::Fading`] before a loss; zero for none.
    lead: Duration,
    /// Nothing is reported after this time.
    until: Time,
    next: Event,
}

/// The next event.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// [`Reach::Fading`] is reported, ahead of the loss at `lost`.
    Fading { at: Time, lost: Time },
    /// The signal is lost.
    Lost { at: Time },
    /// The signal is back.
    Back { at: Time },
}

impl SignalMeter {
    /// A meter for the channels to all base stations of a host, at time zero. It reports nothing after `until`, the
    /// end of the run, and draws no periods of the channels beyond it.
    pub fn new(channels: Vec<Box<dyn Channel>>, lead: Duration, until: Time) -> SignalMeter {
        let mut meter = SignalMeter { channels, lead, until, next: Event::Lost { at: Time::ZERO } };
        if let Some(channel) = meter.good_at(Time::ZERO) {
            meter.next = meter.until_lost(Time::ZERO, channel);
        }
        meter
    }

    /// A channel that is good at `at`.
    fn good_at(&mut self, at: Time) -> Option<usize> {
        self.channels.iter_mut().position(|channel| channel.sojourn(at).state == State::Good)
    }

    /// The next event, given a channel that is good at `now`.
    fn until_lost(&mut self, now: Time, channel: usize) -> Event {
        let mut lost = now;
        loop {
            if lost > self.until + self.lead || lost == Time::NEVER {
                return Event::Lost { at: Time::NEVER };
            }
            let sojourn = self.channels[channel].sojourn(lost);
            if sojourn.state == State::Bad {
                break;
            }
            lost = sojourn.until;
        }
        if self.lead.is_zero() {
            return Event::Lost { at: lost };
        }
        let announced = Time::from_nanos(lost.as_nanos().saturating_sub(self.lead.as_nanos()));
        Event::Fading { at: announced.max(now), lost }
    }

    /// When a channel is good again, given that the signal is lost at `at`; never, if that is after the end.
    fn back_after(&mut self, at: Time) -> Time {
        let mut now = at;
        while now <= self.until && now < Time::NEVER {
            if self.good_at(now).is_some() {
                return now;
            }
            let ends = self.channels.iter_mut().map(|channel| channel.sojourn(now).until);
            now = ends.min().unwrap_or(Time::NEVER);
        }
        Time::NEVER
    }
}

impl Component for SignalMeter {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {
        unreachable!("no wire leads here")
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        while self.next_wakeup() <= now {
            let (reach, next) = match self.next {
                Event::Fading { lost, .. } => (Reach::Fading, Event::Lost { at: lost }),
                Event::Lost { at } => (Reach::Lost, Event::Back { at: self.back_after(at) }),
                Event::Back { at } => {
                    let channel = self.good_at(at).expect("a channel is good");
                    (Reach::Back, self.until_lost(at, channel))
                }
            };
            self.next = next;
            out.signal(Signal::Reach(reach));
        }
    }

    fn next_wakeup(&self) -> Time {
        match self.next {
            Event::Fading { at, .. } | Event::Lost { at } | Event::Back { at } => at,
        }
    }
}
