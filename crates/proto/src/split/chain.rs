//! A stretch of a byte stream as a chain of the memory blocks that it arrived in.

use alloc::collections::VecDeque;
use core::ops::Range;

/// Bytes of a stream from some point on, kept in the blocks in which they came. To cut them otherwise than they
/// came is to name parts of blocks: nothing is copied (VS-TCP paper, section IV-B.2).
///
/// `M` is a handle to a block's memory, such as `Arc<[u8]>`, for a gateway on real packets; a simulator, whose
/// payloads are lengths, needs none: `()`. It cuts by arithmetic, and reads no [pieces](Chain::pieces).
#[derive(Clone, Debug)]
pub struct Chain<M> {
    blocks: VecDeque<Block<M>>,
    len: u64,
}

#[derive(Clone, Debug)]
struct Block<M> {
    memory: M,
    /// The bytes of it that are in the chain.
    bytes: Range<usize>,
}

/// A part of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<'a, M> {
    /// The block.
    pub memory: &'a M,
    /// Which of its bytes.
    pub bytes: Range<usize>,
}

impl<M> Default for Chain<M> {
    fn default() -> Chain<M> {
        Chain { blocks: VecDeque::new(), len: 0 }
    }
}

impl<M> Chain<M> {
    /// Bytes in the chain.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `bytes` of a block at the end.
    pub fn push(&mut self, memory: M, bytes: Range<usize>) {
        if !bytes.is_empty() {
            self.len += bytes.len() as u64;
            self.blocks.push_back(Block { memory, bytes });
        }
    }

    /// Lets go of the first `count` bytes, and of the blocks that were in them alone.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn release(&mut self, count: u64) {
        assert!(count <= self.len, "the chain has {} bytes, not {count}", self.len);
        self.len -= count;
        let mut left = count;
        while left > 0 {
            let first = self.blocks.front_mut().expect("its blocks hold the chain's bytes");
            let here = first.bytes.len() as u64;
            if here > left {
                first.bytes.start += left as usize;
                return;
            }
            left -= here;
            self.blocks.pop_front();
        }
    }

    /// The pieces that make up the `count` bytes behind the first `skipped` ones, or as many of them as there
    /// are.
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

    /// Whatever the sizes in which bytes come, are cut and go, they are those of the stream; blocks are shared,
    /// never copied, and let go of as soon as nothing of them is left.
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
                assert_eq!(held, chain.blocks.len(), "a block is held once, or not at all");
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
