//! Congestion control for transports that number packets, as QUIC does, and detect losses by themselves.
//!
//! A [`PacketControl`] makes of what such a transport knows of its packets what a [`Controller`] expects of TCP: rounds, round-trip
//! times, delivery rates and reductions. A byte of the sequence space is a byte of a packet, and a retransmission is a new packet.
//! What TCP does with the window and these transports do not is left out: proportional rate reduction, the undoing of
//! reductions, timeouts, and the restart after an idle period. A reduction is immediate, and is one in each round trip (RFC 9002
//! section 7.3.2).

use alloc::collections::VecDeque;

use lasthop_base::{Duration, Time};

use super::cc::{
    self, AckInfo, Congestion, Demand, Limit, Loss, LostSegment, RateSample, RttInfo, Sending, Window,
};
use super::delivery::{DeliveryRate, Snapshot};
use super::settings::{Profile, Settings};
use crate::packet::{FlowId, SeqNum};

/// What a transport takes for congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Packets of so many bytes were lost.
    Lost(u64),
    /// A packet was marked.
    Mark,
}

/// A congestion control with the constants of Linux, in bytes of packets.
#[derive(Debug)]
pub struct PacketControl {
    control: cc::Chosen,
    needs_pacing: bool,
    limit: Limit,
    /// Packets sent and not known to be settled, by the instant at which they were sent.
    batches: VecDeque<Batch>,
    rate: DeliveryRate,
    /// Bytes sent so far, modulo 2³².
    sent: u32,
    last_sent: Time,
    in_flight: u64,
    /// Packets lost so far.
    lost: u32,
    /// Bytes lost since the last acknowledgement.
    newly_lost: u64,
    /// When the window was last reduced: an acknowledgement of a packet sent later ends recovery.
    reduced: Option<Time>,
    /// Whether losses were persistent since then.
    is_persistent: bool,
    /// The next acknowledgement: its bytes, and those of them that may grow the window.
    acked: u64,
    growing: u64,
    packets: u32,
    newest: Option<Time>,
    /// One past the newest byte acknowledged.
    una: SeqNum,
    least_rtt: Option<Duration>,
    srtt: Duration,
}

/// Packets sent at one instant.
#[derive(Clone, Copy, Debug)]
struct Batch {
    sent: Time,
    /// The first byte.
    start: u32,
    /// Bytes sent.
    size: u32,
    /// Bytes acknowledged.
    acked: u32,
    /// Whether a packet was lost.
    has_loss: bool,
    snapshot: Snapshot,
}

impl Batch {
    fn end(&self) -> u32 {
        self.start.wrapping_add(self.size)
    }

    fn is_acked(&self) -> bool {
        self.acked >= self.size
    }
}

impl PacketControl {
    /// No packet is acknowledged that long after it was sent.
    const LONGEST: Duration = Duration::from_secs(30);
    /// Packets up to this size are taken for acknowledgements, which nobody acknowledges: those of QUIC have 40 to 60 bytes.
    const ACKNOWLEDGEMENT: u64 = 64;

    /// A control of full packets of `packet` bytes. `flow` seeds its random numbers.
    pub fn new(congestion: Congestion, packet: u16, flow: FlowId) -> PacketControl {
        let linux = Profile::Linux.settings();
        // Spread over the round trip by the transport, which HyStart takes into account.
        let settings = Settings { congestion, pacing: true, ..linux }.with_mss(packet.into());
        let control = congestion.control();
        PacketControl {
            control: control.build(&settings, flow),
            needs_pacing: control.needs_pacing,
            limit: control.limit,
            batches: VecDeque::new(),
            rate: DeliveryRate::default(),
            sent: 0,
            last_sent: Time::ZERO,
            in_flight: 0,
            lost: 0,
            newly_lost: 0,
            reduced: None,
            is_persistent: false,
            acked: 0,
            growing: 0,
            packets: 0,
            newest: None,
            una: SeqNum(0),
            least_rtt: None,
            srtt: Duration::ZERO,
        }
    }

    /// The window and its threshold.
    pub fn window(&self) -> &Window {
        self.control.window()
    }

    /// The rate at which packets may leave in bytes per second; `None` if the control does not pace, or has no round-trip
    /// time yet.
    pub fn pacing_rate(&self) -> Option<f64> {
        (self.needs_pacing && !self.srtt.is_zero()).then(|| self.control.pacing_rate(self.srtt))
    }

    /// Full packets have `packet` bytes from now on. The window stays the same number of packets.
    pub fn set_packet_size(&mut self, packet: u16) {
        let window = self.control.window().in_segments_of(packet.into());
        *self.control.window_mut() = window;
    }

    fn max(&self) -> SeqNum {
        SeqNum(self.sent)
    }

    fn packet_count(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.control.window().mss() as u64) as u32
    }

    fn batch(&self, sent: Time) -> Option<usize> {
        self.batches.binary_search_by_key(&sent, |batch| batch.sent).ok()
    }

    fn is_reduced_after(&self, sent: Time) -> bool {
        self.reduced.is_some_and(|reduced| sent <= reduced)
    }

    /// Packets of `bytes` in all were sent.
    pub fn on_sent(&mut self, now: Time, bytes: u64) {
        if bytes <= PacketControl::ACKNOWLEDGEMENT {
            return;
        }
        if self.in_flight == 0 {
            self.rate.restart(now);
            if self.sent > 0 {
                let application_limited = self.rate.is_application_limited();
                let idle = now.since(self.last_sent);
                self.control.on_flight(&Sending { now, idle, application_limited });
            }
        }
        self.in_flight += bytes;
        self.last_sent = now;
        let in_flight = self.packet_count(self.in_flight);
        match self.batches.back_mut().filter(|last| last.sent == now) {
            Some(last) => {
                last.size = last.size.wrapping_add(bytes as u32);
                last.snapshot.in_flight = in_flight;
            }
            None => self.batches.push_back(Batch {
                sent: now,
                start: self.sent,
                size: bytes as u32,
                acked: 0,
                has_loss: false,
                snapshot: self.rate.snapshot(in_flight, self.lost),
            }),
        }
        self.sent = self.sent.wrapping_add(bytes as u32);
        while self.batches.front().is_some_and(|first| now.since(first.sent) > PacketControl::LONGEST) {
            self.batches.pop_front();
        }
    }

    /// An acknowledgement covers a packet of `bytes` that was sent at `sent`.
    pub fn on_acked(&mut self, now: Time, sent: Time, bytes: u64) {
        self.acked += bytes;
        self.packets += 1;
        if !self.is_reduced_after(sent) {
            self.growing += bytes;
        }
        self.newest = self.newest.max(Some(sent));
        let Some(index) = self.batch(sent) else { return };
        let batch = &mut self.batches[index];
        batch.acked = batch.acked.wrapping_add(bytes as u32);
        let end = SeqNum(batch.start.wrapping_add(batch.acked));
        self.una = self.una.max(end);
        self.rate.on_delivered(now, bytes as u32, sent, &batch.snapshot);
        self.forget_settled();
    }

    /// Drops the first batches if they are acknowledged, or lost in part and followed by one that is acknowledged.
    fn forget_settled(&mut self) {
        while let Some(first) = self.batches.front()
            && (first.is_acked() || first.has_loss && self.batches.get(1).is_some_and(Batch::is_acked))
        {
            self.batches.pop_front();
        }
    }

    /// The acknowledgement is complete: `in_flight` bytes are neither acknowledged nor lost. `srtt` is the smoothed round-trip time
    /// before it, and `is_limited` if the application has nothing more to send.
    pub fn on_acknowledged(&mut self, now: Time, in_flight: u64, srtt: Duration, is_limited: bool) {
        let Some(newest) = self.newest.take() else { return };
        let (acked, growing) = (core::mem::take(&mut self.acked), core::mem::take(&mut self.growing));
        let packets = core::mem::take(&mut self.packets);
        (self.in_flight, self.srtt) = (in_flight, srtt);
        let in_recovery = self.is_reduced_after(newest);
        self.is_persistent &= in_recovery;
        let (una, max) = (self.una, self.max());
        let rtt = now.since(newest);
        self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        self.control.on_rtt(&RttInfo { now, rtt, una, max });
        if growing > 0 && !is_limited {
            let acked = growing.min(u32::MAX.into()) as u32;
            self.control.on_ack(&AckInfo { now, acked, una, max, undisturbed: true });
        }
        let mut sample = RateSample {
            now,
            newly_lost: core::mem::take(&mut self.newly_lost),
            rtt: Some(rtt),
            ack_delayed: packets == 1,
            prior_in_flight: in_flight + acked,
            in_flight,
            in_recovery: in_recovery && !self.is_persistent,
            in_loss: self.is_persistent,
            ..RateSample::default()
        };
        if let Some(sent) = self.rate.complete(&mut sample, self.least_rtt.unwrap_or_default()) {
            let packet = self.window().mss() as u64;
            sample.in_flight_at_sending = u64::from(sent.in_flight) * packet;
            sample.lost_since = u64::from(self.lost - sent.lost) * packet;
        }
        if self.control.on_sample(&sample) == Demand::Limited || is_limited {
            self.rate.note_application_limited(in_flight);
        }
    }

    /// A sign of congestion, of which the newest packet was sent at `sent`. `is_persistent` if everything was lost for so long that
    /// the window no longer reflects the network (RFC 9002 section 7.6).
    pub fn on_congestion(&mut self, now: Time, sent: Time, sign: Sign, is_persistent: bool) {
        let lost = if let Sign::Lost(bytes) = sign { bytes } else { 0 };
        self.in_flight = self.in_flight.saturating_sub(lost);
        self.newly_lost += lost;
        self.lost += self.packet_count(lost);
        let flight = self.window().cwnd() as u32;
        let mut loss = Loss { now, flight, rwnd: u32::MAX, again: false, max: self.max() };
        if !self.is_reduced_after(sent) {
            self.reduced = Some(now);
            match sign {
                Sign::Lost(_) => self.control.on_loss(&loss, None),
                Sign::Mark => self.control.on_mark(&loss, None),
            }
        }
        // Also if the window was reduced after the packets were sent (RFC 9002 section 7.6.2).
        if is_persistent {
            self.is_persistent = true;
            loss.again = true;
            self.control.on_timeout(&loss, None);
            if self.limit == Limit::Model {
                // As recovery of TCP does for it: what is in flight, and one packet.
                let window = self.in_flight as f64 + self.window().mss();
                self.control.window_mut().set_cwnd(window);
            }
        }
        let Some(index) = self.batch(sent).filter(|_| lost > 0) else { return };
        self.batches[index].has_loss = true;
        let Batch { snapshot, .. } = self.batches[index];
        let (start, end) = self.lost_range(index, lost);
        let mss = self.window().mss() as u64;
        self.control.on_lost_segment(&LostSegment {
            now,
            start,
            end,
            in_flight_at_sending: u64::from(snapshot.in_flight) * mss,
            lost_since: u64::from(self.lost - snapshot.lost) * mss,
            application_limited: snapshot.application_limited,
            delivered: self.rate.delivered(),
        });
        // Whatever was sent earlier is acknowledged or lost.
        self.batches.drain(..index);
    }

    /// The range of `lost` bytes without a gap of which the last are in this batch.
    fn lost_range(&self, index: usize, lost: u64) -> (SeqNum, SeqNum) {
        let end = self.batches[index].end();
        (SeqNum(end.wrapping_sub(lost as u32)), SeqNum(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u16 = 1000;

    /// A path that delivers a packet each `gap`, 50 ms after it was sent at the earliest, and loses every `period`-th.
    struct Path {
        control: PacketControl,
        gap: Duration,
        period: u64,
        now: Time,
        /// Departure, arrival of the acknowledgement, and number of the packets in flight.
        flying: VecDeque<(Time, Time, u64)>,
        sent: u64,
        acked: u64,
        free: Time,
        departure: Time,
    }

    impl Path {
        fn new(congestion: Congestion, gap: Duration, period: u64) -> Path {
            let control = PacketControl::new(congestion, PACKET, FlowId(0));
            let (now, flying) = (Time::ZERO, VecDeque::new());
            Path { control, gap, period, now, flying, sent: 0, acked: 0, free: now, departure: now }
        }

        fn packets(&self) -> u64 {
            (self.control.window().cwnd() / f64::from(PACKET)) as u64
        }

        fn send(&mut self) {
            while (self.flying.len() as u64) < self.packets() && self.departure <= self.now {
                self.control.on_sent(self.now, PACKET.into());
                let sent = (self.now + Duration::from_millis(25)).max(self.free) + self.gap;
                self.free = sent;
                self.flying.push_back((self.now, sent + Duration::from_millis(25), self.sent));
                self.sent += 1;
                if let Some(rate) = self.control.pacing_rate() {
                    let gap = Duration::from_secs_f64(f64::from(PACKET) / rate);
                    self.departure = self.departure.max(self.now) + gap;
                }
            }
        }

        /// Handles the next acknowledgement or departure.
        fn step(&mut self) {
            self.send();
            let arrival = self.flying.front().map_or(Time::NEVER, |flying| flying.1);
            if self.departure > self.now
                && self.departure < arrival
                && (self.flying.len() as u64) < self.packets()
            {
                self.now = self.departure;
                return self.send();
            }
            let Some((sent, arrival, number)) = self.flying.pop_front() else { return };
            self.now = arrival;
            let in_flight = self.flying.len() as u64 * u64::from(PACKET);
            if number % self.period == self.period - 1 {
                return self.control.on_congestion(arrival, sent, Sign::Lost(PACKET.into()), false);
            }
            self.acked += 1;
            self.control.on_acked(arrival, sent, PACKET.into());
            self.control.on_acknowledged(arrival, in_flight, Duration::from_millis(50), false);
        }

        fn run(&mut self, seconds: u64) {
            let end = self.now + Duration::from_secs(seconds);
            while self.now < end {
                self.step();
            }
        }
    }

    /// Over a path without a queue that loses one packet of n, the window of Reno goes from half of W to W in W/2 round trips, after
    /// one in which it does not grow: n = 3/8 W² + W/2 packets. A window of whole packets is smaller by one at most.
    #[test]
    fn reno_sends_what_its_closed_form_says() {
        for period in [100, 400, 1_600] {
            let mut path = Path::new(Congestion::Reno, Duration::from_nanos(1), period);
            path.run(20);
            let before = path.acked;
            path.run(200);
            let found = (path.acked - before) as f64 / (200.0 / 0.05);
            let packets = period as f64;
            let most = (libm::sqrt(0.25 + 1.5 * packets) - 0.5) / 0.75;
            let expected = packets / (most / 2.0 + 1.0);
            assert!((expected - 1.0..expected + 0.2).contains(&found), "{found} for {expected}");
        }
    }

    /// Both versions of BBR estimate the rate of a bottleneck without the acknowledgements of TCP, pace at it, and keep twice the
    /// product of bandwidth and delay in flight at most.
    #[test]
    fn bbr_finds_the_rate_of_the_path() {
        for (congestion, period) in
            [(Congestion::Bbr, u64::MAX), (Congestion::Bbr, 100), (Congestion::Bbr3, u64::MAX)]
        {
            let mut path = Path::new(congestion, Duration::from_millis(1), period);
            path.run(5);
            let before = path.acked;
            path.run(9);
            let rate = (path.acked - before) as f64 / 9.0;
            assert!((880.0..=1_000.0).contains(&rate), "{congestion:?}, {period}: {rate} packets/s of 1,000");
            let pace = path.control.pacing_rate().expect("it paces") / f64::from(PACKET);
            assert!((740.0..=1_300.0).contains(&pace), "{congestion:?}, {period}: {pace}");
            assert!((40..140).contains(&path.packets()), "{congestion:?}, {period}: {}", path.packets());
        }
    }

    /// One reduction in a round trip, by the control's factor, however many losses or marks; persistent losses leave one packet.
    #[test]
    fn a_round_trip_has_one_reduction() {
        let mut path = Path::new(Congestion::Cubic, Duration::from_millis(1), u64::MAX);
        path.run(1);
        let (before, now, sent) = (path.packets(), path.now, path.flying[0].0);
        for sign in [Sign::Lost(3_000), Sign::Mark, Sign::Lost(1_000)] {
            path.control.on_congestion(now, sent, sign, false);
            assert_eq!(path.packets(), before * 717 / 1024, "{sign:?}");
        }
        path.control.on_acked(now, sent, 1_000);
        path.control.on_acknowledged(now, 10_000, Duration::from_millis(50), false);
        assert_eq!(path.packets(), before * 717 / 1024, "what was sent before does not grow the window");
        let later = now + Duration::from_millis(100);
        path.control.on_congestion(later, now + Duration::from_millis(1), Sign::Lost(1_000), true);
        assert_eq!(path.packets(), 1);
    }

    /// Persistent losses leave what is in flight, nothing here, and one packet, to a model of the path, too, and also if a loss of
    /// packets sent at the same time has reduced the window before.
    #[test]
    fn persistent_losses_leave_one_packet() {
        for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::Bbr, Congestion::Bbr3] {
            let mut path = Path::new(congestion, Duration::from_millis(1), u64::MAX);
            path.run(5);
            assert!(path.packets() > 30, "{congestion:?}");
            let (now, sent) = (path.now, path.flying[path.flying.len() - 1].0);
            let bytes = path.flying.len() as u64 * u64::from(PACKET);
            // A first loss has reduced the window.
            path.control.on_congestion(now, path.flying[0].0, Sign::Lost(PACKET.into()), false);
            let bytes = bytes - u64::from(PACKET);
            path.control.on_congestion(now + Duration::from_secs(1), sent, Sign::Lost(bytes), true);
            assert_eq!(path.packets(), 1, "{congestion:?}");
        }
    }

    /// With acknowledgements between its packets and while the application thinks, a control does what it does without them.
    #[test]
    fn acknowledgements_change_nothing() {
        let rounds = |congestion, acknowledgement: Option<u64>| {
            let mut control = PacketControl::new(congestion, PACKET, FlowId(0));
            let mut now = Time::ZERO;
            let mut found = alloc::vec::Vec::new();
            for round in 0..60_u64 {
                let sent = now;
                for packet in 0..10 {
                    control.on_sent(sent + Duration::from_millis(packet), PACKET.into());
                    acknowledgement
                        .iter()
                        .for_each(|bytes| control.on_sent(sent + Duration::from_millis(packet), *bytes));
                }
                if round % 20 == 10 {
                    control.on_congestion(
                        sent + Duration::from_millis(50),
                        sent,
                        Sign::Lost(PACKET.into()),
                        false,
                    );
                }
                for packet in 1..10_u64 {
                    now = sent + Duration::from_millis(50 + packet);
                    control.on_acked(now, sent + Duration::from_millis(packet), PACKET.into());
                    let in_flight = (9 - packet) * u64::from(PACKET);
                    control.on_acknowledged(now, in_flight, Duration::from_millis(50), false);
                    found.push((control.window().cwnd(), control.pacing_rate()));
                }
                acknowledgement
                    .iter()
                    .for_each(|bytes| control.on_sent(now + Duration::from_millis(1), *bytes));
                now += Duration::from_secs(2);
            }
            found
        };
        for congestion in [Congestion::Reno, Congestion::Cubic, Congestion::Bbr, Congestion::Bbr3] {
            let (plain, with) = (rounds(congestion, None), |bytes| rounds(congestion, Some(bytes)));
            assert!(with(45) == plain, "{congestion:?}");
            // Reno knows neither rounds nor rates; what the others make of larger packets differs.
            assert_eq!(with(100) == plain, congestion == Congestion::Reno, "{congestion:?}");
        }
    }

    /// An event that loses the last packets of several batches names all of their bytes.
    #[test]
    fn a_loss_of_several_packets_has_their_range() {
        let mut control = PacketControl::new(Congestion::Bbr3, PACKET, FlowId(0));
        for number in 0..10 {
            control.on_sent(Time::ZERO + Duration::from_millis(number), PACKET.into());
        }
        assert_eq!(control.lost_range(6, 1_000), (SeqNum(6_000), SeqNum(7_000)));
        assert_eq!(control.lost_range(6, 3_000), (SeqNum(4_000), SeqNum(7_000)));
    }

    /// A packet of another size leaves the number of packets in the window; a limited application does not grow it.
    #[test]
    fn windows_count_packets() {
        let mut control = PacketControl::new(Congestion::Reno, 1200, FlowId(0));
        assert_eq!(control.window().cwnd(), 12_000.0);
        control.set_packet_size(1452);
        assert_eq!(control.window().cwnd(), 14_520.0);
        for (is_limited, expected) in [(true, 14_520.0), (false, 15_972.0)] {
            let (sent, now) = (Time::ZERO, Time::ZERO + Duration::from_millis(50));
            control.on_sent(sent, 1452);
            control.on_acked(now, sent, 1452);
            control.on_acknowledged(now, 0, Duration::from_millis(50), is_limited);
            assert_eq!(control.window().cwnd(), expected);
        }
    }

    /// Packets are kept while they are in flight, and none of which nothing is heard for ever.
    #[test]
    fn what_is_settled_is_forgotten() {
        for period in [u64::MAX, 100] {
            let mut path = Path::new(Congestion::Bbr, Duration::from_millis(1), period);
            path.run(10);
            let (kept, flying) = (path.control.batches.len(), path.flying.len());
            assert!(kept <= flying + 1, "{period}: {kept} for {flying}");
        }
        let mut control = PacketControl::new(Congestion::Reno, PACKET, FlowId(0));
        for number in 0..10_000 {
            control.on_sent(Time::ZERO + Duration::from_millis(10 * number), 100);
        }
        assert!(control.batches.len() <= 3_001, "{}", control.batches.len());
    }
}
