//! RFC 9293 section 3.10.7, "SEGMENT ARRIVES", state by state.

use lasthop_endpoint::End;
use lasthop_endpoint::StateName::{
    self, CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen, SynReceived, SynSent,
    TimeWait,
};
use lasthop_proto::tcp::Flags;

use Answer::{Ack, Exactly, Nothing};
use Arrival::{Acknowledging, At};

use crate::peer::{ACK, FIN, Peer, RST, SYN, SYN_ACK};

const SYNCHRONISED: [StateName; 7] = [Established, FinWait1, FinWait2, CloseWait, Closing, LastAck, TimeWait];

/// A segment from the peer. Sequence numbers are relative to RCV.NXT.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    At(i32, Flags, &'static [u8]),
    /// At RCV.NXT, with an acknowledgement number relative to SND.NXT.
    Acknowledging(i32, Flags),
}

/// The endpoint's answer: nothing, or one segment.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Nothing,
    /// An ACK of this many more sequence numbers than before.
    Ack(u32),
    /// A segment as in [`Peer::transcript`].
    Exactly(&'static str),
}

/// Delivers `arrival` in `state`, which becomes `next`.
fn check(state: StateName, arrival: Arrival, answer: Answer, next: StateName) {
    let mut peer = Peer::in_state(state);
    let snd_nxt = match state {
        FinWait1 | FinWait2 | Closing | LastAck | TimeWait => 2,
        _ => 1,
    };
    let rcv_nxt = peer.seq;
    match arrival {
        At(offset, flags, payload) => peer.send_at(offset, flags, payload),
        Acknowledging(offset, flags) => {
            peer.ack = u32::wrapping_add_signed(snd_nxt, offset);
            peer.send_at(0, flags, b"");
        }
    }
    let expected = match answer {
        Nothing => String::new(),
        Ack(more) => format!("A {snd_nxt} {} 0", rcv_nxt + more),
        Exactly(answer) => answer.into(),
    };
    assert_eq!((peer.transcript(), peer.state()), (expected, next), "{state:?}, {arrival:?}");
}

// Rule: Segments in CLOSED, LISTEN, SYN-SENT and SYN-RECEIVED. [9293 3.10.7.1-4; endpoint.rs packet.rs]
#[test]
fn closed_refuses_everything_but_rst() {
    check(Closed, At(0, RST, b""), Nothing, Closed);
    check(Closed, At(0, RST | ACK, b""), Nothing, Closed);
    // The reset has the acknowledgement number of a segment with ACK, and acknowledges a segment without it.
    for flags in [ACK, SYN_ACK, FIN] {
        check(Closed, Acknowledging(40, flags), Exactly("R 41 0 0"), Closed);
    }
    let mut peer = Peer::in_state(Closed);
    peer.send_at(0, SYN, b"abc");
    assert_eq!(peer.sent()[0].header.segment, {
        let mut expected = peer.header(RST | ACK).segment;
        (expected.seq.0, expected.wnd) = (0, 0);
        expected.ack = peer.header(SYN).segment.seq + 4;
        expected
    });
}

// Rule: as closed_refuses_everything_but_rst
#[test]
fn listen_takes_syn_and_refuses_acknowledgements() {
    check(Listen, At(0, RST, b""), Nothing, Listen);
    check(Listen, At(0, Flags::FIN, b""), Nothing, Listen);
    check(Listen, At(0, Flags::default(), b"data"), Nothing, Listen);
    for flags in [ACK, SYN_ACK, FIN] {
        let mut peer = Peer::in_state(Listen);
        peer.ack = 77;
        peer.send(flags, b"");
        assert_eq!((peer.transcript().as_str(), peer.state()), ("R 77 0 0", Listen));
    }
    let mut peer = Peer::in_state(Listen);
    peer.send(SYN, b"early data");
    let segment = peer.expect_syn(SYN_ACK).segment;
    // Data on a SYN are not acknowledged, so the peer retransmits them.
    assert_eq!((segment.ack, peer.state()), (crate::peer::IRS + 1, SynReceived));
    assert_eq!(peer.endpoint.remote(), Some(crate::world::address(2, true)));
}

// Rule: as closed_refuses_everything_but_rst
#[test]
fn syn_sent_takes_only_what_acknowledges_its_syn() {
    for ack in [0, 2, 70_000] {
        for (flags, answer) in
            [(ACK, format!("R {ack} 0 0")), (SYN_ACK, format!("R {ack} 0 0")), (RST | ACK, String::new())]
        {
            let mut peer = Peer::in_state(SynSent);
            peer.ack = ack;
            peer.send(flags, b"");
            assert_eq!((peer.transcript(), peer.state()), (answer, SynSent), "{flags:?} {ack}");
        }
    }
    check(SynSent, At(0, RST, b""), Nothing, SynSent);
    check(SynSent, At(0, ACK, b""), Nothing, SynSent);
    check(SynSent, At(0, Flags::FIN, b""), Nothing, SynSent);
    check(SynSent, At(0, RST | ACK, b""), Nothing, Closed);
    let mut peer = Peer::in_state(SynSent);
    peer.send(SYN_ACK, b"");
    assert_eq!((peer.transcript().as_str(), peer.state()), ("A 1 1 0", Established));
    let mut peer = Peer::in_state(SynSent);
    peer.send(SYN, b"");
    assert_eq!((peer.transcript().as_str(), peer.state()), ("SA 0 1 0", SynReceived));
}

// Rule: as closed_refuses_everything_but_rst
#[test]
fn syn_received_waits_for_the_acknowledgement_of_its_syn() {
    check(SynReceived, At(0, RST, b""), Nothing, Listen);
    check(SynReceived, At(5, RST, b""), Ack(0), SynReceived);
    check(SynReceived, At(-5, RST, b""), Nothing, SynReceived);
    check(SynReceived, At(20_000, RST, b""), Nothing, SynReceived);
    check(SynReceived, At(20_000, ACK, b"x"), Ack(0), SynReceived);
    check(SynReceived, At(5, SYN, b""), Nothing, Listen);
    check(SynReceived, At(0, Flags::default(), b"x"), Nothing, SynReceived);
    check(SynReceived, Acknowledging(-1, ACK), Exactly("R 0 0 0"), SynReceived);
    check(SynReceived, Acknowledging(1, ACK), Exactly("R 2 0 0"), SynReceived);
    check(SynReceived, At(0, ACK, b""), Nothing, Established);
    check(SynReceived, At(0, ACK, b"data"), Ack(4), Established);
    check(SynReceived, At(0, FIN, b"data"), Ack(5), CloseWait);
    // The peer has not received SYN-ACK.
    check(SynReceived, At(-1, SYN, b""), Exactly("SA 0 1 0"), SynReceived);
}

// Rule: as closed_refuses_everything_but_rst
#[test]
fn after_an_active_open_a_reset_in_syn_received_refuses_the_connection() {
    let mut peer = Peer::in_state(SynSent);
    peer.send(SYN, b"");
    peer.transcript();
    peer.send_at(5, SYN, b"");
    assert_eq!((peer.transcript().as_str(), peer.state()), ("A 1 1 0", SynReceived));
    peer.send(RST, b"");
    assert_eq!((peer.state(), peer.endpoint.end()), (Closed, Some(End::Refused)));
}

// Rule: Segments in the seven synchronised states: acceptability, ACK, text, FIN; only transitions of the
// state diagram. [9293 3.3.2, 3.10.7.4; connection.rs endpoint.rs state.rs]
#[test]
fn segments_outside_the_window_are_acknowledged_and_dropped() {
    for state in SYNCHRONISED {
        for offset in [-20_000, -5, 20_000, i32::MAX, i32::MIN] {
            check(state, At(offset, ACK, b""), Ack(0), state);
            check(state, At(offset, ACK, b"data"), Ack(0), state);
            check(state, At(offset, SYN, b""), Ack(0), state);
            check(state, At(offset, RST, b""), Nothing, state);
        }
    }
}

// Rule: Only RST at the next sequence number resets; in the window it is challenged. [5961 3.2;
// connection.rs]
#[test]
fn only_the_next_sequence_number_resets() {
    for state in SYNCHRONISED {
        check(state, At(0, RST, b""), Nothing, Closed);
        check(state, At(0, RST | ACK, b""), Nothing, Closed);
        check(state, At(1, RST, b""), Ack(0), state);
        check(state, At(-1, RST, b""), Nothing, state);
        let mut peer = Peer::in_state(state);
        peer.send(RST, b"");
        // In TIME-WAIT all data have been exchanged, so the connection counts as closed.
        let end = if state == TimeWait { End::Closed } else { End::Reset };
        assert_eq!(peer.endpoint.end(), Some(end), "{state:?}");
    }
}

// Rule: SYN in a synchronised state is challenged. [5961 4.2; connection.rs]
#[test]
fn syn_in_the_window_is_challenged() {
    for state in SYNCHRONISED {
        check(state, At(0, SYN, b""), Ack(0), state);
        check(state, At(0, SYN_ACK, b""), Ack(0), state);
        check(state, At(7, SYN, b""), Ack(0), state);
        // The peer has not received our ACK of its SYN-ACK.
        check(state, At(-1, SYN_ACK, b""), Ack(0), state);
    }
}

// Rule: as segments_outside_the_window_are_acknowledged_and_dropped
#[test]
fn segments_without_ack_are_dropped() {
    for state in SYNCHRONISED {
        check(state, At(0, Flags::default(), b"data"), Nothing, state);
        check(state, At(0, Flags::FIN, b""), Nothing, state);
    }
}

// Rule: Data with an acknowledgement number outside SND.UNA - MAX.SND.WND to SND.NXT are dropped, and
// challenged. [5961 5.2; connection.rs]
#[test]
fn acknowledgements_out_of_range_are_challenged() {
    for state in SYNCHRONISED {
        check(state, Acknowledging(1, ACK), Ack(0), state);
        check(state, Acknowledging(-60_000, ACK), Ack(0), state);
        // Old acknowledgements are within the range.
        check(state, Acknowledging(-1, ACK), Nothing, state);
    }
}

// Rule: as segments_outside_the_window_are_acknowledged_and_dropped
#[test]
fn the_acknowledgement_of_fin_advances_the_closing_states() {
    check(FinWait1, Acknowledging(0, ACK), Nothing, FinWait2);
    check(FinWait1, Acknowledging(0, FIN), Ack(1), TimeWait);
    check(Closing, Acknowledging(0, ACK), Nothing, TimeWait);
    check(LastAck, Acknowledging(0, ACK), Nothing, Closed);
}

// Rule: as segments_outside_the_window_are_acknowledged_and_dropped
#[test]
fn text_is_taken_until_the_peer_has_closed() {
    for state in [Established, FinWait1, FinWait2] {
        check(state, At(0, ACK, b"data"), Ack(4), state);
        let mut peer = Peer::in_state(state);
        peer.send(ACK, b"abc");
        peer.send_at(-2, ACK, b"bcdef");
        assert_eq!(peer.read(), b"abcdef", "{state:?}");
    }
    for state in [CloseWait, Closing, LastAck, TimeWait] {
        check(state, At(0, ACK, b"data"), Ack(0), state);
        let mut peer = Peer::in_state(state);
        peer.send(ACK, b"abc");
        assert_eq!(peer.endpoint.readable(), 0, "{state:?}");
    }
}

// Rule: as segments_outside_the_window_are_acknowledged_and_dropped
#[test]
fn fin_advances_the_states_in_which_the_peer_may_send() {
    check(Established, At(0, FIN, b""), Ack(1), CloseWait);
    check(Established, At(0, FIN, b"last"), Ack(5), CloseWait);
    check(FinWait1, At(0, FIN, b""), Ack(1), Closing);
    check(FinWait2, At(0, FIN, b""), Ack(1), TimeWait);
    // A retransmitted FIN is acknowledged again.
    for state in [CloseWait, Closing, LastAck, TimeWait] {
        check(state, At(-1, FIN, b""), Ack(0), state);
    }
}
