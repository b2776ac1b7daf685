//! The mover of a mobile host: the component that carries out its itinerary.

use lasthop_base::Time;
use lasthop_channel::{Itinerary, Stay};
use lasthop_proto::{Component, HostId, Out, Packet, Port, Signal};

/// Tells its watchers where a moving host is: [`Signal::Attached`] when it becomes reachable at a base station, and
/// [`Signal::Detached`] when it leaves. It has no ports.
#[derive(Debug)]
pub struct Mover {
    host: HostId,
    itinerary: Itinerary,
    /// The current stay, or the next one between two.
    stay: Option<Stay>,
    is_there: bool,
}

impl Mover {
    /// Moves a host along an itinerary.
    pub fn new(host: HostId, mut itinerary: Itinerary) -> Mover {
        let stay = itinerary.next();
        Mover { host, itinerary, stay, is_there: false }
    }
}

impl Component for Mover {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {
        unreachable!("no wire leads here")
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let host = self.host;
        while let Some(Stay { station, .. }) = self.stay
            && self.next_wakeup() <= now
        {
            if self.is_there {
                out.signal(Signal::Detached { host, station });
                self.stay = self.itinerary.next();
            } else {
                out.signal(Signal::Attached { host, station });
            }
            self.is_there = !self.is_there;
        }
    }

    fn next_wakeup(&self) -> Time {
        self.stay.map_or(Time::NEVER, |stay| if self.is_there { stay.until } else { stay.from })
    }
}
