//! Codes that an honest end would not have, and headers that it would not write.

use lasthop_base::{Duration, Streams, Time};
use lasthop_proto::scheme::parameters::PacketFec;
use lasthop_proto::{Ecn, Symbol};

use crate::Tos;
use crate::fec::{FecReceiver, FecSender, most_open_packets};
use crate::message::CodedHeader;

const HOLD: Duration = Duration::from_millis(100);

/// Packets of a code whose blocks take more room than the egress has: it gives up what it cannot keep, and never a packet that
/// arrives.
#[test]
fn blocks_without_room_lose_their_repair_and_no_packet() {
    for (world, loss, in_order) in [(0, 0.0, true), (1, 0.02, true), (2, 0.02, false)] {
        let scheme = PacketFec { k: 60, n: 80, interleave: 64, in_order, ..PacketFec::default() };
        assert!(64 * 80 > most_open_packets(1400));
        let rate = super::settings(None).rate();
        let mut sender = FecSender::new(&scheme, rate);
        let mut receiver = FecReceiver::new(scheme.k, scheme.interleave, in_order, HOLD);
        let mut draw = Streams::new(31, world).stream("losses");
        let (mut arrived, mut left) = (Vec::new(), Vec::new());
        for number in 0..8_000u32 {
            let now = Time::ZERO + Duration::from_micros(10) * u64::from(number);
            let mut packet = vec![0; 1300];
            packet[..4].copy_from_slice(&number.to_be_bytes());
            let mut deliver = |packet: &[u8], _| {
                left.push(u32::from_be_bytes(*packet.first_chunk().expect("a number")));
            };
            if receiver.next_wakeup() <= now {
                receiver.wake(now, &mut deliver);
            }
            sender.send(now, Tos::default(), &packet, &mut |header, body, _| {
                if !draw.bernoulli(loss) {
                    if matches!(header.symbol, Symbol::Source { .. }) {
                        arrived.push(number);
                    }
                    receiver.receive(now, header, body, Ecn::NotEct, &mut deliver);
                }
            });
        }
        receiver.wake(Time::ZERO + Duration::from_secs(9), &mut |packet, _| {
            left.push(u32::from_be_bytes(*packet.first_chunk().expect("a number")));
        });
        let count = left.len();
        left.sort_unstable();
        left.dedup();
        assert_eq!(left.len(), count, "world {world}: packets came twice");
        let missing = arrived.iter().filter(|number| left.binary_search(number).is_err()).count();
        assert_eq!(missing, 0, "world {world}");
    }
}

/// Headers that contradict each other: of a closed block, of one with other numbers of packets, and one repair packet for ever.
#[test]
fn contradictory_headers_end() {
    let mut receiver = FecReceiver::new(8, 1, true, HOLD);
    let mut receive = |sent, block, symbol, rest: &[u8]| {
        let header = CodedHeader { sent, history: u64::MAX, block, symbol };
        receiver.receive(Time::ZERO, header, rest, Ecn::NotEct, &mut |_, _| {});
        receiver.kept_bytes()
    };
    receive(2, 0, Symbol::Repair { index: 0, sources: 2 }, &[0; 9]);
    let before = receive(4, 0, Symbol::Source { index: 3 }, &[0; 9]);
    for _ in 0..1000 {
        for len in [0, 1, 9] {
            let after = receive(4, 0, Symbol::Repair { index: 0, sources: 2 }, &vec![0; len]);
            assert_eq!(after, before);
        }
    }
}

/// A header goes back to a block that the end has dropped.
#[test]
fn blocks_of_long_ago_are_unknown() {
    let mut receiver = FecReceiver::new(8, 1, true, HOLD);
    let mut left = 0;
    for (sent, history, block, index) in [(1, 1, 0, 0), (2, 1, 1000, 0), (3, 0, 0, 1), (4, 0, 1000, 1)] {
        let header = CodedHeader { sent, history, block, symbol: Symbol::Source { index } };
        receiver.receive(Time::ZERO, header, &[7; 9], Ecn::NotEct, &mut |_, _| left += 1);
    }
    assert_eq!(left, 3);
}

/// A code without repair packets, as on a link that loses none, limits no batch.
#[test]
fn a_code_that_repairs_nothing_limits_no_batch() {
    let scheme = PacketFec { k: 8, n: 11, ..PacketFec::default() };
    let mut sender = FecSender::new(&scheme, super::settings(None).rate());
    let most = [11, 9, 8].map(|n| {
        sender.set_n(n);
        sender.redundancy()
    });
    assert_eq!(most, [3, 1, usize::MAX]);
}
