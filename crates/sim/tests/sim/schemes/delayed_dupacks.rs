//! Delayed duplicate acknowledgements: the receiver by hand, and a link that retransmits out of order.

use lasthop_proto::tcp::{Flavour, Settings};
use lasthop_testing::dialogue::{Server, settings};
use lasthop_testing::schemes::{installed, schemes_of};

/// A receiver that acknowledges every segment and holds duplicates for 50 ms.
fn receiver() -> Server {
    let schemes = schemes_of("[delayed-dupacks]\ndelay = \"50 ms\"");
    let settings = Settings { ack_every: 1, ..settings(Flavour::NewReno, 8) };
    Server::installed(&settings, installed(&schemes, "delayed-dupacks").receiver_reactions())
}

/// TR 99-003: the first two duplicates are sent immediately and later ones are held. Local recovery fills the gap
/// within the delay, so the held ones are never sent.
// Rule: The third and later duplicates of a run are held; an arrival within the delay that fills the gap
// cancels them. [2757 4.8; ../scheme/delayed_dupacks.rs]
#[test]
fn local_recovery_within_the_delay_leaves_two_duplicates() {
    let mut tcp = receiver();
    tcp.at(10).data(0..1000).acks(1000);
    tcp.at(20).data(2000..3000).acks(1000).at(21).data(3000..4000).acks(1000);
    tcp.at(22).data(4000..5000).is_silent().at(23).data(5000..6000).is_silent();
    tcp.at(60).data(1000..2000).acks(6000).no_timer();
}

/// After the delay, counted from the first held duplicate, all held ones are sent, and further ones immediately.
// Rule: After the delay all of them are sent. [2757 4.8; ../scheme/delayed_dupacks.rs]
#[test]
fn held_duplicates_are_sent_after_the_delay() {
    let mut tcp = receiver();
    tcp.at(10).data(0..1000).acks(1000);
    tcp.at(20).data(2000..3000).acks(1000).at(21).data(3000..4000).acks(1000);
    tcp.at(22).data(4000..5000).is_silent().at(40).data(5000..6000).is_silent();
    tcp.wakes_at(72).acks_times(2, 1000).no_timer();
    tcp.at(80).data(6000..7000).acks(1000).at(90).data(7000..8000).acks(1000);
    tcp.at(100).data(1000..2000).acks(8000);
}

/// The delay applies to each run of duplicates, the first included.
// Rule: as local_recovery_within_the_delay_leaves_two_duplicates
#[test]
fn a_new_acknowledgement_restarts_the_delay() {
    let mut tcp = receiver();
    tcp.at(10).data(1000..2000).acks(0).data(2000..3000).acks(0).data(3000..4000).is_silent();
    tcp.data(5000..6000).is_silent().at(30).data(0..1000).acks(4000).no_timer();
    tcp.data(6000..7000).acks(4000).data(7000..8000).acks(4000).at(40).data(8000..9000).is_silent();
    tcp.wakes_at(90).acks_times(1, 4000);
}

/// A duplicate segment without a gap is acknowledged immediately.
// Rule: Only a gap makes duplicates. [../scheme/delayed_dupacks.rs]
#[test]
fn needless_retransmissions_are_acknowledged_at_once() {
    let mut tcp = receiver();
    tcp.at(10).data(0..1000).acks(1000);
    for at in 20..26 {
        tcp.at(at).data(0..1000).acks(1000);
    }
    tcp.no_timer();
}
