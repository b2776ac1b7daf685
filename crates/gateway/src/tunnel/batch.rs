//! Datagrams that leave together.

use lasthop_base::{BitRate, Duration, Time};
use lasthop_tunnel::{Ends, Group, Tos};

/// The most bytes and datagrams at a time. Below the kernel's 64, a code knows what was lost if all of them are.
const BYTES: usize = 65_000;
const DATAGRAMS: usize = 48;

/// The time over which the rate is measured.
const WINDOW: Duration = Duration::from_millis(10);

/// The share of [`WINDOW`] whose datagrams leave together: those of a millisecond, as TCP of Linux sizes its super-packets. So a queue
/// on the path that counts packets holds little more than without batches, if traffic keeps to the rate of the path, as with
/// acknowledgements as its clock. What enters faster makes batches of [`DATAGRAMS`], unless the rate of the path is stated.
const SHARE: usize = 10;

/// Successive datagrams between the same ends, with one octet and of one size, of which the last may be shorter. The kernel gets them
/// at once and cuts them (`UDP_SEGMENT`), which costs little more than one of them. A full queue of this host drops all of them: of each
/// block of a code, a batch has no more than the code repairs.
#[derive(Debug, Default)]
pub(super) struct Batch {
    place: Option<(Ends, Tos)>,
    size: usize,
    bytes: Vec<u8>,
    is_complete: bool,
    /// The blocks of which there are datagrams, with how many.
    blocks: Vec<((u8, u32), usize)>,
    /// The bytes since `measured_at`, and those of the window before it.
    sent: usize,
    measured_at: Time,
    rate: usize,
    /// The bytes of a millisecond at the stated rate of the path.
    stated: usize,
}

impl Batch {
    /// An empty one, for a path whose rate may be stated.
    pub(super) fn new(rate: Option<BitRate>) -> Batch {
        Batch { stated: rate.map_or(BYTES, |rate| (rate.as_bps() / 8000) as usize), ..Batch::default() }
    }

    /// Appends a datagram if it has the batch's place and size, and its block may have another one there; returns whether it does.
    pub(super) fn push(&mut self, ends: Ends, tos: Tos, datagram: &[u8], group: Option<Group>) -> bool {
        if self.bytes.is_empty() {
            (self.place, self.size, self.is_complete) = (Some((ends, tos)), datagram.len(), false);
        }
        let known = group.and_then(|group| self.blocks.iter().position(|(block, _)| *block == group.block));
        let others = known.map_or(0, |place| self.blocks[place].1);
        let most = BYTES.min(self.rate / SHARE).min(self.stated);
        let most = most.min(DATAGRAMS * self.size).max(datagram.len());
        let continues = self.place == Some((ends, tos))
            && datagram.len() <= self.size
            && !self.is_complete
            && self.bytes.len() + datagram.len() <= most
            && group.is_none_or(|group| others < group.most);
        if continues {
            match (known, group) {
                (Some(place), _) => self.blocks[place].1 += 1,
                (None, Some(group)) => self.blocks.push((group.block, 1)),
                (None, None) => {}
            }
            self.bytes.extend_from_slice(datagram);
            self.sent += datagram.len();
            self.is_complete = datagram.len() < self.size;
        }
        continues
    }

    /// Updates the measured rate.
    pub(super) fn measure(&mut self, now: Time) {
        let passed = now.since(self.measured_at);
        if passed >= WINDOW {
            let rate = self.sent as u128 * u128::from(WINDOW.as_nanos()) / u128::from(passed.as_nanos());
            (self.rate, self.sent, self.measured_at) = (rate as usize, 0, now);
        }
    }

    /// Where the datagrams go, their size, and their bytes; `None` if there are none.
    pub(super) fn datagrams(&self) -> Option<(Ends, Tos, usize, &[u8])> {
        let (ends, tos) = self.place.filter(|_| !self.bytes.is_empty())?;
        Some((ends, tos, self.size, &self.bytes))
    }

    /// Empties the batch.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use lasthop_base::Streams;

    use super::*;

    /// Whatever enters leaves in its order, and each batch is one that the kernel cuts into what has entered.
    #[test]
    fn batches_are_cut_into_the_datagrams_that_entered() {
        let (mut most, mut of_slow, mut of_stated) = (0, 0, 0);
        for world in 0..40 {
            let mut draw = Streams::new(43, world).stream("datagrams");
            let is_stated = world % 4 == 1;
            let rate = BitRate::from_bps(100_000_000).filter(|_| is_stated);
            let (mut batch, mut now) = (Batch::new(rate), Time::ZERO + Duration::from_secs(1));
            let (mut entered, mut left) = (Vec::<(SocketAddr, u8, Vec<u8>)>::new(), Vec::new());
            let is_slow = world % 2 == 0;
            let mut take = |batch: &mut Batch| {
                let Some((ends, tos, size, bytes)) = batch.datagrams() else { return };
                assert!(bytes.len() <= BYTES && bytes.len().div_ceil(size) <= DATAGRAMS);
                let count = bytes.len().div_ceil(size);
                let longest = match () {
                    () if is_slow => &mut of_slow,
                    () if is_stated => &mut of_stated,
                    () => &mut most,
                };
                *longest = (*longest).max(if count > 1 { bytes.len() } else { 0 });
                left.extend(bytes.chunks(size).map(|datagram| (ends.peer, tos.octet(), datagram.to_vec())));
                batch.clear();
            };
            for number in 0..3000u32 {
                let len = [1400, 1400, 1400, 200, 1 + draw.below(1500) as usize][draw.below(5) as usize];
                let len = if number % 500 < 300 { 1400 } else { len };
                let peer = SocketAddr::from(([192, 0, 2, 1], 1 + draw.below(100) as u16 / 99));
                let octet = [0, 0, 0, 0, 184][draw.below(if number % 500 < 300 { 1 } else { 5 }) as usize];
                let datagram = [&number.to_be_bytes()[..], &vec![7; len]].concat();
                entered.push((peer, octet, datagram.clone()));
                if !batch.push(peer.into(), Tos::from(octet), &datagram, None) {
                    take(&mut batch);
                    assert!(batch.push(peer.into(), Tos::from(octet), &datagram, None), "one fits always");
                }
                // 4 Mb/s, and 2 Gb/s.
                now += Duration::from_micros(if is_slow { 2800 } else { 5 });
                if is_slow || number % 100 == 0 {
                    batch.measure(now);
                }
            }
            take(&mut batch);
            assert!(left == entered);
        }
        // A millisecond of 4 Mb/s is 500 B, of 100 Mb/s 12,500 B, whatever enters.
        assert!(of_slow < 700 && most > 60_000, "{of_slow} {most}");
        assert!((10_000..=12_500).contains(&of_stated), "{of_stated}");
    }
}
