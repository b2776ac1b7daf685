//! How much redundancy a measured loss takes.

/// The share of blocks that may lose more packets than they have repair packets.
const BEYOND: f64 = 0.01;

/// The number of source and repair packets of blocks of `k`, at most `most`, by which at most one block in a hundred is beyond
/// recovery, if `lost` of `sent` packets were lost and each is lost by itself. Losses in bursts are for interleaving.
///
/// The probability of a loss is taken as (lost + 1) / (sent + 2), so that as long as nothing is measured, blocks have `most`.
pub(crate) fn block_size(k: u8, most: u8, (sent, lost): (u64, u64)) -> u8 {
    let loss = (lost + 1) as f64 / (sent + 2) as f64;
    (k..most).find(|&n| beyond(n, n - k, loss) <= BEYOND).unwrap_or(most)
}

/// The probability that more than `repairs` of `n` packets are lost.
fn beyond(n: u8, repairs: u8, loss: f64) -> f64 {
    let (mut term, mut within) = ((1.0 - loss).powi(n.into()), 0.0);
    for lost in 0..=repairs {
        within += term;
        term *= f64::from(n - lost) / f64::from(lost + 1) * loss / (1.0 - loss);
    }
    1.0 - within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_what_the_loss_takes() {
        assert_eq!(block_size(8, 12, (0, 0)), 12, "nothing is known");
        assert_eq!(block_size(8, 12, (4000, 0)), 8, "none is lost");
        assert_eq!(block_size(8, 255, (4000, 40)), 9);
        assert_eq!(block_size(8, 255, (4000, 400)), 12);
        assert_eq!(block_size(8, 12, (4000, 2000)), 12, "no more than may be");
        // By hand: 1 - .9^3 - 3 * .9^2 * .1 = 0.028, and 1 - .9^4 - 4 * .9^3 * .1 - 6 * .9^2 * .1^2 = 0.0037.
        assert!((beyond(3, 1, 0.1) - 0.028).abs() < 1e-9 && (beyond(4, 2, 0.1) - 0.0037).abs() < 1e-9);
    }
}
