//! ACK thinning: the agent by hand.

use lasthop_proto::Port;
use lasthop_proto::tcp::{Flags, Flavour, SackBlock, Segment, SeqNum};
use lasthop_testing::dialogue::settings;
use lasthop_testing::schemes::schemes_of;

use super::middle::{Middle, ack_of, data_of};

fn agent() -> Middle {
    let mut agent = Middle::new("ack-thinning", "[ack-thinning]\nevery = 3\ndelay = \"10 ms\"");
    // The first one, which ends a handshake, waits for nothing.
    agent.passes(0, Port::WIRED, ack_of(1000));
    agent
}

/// Section 5.2.1: one of several goes on, and the last one after the delay, which begins with the first that waits.
// Rule: Of `every` successive acknowledgements of new data one enters the link. [3449 5.2.1; ../scheme/ack_thinning.rs]
#[test]
fn one_of_several_goes_on() {
    let mut agent = agent();
    for first in [2000, 5000] {
        let at = u64::from(first / 1000);
        agent.holds(at, Port::WIRED, ack_of(first)).holds_in_place(at + 1, Port::WIRED, ack_of(first + 1000));
        agent.passes_in_place(at + 2, Port::WIRED, ack_of(first + 2000), 1).holds_nothing();
    }
    agent.holds(20, Port::WIRED, ack_of(8000)).holds_in_place(25, Port::WIRED, ack_of(9000));
    agent.wakes(30, Port::RADIO, &[ack_of(9000)]).holds_nothing();
    // Those before do not count.
    agent.holds(31, Port::WIRED, ack_of(10_000)).holds_in_place(32, Port::WIRED, ack_of(11_000));
    agent.passes_in_place(33, Port::WIRED, ack_of(12_000), 1);
    agent.counts(&[("omitted_acks", 7)]);
}

/// What tells more than a number passes at once, after what waits; so does all that comes over the link.
// Rule: as one_of_several_goes_on
#[test]
fn all_else_passes_in_its_place() {
    let with_block = {
        let mut segment = ack_of(9000);
        segment.sack.push(SackBlock { start: SeqNum(10_000), end: SeqNum(11_000) });
        segment
    };
    let flagged = |flags: Flags| Segment { flags: Flags::ACK | flags, ..ack_of(9000) };
    let with_data = Segment { ack: SeqNum(9000), ..data_of(0, 100) };
    for other in [
        ack_of(2000),
        ack_of(1500),
        with_block,
        Segment { has_unknown_options: true, ..ack_of(9000) },
        flagged(Flags::ECE),
        flagged(Flags::FIN),
        flagged(Flags::SYN),
        flagged(Flags::RST),
        with_data,
    ] {
        let mut agent = agent();
        agent.holds(1, Port::WIRED, ack_of(2000)).passes(1, Port::RADIO, ack_of(3000));
        agent.sends(2, Port::WIRED, other, &[ack_of(2000), other]).holds_nothing();
        agent.counts(&[("omitted_acks", 0)]);
    }
    // Without an acknowledgement.
    let reset = Segment { flags: Flags::RST, ..Segment::default() };
    agent().holds(1, Port::WIRED, ack_of(2000)).passes(2, Port::WIRED, reset);
}

/// An ACK waits for less than the least timeout of Linux.
// Rule: as one_of_several_goes_on
#[test]
fn delays_beyond_the_timeout_of_senders_are_refused() {
    let tcp = settings(Flavour::Reno, 1);
    for (delay, is_refused) in [("0 s", true), ("200 ms", false), ("201 ms", true)] {
        let schemes = schemes_of(&format!("[ack-thinning]\ndelay = \"{delay}\""));
        assert_eq!(
            !schemes.get("ack-thinning").expect("a scheme").faults(&tcp).is_empty(),
            is_refused,
            "{delay}"
        );
    }
}
