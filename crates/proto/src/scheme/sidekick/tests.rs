//! Power sums against their definition and every pattern of losses.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Stream, Streams, Time};

use super::power_sums::{Code, Fate, MOST, PowerSums};
use super::reader::Reader;
use super::{QUACK, QuackReader, Sidekick, identifier};
use crate::component::{Quack, Signal};
use crate::packet::{Body, Datagram, Dscp, Ecn, FlowId, Handle, HostId, Notice, Packet, SeqNum};
use crate::stack::{self, Sidecar};

const PRIMES: [(u8, u128); 3] = [(16, 65_521), (24, 16_777_213), (32, 4_294_967_291)];

fn sums_of(code: Code, ids: impl IntoIterator<Item = u32>) -> PowerSums {
    let mut set = PowerSums::default();
    ids.into_iter().for_each(|id| code.add(&mut set, id));
    set
}

/// What must be found: of equal identifiers, as many as are missing, and whether all are.
fn expected(ids: &[u32], is_missing: impl Fn(usize) -> bool) -> Vec<Fate> {
    let mut missing: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for (index, &id) in ids.iter().enumerate() {
        let (copies, lost) = missing.entry(id).or_default();
        *copies += 1;
        *lost += usize::from(is_missing(index));
    }
    let mut given: BTreeMap<u32, usize> = BTreeMap::new();
    ids.iter()
        .map(|id| {
            let (copies, lost) = missing[id];
            let nth = given.entry(*id).or_default();
            *nth += 1;
            match () {
                () if *nth > lost => Fate::Arrived,
                () if copies == lost => Fate::Missing,
                () => Fate::Ambiguous,
            }
        })
        .collect()
}

fn identifiers(random: &mut Stream, prime: u128, number: usize) -> Vec<u32> {
    (0..number).map(|_| random.below(prime as u64) as u32).collect()
}

#[test]
fn sums_are_those_of_the_definition() {
    let mut random = Streams::new(1, 0).stream("sums");
    for (bits, prime) in PRIMES {
        let code = Code::new(bits, MOST as u8);
        let mut ids = identifiers(&mut random, prime, 50);
        ids.extend([0, 1, prime as u32 - 1, prime as u32 - 1]);
        let power = |id: u32, exponent| (0..exponent).fold(1, |power, _| power * u128::from(id) % prime);
        let sum = |exponent| ids.iter().map(|&id| power(id, exponent)).sum::<u128>() % prime;
        let mut set = sums_of(code, ids.iter().copied());
        assert_eq!((1..=MOST).map(sum).collect::<Vec<_>>(), set.sums.map(u128::from), "{bits} bits");
        ids.iter().for_each(|&id| code.remove(&mut set, id));
        assert_eq!(set, PowerSums::default());
    }
}

#[test]
fn identifiers_are_below_the_prime() {
    for (bits, prime) in PRIMES {
        let code = Code::new(bits, 1);
        for hash in [0, 1, u64::MAX, u64::MAX / 3, (prime as u64) << (64 - u32::from(bits))] {
            assert!(u128::from(code.identifier(hash)) < prime);
        }
        assert_eq!(code.identifier((prime as u64 - 1) << (64 - u32::from(bits))), prime as u32 - 1);
    }
}

/// All subsets of small multisets, in which identifiers repeat, among them zero.
#[test]
fn every_pattern_of_losses_is_found() {
    let mut random = Streams::new(2, 0).stream("patterns");
    for (bits, prime) in PRIMES {
        let distinct = identifiers(&mut random, prime, 6);
        let [a, b, c, d, e, f] = distinct[..] else { unreachable!("six") };
        for ids in [[a, b, c, d, e, f, 0], [a, b, a, c, a, b, d], [0, 0, 0, a, a, a, a]] {
            let code = Code::new(bits, 7);
            let sent = sums_of(code, ids);
            for pattern in 0..1_u32 << ids.len() {
                let is_missing = |index: usize| pattern >> index & 1 == 1;
                let arrived = (0..ids.len()).filter(|&index| !is_missing(index)).map(|index| ids[index]);
                let arrived = sums_of(code, arrived);
                let fates = code.fates(&sent, &arrived, &ids);
                assert_eq!(fates, Some(expected(&ids, is_missing)), "{bits} bits, {ids:?}, {pattern:b}");
            }
        }
    }
}

/// Random multisets with a history, whose count wraps at 2¹⁶.
#[test]
fn random_losses_are_found_at_any_count() {
    let mut random = Streams::new(3, 0).stream("losses");
    for round in 0..200 {
        let (bits, prime) = PRIMES[round % PRIMES.len()];
        let threshold = 1 + random.below(MOST as u64) as usize;
        let code = Code::new(bits, threshold as u8);
        let before = identifiers(&mut random, prime, 10);
        let mut sent = sums_of(code, before);
        sent.count = (random.below(1 << 16) as u16).wrapping_add(u16::MAX - 20);
        let mut arrived = sent;
        let number = 1 + random.below(100) as usize;
        let ids = identifiers(&mut random, prime, number);
        let mut lost = Vec::new();
        for (index, &id) in ids.iter().enumerate() {
            code.add(&mut sent, id);
            if random.bernoulli(0.1) {
                lost.push(index);
            } else {
                code.add(&mut arrived, id);
            }
        }
        let fates = code.fates(&sent, &arrived, &ids);
        let all = expected(&ids, |index| lost.contains(&index));
        assert_eq!(fates, (lost.len() <= threshold).then_some(all), "{bits} bits, {threshold}, {lost:?}");
    }
}

/// More are missing than there are sums, one has arrived that was not sent, or twice, or a missing one is no candidate.
#[test]
fn what_cannot_be_decoded_is_told() {
    let code = Code::new(32, 3);
    let ids = [11, 22, 33, 44, 55];
    let sent = sums_of(code, ids);
    let of = |arrived: &[u32]| code.fates(&sent, &sums_of(code, arrived.iter().copied()), &ids);
    assert!(of(&[11, 22]).is_some());
    assert_eq!(of(&[11]), None, "four are missing");
    assert_eq!(of(&[11, 22, 33, 44, 55, 55]), None, "more arrived than were sent");
    assert_eq!(of(&[11, 22, 33, 44, 66]), None, "one arrived that was not sent");
    assert_eq!(of(&[11, 22, 33, 44, 44]), None, "one arrived twice");
    assert_eq!(of(&[11, 22, 33, 33]), None, "one arrived twice, two are missing");
    assert_eq!(code.fates(&sent, &sums_of(code, [11, 22, 33, 44]), &ids[..4]), None, "it is no candidate");
    let [sent, arrived] = [[11, 22], [33, 44]].map(|ids| sums_of(code, ids));
    assert_eq!(code.fates(&sent, &arrived, &[11, 22]), None, "as many, but others");
}

fn packet(number: u64, body: Body) -> Packet {
    let (src, dst, dscp, ecn) = (HostId(0), HostId(1), Dscp::DEFAULT, Ecn::NotEct);
    Packet {
        src,
        dst,
        flow: FlowId(3),
        size: Bytes(1500),
        dscp,
        ecn,
        handle: Handle(number as u32 + 1),
        body,
    }
}

/// A source learns of each packet that has arrived at an agent, and of each that has not, but of those since the last quACK that came
/// back; and nothing of those before it changes to another agent.
#[test]
fn a_source_learns_what_has_arrived() {
    let mut random = Streams::new(4, 0).stream("source");
    let scheme = Sidekick { reader: QuackReader::Source, ..Sidekick::default() };
    let code = Code::new(scheme.bits, scheme.threshold);
    let mut reader = Reader::new(&scheme);
    let (mut sums, mut truth, mut told) = (PowerSums::default(), Vec::new(), Vec::new());
    let (mut agent, mut last_read, mut others) = (7, 0, Vec::new());
    for number in 0..3_000_u64 {
        let sent = packet(number, Body::Datagram(Datagram { seq: number, sent: Time::ZERO }));
        reader.on_sent(&sent);
        if number == 2_000 {
            (agent, sums) = (8, PowerSums::default());
        }
        let is_lost = random.bernoulli(0.03);
        truth.push(is_lost);
        if is_lost {
            continue;
        }
        let id = code.identifier(identifier::hash(&sent));
        code.add(&mut sums, id);
        let seq = SeqNum(agent << 16 | number as u32);
        let quack = Quack {
            number: seq.0,
            mobile: HostId(7),
            last: id,
            sums: sums.sums,
            count: sums.count,
            flow: FlowId(3),
        };
        reader.on_signal(FlowId(3), &Signal::Quack(quack));
        if !random.bernoulli(0.2) {
            let mut fates = Vec::new();
            if reader.on_report(&packet(0, Body::Notice(Notice { code: QUACK, seq })), &mut fates) {
                others.push(number);
            }
            told.extend(fates);
            last_read = number;
        }
    }
    assert!(others.len() == 2 && others[0] < 15 && (2_000..2_015).contains(&others[1]), "{others:?}");
    let numbers = |packet: &Packet| match packet.body {
        Body::Datagram(datagram) => datagram.seq,
        _ => unreachable!("a datagram"),
    };
    let fates: BTreeMap<u64, stack::Fate> =
        told.iter().map(|(packet, fate)| (numbers(packet), *fate)).collect();
    assert_eq!(fates.len(), told.len(), "each is told once");
    for (number, fate) in &fates {
        assert_eq!(truth[*number as usize], *fate == stack::Fate::Missing, "{number}");
    }
    // The first quACK of an agent tells of none.
    let unknown = (0..=last_read).filter(|number| !fates.contains_key(number)).collect::<Vec<_>>();
    assert!(
        unknown.len() < 30 && unknown.iter().all(|number| *number < 15 || (1_990..2_015).contains(number))
    );
}
