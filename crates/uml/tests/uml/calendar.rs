//! What the calendar lets guests see of time, and of each other.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use lasthop_base::{Duration, Time};
use lasthop_uml::{Calendar, Cards, Network, Outcome, Settings};

use crate::guest::{self, Act, Log};

/// A wire that delays frames, and asserts that time does not go back.
#[derive(Default)]
pub(crate) struct Delay {
    delay: u64,
    now: u64,
    frames: VecDeque<(u64, usize, Vec<u8>)>,
    taken: Log,
    refused: u32,
}

impl Delay {
    fn reach(&mut self, now: Time) -> u64 {
        let now = now.as_nanos();
        assert!(now >= self.now, "time goes back from {} to {now}", self.now);
        self.now = now;
        now
    }
}

impl Network for Delay {
    fn next_wakeup(&self) -> Time {
        self.frames.front().map_or(Time::NEVER, |(time, ..)| Time::from_nanos(*time))
    }

    fn advance(&mut self, now: Time, cards: &mut Cards) -> io::Result<()> {
        let now = self.reach(now);
        while let Some((_, to, frame)) = self.frames.pop_front_if(|(time, ..)| *time <= now) {
            self.refused += u32::from(!cards.deliver(to, &frame)?);
        }
        Ok(())
    }

    fn take(&mut self, now: Time, from: usize, frame: &mut [u8], cards: &mut Cards) -> io::Result<()> {
        let now = self.reach(now);
        self.taken.push((now, frame.to_vec()));
        self.frames.push_back((now + self.delay, 1 - from, frame.to_vec()));
        if self.delay == 0 { self.advance(Time::from_nanos(now), cards) } else { Ok(()) }
    }
}

const MS: u64 = 1_000_000;

/// The directories of two guests.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = std::env::temp_dir().join(format!("lasthop-uml-{}-{number}", std::process::id()));
        for name in ["0", "1"] {
            std::fs::create_dir_all(place.join(name)).expect("a directory for temporary files");
        }
        Place(place)
    }

    pub(crate) fn guests(&self) -> [PathBuf; 2] {
        ["0", "1"].map(|name| self.0.join(name))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs two guests over a wire; returns how it ended, the logs of both, and the wire.
pub(crate) fn run(
    scripts: [Vec<(u64, Act)>; 2],
    delay: u64,
    shares_time: bool,
) -> (io::Result<Outcome>, [Log; 2], Delay, u64) {
    let place = Place::new();
    let [one, two] = place.guests();
    let settings = Settings {
        epoch_ns: 0,
        phase: Duration::from_millis(30),
        period: Duration::from_millis(100),
        grace: Duration::from_millis(50),
        shares_time,
    };
    let mut calendar = Calendar::new([&one, &two], settings).expect("two directories");
    let [first, second] = scripts;
    let guests = [guest::start(&one, first), guest::start(&two, second)];
    let mut network = Delay { delay, ..Delay::default() };
    let begin = std::time::Instant::now();
    let outcome = calendar.run(&mut network, || begin.elapsed().as_secs() < 20);
    let now = calendar.now().as_nanos();
    drop(calendar);
    (outcome, guests.map(|guest| guest.join().expect("no time went back")), network, now)
}

fn frame(number: usize) -> Vec<u8> {
    (0..60 + number % 40).map(|at| (at ^ number) as u8).collect()
}

/// Frames at irregular times, many of them within the lead of a guest or at once.
fn frames(seed: u64, count: usize) -> Vec<(u64, Act)> {
    let mut state = seed;
    let mut time = 0;
    let gaps = (0..count).map(move |number| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        time += [0, 256, 70_000, 3 * MS, 17 * MS][(state >> 33) as usize % 5];
        (time, Act::Send(frame(number)))
    });
    gaps.collect()
}

/// The client begins at its phase once the server is ready. Frames arrive at the time of their departure and the delay.
#[test]
fn frames_arrive_when_the_network_says() {
    for shares_time in [false, true] {
        for delay in [0, 7 * MS] {
            let server = vec![(0, Act::Say(1)), (200 * MS, Act::Send(frame(1)))];
            let client =
                vec![(5 * MS, Act::Send(frame(2))), (5 * MS, Act::Send(frame(3))), (300 * MS, Act::Say(2))];
            let (outcome, [at_server, at_client], network, now) = run([server, client], delay, shares_time);
            assert_eq!(outcome.expect("both keep to the protocol"), Outcome::Ended);
            let begin = 30 * MS;
            assert_eq!(at_server, [(begin + 5 * MS + delay, frame(2)), (begin + 5 * MS + delay, frame(3))]);
            assert_eq!(at_client, [(200 * MS + delay - begin, frame(1))]);
            assert_eq!(network.refused, 0);
            // The calendar knows the time of a broadcast within the lead.
            assert!((begin + 340 * MS..=begin + 350 * MS).contains(&now), "{now}");
        }
    }
}

/// The same scripts give the same times, by messages as by shared memory, however the threads are scheduled.
#[test]
fn both_protocols_give_the_same_times_each_time() {
    let once = |shares_time| {
        let begun = frames(1, 60).into_iter().map(|(time, act)| (time + 100 * MS, act));
        let server = std::iter::once((0, Act::Say(1))).chain(begun).collect();
        let mut client = frames(2, 60);
        client.push((2000 * MS, Act::Say(2)));
        let (outcome, logs, network, now) = run([server, client], 3 * MS, shares_time);
        assert_eq!(outcome.expect("both keep to the protocol"), Outcome::Ended);
        assert_eq!((network.refused, logs.each_ref().map(Vec::len)), (0, [60, 60]));
        // Each frame is sent when the script of its guest says, and received after the delay.
        let times = |seed, begin| frames(seed, 60).into_iter().map(move |(time, _)| time + begin);
        let mut expected: Vec<u64> = times(1, 100 * MS).chain(times(2, 30 * MS)).collect();
        expected.sort_unstable();
        assert!(network.taken.iter().map(|(time, _)| *time).eq(expected));
        let [at_server, at_client] = logs.each_ref().map(|log| log.iter().map(|(time, _)| *time));
        assert!(at_server.eq(times(2, 33 * MS)) && at_client.eq(times(1, 73 * MS)));
        (logs, network.taken, now)
    };
    let first = once(false);
    for shares_time in [false, true, true] {
        assert!(once(shares_time) == first, "shared memory: {shares_time}");
    }
}

/// A guest whose frame causes something soon has confirmed until when it may run before its kick is answered.
#[test]
fn an_answer_does_not_overtake_the_end_of_a_run() {
    let server = vec![(0, Act::Say(1)), (500 * MS, Act::Say(0))];
    let slow: fn(&mut guest::Guest) = |guest| guest.is_slow = true;
    let client = vec![(0, Act::Break(slow)), (MS, Act::Send(frame(1))), (20 * MS, Act::Say(2))];
    let (outcome, [at_server, _], ..) = run([server, client], MS, false);
    assert_eq!(outcome.expect("both keep to the protocol"), Outcome::Ended);
    assert_eq!(at_server, [(32 * MS, frame(1))]);
}

/// A guest that does not take its frames has room for some only.
#[test]
fn a_guest_without_buffers_loses_frames() {
    let server = vec![(0, Act::Say(1)), (500 * MS, Act::Say(0))];
    let burst = (0..20).map(|number| (100 * MS, Act::Send(frame(number))));
    let client = burst.chain([(900 * MS, Act::Say(2))]).collect();
    let (_, [at_server, _], network, _) = run([server, client], MS, true);
    assert_eq!((at_server.len(), network.refused), (guest::SIZE as usize, 20 - guest::SIZE as u32));
}

#[test]
fn a_run_ends_with_its_client() {
    let outcome = |server, client| run([server, client], MS, true).0.expect("both keep to the protocol");
    let leave: fn(&mut guest::Guest) = |guest| guest.time.shutdown(std::net::Shutdown::Both).expect("open");
    // At once, if the server's program has ended too.
    let (ended, _, _, now) = run([vec![(0, Act::Say(2))], vec![(5 * MS, Act::Say(2))]], MS, true);
    assert_eq!(ended.expect("both keep to the protocol"), Outcome::Ended);
    assert!((30 * MS..=35 * MS).contains(&now), "{now}");
    assert_eq!(outcome(vec![(0, Act::Say(1))], vec![]), Outcome::Asleep);
    assert_eq!(outcome(vec![(5 * MS, Act::Break(leave))], vec![]), Outcome::Gone(0));
    assert_eq!(outcome(vec![(0, Act::Say(1))], vec![(MS, Act::Break(leave))]), Outcome::Gone(1));
}

#[test]
fn a_run_can_be_stopped() {
    let place = Place::new();
    let [one, two] = place.guests();
    let settings = Settings {
        epoch_ns: 0,
        phase: Duration::ZERO,
        period: Duration::ZERO,
        grace: Duration::ZERO,
        shares_time: true,
    };
    let mut calendar = Calendar::new([&one, &two], settings).expect("two directories");
    let mut looks = 0;
    let outcome = calendar.run(&mut Delay::default(), || {
        looks += 1;
        looks < 3
    });
    assert_eq!(outcome.expect("no guest"), Outcome::Stopped);
}
