//! Split connections that move with a mobile host from one base station to the next.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::{Port, Reach};
use crate::packet::Packet;

/// Time in which the state of split connections moves to the next base station of a moving host: `setup`, a
/// round trip between the base stations, and the time for the buffered data at `rate`. Meanwhile the
/// connections stand still, and as many packets as fit into the buffers wait for them; afterwards, packets
/// that reach the old base station are lost. A transfer that has begun completes, also if the host has moved
/// on: if hand-offs are more frequent than transfers are fast, the connections make no progress and the user
/// timeout ends them. The state and what waits use no bandwidth of the wired network and are never lost. The
/// defaults are the measurements of I-TCP by its authors: 265 ms with empty buffers, 1430 ms with 32 KB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StateTransfer {
    /// Time for each hand-off.
    pub setup: Duration,
    /// Rate at which buffered data move.
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
/// has begun completes. During a transfer the connections are suspended, and packets wait for them at either base station.
/// The connections resume where the state arrives, even if the host has left that base station and the next transfer begins
/// at once. Packets that reach a base station without the state are lost.
#[derive(Debug)]
pub(super) struct Roaming {
    transfer: StateTransfer,
    /// Propagation delays from each base station to each.
    delays: Vec<Vec<Duration>>,
    /// The base station with the state, from the first attachment on.
    at: Option<u16>,
    /// The base station to which the state is moving.
    target: Option<u16>,
    /// When it left, and when it arrives there.
    began: Time,
    arrival: Time,
    /// The base station to which the mobile host was attached last.
    attached: u16,
    /// Packets that wait for the end of the transfer, each with the side on which it came.
    waiting: VecDeque<(Packet, Port)>,
    waiting_bytes: Bytes,
    /// Upper bound of `waiting_bytes`.
    capacity: Bytes,
    /// The changes of the radio signal during the transfer.
    changes: SignalChanges,
}

/// What has become of the radio signal since a transfer began.
#[derive(Clone, Copy, Debug, Default)]
struct SignalChanges {
    was_lost: bool,
    is_back: bool,
    is_fading: bool,
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
            began: Time::NEVER,
            changes: SignalChanges::default(),
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
        self.follow(now, held);
    }

    /// Begins the transfer to the base station of the mobile host, unless the state is there or on its way.
    pub(super) fn follow(&mut self, now: Time, held: Bytes) {
        let from = self.station();
        if self.is_moving() || from == self.attached {
            return;
        }
        let delay = self.delays[usize::from(from)][usize::from(self.attached)];
        self.target = Some(self.attached);
        self.began = now;
        self.arrival = now + self.transfer.setup + delay * 2 + self.transfer.rate.time_for(held);
    }

    /// The transfer has ended. Returns the changes of the radio signal and the packets that have waited.
    pub(super) fn arrive(&mut self) -> (impl Iterator<Item = Reach> + use<>, VecDeque<(Packet, Port)>) {
        self.at = self.target.take();
        (self.arrival, self.waiting_bytes) = (Time::NEVER, Bytes::ZERO);
        let SignalChanges { was_lost, is_back, is_fading } = core::mem::take(&mut self.changes);
        let changes = [(was_lost, Reach::Lost), (is_back, Reach::Back), (is_fading, Reach::Fading)];
        let changes = changes.into_iter().filter(|(has_come, _)| *has_come).map(|(_, reach)| reach);
        (changes, core::mem::take(&mut self.waiting))
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

    /// Whether a change of the radio signal comes during a transfer, and is recorded. The loss that goes with leaving the
    /// old base station comes when the transfer begins, and is known there.
    pub(super) fn defers(&mut self, now: Time, reach: Reach) -> bool {
        if !self.is_moving() || (reach == Reach::Lost && self.began == now) {
            return false;
        }
        let SignalChanges { was_lost, is_back, is_fading } = &mut self.changes;
        match reach {
            Reach::Lost => (*was_lost, *is_back, *is_fading) = (true, false, false),
            Reach::Back => (*is_back, *is_fading) = (true, false),
            Reach::Fading => *is_fading = true,
        }
        true
    }

    /// The packets that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.waiting.iter().map(|(packet, _)| packet)
    }
}
