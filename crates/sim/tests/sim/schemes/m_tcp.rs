//! M-TCP: a supervisory host by hand, between a source and a mobile host.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::split::Proxy;
use lasthop_proto::tcp::{
    Connection, Flags, InitialWindow, Reactions, Segment, SeqNum, Settings, Timestamps, WindowCounts,
};
use lasthop_proto::{
    Body, Component, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, Reach, Signal,
};
use lasthop_testing::schemes::installed;

const CONNECTION: Connection = Connection { src: HostId(1), dst: HostId(2), flow: FlowId(0) };
const WINDOW: u32 = 10_000;

/// The supervisory host and its output.
struct Host {
    proxy: Proxy,
    now: Time,
    /// Acknowledgements to the source since the last check: number and window.
    acks: Vec<(u32, u32)>,
    /// Data to the mobile host since the last check: first byte and length.
    data: Vec<(u32, u32)>,
    echoes: Vec<Option<u32>>,
}

impl Host {
    /// Data come from the fixed host through [`Port::WIRED`], or from the mobile host through
    /// [`Port::RADIO`].
    fn new(from: Port) -> Host {
        let schemes = Schemes::default();
        let combination = installed(&schemes, "m-tcp");
        let settings = Settings {
            handshake: false,
            close: true,
            ack_every: 1,
            packet_size: Bytes(140),
            initial_window: InitialWindow::Segments(10),
            window: Bytes(u64::from(WINDOW)).into(),
            window_counts: WindowCounts::Payload,
            ..Settings::default()
        };
        let split = combination.split(&settings).expect("it splits");
        let mut proxy = Proxy::new();
        let reactions = if from == Port::WIRED { combination.reactions() } else { Reactions::default() };
        proxy.join(CONNECTION, (&settings, &split), from, true, (reactions, None));
        Host { proxy, now: Time::ZERO, acks: Vec::new(), data: Vec::new(), echoes: Vec::new() }
    }

    fn at(&mut self, ms: u64) -> &mut Host {
        self.now = Time::ZERO + Duration::from_millis(ms);
        let mut out = Out::default();
        while self.proxy.next_wakeup() <= self.now {
            let due = self.proxy.next_wakeup();
            self.proxy.wake(due, &mut out);
        }
        self.note(&mut out);
        self
    }

    fn note(&mut self, out: &mut Out) {
        while let Some((_, effect)) = out.take() {
            let Effect::Send(_, packet) = effect else { continue };
            let segment = packet.segment().expect("TCP");
            if packet.src == CONNECTION.dst {
                self.acks.push((segment.ack.0, segment.wnd));
                self.echoes.push(segment.timestamps.map(|ts| ts.echo));
            } else if segment.len > 0 {
                self.data.push((segment.seq.0, segment.len));
            }
        }
    }

    fn receive(&mut self, is_data: bool, from: Port, segment: Segment) -> &mut Host {
        let Connection { src, dst, flow } = CONNECTION;
        let (src, dst) = if is_data { (src, dst) } else { (dst, src) };
        let (dscp, ecn, handle, size) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE, Bytes(100));
        let packet = Packet { src, dst, flow, size, dscp, ecn, handle, body: Body::Tcp(segment) };
        let mut out = Out::default();
        self.proxy.receive(self.now, &packet, from, &mut out);
        self.note(&mut out);
        self
    }

    /// Data of the fixed host.
    fn data(&mut self, seq: u32, len: u32) -> &mut Host {
        let (value, echo) = (seq, 0);
        let timestamps = Some(Timestamps { value, echo });
        let segment = Segment { seq: SeqNum(seq), len, flags: Flags::ACK, timestamps, ..Segment::default() };
        self.receive(true, Port::WIRED, segment)
    }

    /// An acknowledgement of the mobile host.
    fn ack(&mut self, ack: u32) -> &mut Host {
        let segment = Segment { ack: SeqNum(ack), wnd: WINDOW, flags: Flags::ACK, ..Segment::default() };
        self.receive(false, Port::RADIO, segment)
    }

    fn reach(&mut self, reach: Reach) -> &mut Host {
        let mut out = Out::default();
        self.proxy.on_signal(self.now, &Signal::Reach(reach), &mut out);
        self.note(&mut out);
        self
    }

    /// Asserts the acknowledgements to the source since the last check, and the right edges of their windows.
    fn acks_to_source(&mut self, acks: &[(u32, u32)]) -> &mut Host {
        let found: Vec<_> =
            core::mem::take(&mut self.acks).into_iter().map(|(ack, wnd)| (ack, ack + wnd)).collect();
        assert_eq!(found, acks, "at {}", self.now);
        self
    }

    fn sends(&mut self, data: &[(u32, u32)]) -> &mut Host {
        assert_eq!(core::mem::take(&mut self.data), data, "at {}", self.now);
        self
    }
}

/// Data are acknowledged after the mobile host has acknowledged them, and the last byte 100 ms later.
#[test]
fn the_last_byte_is_acknowledged_later() {
    let mut host = Host::new(Port::WIRED);
    host.at(0).data(0, 100).data(100, 100).acks_to_source(&[]).sends(&[(0, 100), (100, 100)]);
    host.at(50).ack(100).acks_to_source(&[(99, 10_200)]);
    host.at(60).ack(200).acks_to_source(&[(199, 10_200)]);
    host.at(159).acks_to_source(&[]).at(160).acks_to_source(&[(200, 10_200)]);
    // The same with the next data.
    host.at(500).data(200, 100).acks_to_source(&[]).at(550).ack(300).acks_to_source(&[(299, 10_300)]);
    host.at(560).data(300, 100).at(600).ack(400).acks_to_source(&[(399, 10_400)]);
}

/// A disconnection: the withheld byte is acknowledged with a zero window, probes are answered, and the window
/// is restored.
#[test]
fn the_source_is_frozen_while_the_mobile_host_is_away() {
    let mut host = Host::new(Port::WIRED);
    host.at(0).data(0, 100).at(10).ack(100).acks_to_source(&[(99, 10_100)]).sends(&[(0, 100)]);
    host.at(20).data(100, 100).data(200, 100).sends(&[(100, 100), (200, 100)]);
    host.at(30).reach(Reach::Lost).acks_to_source(&[(100, 100)]);
    // A window probe, and data in flight.
    host.at(40).data(300, 1).acks_to_source(&[(100, 100)]);
    host.at(50).data(301, 99).acks_to_source(&[]);
    host.at(900).data(400, 1).acks_to_source(&[(100, 100)]);
    host.data.clear();
    host.at(950).reach(Reach::Back).acks_to_source(&[(100, 10_400)]).sends(&[
        (100, 100),
        (200, 100),
        (300, 100),
    ]);
    host.at(960).ack(400).acks_to_source(&[(399, 10_400)]);
    assert_eq!(host.proxy.relays()[0].sender().stats().timeouts, 0);
    // A repeated report causes one acknowledgement.
    host.reach(Reach::Back).reach(Reach::Fading).acks_to_source(&[]);
}

/// Timeouts during a disconnection do not change the window of the wireless part.
#[test]
fn a_disconnection_is_not_congestion() {
    let mut host = Host::new(Port::WIRED);
    let cwnd = |host: &Host| host.proxy.relays()[0].sender().cwnd();
    for number in 0..40 {
        host.at(u64::from(number)).data(100 * number, 100).ack(100 * number + 100);
    }
    host.at(50).data(4_000, 100).data(4_100, 100).data(4_200, 100);
    let before = cwnd(&host);
    host.at(60).reach(Reach::Lost).at(9_000);
    assert!(host.proxy.relays()[0].sender().stats().timeouts > 1);
    host.data.clear();
    host.reach(Reach::Back).sends(&[(4_000, 100), (4_100, 100), (4_200, 100)]);
    host.at(9_010).ack(4_100).at(9_020).ack(4_200).at(9_030).ack(4_300);
    assert!(cwnd(&host) >= before, "{} and {before}", cwnd(&host));
}

/// Duplicate ACKs request the missing segment only after all data before it are acknowledged. Earlier they
/// would request data that the supervisory host has.
#[test]
fn a_gap_is_reported_when_all_before_it_has_arrived() {
    let mut host = Host::new(Port::WIRED);
    host.at(0).data(0, 100).data(200, 100).data(300, 100).data(400, 100).data(500, 100).acks_to_source(&[]);
    let edge = 10_100;
    host.at(10).ack(100).acks_to_source(&[(100, edge); 4]);
    host.at(20).data(600, 100).acks_to_source(&[(100, edge)]);
    // The gap is filled: the rest waits for the mobile host.
    host.at(30).data(100, 100).acks_to_source(&[]).at(40).ack(700).acks_to_source(&[(699, 10_700)]);
    // Retransmissions of acknowledged data are acknowledged again, others are not.
    host.at(50).data(500, 100).acks_to_source(&[]).at(140).acks_to_source(&[(700, 10_700)]);
    host.at(250).data(500, 100).acks_to_source(&[(700, 10_700)]);
    host.data(700, 100).data(700, 100).acks_to_source(&[]);
}

/// FIN is acknowledged when the mobile host has acknowledged it, with all data.
#[test]
fn fin_waits_for_the_mobile_host() {
    let mut host = Host::new(Port::WIRED);
    let last = Segment { len: 100, flags: Flags::ACK | Flags::FIN, ..Segment::default() };
    host.at(0).receive(true, Port::WIRED, last).acks_to_source(&[]);
    host.at(10).ack(100).acks_to_source(&[(99, 10_001)]);
    host.at(20).ack(101).acks_to_source(&[(101, 10_001)]);
    assert_eq!(host.at(500).proxy.next_wakeup(), Time::NEVER);
}

/// Data of the mobile host are acknowledged immediately after the destination has acknowledged them, except
/// during a disconnection.
#[test]
fn data_of_the_mobile_host_are_acknowledged_end_to_end() {
    let mut host = Host::new(Port::RADIO);
    let segment = Segment { len: 100, flags: Flags::ACK, ..Segment::default() };
    host.at(0).receive(true, Port::RADIO, segment).acks_to_source(&[]).sends(&[(0, 100)]);
    let ack = Segment { ack: SeqNum(100), wnd: WINDOW, flags: Flags::ACK, ..Segment::default() };
    host.at(10).receive(false, Port::WIRED, ack).acks_to_source(&[(100, 10_100)]);
    host.at(20).reach(Reach::Lost).acks_to_source(&[]);
}
