//! A byte stream as a chain of memory blocks.

use alloc::collections::VecDeque;
use core::ops::Range;

/// A range of a byte stream, stored in the blocks in which it arrived. Resegmentation refers to parts of
/// blocks without copying (VS-TCP paper, section IV-B.2).
///
/// `M` is a handle to a block's memory, such as `Arc<[u8]>` in a gateway for real packets. The simulator,
/// whose payloads are lengths, uses `()` and never calls [`pieces`](Chain::pieces).
#[derive(Clone, Debug)]
pub struct Chain<M> {
    blocks: VecDeque<Block<M>>,
    len: u64,
}

#[derive(Clone, Debug)]
struct Block<M> {
    memory: M,
    /// The range of the block that is part of the chain.
    bytes: Range<usize>,
}

/// A part of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<'a, M> {
    /// The block.
    pub memory: &'a M,
    /// The range within the block.
    pub bytes: Range<usize>,
}

impl<M> Default for Chain<M> {
    fn default() -> Chain<M> {
        Chain { blocks: VecDeque::new(), len: 0 }
    }
}

impl<M> Chain<M> {
    /// Number of bytes in the chain.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the chain is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends the range `bytes` of a block.
    pub fn push(&mut self, memory: M, bytes: Range<usize>) {
        if !bytes.is_empty() {
            self.len += bytes.len() as u64;
            self.blocks.push_back(Block { memory, bytes });
        }
    }

    /// Removes the first `count` bytes, and the blocks that contain nothing else.
    ///
    /// # Panics
    /// If the chain is shorter.
    pub fn release(&mut self, count: u64) {
        assert!(count <= self.len, "the chain has {} bytes, not {count}", self.len);
        self.len -= count;
        let mut left = count;
        while left > 0 {
            let first = self.blocks.front_mut().expect("a non-empty chain has blocks");
            let here = first.bytes.len() as u64;
            if here > left {
                first.bytes.start += left as usize;
                return;
            }
            left -= here;
            self.blocks.pop_front();
        }
    }

    /// The pieces that contain `count` bytes after the first `skipped`, or as many as there are.
    pub fn pieces(&self, skipped: u64, count: u64) -> impl Iterator<Item = Piece<'_, M>> {
        let mut at = 0;
        self.blocks.iter().filter_map(move |Block { memory, bytes }| {
            let (start, end) = (at, at + bytes.len() as u64);
            at = end;
            let (from, to) = (start.max(skipped), end.min(skipped.saturating_add(count)));
            let part = |offset: u64| bytes.start + (offset - start) as usize;
            (from < to).then(|| Piece { memory, bytes: part(from)..part(to) })
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::rc::Rc;
    use alloc::vec::Vec;

    use lasthop_base::Streams;

    use super::*;

    fn read(chain: &Chain<Rc<[u8]>>, skipped: u64, count: u64) -> Vec<u8> {
        chain.pieces(skipped, count).flat_map(|piece| piece.memory[piece.bytes].to_vec()).collect()
    }

    /// For any sizes of arrival, segmentation and release, the bytes are those of the stream; blocks are
    /// shared, never copied, and released as soon as they are unused.
    #[test]
    fn a_stream_is_cut_anywhere_and_nothing_is_copied() {
        let mut random = Streams::new(1, 0).stream("chain");
        let mut draw = |n: usize| random.below(n as u64) as usize;
        for _ in 0..200 {
            let stream: Vec<u8> = (0..2_000).map(|i: u32| (i * 31 % 251) as u8).collect();
            let mut blocks: Vec<Rc<[u8]>> = Vec::new();
            let mut chain = Chain::default();
            let (mut first, mut end) = (0, 0);
            while first < stream.len() {
                let taken = draw(200).min(stream.len() - end);
                let unused = draw(5);
                let block: Rc<[u8]> = [&[0; 5][..unused], &stream[end..end + taken]].concat().into();
                chain.push(Rc::clone(&block), unused..unused + taken);
                blocks.push(block);
                end += taken;
                for _ in 0..5 {
                    let skipped = draw(end - first + 1);
                    let count = draw(600);
                    let expected = &stream[first + skipped..(first + skipped + count).min(end)];
                    assert_eq!(read(&chain, skipped as u64, count as u64), expected);
                }
                let released = draw(300).min(end - first);
                chain.release(released as u64);
                first += released;
                assert_eq!((chain.len(), chain.is_empty()), ((end - first) as u64, first == end));
                assert_eq!(read(&chain, 0, u64::MAX), &stream[first..end]);
                let held: usize = blocks.iter().map(|block| Rc::strong_count(block) - 1).sum();
                assert_eq!(held, chain.blocks.len(), "each block is held at most once");
            }
            assert!(chain.is_empty() && chain.blocks.is_empty());
        }
    }

    #[should_panic(expected = "the chain has 3 bytes, not 4")]
    #[test]
    fn no_more_is_released_than_there_is() {
        let mut chain = Chain::default();
        chain.push((), 0..3);
        chain.release(4);
    }
}
