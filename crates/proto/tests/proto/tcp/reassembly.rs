//! Reassembly of segments with any boundaries, duplicates and order.

use std::ops::Range;

use lasthop_proto::tcp::{Flavour, Settings};

use crate::tcp::dialogue::{Server, settings};

const SIZE: usize = 12;

/// Every order of `pieces`, by Heap's algorithm.
fn permutations(pieces: &mut [Range<u32>], n: usize, visit: &mut impl FnMut(&[Range<u32>])) {
    if n <= 1 {
        return visit(pieces);
    }
    for index in 0..n {
        permutations(pieces, n - 1, visit);
        pieces.swap(if n.is_multiple_of(2) { index } else { 0 }, n - 1);
    }
}

/// The byte ranges above the first gap.
fn runs(arrived: &[bool; SIZE], from: usize) -> Vec<Range<u32>> {
    let starts = (from..SIZE).filter(|&at| arrived[at] && !arrived[at - 1]);
    let end = |at: usize| (at..SIZE).find(|&at| !arrived[at]).unwrap_or(SIZE);
    starts.map(|at| at as u32..end(at) as u32).collect()
}

/// Gives a receiver the pieces in this order; after each, it must acknowledge all bytes in order, report
/// exactly the runs behind a gap, the one that the piece belongs to first, and deliver each byte once.
fn check(settings: &Settings, pieces: &[Range<u32>]) {
    let mut tcp = Server::start(settings);
    let mut arrived = [false; SIZE];
    for piece in pieces {
        arrived[piece.start as usize..piece.end as usize].fill(true);
        let in_order = arrived.iter().position(|&byte| !byte).unwrap_or(SIZE);
        let answer = tcp.data(piece.clone()).answer();
        let zero = tcp.segment(0..0).seq;
        assert_eq!(answer.ack - zero, in_order as u32, "{pieces:?}, at {piece:?}");
        let mut blocks: Vec<_> =
            answer.sack.iter().map(|block| block.start - zero..block.end - zero).collect();
        if piece.start >= in_order as u32 {
            assert!(blocks[0].contains(&piece.start), "{pieces:?}, at {piece:?}: {blocks:?}");
        }
        blocks.sort_by_key(|block| block.start);
        let expected = if in_order == SIZE { Vec::new() } else { runs(&arrived, in_order + 1) };
        assert_eq!(blocks, expected, "{pieces:?}, at {piece:?}");
        tcp.delivered(in_order as u64);
    }
}

/// Overlapping segments, cut differently each time, in every order, with the wrap of the sequence space
/// at every place.
// Rule: Any segmentation, duplicates and order give the intact stream. [9293 3.4, 3.10.7.4; receiver.rs
// ranges.rs]
#[test]
fn overlapping_segments_reassemble_in_any_order() {
    let cuts: [&[Range<u32>]; 4] = [
        &[0..2, 2..4, 4..6, 6..8, 8..10, 10..12],
        &[0..3, 2..5, 4..7, 6..9, 8..11, 10..12],
        &[0..4, 4..8, 8..12, 0..6, 6..12, 3..9],
        &[0..1, 0..12, 5..6, 5..7, 3..9, 11..12],
    ];
    for cut in cuts {
        for wrap in 0..=SIZE as u32 {
            let iss = 0u32.wrapping_sub(wrap);
            let settings = Settings { ack_every: 1, sack_blocks: 4, iss, ..settings(Flavour::Sack, 4) };
            permutations(&mut cut.to_vec(), cut.len(), &mut |pieces| check(&settings, pieces));
        }
    }
}
