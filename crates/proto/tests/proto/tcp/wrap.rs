//! Wrap-around of sequence numbers modulo 2³² (RFC 9293 section 3.4). All conversation tests cross the wrap;
//! these cross it at every position, and with half the space between two losses.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flavour, InitialWindow, Settings};

use crate::tcp::dialogue::{Client, settings};

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];

/// A loss is repaired and the transfer completes at every position of the wrap: before, within and after the
/// hole, and within SACKed data.
// Rule: Sequence numbers are modulo 2³². [9293 3.4; packet/seq.rs]
#[test]
fn losses_around_the_wrap_are_repaired() {
    for flavour in FLAVOURS {
        for wrap in (0..=9000).step_by(500).chain([1, 999, 1001, 3999, 4001]) {
            let iss = 0u32.wrapping_sub(wrap);
            let mut tcp =
                Client::start_with(&Settings { iss, close: true, ..settings(flavour, 4) }, Some(8000));
            tcp.sends_full(0..4).at(100).sack(0, &[1000..2000]).sack(0, &[1000..3000]).sends_nothing();
            tcp.sack(0, &[1000..4000]).sends_first("0..1000").ssthresh(2000.0);
            tcp.at(200).ack(4000).sent();
            for (time, ack) in [(300, 5000), (400, 6000), (500, 7000), (600, 8001)] {
                tcp.at(time).ack(ack).sent();
            }
            tcp.is_finished();
            assert_eq!(tcp.sender.stats().timeouts, 0);
        }
    }
}

/// The recovery point stays in the past after 2 GiB: the next loss is still detected by duplicate ACKs.
// Rule: as losses_around_the_wrap_are_repaired
#[test]
fn the_recovery_point_stays_in_the_past_after_2_gib() {
    for flavour in FLAVOURS {
        let mut tcp = Client::start(&Settings {
            packet_size: Bytes(64_040),
            window: Bytes(1 << 30).into(),
            initial_window: InitialWindow::Segments(1),
            ..settings(flavour, 1)
        });
        tcp.sent();
        tcp.wakes_at(1000).sends(&["0..64000"]);
        let mut acked = 0u32;
        while acked <= 0x8000_0000 {
            acked = tcp.sender.snd_max().0.wrapping_sub(tcp.bare_ack(0).ack.0);
            tcp.at(1100).ack(acked).sent();
        }
        let lost = acked;
        let news = |n: u32| lost + 64_000..lost + 64_000 * (n + 1);
        (1..=3).for_each(|n| _ = tcp.sack(lost, &[news(n)]));
        assert_eq!(tcp.sent()[0].seq, tcp.bare_ack(lost).ack);
        assert_eq!(tcp.sender.stats().fast_retransmits, 1);
    }
}
