//! Retransmitted data yield no round-trip time sample, because the acknowledged copy is ambiguous (RFC 6298
//! section 3; Karn and Partridge 1987).

use lasthop_proto::tcp::{Flavour, RttSamples, Settings};

use crate::tcp::dialogue::{Client, settings};

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];
const SAMPLES: [RttSamples; 2] = [RttSamples::OneAtATime, RttSamples::EveryAck];

/// The acknowledgement of a segment that timed out gives no sample, and the backoff is kept for what is
/// sent next, until data that were sent once give one (RFC 6298 section 5).
// Rule: Karn: no sample of retransmitted data; backoff is kept until a valid sample. [6298 3, 5; samples.rs
// rtt.rs]
#[test]
fn backoff_is_kept_until_a_valid_sample() {
    for flavour in FLAVOURS {
        for rtt_samples in SAMPLES {
            let mut tcp = Client::start(&Settings { rtt_samples, ..settings(flavour, 1) });
            tcp.sends_full(0..1).wakes_at(1000).sends_full(0..1).wakes_at(3000).sends_full(0..1);
            tcp.at(3100).ack(1000).sends_full(1..3).srtt(None).rto(4000).timer_at(7100);
            tcp.at(3300).ack(2000).srtt(Some(200)).rto(1000).timer_at(4300).sends_full(3..4);
        }
    }
}

/// The acknowledgement of a fast-retransmitted segment gives no sample.
// Rule: as backoff_is_kept_until_a_valid_sample
#[test]
fn a_fast_retransmission_is_not_timed() {
    for flavour in FLAVOURS {
        for rtt_samples in SAMPLES {
            let mut tcp = Client::start(&Settings { rtt_samples, ..settings(flavour, 4) });
            tcp.sends_full(0..4).at(100).sack(0, &[1000..2000]).sack(0, &[1000..3000]);
            tcp.sack(0, &[1000..4000]).sends_first("0..1000");
            tcp.at(200).ack(4000).srtt(None).rto(1000).sent();
        }
    }
}

/// A segment being timed when a loss is detected is no longer timed, even if it was not lost: its
/// acknowledgement may wait for the repair.
// Rule: as backoff_is_kept_until_a_valid_sample
#[test]
fn a_loss_cancels_the_pending_sample() {
    for flavour in [Flavour::Reno, Flavour::NewReno, Flavour::Sack] {
        let mut tcp = Client::start(&settings(flavour, 4));
        tcp.sends_full(0..4).at(100).ack(1000).srtt(Some(100)).sends_full(4..6);
        tcp.at(110).ack(3000).sends_full(6..9);
        tcp.at(120).sack(3000, &[4000..5000]).sack(3000, &[4000..6000]).sends_nothing();
        tcp.sack(3000, &[4000..7000]).sends_first("3000..4000");
        tcp.at(400).ack(7000).srtt(Some(100)).sent();
    }
}

/// An acknowledgement that covers a segment retransmitted together with later ones gives no sample either: it
/// may have waited for the hole.
// Rule: as backoff_is_kept_until_a_valid_sample
#[test]
fn a_cumulative_ack_over_a_retransmission_is_no_sample() {
    let mut tcp =
        Client::start(&Settings { rtt_samples: RttSamples::EveryAck, ..settings(Flavour::NewReno, 8) });
    tcp.sends_full(0..8).at(100).acks(3, 0).sends_full(0..1);
    tcp.at(200).ack(2000).sends_full(2..3).srtt(None);
    tcp.at(300).ack(8000).srtt(None).sends_full(8..10);
    tcp.at(400).ack(9000).srtt(Some(100)).sends_full(10..12);
}

/// New data sent during a recovery may be lost and retransmitted in the same one; then they are timed no
/// longer.
// Rule: as backoff_is_kept_until_a_valid_sample
#[test]
fn new_data_retransmitted_in_the_same_recovery_are_not_timed() {
    for rtt_samples in SAMPLES {
        let mut tcp = Client::start(&Settings { rtt_samples, ..settings(Flavour::Sack, 10) });
        tcp.sends_full(0..10).at(100).sack(0, &[1000..4000]).sends_full(0..1);
        tcp.at(110).sack(0, &[1000..10_000]).sends_full(10..14);
        tcp.at(210).sack(0, &[11_000..14_000, 1000..10_000]).sends_first("10000..11000");
        tcp.at(310).ack(10_000).srtt(None).sends_nothing();
        tcp.at(420).ack(14_000).srtt(None).sent();
        tcp.at(430).ack(15_000).srtt(Some(220));
    }
}

/// One segment is timed at a time; the next begins when that one is acknowledged.
// Rule: One sample at a time, or one per acknowledgement. [6298 3; samples.rs]
#[test]
fn one_segment_is_timed_at_a_time() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 4));
    tcp.sends_full(0..4).at(100).ack(1000).srtt(Some(100)).sends_full(4..6);
    tcp.at(900).ack(4000).srtt(Some(100)).sends_full(6..10);
    tcp.at(1000).ack(5000).srtt(Some((7 * 100 + 900) / 8)).sent();
}

/// With every acknowledgement a sample, the latest segment that it covers is the one timed.
// Rule: as one_segment_is_timed_at_a_time
#[test]
fn a_sample_per_acknowledgement() {
    let every = Settings { rtt_samples: RttSamples::EveryAck, ..settings(Flavour::NewReno, 4) };
    let mut tcp = Client::start(&every);
    tcp.sends_full(0..4).at(80).ack(1000).srtt(Some(80)).sends_full(4..6);
    tcp.at(160).ack(4000).srtt(Some((7 * 80 + 160) / 8)).sends_full(6..10);
    tcp.at(170).ack(5000).srtt(Some(90)).sent();
}
