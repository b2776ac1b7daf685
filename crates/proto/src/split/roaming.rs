//! Split connections that move with a mobile host from one base station to the next.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use serde::{Deserialize, Serialize};

use crate::component::{Port, Reach};
use crate::packet::Packet;

/// The time in which the state of split connections moves between base stations: `setup`, a round trip between
/// them, and the time for the buffered data at `rate`.
///
/// The defaults are the measurements of I-TCP by Bakre and Badrinath (1995), as quoted by Balakrishnan, Seshan and
/// Katz, ACM Wireless Networks 1(4), 1995: 265 ms with empty buffers, and 1430 ms with 32 KB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StateTransfer {
    /// Time for each hand-off, even without buffered data.
    pub setup: Duration,
    /// Rate at which buffered data are moved.
    pub rate: BitRate,
}

impl Default for StateTransfer {
    fn default() -> StateTransfer {
        // 32 KB in 1165 ms.
        let rate = BitRate::from_bps(225_000).expect("not zero");
        StateTransfer { setup: Duration::from_millis(265), rate }
    }
}

/// Where the state of a proxy's connections is.
///
/// The state follows the mobile host: a transfer begins when the host is attached to another base station, and one that
/// has begun completes. During a transfer the connections stand still, and packets wait for them at either base station.
/// Otherwise packets that reach another base station than that of the state are lost.
#[derive(Debug)]
pub(super) struct Roaming {
    transfer: StateTransfer,
    /// Propagation delays from each base station to each.
    delays: Vec<Vec<Duration>>,
    /// The base station with the state, from the first attachment on.
    at: Option<u16>,
    /// The base station to which the state is moving.
    target: Option<u16>,
    /// When it arrives there.
    arrival: Time,
    /// The base station to which the mobile host was attached last.
    attached: u16,
    /// Packets that wait for the end of the transfer, each with the side on which it came.
    waiting: VecDeque<(Packet, Port)>,
    waiting_bytes: Bytes,
    /// Upper bound of `waiting_bytes`.
    capacity: Bytes,
    /// The latest change of the radio signal during the transfer.
    reach: Option<Reach>,
}

/// What becomes of a packet at a base station.
pub(super) enum Reception {
    /// The connections are here.
    Here,
    /// The packet waits for them.
    Waits,
    /// There is no room for the packet to wait.
    Full,
    /// The connections are elsewhere.
    Elsewhere,
}

impl Roaming {
    pub(super) fn new(transfer: StateTransfer, delays: Vec<Vec<Duration>>) -> Roaming {
        Roaming {
            transfer,
            delays,
            at: None,
            target: None,
            arrival: Time::NEVER,
            attached: 0,
            waiting: VecDeque::new(),
            waiting_bytes: Bytes::ZERO,
            capacity: Bytes::ZERO,
            reach: None,
        }
    }

    /// Makes room for packets of another connection to wait, as many as its buffer takes.
    pub(super) fn add_capacity(&mut self, buffer: Bytes) {
        self.capacity += buffer;
    }

    /// The base station with the state.
    pub(super) fn station(&self) -> u16 {
        self.at.unwrap_or_default()
    }

    /// When the transfer ends; [`Time::NEVER`] without one.
    pub(super) fn arrival(&self) -> Time {
        self.arrival
    }

    pub(super) fn is_moving(&self) -> bool {
        self.target.is_some()
    }

    /// The mobile host is attached to `station`, and the connections have buffered `held`.
    pub(super) fn attach(&mut self, now: Time, station: u16, held: Bytes) {
        self.attached = station;
        if self.at.is_none() {
            self.at = Some(station);
        }
        self.begin_transfer(now, held);
    }

    /// Begins the transfer to the base station of the mobile host, unless the state is there or on its way.
    fn begin_transfer(&mut self, now: Time, held: Bytes) {
        let from = self.station();
        if self.is_moving() || from == self.attached {
            return;
        }
        let delay = self.delays[usize::from(from)][usize::from(self.attached)];
        self.target = Some(self.attached);
        self.arrival = now + self.transfer.setup + delay * 2 + self.transfer.rate.time_for(held);
    }

    /// The transfer has ended. Another one begins if the mobile host has moved on.
    pub(super) fn arrive(&mut self, now: Time, held: Bytes) {
        self.at = self.target.take();
        self.arrival = Time::NEVER;
        self.begin_transfer(now, held);
    }

    /// Takes the packets that have waited, and the change of the radio signal, once the connections go on.
    pub(super) fn take_waiting(&mut self) -> (VecDeque<(Packet, Port)>, Option<Reach>) {
        self.waiting_bytes = Bytes::ZERO;
        (core::mem::take(&mut self.waiting), self.reach.take())
    }

    /// A packet of a split connection arrives.
    pub(super) fn receive(&mut self, packet: &Packet, port: Port) -> Reception {
        if !self.is_moving() {
            return if port.station() == self.station() { Reception::Here } else { Reception::Elsewhere };
        }
        let bytes = self.waiting_bytes + packet.size;
        if bytes > self.capacity {
            return Reception::Full;
        }
        self.waiting_bytes = bytes;
        self.waiting.push_back((*packet, port.side()));
        Reception::Waits
    }

    /// Records a change of the radio signal during a transfer.
    pub(super) fn note_reach(&mut self, reach: Reach) {
        self.reach = Some(reach);
    }

    /// The packets that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.waiting.iter().map(|(packet, _)| packet)
    }
}
