//! A test bench for a BSS with aggregates.

use std::collections::VecDeque;

use lasthop_base::{Duration, Streams, Time};
use lasthop_channel::{Channel, Model};
use lasthop_link::wifi::rate::{FixedRate, RateSelection};
use lasthop_link::wifi::{MpduLoss, PpduFormat, Standard, StationRadio, Width, WifiConfig};
use lasthop_proto::{Component, DropReason, Dscp, Effect, Out, Packet, Port, Signal};
use lasthop_sim::wifi::{BssStreams, WifiBss, WifiStation, WifiStreams};
use lasthop_sim::wlan::AboveMac;

use crate::wlan::harness::{Did, Scripted, host, id};

/// 802.11n at 20 MHz: 65 Mb/s with MCS 7.
pub(crate) const HT20: PpduFormat = PpduFormat {
    standard: Standard::N,
    width: Width::Mhz20,
    guard_interval: lasthop_link::wifi::GuardInterval::Ns800,
};

/// 802.11n with standard parameters.
pub(crate) fn ht20() -> WifiConfig {
    let ampdu = HT20.standard.longest_ampdu();
    WifiConfig { format: HT20, ampdu, window: 64, ..WifiConfig::default() }
}

/// MCS 7 with one stream, without losses.
pub(crate) fn mcs7() -> StationRadio {
    let rate = RateSelection::Fixed(FixedRate { mcs: 7, streams: 1 });
    StationRadio {
        rate,
        streams: 1,
        snr: None,
        fading: None,
        loss: MpduLoss::default(),
        area: 0,
        power_save: None,
        roaming: None,
    }
}

/// Stations with channels of one model.
pub(crate) fn stations(seed: u64, count: u32, radio: StationRadio, above_mac: AboveMac) -> Vec<WifiStation> {
    let streams = Streams::new(seed, 0);
    let station = |index| WifiStation {
        hosts: vec![host(index)],
        radio,
        channel: Model::Perfect.build(streams.stream("channel")),
        above_mac,
        streams: WifiStreams::named(&streams, &index.to_string()),
    };
    (0..count).map(station).collect()
}

/// A channel that decides the fate of each MPDU as listed; later ones survive.
pub(crate) fn scripted(fates: &[bool]) -> Box<dyn Channel> {
    Box::new(Scripted(VecDeque::from(fates.to_vec())))
}

/// A BSS driven by hand; checks the contract of a component.
pub(crate) struct Bench {
    pub(crate) bss: WifiBss,
    pub(crate) log: Vec<(Time, Did)>,
    out: Out,
    pub(crate) now: Time,
    /// The last time that it woke.
    pub(crate) woken: Time,
}

impl Bench {
    pub(crate) fn new(config: WifiConfig, seed: u64, stations: Vec<WifiStation>) -> Bench {
        let streams = BssStreams::named(&Streams::new(seed, 0), "ap");
        let bss = WifiBss::new(config, streams, stations);
        Bench { bss, log: Vec::new(), out: Out::default(), now: Time::ZERO, woken: Time::ZERO }
    }

    /// Enqueues a packet at `at`.
    pub(crate) fn send(&mut self, at: Time, port: Port, packet: Packet) {
        self.until(at);
        if self.bss.next_wakeup() == at {
            self.woken = at;
        }
        self.bss.receive(self.now, &packet, port, &mut self.out);
        self.take();
    }

    /// Advances time to `at`, without waking the BSS at `at` itself.
    pub(crate) fn until(&mut self, at: Time) {
        while self.bss.next_wakeup() < at {
            self.wake();
        }
        self.now = at;
    }

    /// Runs until the BSS has no wake-up pending.
    pub(crate) fn finish(&mut self) {
        while self.bss.next_wakeup() < Time::NEVER {
            self.wake();
        }
    }

    /// Runs until the BSS holds nothing, and then a while, although wake-ups of roaming stations or of bursts never end.
    pub(crate) fn finish_within(&mut self, rest: Duration) {
        let limit = self.now + Duration::from_secs(600);
        while self.bss.held() > 0 {
            self.wake();
            assert!(self.now < limit, "it holds {} packets for ever", self.bss.held());
        }
        self.until(self.now + rest);
    }

    fn wake(&mut self) {
        let due = self.bss.next_wakeup();
        assert!(due >= self.now, "it asked for an instant that is past");
        (self.now, self.woken) = (due, due);
        self.bss.wake(due, &mut self.out);
        let silent = self.out.is_empty();
        self.take();
        assert!(!silent || self.bss.next_wakeup() > due, "it woke, did nothing and wants to wake at once");
    }

    fn take(&mut self) {
        while let Some((_, effect)) = self.out.take() {
            let did = match effect {
                Effect::Send(port, packet) => Did::Deliver(port, id(&packet)),
                Effect::Drop(packet, reason) => Did::Drop(id(&packet), reason),
                Effect::Corrupt(_, packet) => Did::Drop(id(&packet), DropReason::Corrupted),
                Effect::Signal(Signal::Link(event)) => {
                    Did::Signal(id(&event.packet), event.outcome, event.attempt)
                }
                Effect::Signal(signal) => panic!("a BSS does not say {signal:?}"),
            };
            self.log.push((self.now, did));
        }
    }

    /// The deliveries, in microseconds.
    pub(crate) fn deliveries(&self) -> Vec<(f64, u64)> {
        let delivery = |&(at, did): &(Time, Did)| match did {
            Did::Deliver(_, id) => Some((at.as_nanos() as f64 / 1e3, id)),
            _ => None,
        };
        self.log.iter().filter_map(delivery).collect()
    }
}

/// The time from the start, in microseconds.
pub(crate) fn micros(at: Duration) -> f64 {
    at.as_nanos() as f64 / 1e3
}

/// A packet with a code point.
pub(crate) fn marked(packet: Packet, dscp: u8) -> Packet {
    Packet { dscp: Dscp::new(dscp), ..packet }
}
