//! Strict priority, by hand.

use lasthop_base::Bytes;
use lasthop_link::queue::{Discipline, Priority, priority};
use lasthop_proto::{DropReason, Dscp, Ecn, Effect, Out, Packet};
use lasthop_sim::QueueLimit;

use crate::disciplines::bench::{packet, seq, us};

/// A queue with room for two packets of each kind, and what it dropped.
struct Bench(Priority, Vec<u64>);

impl Bench {
    fn new() -> Bench {
        Bench(Priority::new(priority::Params { limit: QueueLimit::Packets(2) }), Vec::new())
    }

    fn come(&mut self, number: u64, dscp: Dscp, at_once: bool) {
        let mut out = Out::default();
        let packet = Packet { dscp, ..packet(0, number, 100, Ecn::Ect0) };
        self.0.enqueue(us(0), packet, at_once, &mut out);
        while let Some((_, effect)) = out.take() {
            let Effect::Drop(packet, DropReason::QueueFull) = effect else { panic!("{effect:?}") };
            self.1.push(seq(&packet));
        }
    }

    fn go(&mut self) -> Option<u64> {
        self.0.dequeue(us(0), &mut Out::default()).map(|packet| seq(&packet))
    }
}

/// Expedited packets go first, in order; the others, whatever their code point, in order after them.
#[test]
fn expedited_packets_go_first() {
    let mut bench = Bench::new();
    bench.come(0, Dscp::DEFAULT, false);
    bench.come(1, Dscp::EXPEDITED, false);
    bench.come(2, Dscp::new(3), false);
    bench.come(3, Dscp::EXPEDITED, false);
    assert_eq!(bench.0.queued(), (4, Bytes(400)));
    assert_eq!([bench.go(), bench.go(), bench.go()], [Some(1), Some(3), Some(0)]);
    bench.come(4, Dscp::EXPEDITED, false);
    assert_eq!([bench.go(), bench.go(), bench.go()], [Some(4), Some(2), None]);
    assert_eq!(bench.0.queued(), (0, Bytes(0)));
}

/// Each kind has room of its own; a packet that is sent immediately needs none.
#[test]
fn each_queue_is_drop_tail() {
    let mut bench = Bench::new();
    (0..3).for_each(|number| bench.come(number, Dscp::DEFAULT, false));
    (3..6).for_each(|number| bench.come(number, Dscp::EXPEDITED, false));
    bench.come(6, Dscp::EXPEDITED, true);
    assert_eq!(bench.1, [2, 5]);
    assert_eq!(bench.0.stats().overflowed, 2);
    assert_eq!(bench.0.queued(), (5, Bytes(500)));
}
