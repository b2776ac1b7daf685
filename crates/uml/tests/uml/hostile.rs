//! Guests that do not keep to the protocols: each gives an error that says so, and nothing else.

use std::io::Write;

use crate::calendar::run;
use crate::guest::{Act, BASE, Guest, OFFERED, QUEUE, REQUEST, SIZE, UPDATE};

/// What a guest does that it may not.
type Fault = fn(&mut Guest);

/// The message of the error when the server does something.
fn error(act: Fault, shares_time: bool) -> String {
    let server = vec![(0, Act::Say(1)), (1_000_000, Act::Break(act))];
    match run([server, Vec::new()], 1_000_000, shares_time).0 {
        Err(error) => error.to_string(),
        Ok(outcome) => format!("{outcome:?}"),
    }
}

/// Offers a chain that begins with a descriptor.
fn chain(guest: &mut Guest, at: u64, len: u32, flags: u16, next: u16) {
    guest.describe(1, 0, at, len, flags, next);
    let _ = guest.offer(0);
}

#[test]
fn broken_queues_end_the_run() {
    let acts: [(Fault, &str); 10] = [
        (|guest| chain(guest, BASE - 1, 64, 0, 0), "64 bytes at 0xfff, outside of its memory"),
        (|guest| chain(guest, u64::MAX - 7, 64, 0, 0), "outside of its memory"),
        (|guest| chain(guest, BASE + (1 << 20) - 63, 64, 0, 0), "outside of its memory"),
        (|guest| chain(guest, BASE, 64, 1, 0), "descriptor 0 of 8 in a chain"),
        (|guest| chain(guest, BASE, 64, 1, SIZE as u16), "descriptor 8 of 8 in a chain"),
        (|guest| chain(guest, BASE, u32::MAX, 0, 0), "a chain of 4294967295 bytes"),
        (|guest| chain(guest, BASE, 64, 2, 0), "a descriptor with the flags 0x2"),
        (|guest| chain(guest, BASE, 11, 0, 0), "a frame of 11 bytes with its header"),
        (|guest| drop(guest.offer(SIZE as u16)), "descriptor 8 of 8 in a chain"),
        (
            |guest| {
                guest.put(QUEUE + OFFERED + 2, &(guest.sent + SIZE as u16 + 1).to_ne_bytes());
                let _ = guest.kick();
            },
            "9 buffers in a queue of 8",
        ),
    ];
    for (act, expected) in acts {
        for shares_time in [false, true] {
            let error = error(act, shares_time);
            assert!(error.starts_with("the kernel of the server: ") && error.contains(expected), "{error}");
        }
    }
}

#[test]
fn broken_requests_end_the_run() {
    let acts: [(Fault, &str); 9] = [
        (|guest| drop(guest.request(99, &[], None)), "the request 99 of vhost-user"),
        (|guest| drop(guest.request(8, &[0; 4], None)), "a request of 4 bytes"),
        (
            |guest| drop(guest.request(8, &[[0; 4], 3u32.to_ne_bytes()].concat(), None)),
            "a queue of 3 descriptors",
        ),
        (
            |guest| drop(guest.request(8, &[[0; 4], (1u32 << 16).to_ne_bytes()].concat(), None)),
            "a queue of 65536",
        ),
        (
            |guest| drop(guest.request(18, &[2u32.to_ne_bytes(), [0; 4]].concat(), None)),
            "the queue 2 of a network card",
        ),
        (|guest| drop(guest.request(5, &[1, 0, 0, 0, 0, 0, 0, 0], None)), "memory without a file"),
        (
            |guest| {
                let words = [1, BASE, 2 << 20, BASE, 0].map(u64::to_ne_bytes).concat();
                let file = guest.memory.try_clone().expect("a file").into();
                let _ = guest.request(5, &words, Some(file));
            },
            "a memory of 2097152 bytes at 0x1000 and 0x0 of a file of 1048576",
        ),
        (
            |guest| {
                let words = [1, BASE, 64, BASE, u64::MAX - 8].map(u64::to_ne_bytes).concat();
                let file = guest.memory.try_clone().expect("a file").into();
                let _ = guest.request(5, &words, Some(file));
            },
            "a memory of 64 bytes",
        ),
        (
            |guest| {
                let header = [1u32, 1, 1 << 30].map(u32::to_ne_bytes).concat();
                guest.card.write_all(&header).expect("the calendar reads");
                let _ = guest.kick();
            },
            "a request of 1073741824 bytes",
        ),
    ];
    for (act, expected) in acts {
        let error = error(act, true);
        assert!(error.starts_with("the kernel of the server: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn time_goes_back_for_nobody() {
    let acts: [(Fault, [bool; 2], &str); 4] = [
        // Beyond what it was allowed, and before what it has reached.
        (
            |guest| {
                guest.clock += 50_000_000;
                let _ = guest.kick();
            },
            [false, true],
            "it is at 51000000 ns, and not from",
        ),
        (|guest| drop(guest.ask(0)), [true, false], "it asks to run at 0 ns, and not from"),
        (|guest| drop(guest.tell(77, 0)), [true, true], "the operation 77"),
        (
            |guest| {
                let _ = guest.tell(UPDATE, guest.clock);
                let _ = guest.tell(REQUEST, guest.clock - 500_000);
            },
            [true, false],
            "it asks to run at 500000 ns, and not from 1000000",
        ),
    ];
    for (act, protocols, expected) in acts {
        for shares_time in [false, true].into_iter().filter(|&shares| protocols[usize::from(shares)]) {
            let error = error(act, shares_time);
            assert!(error.starts_with("the kernel of the server: ") && error.contains(expected), "{error}");
        }
    }
}

/// A guest that takes its memory away breaks its own card only.
#[test]
fn memory_may_disappear() {
    let act: Fault = |guest| {
        guest.memory.set_len(4096).expect("its own memory");
        let _ = guest.kick();
    };
    let error = error(act, true);
    assert!(error.contains("the kernel of the server"), "{error}");
}
