//! SACK (RFC 2018) and DSACK (RFC 2883) blocks sent by the receiver.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flavour, Settings};

use crate::tcp::dialogue::{MSS, Server, settings};

fn sack(sack_blocks: u32) -> Settings {
    Settings { sack_blocks, ..settings(Flavour::Sack, 4) }
}

fn dsack() -> Settings {
    Settings { dsack: true, ..sack(3) }
}

/// The first block contains the segment that triggered the acknowledgement; the others were reported before,
/// most recent first (RFC 2018 section 4).
// Rule: SACK: the latest block first, then by recency. [2018 4; receiver.rs]
#[test]
fn the_latest_block_comes_first() {
    let mut tcp = Server::start(&sack(3));
    tcp.data(1000..2000).reports(0, &[1000..2000]);
    tcp.data(5000..6000).reports(0, &[5000..6000, 1000..2000]);
    tcp.data(3000..4000).reports(0, &[3000..4000, 5000..6000, 1000..2000]);
    tcp.data(6000..7000).reports(0, &[5000..7000, 3000..4000, 1000..2000]);
}

/// If the blocks do not fit, the oldest are omitted (RFC 2018 section 4).
// Rule: as the_latest_block_comes_first
#[test]
fn the_oldest_block_is_omitted() {
    let mut tcp = Server::start(&sack(2));
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(3000..4000).reports(0, &[3000..4000, 1000..2000]);
    tcp.data(5000..6000).reports(0, &[5000..6000, 3000..4000]);
}

/// An omitted block is forgotten: it is not reported when others are acknowledged. The receiver keeps as many blocks
/// as it reports, as Linux does.
// Rule: as the_latest_block_comes_first
#[test]
fn an_omitted_block_is_not_reported_later() {
    let mut tcp = Server::start(&sack(2));
    tcp.data(5000..6000).reports(0, &[5000..6000]).data(3000..4000).reports(0, &[3000..4000, 5000..6000]);
    tcp.data(1000..2000).reports(0, &[1000..2000, 3000..4000]);
    tcp.data(0..1000).reports(2000, &[3000..4000]);
}

/// Four blocks fit, three with timestamps (RFC 2018 section 3).
// Rule: as a_window_update_carries_blocks
#[test]
fn timestamps_leave_room_for_three_blocks() {
    for (timestamps, most) in [(false, 4), (true, 3)] {
        let mut tcp = Server::start(&Settings { timestamps, ..sack(4) }.with_mss(MSS));
        for n in 0..5 {
            assert_eq!(
                tcp.data((2 * n + 1) * 1000..(2 * n + 2) * 1000).answer().sack.len(),
                most.min(n as usize + 1)
            );
        }
    }
}

/// Contiguous blocks are merged (RFC 2018 section 3).
// Rule: as the_latest_block_comes_first
#[test]
fn contiguous_blocks_are_merged() {
    let mut tcp = Server::start(&sack(3));
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(3000..4000).reports(0, &[3000..4000, 1000..2000]);
    tcp.data(2000..3000).reports(0, &[1000..4000]);
}

/// Acknowledged data are no longer reported; data still out of order are, also when the segment filled an
/// earlier gap (RFC 2018 section 4).
// Rule: as the_latest_block_comes_first
#[test]
fn acknowledged_data_are_not_reported() {
    let mut tcp = Server::start(&sack(3));
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(3000..4000).reports(0, &[3000..4000, 1000..2000]);
    tcp.data(0..1000).reports(2000, &[3000..4000]).data(2000..3000).reports(4000, &[]);
}

/// Every acknowledgement sent while data are out of order carries the blocks, window updates included (RFC
/// 2018 section 4).
// Rule: SACK blocks on every ACK while data are out of order; as many as fit. [2018 3, 4; receiver.rs]
#[test]
fn a_window_update_carries_blocks() {
    let mut tcp = Server::start(&Settings { window: Bytes(4000).into(), ..sack(3) });
    tcp.receiver.pause();
    tcp.data(0..1000).data(1000..2000).acks(2000).data(3000..4000).reports(2000, &[3000..4000]);
    tcp.resume().reports(2000, &[3000..4000]);
}

/// Only flavours with SACK send blocks.
// Rule: as a_window_update_carries_blocks
#[test]
fn flavours_without_sack_send_no_blocks() {
    for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno] {
        Server::start(&settings(flavour, 4)).data(1000..2000).reports(0, &[]);
    }
}

/// A duplicate segment is reported in the first block although it is acknowledged (RFC 2883 section 4.1);
/// without DSACK it is not.
// Rule: DSACK: first block, once, exactly the duplicate part. [2883 4; receiver.rs]
#[test]
fn a_duplicate_is_reported_first() {
    let mut tcp = Server::start(&dsack());
    tcp.data(0..1000).data(1000..2000).acks(2000).data(3000..4000).reports(2000, &[3000..4000]);
    tcp.data(500..1000).reports(2000, &[500..1000, 3000..4000]);
    tcp.data(2000..3000).reports(4000, &[]).data(3000..4000).reports(4000, &[3000..4000]);
    let mut tcp = Server::start(&sack(3));
    tcp.data(0..1000).data(1000..2000).acks(2000).data(0..1000).reports(2000, &[]);
}

/// An out-of-order duplicate is reported, followed by the block that contains it (RFC 2883 section 4.1).
// Rule: as a_duplicate_is_reported_first
#[test]
fn a_duplicate_behind_a_gap_is_reported_with_its_block() {
    let mut tcp = Server::start(&dsack());
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(2000..3000).reports(0, &[1000..3000]);
    tcp.data(2000..3000).reports(0, &[2000..3000, 1000..3000]);
}

/// Only the part of a segment received before is a duplicate (RFC 2883 section 4.2).
// Rule: as a_duplicate_is_reported_first
#[test]
fn only_the_duplicate_part_is_reported() {
    let mut tcp = Server::start(&dsack());
    tcp.data(0..1000).data(1000..2000).acks(2000).data(1500..2500).reports(2500, &[1500..2000]);
    tcp.data(4000..5000)
        .reports(2500, &[4000..5000])
        .data(4500..5500)
        .reports(2500, &[4500..5000, 4000..5500]);
}

/// A duplicate is reported once, and the report uses the space of one block (RFC 2883 section 4).
// Rule: as a_duplicate_is_reported_first
#[test]
fn a_duplicate_is_reported_once() {
    let mut tcp = Server::start(&Settings { sack_blocks: 2, ..dsack() });
    tcp.data(1000..2000).reports(0, &[1000..2000]).data(3000..4000).reports(0, &[3000..4000, 1000..2000]);
    tcp.data(1000..2000).reports(0, &[1000..2000, 1000..2000]);
    tcp.data(5000..6000).reports(0, &[5000..6000, 1000..2000]);
}
