//! Constant arrivals and constant services: D/D/1. Everything is exact.

use lasthop_base::{Duration, Time};
use lasthop_proto::traffic::{Config, Pattern};
use lasthop_sim::QueueLimit;

use crate::queues::net::{DELAY, Net, SERVICE, always, load};

/// Runs a constant source at `thousandths` of the link rate for this many seconds, until all packets have
/// arrived or are lost.
fn run(thousandths: u64, seconds: u64, limit: QueueLimit) -> Net {
    let pattern = Pattern::Constant { rate: load(thousandths) };
    let config = Config { stop: Time::ZERO + Duration::from_secs(seconds), ..always(pattern) };
    let mut net = Net::new(1, &[config], limit);
    net.until(Duration::from_secs(2 * seconds));
    // One packet per millisecond is the link rate, and the first leaves at once.
    assert_eq!(net.sent_by(0), (seconds * thousandths).div_ceil(1_000) * 1_000);
    net
}

#[test]
fn no_packet_waits_up_to_the_link_rate() {
    for thousandths in [1, 300, 700, 999, 1_000] {
        let net = run(thousandths, 1_000, QueueLimit::Packets(0));
        let (sink, passage) = (net.sink(), SERVICE + DELAY);
        assert_eq!((sink.packets, net.engine.tap().lost), (net.sent_by(0), 0), "at {thousandths}");
        assert_eq!((sink.total_delay, sink.greatest_delay), (passage * sink.packets, passage));
    }
}

/// Five packets arrive in the time of four. The link is never idle, so it carries 4,000 packets in 4,000 ms,
/// and afterwards those still queued. All others are lost.
#[test]
fn the_excess_over_the_link_rate_is_lost() {
    for waiting in [1, 7, 30] {
        let net = run(1_250, 4, QueueLimit::Packets(waiting));
        let carried = 4_000 + u64::from(waiting);
        assert_eq!(
            (net.sink().packets, net.engine.tap().lost),
            (carried, 5_000 - carried),
            "{waiting} waiting"
        );
    }
}

/// Without a queue the link is idle from the end of a transmission until the next arrival. Every second
/// packet arrives during a transmission and is lost.
#[test]
fn a_queue_limit_of_zero_accepts_packets_on_an_idle_link() {
    let net = run(1_250, 4, QueueLimit::Packets(0));
    assert_eq!((net.sink().packets, net.engine.tap().lost), (2_500, 2_500));
    assert_eq!(net.sink().greatest_delay, SERVICE + DELAY);
}

/// Two packets arrive per service. The one at the departure instant finds the queue full and is lost, so
/// queued packets wait for half a service.
#[test]
fn an_arrival_at_a_departure_instant_finds_the_queue_full() {
    let net = run(2_000, 4, QueueLimit::Packets(1));
    let (sink, half) = (net.sink(), Duration::from_micros(500));
    assert_eq!((sink.packets, net.engine.tap().lost), (4_001, 3_999));
    assert_eq!(sink.greatest_delay, SERVICE + DELAY + half);
    assert_eq!(sink.total_delay, (SERVICE + DELAY) * 4_001 + half * 4_000);
}

/// Packet k, from 0, arrives at 0.8 k ms and starts service at k ms.
#[test]
fn waits_grow_linearly_in_an_overloaded_unlimited_queue() {
    let net = run(1_250, 4, QueueLimit::Unlimited);
    let (sink, longer) = (net.sink(), Duration::from_micros(200));
    let passage = SERVICE + DELAY;
    assert_eq!(sink.packets, 5_000);
    assert_eq!(sink.greatest_delay, passage + longer * 4_999);
    assert_eq!(sink.total_delay, passage * 5_000 + longer * (4_999 * 5_000 / 2));
}
