//! SACK (RFC 2018) and DSACK (RFC 2883) blocks sent by the receiver.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flavour, Settings};

use crate::dialogue::{Server, settings};

fn sack(sack_blocks: u32) -> Settings {
    Settings { sack_blocks, ..settings(Flavour::Sack, 4) }
}

fn dsack() -> Settings {
    Settings { dsack: true, ..sack(3) }
}

/// The first block holds the segment that asks for the acknowledgement, the others are those reported
/// before, the latest first (RFC 2018 section 4).
#[test]
fn the_latest_block_comes_first() {
    let mut tcp = Server::start(&sack(3));
    tcp.data(1000..2000).reports(0, &[1000..2000]);
    tcp.data(5000..6000).reports(0, &[5000..6000, 1000..2000]);
    tcp.data(3000..4000).reports(0, &[3000..4000, 5000..6000, 1000..2000]);
    tcp.data(6000..7000).reports(0, &[5000..7000, 3000..4000, 1000..2000]);
}

/// More blocks than fit leave out the oldest (RFC 2018 section 4).
#[test]
fn the_oldest_block_is_left_out() {
    let mut tcp = Server::start(&sack(2));
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(3000..4000).reports(0, &[3000..4000, 1000..2000]);
    tcp.data(5000..6000).reports(0, &[5000..6000, 3000..4000]);
}

/// Four blocks fit, three beside timestamps (RFC 2018 section 3).
#[test]
fn timestamps_take_the_room_of_a_block() {
    for (timestamps, most) in [(false, 4), (true, 3)] {
        let mut tcp = Server::start(&Settings { timestamps, ..sack(4) });
        for n in 0..5 {
            assert_eq!(
                tcp.data((2 * n + 1) * 1000..(2 * n + 2) * 1000).answer().sack.len(),
                most.min(n as usize + 1)
            );
        }
    }
}

/// Blocks that grow together are one (RFC 2018 section 3: not contiguous with what is beside them).
#[test]
fn blocks_grow_together() {
    let mut tcp = Server::start(&sack(3));
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(3000..4000).reports(0, &[3000..4000, 1000..2000]);
    tcp.data(2000..3000).reports(0, &[1000..4000]);
}

/// What is acknowledged is reported no longer; what still waits is, also when the segment filled a gap
/// in front of it (RFC 2018 section 4).
#[test]
fn what_is_acknowledged_is_not_reported() {
    let mut tcp = Server::start(&sack(3));
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(3000..4000).reports(0, &[3000..4000, 1000..2000]);
    tcp.data(0..1000).reports(2000, &[3000..4000]).data(2000..3000).reports(4000, &[]);
}

/// Every acknowledgement of less than all that arrived carries the blocks, one that announces a window
/// too (RFC 2018 section 4).
#[test]
fn a_window_update_carries_blocks() {
    let mut tcp = Server::start(&Settings { window: Bytes(4000).into(), ..sack(3) });
    tcp.receiver.pause();
    tcp.data(0..1000).data(1000..2000).acks(2000).data(3000..4000).reports(2000, &[3000..4000]);
    tcp.resume().reports(2000, &[3000..4000]);
}

/// Only the flavour with selective acknowledgements sends them.
#[test]
fn other_flavours_report_nothing() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno] {
        Server::start(&settings(flavour, 4)).data(1000..2000).reports(0, &[]);
    }
}

/// A segment that came before is reported in the first block, though it is acknowledged (RFC 2883
/// section 4.1); without D-SACK it is not.
#[test]
fn a_duplicate_is_reported_first() {
    let mut tcp = Server::start(&dsack());
    tcp.data(0..1000).data(1000..2000).acks(2000).data(3000..4000).reports(2000, &[3000..4000]);
    tcp.data(500..1000).reports(2000, &[500..1000, 3000..4000]);
    tcp.data(2000..3000).reports(4000, &[]).data(3000..4000).reports(4000, &[3000..4000]);
    let mut tcp = Server::start(&sack(3));
    tcp.data(0..1000).data(1000..2000).acks(2000).data(0..1000).reports(2000, &[]);
}

/// A duplicate behind a gap is reported, then the block that it belongs to (RFC 2883 section 4.1).
#[test]
fn a_duplicate_behind_a_gap_is_reported_with_its_block() {
    let mut tcp = Server::start(&dsack());
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(2000..3000).reports(0, &[1000..3000]);
    tcp.data(2000..3000).reports(0, &[2000..3000, 1000..3000]);
}

/// Only the part of a segment that came before is a duplicate (RFC 2883 section 4.2).
#[test]
fn the_repeated_part_is_reported() {
    let mut tcp = Server::start(&dsack());
    tcp.data(0..1000).data(1000..2000).acks(2000).data(1500..2500).reports(2500, &[1500..2000]);
    tcp.data(4000..5000)
        .reports(2500, &[4000..5000])
        .data(4500..5500)
        .reports(2500, &[4500..5000, 4000..5500]);
}

/// A duplicate is reported once, and the report takes the room of a block (RFC 2883 section 4).
#[test]
fn a_duplicate_is_reported_once() {
    let mut tcp = Server::start(&Settings { sack_blocks: 2, ..dsack() });
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(3000..4000).reports(0, &[3000..4000, 1000..2000]);
    tcp.data(1000..2000).reports(0, &[1000..2000, 1000..2000]);
    tcp.data(5000..6000).reports(0, &[5000..6000, 1000..2000]);
}
