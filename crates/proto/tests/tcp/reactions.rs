//! What a scheme's reaction hears and sees, and what its answers do. Reactions for these tests alone.

use std::sync::{Arc, Mutex};

use lasthop_base::Time;
use lasthop_proto::Notice;
use lasthop_proto::tcp::{Flavour, Reaction, Segment, SenderState, SeqNum, Settings};

use crate::dialogue::{Client, MSS, settings};

/// Writes down what it hears, in offsets from the first byte.
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

    /// Left edge, next, one past the highest; segment size; window and threshold; duplicates.
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

    fn on_segment(&mut self, now: Time, segment: &Segment, sender: &SenderState) {
        let ack = self.offset(segment.ack);
        self.write(format!("{} ms ack {ack}: {}", milliseconds(now), self.look(sender)));
    }

    fn on_sent(&mut self, start: SeqNum, end: SeqNum, again: bool) {
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

/// A reaction hears of each segment that leaves, of each acknowledgement before it is processed, and of
/// each notice, and sees the sender as it is at that instant.
#[test]
fn a_reaction_hears_and_sees() {
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

/// After a notice the sender sends what may be sent, as after any event: here bursts are of one segment,
/// and the window holds four.
#[test]
fn a_notice_is_an_event_like_others() {
    let settings = Settings { max_burst: 1, ..settings(Flavour::Reno, 4) };
    let (witness, _) = Witness::new(&settings);
    let mut tcp = Client::reacting(&settings, witness);
    tcp.sends_full(0..1).at(100).notice(0).sends_full(1..2);
    tcp.notice(0).sends_full(2..3).notice(0).sends(&["3000..4000"]).notice(0).sends_nothing();
    assert_eq!(tcp.sender.flight_size(), 4 * MSS);
}

/// Segments that acknowledge what was never sent are not heard of, nor does a notice open a connection.
#[test]
fn a_reaction_hears_of_what_counts() {
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
