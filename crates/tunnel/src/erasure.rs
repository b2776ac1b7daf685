//! The code by which any `k` of `k` packets and their repair symbols give back the packets: systematic, over GF(2⁸), with a
//! Cauchy matrix, as Reed-Solomon codes of RFC 5510 and RFC 6865 are, which have another matrix.
//!
//! A symbol is the length of a packet in two bytes, its bytes, and zeros up to the length of the longest one.

/// Length of the field of a symbol that has the length of its packet.
pub(crate) const LENGTH: usize = 2;

/// Powers of the generator x of GF(2⁸) modulo x⁸ + x⁴ + x³ + x² + 1, twice, and their exponents.
const TABLES: ([u8; 510], [u8; 256]) = {
    let (mut powers, mut logs, mut value, mut exponent) = ([0; 510], [0; 256], 1u16, 0);
    while exponent < 255 {
        powers[exponent] = value as u8;
        powers[exponent + 255] = value as u8;
        logs[value as usize] = exponent as u8;
        value <<= 1;
        if value > 255 {
            value ^= 0x11d;
        }
        exponent += 1;
    }
    (powers, logs)
};

/// The products of all elements.
static PRODUCTS: [[u8; 256]; 256] = {
    let (powers, logs) = TABLES;
    let (mut products, mut a) = ([[0; 256]; 256], 1);
    while a < 256 {
        let mut b = 1;
        while b < 256 {
            products[a][b] = powers[logs[a] as usize + logs[b] as usize];
            b += 1;
        }
        a += 1;
    }
    products
};

fn inverse(a: u8) -> u8 {
    TABLES.0[255 - usize::from(TABLES.1[usize::from(a)])]
}

/// What source `source` contributes to repair symbol `repair`. The elements of both are different as long as there are
/// no more than 256 of them.
fn coefficient(repair: u8, source: u8) -> u8 {
    inverse((255 - repair) ^ source)
}

/// Adds `factor` times `from` to `to`, which is at least as long.
fn add_multiple(to: &mut [u8], factor: u8, from: &[u8]) {
    if factor == 0 {
        return;
    }
    let products = &PRODUCTS[usize::from(factor)];
    to.iter_mut().zip(from).for_each(|(to, from)| *to ^= products[usize::from(*from)]);
}

fn add_source(to: &mut [u8], factor: u8, packet: &[u8]) {
    let length = (packet.len() as u16).to_be_bytes();
    add_multiple(&mut to[..LENGTH], factor, &length);
    add_multiple(&mut to[LENGTH..], factor, packet);
}

/// Repair symbol `repair` of these packets, each of at most 65535 bytes.
pub(crate) fn repair_symbol(repair: u8, sources: &[Vec<u8>]) -> Vec<u8> {
    let longest = sources.iter().map(Vec::len).max().unwrap_or(0);
    let mut symbol = vec![0; LENGTH + longest];
    for (number, packet) in (0..=u8::MAX).zip(sources) {
        add_source(&mut symbol, coefficient(repair, number), packet);
    }
    symbol
}

/// Fills in the packets that are missing, from as many of the repair symbols. Returns whether it could: not if there are too
/// few, or if they are not of one block.
pub(crate) fn recover(sources: &mut [Option<Vec<u8>>], repairs: &[(u8, Vec<u8>)]) -> bool {
    let missing: Vec<u8> = (0..=u8::MAX)
        .zip(&*sources)
        .filter(|(_, packet)| packet.is_none())
        .map(|(number, _)| number)
        .collect();
    let Some(repairs) = repairs.get(..missing.len()) else { return false };
    let len = repairs.first().map_or(LENGTH, |(_, symbol)| symbol.len());
    let fits = |packet: &Vec<u8>| LENGTH + packet.len() <= len;
    if len < LENGTH
        || repairs.iter().any(|(_, symbol)| symbol.len() != len)
        || !sources.iter().flatten().all(fits)
    {
        return false;
    }
    // What the missing packets contribute to each symbol.
    let mut rows: Vec<(Vec<u8>, Vec<u8>)> = repairs
        .iter()
        .map(|(repair, symbol)| {
            let mut rest = symbol.clone();
            for (number, packet) in (0..=u8::MAX).zip(&*sources) {
                packet.iter().for_each(|packet| add_source(&mut rest, coefficient(*repair, number), packet));
            }
            (missing.iter().map(|number| coefficient(*repair, *number)).collect(), rest)
        })
        .collect();
    for column in 0..rows.len() {
        let Some(pivot) = (column..rows.len()).find(|row| rows[*row].0[column] != 0) else { return false };
        rows.swap(column, pivot);
        let scale = inverse(rows[column].0[column]);
        let scaled = |bytes: &[u8]| {
            bytes.iter().map(|byte| PRODUCTS[usize::from(scale)][usize::from(*byte)]).collect::<Vec<u8>>()
        };
        let (factors, symbol) = (scaled(&rows[column].0), scaled(&rows[column].1));
        for (_, row) in rows.iter_mut().enumerate().filter(|(row, _)| *row != column) {
            let factor = row.0[column];
            add_multiple(&mut row.0, factor, &factors);
            add_multiple(&mut row.1, factor, &symbol);
        }
        rows[column] = (factors, symbol);
    }
    let packets: Option<Vec<Vec<u8>>> = rows
        .iter()
        .map(|(_, symbol)| {
            let len = usize::from(u16::from_be_bytes([symbol[0], symbol[1]]));
            symbol.get(LENGTH..LENGTH + len).map(<[u8]>::to_vec)
        })
        .collect();
    let Some(packets) = packets else { return false };
    for (number, packet) in missing.into_iter().zip(packets) {
        sources[usize::from(number)] = Some(packet);
    }
    true
}

#[cfg(test)]
mod tests {
    use lasthop_base::Streams;

    use super::*;

    #[test]
    fn any_k_of_n_give_back_all_and_fewer_none() {
        for world in 0..300 {
            let mut draw = Streams::new(11, world).stream("blocks");
            let k = 1 + draw.below(if world < 10 { 200 } else { 20 }) as usize;
            let spare = 1 + draw.below((256 - k).min(20) as u64) as usize;
            let packets: Vec<Vec<u8>> =
                (0..k).map(|_| (0..draw.below(60)).map(|_| draw.below(256) as u8).collect()).collect();
            let mut repairs: Vec<(u8, Vec<u8>)> =
                (0..spare).map(|index| (index as u8, repair_symbol(index as u8, &packets))).collect();
            let mut sources: Vec<Option<Vec<u8>>> = packets.iter().cloned().map(Some).collect();
            let lost = 1 + draw.below(spare.min(k) as u64) as usize;
            while sources.iter().flatten().count() > k - lost {
                sources[draw.below(k as u64) as usize] = None;
            }
            while repairs.len() > lost {
                repairs.remove(draw.below(repairs.len() as u64) as usize);
            }
            let before = sources.clone();
            assert!(!recover(&mut sources, &repairs[1..]), "one too few");
            assert_eq!(sources, before);
            assert!(recover(&mut sources, &repairs), "{k} {spare} {lost}");
            assert!(sources.iter().flatten().eq(&packets));
        }
    }

    #[test]
    fn symbols_of_another_block_do_no_harm() {
        let mut sources = vec![None, Some(vec![1; 9])];
        for symbols in [vec![], vec![(0, vec![])], vec![(0, vec![0; 5])], vec![(0, vec![255; 20])]] {
            assert!(!recover(&mut sources, &symbols), "{symbols:?}");
        }
    }
}
