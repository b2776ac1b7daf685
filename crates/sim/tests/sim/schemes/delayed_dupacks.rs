//! Delayed duplicate acknowledgements: the receiver and the agent by hand.

use lasthop_proto::Port;
use lasthop_proto::tcp::{Flags, Flavour, SackBlock, Segment, SeqNum, Settings};
use lasthop_testing::dialogue::{Server, settings};
use lasthop_testing::schemes::{installed, schemes_of};

use super::middle::{Middle, ack_of, data_of};

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

/// An agent at a base station, between a source and a host whose ACKs arrive over the radio, or a host that sends and its peer.
fn agent() -> Middle {
    Middle::new("delayed-dupacks", "[delayed-dupacks]\ndelay = \"50 ms\"\nagent = true")
}

/// In place of the receiver, which stays as it is.
// Rule: With `agent`, base stations hold the third and later duplicates, in both directions. [../scheme/delayed_dupacks/agent.rs]
#[test]
fn an_agent_delays_duplicates_of_either_direction() {
    for data in [Port::WIRED, Port::RADIO] {
        let mut agent = agent();
        let acks = data.across();
        agent.passes(10, data, data_of(0, 8000)).passes(10, acks, ack_of(1000));
        for at in [20, 21] {
            agent.passes(at, acks, ack_of(1000));
        }
        agent.holds(22, acks, ack_of(1000)).holds(40, acks, ack_of(1000));
        // The missing segment has arrived: none of them is sent.
        agent.passes_in_place(60, acks, ack_of(6000), 2).holds_nothing();
        // Another gap, which is not filled in time.
        agent.passes(70, acks, ack_of(6000)).passes(70, acks, ack_of(6000));
        agent.holds(71, acks, ack_of(6000)).holds(90, acks, ack_of(6000)).wakes(
            121,
            data,
            &[ack_of(6000); 2],
        );
        agent.passes(122, acks, ack_of(6000)).passes(123, acks, ack_of(8000)).holds_nothing();
        agent.counts(&[("delayed_dupacks", 4), ("suppressed_dupacks", 2)]);
    }
}

/// What is no duplicate passes at once, and so does one of data that have all arrived, such as an answer to a probe.
// Rule: as an_agent_delays_duplicates_of_either_direction
#[test]
fn an_agent_lets_all_else_pass() {
    let mut agent = agent();
    agent.passes(10, Port::WIRED, data_of(0, 8000));
    let blocks = |start: u32| {
        let mut segment = ack_of(1000);
        segment.sack.push(SackBlock { start: SeqNum(start), end: SeqNum(start + 1000) });
        segment
    };
    let windows = (0..6).map(|number| Segment { wnd: 9000 + number, ..ack_of(1000) });
    let with_data = Segment { len: 100, ..ack_of(1000) };
    let marks = [Flags::ECE, Flags::CWR, Flags::AE, Flags(0x20)];
    let marked = marks.into_iter().flat_map(|mark| [Segment { flags: Flags::ACK | mark, ..ack_of(1000) }; 3]);
    let unknown = Segment { has_unknown_options: true, ..blocks(2000) };
    let others = windows.chain([with_data; 6]).chain([blocks(0); 6]).chain([ack_of(500); 6]);
    let others = others.chain(marked).chain([unknown; 6]);
    for (number, segment) in others.enumerate() {
        agent.passes(15 + number as u64, Port::RADIO, segment);
    }
    // A block beyond the gap makes duplicates, whatever the window.
    agent.passes(60, Port::RADIO, blocks(2000)).passes(60, Port::RADIO, Segment { wnd: 1, ..blocks(2000) });
    agent.holds(61, Port::RADIO, blocks(2000));
    // A reset sends what waits.
    let reset = Segment { flags: Flags::RST | Flags::ACK, ..ack_of(1000) };
    agent.sends(62, Port::RADIO, reset, &[blocks(2000), reset]).holds_nothing();
    // Of data that have not passed nothing is known.
    (70..80).for_each(|at| _ = agent.passes(at, Port::RADIO, ack_of(1000)));
    // All has arrived: these are answers to probes.
    agent.passes(90, Port::WIRED, data_of(0, 8000));
    (91..99).for_each(|at| _ = agent.passes(at, Port::RADIO, ack_of(8000)));
}

/// As `a_new_acknowledgement_restarts_the_delay`: the first loss of a connection is delayed as well, whether the agent has seen the
/// handshake or not, for data of either end.
// Rule: as an_agent_delays_duplicates_of_either_direction
#[test]
fn an_agent_delays_duplicates_of_the_first_data() {
    for sees_handshake in [true, false] {
        for data in [Port::WIRED, Port::RADIO] {
            let (mut agent, acks) = (agent(), data.across());
            if sees_handshake {
                let syn = |ack: Flags| Segment { flags: Flags::SYN | ack, wnd: 500, ..ack_of(1000) };
                let [mine, theirs] =
                    [Segment { seq: SeqNum(999), ack: SeqNum(0), ..syn(Flags::default()) }, syn(Flags::ACK)];
                agent.passes(1, data, mine).passes(2, acks, theirs);
                agent.passes(3, data, Segment { ack: SeqNum(1), ..data_of(1000, 0) });
            }
            // The first of eight is lost.
            agent.passes(10, data, data_of(1000, 8000));
            agent.passes(20, acks, ack_of(1000)).passes(21, acks, ack_of(1000)).holds(22, acks, ack_of(1000));
            agent.passes_in_place(30, acks, ack_of(5000), 1).holds_nothing();
            agent.passes(40, acks, ack_of(5000)).passes(41, acks, ack_of(5000)).holds(42, acks, ack_of(5000));
            agent
                .wakes(92, data, &[ack_of(5000)])
                .counts(&[("delayed_dupacks", 2), ("suppressed_dupacks", 1)]);
        }
    }
}

/// The end that accepts a connection sends first, and its peer's handshake ends with the first ACK of the row.
// Rule: as an_agent_delays_duplicates_of_either_direction
#[test]
fn an_agent_delays_the_first_duplicates_of_the_other_end() {
    let mut agent = agent();
    let [syn, accepted] = [Flags::SYN, Flags::SYN | Flags::ACK].map(|flags| Segment { flags, ..ack_of(0) });
    agent.passes(1, Port::RADIO, Segment { seq: SeqNum(499), ..syn });
    agent.passes(2, Port::WIRED, Segment { seq: SeqNum(999), ack: SeqNum(500), ..accepted });
    agent.passes(3, Port::RADIO, ack_of(1000)).passes(10, Port::WIRED, data_of(1000, 8000));
    agent.passes(20, Port::RADIO, ack_of(1000)).passes(20, Port::RADIO, ack_of(1000));
    agent.holds(21, Port::RADIO, ack_of(1000));
}

/// A host's later segments do not overtake the duplicates that it sent before.
// Rule: What a host sends behind a delayed duplicate, with the same acknowledgement number, releases it. [../scheme/delayed_dupacks/agent.rs]
#[test]
fn delayed_duplicates_leave_before_what_follows_them() {
    let dup = ack_of(1000);
    let data = Segment { ack: SeqNum(1000), ..data_of(0, 100) };
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..dup };
    for later in [data, Segment { wnd: 9000, ..dup }, fin, Segment { has_unknown_options: true, ..dup }] {
        let mut agent = agent();
        agent.passes(10, Port::WIRED, data_of(0, 8000)).passes(11, Port::RADIO, dup);
        agent.passes(12, Port::RADIO, dup).passes(13, Port::RADIO, dup);
        agent.holds(14, Port::RADIO, dup).holds(15, Port::RADIO, dup);
        agent.sends(16, Port::RADIO, later, &[dup, dup, later]).holds_nothing();
        // The source retransmits by now.
        let dup = Segment { wnd: later.wnd, ..dup };
        agent.passes(17, Port::RADIO, dup).passes(18, Port::RADIO, ack_of(5000)).holds_nothing();
        agent.counts(&[("delayed_dupacks", 2), ("suppressed_dupacks", 0)]);
    }
}

/// The agent's delay is shorter than senders wait.
// Rule: as an_agent_delays_duplicates_of_either_direction
#[test]
fn delays_beyond_the_timeout_of_senders_are_refused() {
    let tcp = settings(Flavour::Reno, 1);
    for (delay, agent, is_refused) in [("1 s", true, false), ("1001 ms", true, true), ("2 s", false, false)] {
        let schemes = schemes_of(&format!("[delayed-dupacks]\ndelay = \"{delay}\"\nagent = {agent}"));
        assert_eq!(
            !schemes.get("delayed-dupacks").expect("a scheme").faults(&tcp).is_empty(),
            is_refused,
            "{delay} {agent}"
        );
    }
}
