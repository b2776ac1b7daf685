//! The interface of reactions: the events they receive, and the effects of their results, with reactions
//! defined for these tests.

mod losses;
mod receiver;
mod requests;
mod segments;
mod windows;

use std::sync::{Arc, Mutex};

use lasthop_base::{Duration, Time};
use lasthop_proto::Notice;
use lasthop_proto::tcp::{Flavour, Reaction, Segment, SenderState, SeqNum, Settings};

use crate::tcp::dialogue::{Client, MSS, settings};

/// Records its calls, with offsets from the first byte.
#[derive(Debug)]
struct Witness {
    first_byte: SeqNum,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Witness {
    fn new(settings: &Settings) -> (Witness, Arc<Mutex<Vec<String>>>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        (Witness { first_byte: SeqNum(settings.iss), heard: heard.clone() }, heard)
    }

    fn offset(&self, seq: SeqNum) -> u32 {
        seq - self.first_byte
    }

    fn write(&self, line: String) {
        self.heard.lock().expect("one thread").push(line);
    }

    /// SND.UNA, next and highest sequence number; segment size; window and ssthresh; duplicates.
    fn look(&self, tcp: &SenderState) -> String {
        let edges = [tcp.snd_una(), tcp.snd_nxt(), tcp.snd_max()].map(|seq| self.offset(seq));
        format!("{edges:?} {} {} {} {}", tcp.mss(), tcp.cwnd(), tcp.ssthresh(), tcp.dupacks())
    }
}

impl Reaction for Witness {
    fn on_notice(&mut self, now: Time, notice: &Notice, sender: &mut SenderState) {
        let seq = self.offset(notice.seq);
        self.write(format!("{} ms notice of {seq}: {}", milliseconds(now), self.look(sender)));
    }

    fn on_segment(&mut self, now: Time, segment: &Segment, sender: &mut SenderState) {
        let ack = self.offset(segment.ack);
        self.write(format!("{} ms ack {ack}: {}", milliseconds(now), self.look(sender)));
    }

    fn on_sent(&mut self, _now: Time, start: SeqNum, end: SeqNum, again: bool) {
        let (start, end) = (self.offset(start), self.offset(end));
        self.write(format!("sent {start}..{end}{}", if again { " again" } else { "" }));
    }
}

fn milliseconds(now: Time) -> u64 {
    now.as_nanos() / 1_000_000
}

fn heard(witness: &Arc<Mutex<Vec<String>>>) -> Vec<String> {
    std::mem::take(&mut witness.lock().expect("one thread"))
}

/// A reaction is notified of each segment sent, each acknowledgement before it is processed, and each notice,
/// and sees the sender's current state.
// Rule: A reaction is notified of each segment sent, each valid ACK and each notice, and sees the sender's
// state. [reaction.rs state.rs]
#[test]
fn a_reaction_is_notified_and_sees_the_state() {
    let settings = settings(Flavour::Tahoe, 2);
    let (witness, log) = Witness::new(&settings);
    let mut tcp = Client::reacting(&settings, witness);
    tcp.sends_full(0..2);
    assert_eq!(heard(&log), ["sent 0..1000", "sent 1000..2000"]);
    tcp.at(100).ack(1000).sends_full(2..4);
    assert_eq!(
        heard(&log),
        ["100 ms ack 1000: [0, 2000, 2000] 1000 2000 inf 0", "sent 2000..3000", "sent 3000..4000"]
    );
    tcp.acks(3, 1000).sends_full(1..2);
    assert_eq!(
        heard(&log)[2..],
        ["100 ms ack 1000: [1000, 4000, 4000] 1000 3000 inf 2", "sent 1000..2000 again"]
    );
    tcp.at(200).notice(3000).sends_nothing();
    assert_eq!(heard(&log), ["200 ms notice of 3000: [1000, 2000, 4000] 1000 1000 2000 3"]);
    assert_eq!(tcp.sender.stats().notices, 1);
}

/// After a notice the sender sends what the window permits, as after any event; here the burst limit is one
/// segment and the window four.
// Rule: After a notice the sender sends what the window permits. [sender.rs]
#[test]
fn a_notice_triggers_transmission() {
    let settings = Settings { max_burst: 1, ..settings(Flavour::Reno, 4) };
    let (witness, _) = Witness::new(&settings);
    let mut tcp = Client::reacting(&settings, witness);
    tcp.sends_full(0..1).at(100).notice(0).sends_full(1..2);
    tcp.notice(0).sends_full(2..3).notice(0).sends(&["3000..4000"]).notice(0).sends_nothing();
    assert_eq!(tcp.sender.flight_size(), 4 * MSS);
}

/// Acknowledgements of data never sent are not reported, and a notice does not open a connection.
// Rule: as a_reaction_is_notified_and_sees_the_state
#[test]
fn a_reaction_is_notified_of_valid_events_only() {
    let settings = Settings { handshake: true, ..settings(Flavour::Reno, 2) };
    let (witness, log) = Witness::new(&settings);
    let mut tcp = Client::reacting(&settings, witness);
    tcp.sends(&["SYN"]);
    assert_eq!(heard(&log), ["sent 0..1"]);
    tcp.at(50).notice(0).sends_nothing().ack(5000).sends_nothing();
    assert_eq!(heard(&log), ["50 ms notice of 1: [0, 1, 1] 1000 2000 inf 0"]);
    tcp.at(100).syn_ack().sends_full(0..2);
    assert_eq!(heard(&log)[0], "100 ms ack 1: [0, 1, 1] 1000 2000 inf 0");
}

/// Requests the left edge whenever its timer expires.
#[derive(Debug)]
struct Metronome {
    interval: Duration,
    next: Time,
    left: u32,
}

impl Reaction for Metronome {
    fn on_start(&mut self, _now: Time, _sender: &mut SenderState) {
        self.next = Time::ZERO + self.interval;
    }

    fn next_wakeup(&self) -> Time {
        if self.left > 0 { self.next } else { Time::NEVER }
    }

    fn on_timer(&mut self, now: Time, sender: &mut SenderState) {
        assert_eq!(now, self.next);
        self.left -= 1;
        self.next = now + self.interval;
        sender.resend(sender.snd_una());
    }
}

/// A reaction has its own timer, independent of those of TCP and of other reactions, and may request segments
/// when it expires. It is not called after everything is acknowledged.
// Rule: A reaction has a timer. [state.rs timers.rs]
#[test]
fn a_reaction_has_a_timer() {
    let every = |milliseconds, left| -> Box<dyn Reaction> {
        Box::new(Metronome { interval: Duration::from_millis(milliseconds), next: Time::NEVER, left })
    };
    let mut tcp = Client::reacting_in_order(&settings(Flavour::Reno, 2), Some(2000), vec![every(40, 2)]);
    tcp.sends_full(0..2).wakes_at(40).sends_full(0..1).wakes_at(80).sends_full(0..1).timer_at(1080);

    let reactions = vec![every(40, 9), every(60, 9)];
    let mut tcp = Client::reacting_in_order(&settings(Flavour::Reno, 2), Some(2000), reactions);
    tcp.sends_full(0..2);
    for (at, asked) in [(40, 1), (60, 1), (80, 1), (120, 2)] {
        tcp.wakes_at(at);
        assert_eq!(tcp.sent().len(), asked, "at {at} ms");
    }
    tcp.at(150).ack(2000).is_finished();
}

#[should_panic(expected = "did not move its timer forward")]
// Rule: as a_reaction_has_a_timer
#[test]
fn a_reaction_timer_left_expired_panics() {
    #[derive(Debug)]
    struct Stuck;
    impl Reaction for Stuck {
        fn next_wakeup(&self) -> Time {
            Time::ZERO + Duration::from_millis(10)
        }
    }
    Client::reacting(&settings(Flavour::Reno, 2), Stuck).wakes_at(10);
}
