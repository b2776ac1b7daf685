//! A queue with a limit: M/D/1/K.

use lasthop_base::{Duration, Time};
use lasthop_proto::traffic::{Config, Pattern};
use lasthop_sim::QueueLimit;

use crate::queues::net::{DELAY, Net, SERVICE, SIZE, always, load};

/// Distribution of the number of arrivals in a service at this load, from 0 to `max`.
fn arrivals_in_a_service(load: f64, max: usize) -> Vec<f64> {
    let mut probability = (-load).exp();
    let next = |count: usize| {
        let current = probability;
        probability *= load / (count + 1) as f64;
        current
    };
    (0..=max).map(next).collect()
}

/// The probability of at least `count` arrivals.
fn at_least(arrivals: &[f64], count: usize) -> f64 {
    1.0 - arrivals[..count].iter().sum::<f64>()
}

/// Stationary distribution of the number of packets left behind by a departure, from 0 to `room` − 1, where
/// `room` counts the packet in service.
///
/// A departure that leaves n > 0 is followed by a service with A arrivals; the next departure leaves n − 1 +
/// A, at most `room` − 1. A departure that leaves none is followed by an arrival and then by the transition
/// of n = 1. In the stationary process up- and down-crossings of each level are equally frequent, and the
/// number falls by one at a time, if there are no arrivals:
///
/// π(n+1) P(A = 0) = π(0) P(A > n) + Σ π(i) P(A > n + 1 − i), i from 1 to n.
///
/// All terms are positive, so there is no cancellation.
fn left_behind(load: f64, room: usize) -> Vec<f64> {
    let arrivals = arrivals_in_a_service(load, room);
    let mut weights = vec![1.0];
    for n in 0..room - 1 {
        let from_none = weights[0] * at_least(&arrivals, n + 1);
        let rises: f64 = (1..=n).map(|i| weights[i] * at_least(&arrivals, n + 2 - i)).sum();
        weights.push((from_none + rises) / arrivals[0]);
    }
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

/// The loss probability P. The mean time between departures is one service plus, if the first departure
/// leaves none, the mean gap between arrivals: 1 + π(0)/ρ services. Departures balance accepted arrivals, ρ(1
/// − P) per service, so P = 1 − 1/(π(0) + ρ).
fn loss(load: f64, room: usize) -> f64 {
    1.0 - 1.0 / (left_behind(load, room)[0] + load)
}

/// Without a queue the loss is Erlang's, for any service time. With a queue of one it is known because π(0)
/// is then the probability of no arrival in a service. A long queue loses nothing, or the excess over the
/// link rate.
#[test]
fn the_solver_matches_closed_forms() {
    let close =
        |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    for load in [0.1, 0.5, 0.8, 1.0, 1.2, 3.0] {
        close(loss(load, 1), load / (1.0 + load));
        close(loss(load, 2), 1.0 - 1.0 / ((-load).exp() + load));
    }
    close(loss(0.5, 100), 0.0);
    close(loss(2.0, 100), 1.0 - 1.0 / 2.0);
}

/// The distribution is unchanged by one transition of the chain.
#[test]
fn the_solution_is_stationary() {
    for (load, room) in [(0.5, 3), (0.8, 11), (1.0, 31), (1.2, 6)] {
        let distribution = left_behind(load, room);
        let arrivals = arrivals_in_a_service(load, room);
        let mut next = vec![0.0; room];
        for (left, probability) in distribution.iter().enumerate() {
            let stay = left.saturating_sub(1);
            let places = room - 1 - stay;
            (0..places).for_each(|count| next[stay + count] += probability * arrivals[count]);
            next[room - 1] += probability * at_least(&arrivals, places);
        }
        for (found, expected) in next.iter().zip(&distribution) {
            assert!(
                (found - expected).abs() < 1e-12,
                "load {load}, room {room}: {next:?}, not {distribution:?}"
            );
        }
    }
}

/// A Poisson source at `thousandths` of the link rate, and a queue for this many packets.
fn net(thousandths: u64, waiting: u32) -> Net {
    let pattern = Pattern::Poisson { rate: load(thousandths) };
    let seed = thousandths * 100 + u64::from(waiting);
    Net::new(seed, &[always(pattern)], QueueLimit::Packets(waiting))
}

/// Cases with rare losses use longer runs.
#[test]
fn the_loss_rate_matches_the_embedded_chain() {
    for (thousandths, max_waiting) in [(500, 5), (800, 10), (1_000, 30), (1_200, 30)] {
        let load = thousandths as f64 / 1_000.0;
        for waiting in [0, 1, 2, 5, 10, 30].into_iter().filter(|&waiting| waiting <= max_waiting) {
            let exact = loss(load, waiting as usize + 1);
            let stretch = Duration::from_secs(if exact < 0.02 { 12 } else { 2 });
            let counts = |net: &Net| (net.engine.tap().lost as f64, net.sent_by(0) as f64);
            let found = net(thousandths, waiting).ratio(stretch, counts);
            found.assert_is(&format!("loss at load {load} with {waiting} waiting"), exact, 0.4);
        }
    }
}

/// With less than one expected loss, thirty are a false alarm for less than one seed in thirty (Markov's
/// inequality); losses are clustered, so five standard errors do not apply.
#[test]
fn a_long_queue_loses_almost_nothing() {
    for (thousandths, waiting) in [(500, 10), (500, 30), (800, 30)] {
        let mut net = net(thousandths, waiting);
        net.until(Duration::from_secs(200));
        let expected = loss(thousandths as f64 / 1_000.0, waiting as usize + 1) * net.sent_by(0) as f64;
        assert!(expected < 1.0 && net.engine.tap().lost < 30, "{} lost", net.engine.tap().lost);
    }
}

/// Packets sent are delivered, lost or in flight.
#[test]
fn packets_are_conserved() {
    let rate = load(1_200);
    let config = Config { stop: Time::ZERO + Duration::from_secs(10), ..always(Pattern::Poisson { rate }) };
    let mut net = Net::new(1, &[config, config], QueueLimit::Packets(5));
    net.until(Duration::from_secs(11));
    let sent = net.sent_by(0) + net.sent_by(1);
    let (lost, sink) = (net.engine.tap().lost, net.sink());
    assert!(lost > 10_000);
    assert_eq!((sent, sink.bytes), (sink.packets + lost, SIZE * sink.packets));
    assert!(sink.greatest_delay <= DELAY + SERVICE * 7, "{}", sink.greatest_delay);
}
