//! Constant arrivals and constant services: D/D/1. Everything is exact.

use lasthop_base::{Duration, Time};
use lasthop_proto::traffic::{Config, Pattern};
use lasthop_sim::QueueLimit;

use crate::net::{DELAY, Net, SERVICE, always, load};

/// What a constant source at so many thousandths of the link's rate sends in this many seconds has all
/// arrived, or is lost.
fn run(thousandths: u64, seconds: u64, limit: QueueLimit) -> Net {
    let pattern = Pattern::Constant { rate: load(thousandths) };
    let config = Config { stop: Time::ZERO + Duration::from_secs(seconds), ..always(pattern) };
    let mut net = Net::new(1, &[config], limit);
    net.until(Duration::from_secs(2 * seconds));
    // One each millisecond would be the link's whole rate, and the first leaves at once.
    assert_eq!(net.sent_by(0), (seconds * thousandths).div_ceil(1_000) * 1_000);
    net
}

#[test]
fn up_to_the_links_rate_nobody_waits() {
    for thousandths in [1, 300, 700, 999, 1_000] {
        let net = run(thousandths, 1_000, QueueLimit::Packets(0));
        let (sink, passage) = (net.sink(), SERVICE + DELAY);
        assert_eq!((sink.packets, net.engine.tap().lost), (net.sent_by(0), 0), "at {thousandths}");
        assert_eq!((sink.total_delay, sink.greatest_delay), (passage * sink.packets, passage));
    }
}

/// Five packets come in the time of four. The link is never idle, and so carries one in each of the
/// 4,000 ms; those that wait at the end it carries after that. All others are lost.
#[test]
fn above_the_links_rate_the_excess_is_lost() {
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

/// Without a place to wait the link is idle from the end of a packet until the next comes. Every other
/// one is lost, because it comes before the end of the one before.
#[test]
fn without_a_place_to_wait_the_link_takes_what_finds_it_idle() {
    let net = run(1_250, 4, QueueLimit::Packets(0));
    assert_eq!((net.sink().packets, net.engine.tap().lost), (2_500, 2_500));
    assert_eq!(net.sink().greatest_delay, SERVICE + DELAY);
}

/// Two packets come in each service. The one at its end finds the other still waiting and is lost, so
/// that those that wait do so for half a service.
#[test]
fn who_comes_as_a_place_becomes_free_does_not_find_it_free() {
    let net = run(2_000, 4, QueueLimit::Packets(1));
    let (sink, half) = (net.sink(), Duration::from_micros(500));
    assert_eq!((sink.packets, net.engine.tap().lost), (4_001, 3_999));
    assert_eq!(sink.greatest_delay, SERVICE + DELAY + half);
    assert_eq!(sink.total_delay, (SERVICE + DELAY) * 4_001 + half * 4_000);
}

/// Packet k, from 0, comes at 0.8 k ms and is served from k ms on.
#[test]
fn without_a_limit_each_waits_longer_than_the_one_before() {
    let net = run(1_250, 4, QueueLimit::Unlimited);
    let (sink, longer) = (net.sink(), Duration::from_micros(200));
    let passage = SERVICE + DELAY;
    assert_eq!(sink.packets, 5_000);
    assert_eq!(sink.greatest_delay, passage + longer * 4_999);
    assert_eq!(sink.total_delay, passage * 5_000 + longer * (4_999 * 5_000 / 2));
}
