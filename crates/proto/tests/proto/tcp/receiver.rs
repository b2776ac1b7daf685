//! The receiver's acknowledgement policy and advertised window.

use lasthop_base::{Bytes, Duration};
use lasthop_proto::tcp::{Flags, Flavour, RttArithmetic, Rules, Segment, Settings};

use crate::tcp::dialogue::{MSS, Server, settings};

fn base() -> Settings {
    settings(Flavour::NewReno, 4)
}

/// At least every second segment is acknowledged immediately (RFC 5681 section 4.2), and a single one within the
/// delay (RFC 9293 section 3.8.6.3).
// Rule: Every second segment is acknowledged at once, a single one within the delay. [5681 4.2, 9293 3.8.6.3;
// receiver.rs]
#[test]
fn every_second_segment_is_acknowledged() {
    let mut tcp = Server::start(&base());
    tcp.data(0..1000).is_silent().at(50).data(1000..2000).acks(2000).no_timer();
    tcp.at(100).data(2000..3000).is_silent().wakes_at(300).acks(3000).no_timer();
    tcp.at(400).data(3000..4000).is_silent().at(450).data(4000..5000).acks(5000);
}

/// The delay counts from the first unacknowledged segment.
// Rule: as every_second_segment_is_acknowledged
#[test]
fn the_ack_delay_starts_with_the_first_segment() {
    let mut tcp = Server::start(&Settings { ack_every: 4, ..base() });
    tcp.data(0..1000).at(150).data(1000..2000).wakes_at(200).acks(2000);
    tcp.data(2000..3000).data(3000..4000).data(4000..5000).is_silent().data(5000..6000).acks(6000);
}

/// Without delayed acknowledgements every segment is acknowledged immediately.
// Rule: as every_second_segment_is_acknowledged
#[test]
fn delayed_acknowledgements_can_be_disabled() {
    let mut tcp = Server::start(&Settings { ack_every: 1, ..base() });
    tcp.data(0..1000).acks(1000).data(1000..2000).acks(2000).no_timer();
}

/// Out-of-order segments, those that fill a gap or part of it, and duplicates are acknowledged immediately (RFC
/// 5681 section 4.2).
// Rule: Out-of-order, gap-filling and duplicate segments are acknowledged at once. [5681 4.2; receiver.rs]
#[test]
fn out_of_order_segments_are_acknowledged_at_once() {
    let mut tcp = Server::start(&base());
    tcp.data(3000..4000).acks(0).data(4000..5000).acks(0);
    tcp.data(0..1000).acks(1000).data(1000..2000).acks(2000).data(2000..3000).acks(5000);
    tcp.data(2000..3000).acks(5000).data(4500..5500).acks(5500).no_timer().delivered(5500);
}

/// Once the gap is filled, acknowledgements are delayed again.
// Rule: as out_of_order_segments_are_acknowledged_at_once
#[test]
fn delayed_acks_resume_after_a_gap() {
    let mut tcp = Server::start(&base());
    tcp.data(0..1000).data(1000..2000).acks(2000).data(0..1000).acks(2000).data(2000..3000).is_silent();
    tcp.data(4000..5000).acks(3000).data(3000..4000).acks(5000).data(5000..6000).is_silent();
}

/// ns-2's `DelAckSink`: the first segment is acknowledged immediately, and so are those around a gap;
/// acknowledgement of the last one may be delayed, also for a duplicate.
// Rule: ns-2's delayed ACKs: the segment that fills the last gap may be delayed, the first segment is not.
// [delayed_ack.rs]
#[test]
fn ns2_acknowledges_the_first_segment_at_once() {
    let mut tcp = Server::start(&Settings { rules: Rules::Ns2, ..base() });
    tcp.data(0..1000).acks(1000).data(1000..2000).is_silent().data(2000..3000).acks(3000).no_timer();
    tcp.data(4000..5000).acks(3000).data(6000..7000).acks(3000).data(3000..4000).acks(5000);
    tcp.data(5000..6000).acks(7000).data(6000..7000).is_silent().data(7000..8000).acks(8000);
}

/// An immediate acknowledgement replaces a delayed one.
// Rule: as out_of_order_segments_are_acknowledged_at_once
#[test]
fn an_immediate_ack_replaces_a_delayed_one() {
    let mut tcp = Server::start(&base());
    tcp.data(0..1000).is_silent().data(2000..3000).acks(1000).no_timer();
}

/// A segment without data, SYN or FIN is not acknowledged (RFC 9293 section 3.10.7.4).
// Rule: Pure ACKs are not acknowledged. [9293 3.10.7.4; receiver.rs]
#[test]
fn pure_acks_are_not_acknowledged() {
    let mut tcp = Server::start(&base());
    tcp.data(0..0).is_silent().no_timer();
}

/// Data beyond the window are discarded and acknowledged immediately (RFC 9293 section 3.10.7.4).
// Rule: Data beyond the window are discarded. [9293 3.10.7.4; receiver.rs]
#[test]
fn data_beyond_the_window_are_discarded() {
    let mut tcp = Server::start(&Settings { window: Bytes(3000).into(), ..base() });
    tcp.data(3000..4000).acks(0).data(2500..3500).acks(0).data(0..2500).acks(3000).delivered(3000);
}

/// While the application does not read, the window shrinks by the bytes received, so its right edge is fixed
/// (RFC 9293 section 3.8.6.2.2: no shrinking); a probe is answered at once.
// Rule: The right edge of the window never moves left; window updates need growth by a segment. [9293
// 3.8.6.2.2; receiver.rs]
#[test]
fn a_paused_application_closes_the_window() {
    let mut tcp = Server::start(&Settings { window: Bytes(4000).into(), ..base() });
    tcp.receiver.pause();
    tcp.data(0..1000).data(1000..2000).acks_with_window(2000, 2000);
    tcp.data(2000..3000).data(3000..4000).acks_with_window(4000, 0);
    tcp.at(500).data(4000..4001).acks_with_window(4000, 0).delivered(4000);
}

/// Out-of-order data do not reduce the window, since they are within it.
// Rule: as a_paused_application_closes_the_window
#[test]
fn out_of_order_data_do_not_reduce_the_window() {
    let mut tcp = Server::start(&Settings { window: Bytes(4000).into(), ..base() });
    tcp.receiver.pause();
    tcp.data(1000..2000).acks_with_window(0, 4000).data(0..1000).acks_with_window(2000, 2000);
}

/// When the application resumes reading, a window update is sent if the window grows by a segment or half of
/// the buffer (RFC 9293 section 3.8.6.2.2).
// Rule: as a_paused_application_closes_the_window
#[test]
fn a_window_update_needs_growth_by_a_segment() {
    let paused = |window, unread| {
        let mut tcp = Server::start(&Settings { window: Bytes(window).into(), ack_every: 1, ..base() });
        tcp.receiver.pause();
        tcp.data(0..unread).acks(unread);
        tcp
    };
    paused(4000, 1000).resume().acks_with_window(1000, 4000);
    paused(4000, 999).resume().is_silent();
    paused(1400, 700).resume().acks_with_window(700, 1400);
    paused(1400, 699).resume().is_silent();
}

/// After the application resumes, the window is the whole buffer.
// Rule: as a_paused_application_closes_the_window
#[test]
fn a_reading_application_keeps_the_window_open() {
    let mut tcp = Server::start(&Settings { window: Bytes(4000).into(), ..base() });
    tcp.receiver.pause();
    tcp.data(0..500).resume().is_silent().data(500..1500).acks_with_window(1500, 4000);
}

/// Segments and duplicates are counted.
// Rule: as options_reduce_the_payload
#[test]
fn arrivals_are_counted() {
    let mut tcp = Server::start(&Settings { ack_every: 1, ..base() });
    tcp.data(0..1000).acks(1000).data(0..1000).acks(1000).data(500..1500).acks(1500);
    tcp.data(3000..4000).acks(1500).data(3000..4000).acks(1500);
    let stats = tcp.receiver.stats();
    assert_eq!((stats.segments, stats.duplicate_segments, stats.acks_sent), (5, 2, 5));
}

/// Sizes on the wire: options as real stacks pad them (RFC 2018 section 3, RFC 7323 section 3.2).
// Rule: Options reduce the payload; arrivals are counted. [2018 3, 7323 3.2; mod.rs receiver.rs]
#[test]
fn options_reduce_the_payload() {
    use lasthop_base::Time;
    use lasthop_proto::tcp::{Connection, Receiver};
    use lasthop_proto::{Body, Component, Dscp, Ecn, Effect, Handle, Out, Packet, Port};

    for (timestamps, out_of_order, size) in
        [(false, false, 40), (false, true, 52), (true, false, 52), (true, true, 64)]
    {
        let settings = Settings { timestamps, ack_every: 1, ..settings(Flavour::Sack, 4) }.with_mss(MSS);
        let segment: Segment =
            Server::start(&settings).segment(if out_of_order { 1000..2000 } else { 0..1000 });
        let connection = Connection::default();
        let (mut receiver, mut out) = (Receiver::new(connection, &settings), Out::default());
        let packet = Packet {
            src: connection.src,
            dst: connection.dst,
            flow: connection.flow,
            size: Bytes(1040),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body: Body::Tcp(segment),
        };
        receiver.receive(Time::ZERO, &packet, Port::ONLY, &mut out);
        let Some((_, Effect::Send(_, ack))) = out.take() else { panic!("no acknowledgement") };
        assert_eq!(ack.size, Bytes(size), "timestamps {timestamps}, out of order {out_of_order}");
    }
}

/// The delayed ACK timer follows the receiver's clock: exact, or on ticks as in Linux, whatever the sender's.
// Rule: The delayed ACK timer has a clock of its own, whatever the sender's. [settings.rs]
#[test]
fn the_delayed_ack_timer_has_a_clock_of_its_own() {
    let sender = Settings { tick: Duration::from_millis(4), ..settings(Flavour::NewReno, 8) };
    for (rtt_arithmetic, ack_tick, due) in
        [(RttArithmetic::Linux, 0, 41), (RttArithmetic::Exact, 4, 44), (RttArithmetic::Linux, 4, 44)]
    {
        let receiver = Settings {
            ack_delay: Duration::from_millis(40),
            ack_tick: Duration::from_millis(ack_tick),
            ..sender.clone()
        };
        let sender = Settings { rtt_arithmetic, ..sender.clone() };
        let mut tcp = Server::start(&sender.with_receiver(&receiver));
        tcp.at(1).data(0..1000).is_silent().wakes_at(due).acks(1000);
    }
}

/// Segments beyond the window, after FIN, or more than 1 GiB behind are answered and not counted (RFC 9293 section
/// 3.10.7.4). A FIN that comes again is counted.
// Rule: as data_beyond_the_window_are_discarded
#[test]
fn unacceptable_segments_are_not_counted() {
    let settings = Settings { window: Bytes(10_000).into(), close: true, ..base() };
    let far = 1_u32 << 30;
    for (from, len, counted) in [
        (10_000, 100, 1),
        (10_001, 100, 0),
        (0_u32.wrapping_sub(far + 100), 100, 1),
        (0_u32.wrapping_sub(far + 101), 100, 0),
    ] {
        let mut tcp = Server::start(&settings);
        let segment = Segment { seq: tcp.segment(0..1).seq + from, len, ..tcp.segment(0..1) };
        tcp.receives(segment).answer();
        assert_eq!(tcp.receiver.stats().segments, counted, "{from}");
    }
    let mut tcp = Server::start(&settings);
    tcp.data_fin(1000..2000).answer();
    for (from, counted) in [(2000, 2), (2001, 2)] {
        let fin = Segment { flags: Flags::ACK | Flags::FIN, ..tcp.segment(from..from) };
        tcp.receives(fin).answer();
        assert_eq!(tcp.receiver.stats().segments, counted, "{from}");
    }
}
