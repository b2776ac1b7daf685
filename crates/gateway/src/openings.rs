//! Connections that are being opened.
//!
//! ```text
//! SYN of the client ──> held by the kernel
//!                         │ connect to the server, in the client's name
//!                         ├─ it answers: the SYN goes to the listener, which answers the client ──> accept ──> worker
//!                         ├─ it refuses, or cannot be reached: the SYN passes, so that the client gets that very answer
//!                         └─ it is silent for too long: the SYN passes; so do others of that client to that port of the server,
//!                            for a minute, and the next server has less time, until one has answered
//! ```

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::flow::Flow;

/// How long a client may take to complete the handshake: Linux answers it five times again, after 1, 3, 7, 15 and 31 s. The
/// radio may have been away all that time.
const HANDSHAKE: Duration = Duration::from_secs(32);

/// How long a server's port that was silent is left alone by a client, and how many of them are remembered.
const SILENCE: Duration = Duration::from_secs(60);
const SILENT_SERVERS: usize = 4096;

/// The least time that a server has, unless the file states less. Where answers take another way than through this host, no
/// server is heard, and each client waits as long.
const LEAST: Duration = Duration::from_secs(1);

/// A connection that is being opened.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The part towards the server.
    pub(crate) server: OwnedFd,
    pub(crate) stage: Stage,
    flow: Flow,
    deadline: Instant,
    /// How often the client has asked again since the server answered.
    repeats: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The server was asked; the client's SYN is held under this number, with this mark.
    Connecting { held: u32, mark: u32 },
    /// The server has answered; the client completes the handshake.
    Answering,
}

/// Why a flow cannot be opened here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// There are as many as the limits allow.
    Limit,
    /// Its server was silent a short time ago.
    Silent,
}

impl Opening {
    /// The port that its client has asked for.
    pub(crate) fn server_port(&self) -> u16 {
        self.flow.server.port()
    }
}

/// All of them, by number and by flow. The numbers are those of events.
#[derive(Debug)]
pub(crate) struct Openings {
    all: HashMap<u64, Opening>,
    numbers: HashMap<Flow, u64>,
    per_client: HashMap<IpAddr, u32>,
    /// In the order of time, for each stage: its deadlines have the same distance.
    deadlines: [VecDeque<(Instant, u64)>; 2],
    /// By client: an answer that does not come back to one client's address may come back to that of another.
    silent: HashMap<(IpAddr, SocketAddr), Instant>,
    next: u64,
    limit: usize,
    limit_per_client: u32,
    hold: Duration,
    /// The servers that were silent since one has answered.
    silences: u32,
}

impl Openings {
    /// Numbers begin with `first`.
    pub(crate) fn new(first: u64, limit: u32, limit_per_client: u32, hold: Duration) -> Openings {
        Openings {
            all: HashMap::new(),
            numbers: HashMap::new(),
            per_client: HashMap::new(),
            deadlines: Default::default(),
            silent: HashMap::new(),
            next: first,
            limit: limit as usize,
            limit_per_client,
            hold,
            silences: 0,
        }
    }

    /// Takes over the limits of a file that was read again.
    pub(crate) fn set_limits(&mut self, limit: u32, limit_per_client: u32, hold: Duration) {
        (self.limit, self.limit_per_client, self.hold) = (limit as usize, limit_per_client, hold);
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Its number and stage, if the flow is being opened.
    pub(crate) fn find(&self, flow: &Flow) -> Option<(u64, Stage)> {
        let number = *self.numbers.get(flow)?;
        Some((number, self.all.get(&number)?.stage))
    }

    /// Whether a flow may be opened at `now`.
    pub(crate) fn admit(&self, flow: &Flow, now: Instant) -> Result<(), Full> {
        if self.silent.get(&(flow.client.ip(), flow.server)).is_some_and(|until| now < *until) {
            return Err(Full::Silent);
        }
        let of_client = self.per_client.get(&flow.client.ip()).copied().unwrap_or(0);
        match self.all.len() < self.limit && of_client < self.limit_per_client {
            true => Ok(()),
            false => Err(Full::Limit),
        }
    }

    /// Adds a flow whose SYN is held; returns its number.
    pub(crate) fn add(&mut self, flow: Flow, server: OwnedFd, held: u32, mark: u32, now: Instant) -> u64 {
        let hold = (self.hold / (1 << self.silences.min(16))).max(LEAST.min(self.hold));
        let (number, deadline) = (self.next, now + hold);
        self.next += 1;
        *self.per_client.entry(flow.client.ip()).or_default() += 1;
        self.numbers.insert(flow, number);
        let stage = Stage::Connecting { held, mark };
        self.all.insert(number, Opening { server, stage, flow, deadline, repeats: 0 });
        self.deadlines[0].push_back((deadline, number));
        number
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Opening> {
        self.all.get(&number)
    }

    /// Notes that the server has answered.
    pub(crate) fn answered(&mut self, number: u64, now: Instant) {
        self.silences = 0;
        if let Some(opening) = self.all.get_mut(&number) {
            opening.stage = Stage::Answering;
            opening.deadline = now + HANDSHAKE;
            self.deadlines[1].push_back((opening.deadline, number));
        }
    }

    /// Notes that the client has asked again though the server has answered; returns how often it has.
    pub(crate) fn repeated(&mut self, number: u64) -> u32 {
        let Some(opening) = self.all.get_mut(&number) else { return 0 };
        opening.repeats += 1;
        opening.repeats
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Opening> {
        let opening = self.all.remove(&number)?;
        self.numbers.remove(&opening.flow);
        let client = opening.flow.client.ip();
        if let Some(count) = self.per_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.per_client.remove(&client);
            }
        }
        Some(opening)
    }

    /// Removes one whose time is over at `now`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Opening> {
        for stage in 0..self.deadlines.len() {
            while let Some((deadline, number)) = self.deadlines[stage].front().copied() {
                // A file that was read again, or silence, may have brought a shorter time: the order then is nearly that of time.
                let is_current = self.all.get(&number).is_some_and(|opening| opening.deadline == deadline);
                if is_current && deadline > now {
                    break;
                }
                self.deadlines[stage].pop_front();
                if !is_current {
                    continue;
                }
                let opening = self.remove(number)?;
                if stage == 0 {
                    self.silences = self.silences.saturating_add(1);
                    self.remember_silence((opening.flow.client.ip(), opening.flow.server), now);
                }
                return Some(opening);
            }
        }
        None
    }

    /// The openings whose servers have answered, and whose clients have no answer yet: their numbers and servers.
    pub(crate) fn answering(&self) -> impl Iterator<Item = (u64, SocketAddr)> {
        let all = self.all.iter().filter(|(_, opening)| opening.stage == Stage::Answering);
        all.map(|(number, opening)| (*number, opening.flow.server))
    }

    /// Removes those whose servers have not answered.
    pub(crate) fn take_connecting(&mut self) -> Vec<Opening> {
        let connecting = self.all.iter().filter(|(_, opening)| opening.stage != Stage::Answering);
        let numbers: Vec<u64> = connecting.map(|(number, _)| *number).collect();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// Removes any one, if there is one.
    pub(crate) fn pop(&mut self) -> Option<Opening> {
        let number = *self.all.keys().next()?;
        self.remove(number)
    }

    fn remember_silence(&mut self, ends: (IpAddr, SocketAddr), now: Instant) {
        if self.silent.len() >= SILENT_SERVERS {
            self.silent.retain(|_, until| now < *until);
        }
        if self.silent.len() < SILENT_SERVERS {
            self.silent.insert(ends, now + SILENCE);
        }
    }

    /// When the next one expires.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.iter().filter_map(|each| each.front()).map(|(deadline, _)| *deadline).min()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;

    use lasthop_base::Streams;

    use super::*;

    fn flow(client: u8, server: u8, port: u16) -> Flow {
        Flow { client: ([10, 0, 0, client], port).into(), server: ([10, 0, 1, server], 80).into() }
    }

    fn any_file() -> OwnedFd {
        File::open("/dev/null").expect("a file").into()
    }

    #[test]
    fn limits_are_for_all_and_for_each_client() {
        let mut openings = Openings::new(10, 3, 2, Duration::from_secs(3));
        let now = Instant::now();
        assert_eq!(openings.add(flow(1, 1, 1), any_file(), 0, 0, now), 10);
        openings.add(flow(1, 1, 2), any_file(), 0, 0, now);
        assert_eq!(openings.admit(&flow(1, 2, 3), now), Err(Full::Limit));
        assert_eq!(openings.admit(&flow(2, 1, 1), now), Ok(()));
        openings.add(flow(2, 1, 1), any_file(), 0, 0, now);
        assert_eq!(openings.admit(&flow(3, 1, 1), now), Err(Full::Limit));
        openings.remove(10).expect("the first");
        assert_eq!(openings.find(&flow(1, 1, 1)), None);
        assert_eq!(openings.admit(&flow(1, 2, 3), now), Ok(()));
    }

    #[test]
    fn a_silent_port_is_left_alone_for_a_minute() {
        let mut openings = Openings::new(0, 10, 10, Duration::from_secs(3));
        let now = Instant::now();
        let number = openings.add(flow(1, 1, 1), any_file(), 7, 9, now);
        let answered = openings.add(flow(1, 2, 1), any_file(), 8, 9, now);
        openings.answered(answered, now + Duration::from_secs(1));
        let over = now + Duration::from_secs(3);
        assert_eq!(openings.next_deadline(), Some(over));
        assert!(openings.expire(over - Duration::from_nanos(1)).is_none());
        let expired = openings.expire(over).expect("the silent one");
        assert_eq!(expired.stage, Stage::Connecting { held: 7, mark: 9 });
        assert!(openings.get(number).is_none());
        assert_eq!(openings.admit(&flow(1, 1, 5), over), Err(Full::Silent));
        assert_eq!(openings.admit(&flow(2, 1, 5), over), Ok(()), "answers to another may come back");
        assert_eq!(openings.admit(&flow(2, 2, 5), over), Ok(()), "it has answered");
        let other_port = Flow { server: ([10, 0, 1, 1], 443).into(), ..flow(1, 1, 5) };
        assert_eq!(openings.admit(&other_port, over), Ok(()), "a firewall may drop what is for one port");
        assert_eq!(openings.admit(&flow(1, 1, 5), over + SILENCE), Ok(()));
        assert!(openings.expire(over).is_none());
        let expired = openings.expire(now + Duration::from_secs(1) + HANDSHAKE).expect("the other");
        assert_eq!((expired.stage, openings.len()), (Stage::Answering, 0));
        assert_eq!(openings.admit(&flow(2, 2, 5), over), Ok(()), "a client is no reason");
    }

    #[test]
    fn the_memory_of_silence_is_bounded() {
        let (mut openings, now) = (Openings::new(0, 10, 10, Duration::from_secs(3)), Instant::now());
        let client = [10, 0, 0, 1].into();
        for port in 0..SILENT_SERVERS as u16 + 100 {
            openings.remember_silence((client, ([10, 0, 1, 1], port).into()), now);
        }
        assert_eq!(openings.silent.len(), SILENT_SERVERS);
        openings.remember_silence((client, ([10, 0, 1, 2], 80).into()), now + SILENCE);
        assert_eq!(openings.silent.len(), 1, "what is over makes room");
    }

    /// Random openings in virtual time, beside a model of them. Each named event must have happened.
    #[test]
    fn what_is_opened_given_up_and_refused_is_that_of_a_model() {
        let worlds =
            std::env::var("LASTHOP_SPLIT_WORLDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
        let mut events: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut see = |event: &'static str| *events.entry(event).or_default() += 1;
        for world in 0..worlds {
            let mut draw = Streams::new(41, world).stream("openings");
            let (mut limit, mut hold) = (12, Duration::from_secs(3));
            let (mut openings, mut now) = (Openings::new(16, limit, 5, hold), Instant::now());
            let mut known: BTreeMap<(u8, u8, u16), (u64, Stage, Instant)> = BTreeMap::new();
            let mut silent: BTreeMap<(u8, u8), Instant> = BTreeMap::new();
            let mut silences = 0;
            for step in 0..600 {
                now += Duration::from_millis(draw.below(if step % 100 == 99 { 70_000 } else { 300 }));
                while let Some(Opening { flow, stage, .. }) = openings.expire(now) {
                    let key = (flow.client.ip(), flow.server.ip());
                    let octets = |ip: IpAddr| match ip {
                        IpAddr::V4(address) => address.octets()[3],
                        IpAddr::V6(_) => 0,
                    };
                    let key = (octets(key.0), octets(key.1), flow.client.port());
                    let (_, expected, deadline) = known.remove(&key).expect("it was opened");
                    assert!(stage == expected && deadline <= now, "{stage:?}");
                    if stage == Stage::Answering {
                        see("a client was given up");
                    } else {
                        silent.insert((key.0, key.1), now + SILENCE);
                        silences += 1;
                        see("a server was given up");
                    }
                }
                // An opening is not given up before those whose SYN came earlier, which may have had more time.
                let is_connecting = |stage: &Stage| matches!(stage, Stage::Connecting { .. });
                let last = |(number, stage, deadline): &(u64, Stage, Instant)| {
                    let earlier = known.values().filter(|(other, of_other, _)| {
                        is_connecting(stage) && is_connecting(of_other) && other < number
                    });
                    earlier.map(|(.., of_other)| *of_other).fold(*deadline, Instant::max)
                };
                let first = known.values().map(last).min();
                assert!(first.is_none_or(|first| first > now), "all that are due were given up");
                assert!(first.is_none_or(|first| openings.next_deadline().is_some_and(|next| next <= first)));
                let key = (draw.below(5) as u8, draw.below(4) as u8, draw.below(4) as u16);
                let asked = flow(key.0, key.1, key.2);
                let found = known.get(&key).map(|(number, stage, _)| (*number, *stage));
                assert_eq!(openings.find(&asked), found);
                match (found, draw.below(4)) {
                    (None, _) => {
                        let of_client = known.keys().filter(|(client, ..)| *client == key.0).count();
                        let expected = match () {
                            () if silent.get(&(key.0, key.1)).is_some_and(|until| now < *until) => {
                                Err(Full::Silent)
                            }
                            () if known.len() >= limit as usize || of_client >= 5 => Err(Full::Limit),
                            () => Ok(()),
                        };
                        let admitted = openings.admit(&asked, now);
                        assert_eq!(admitted, expected);
                        match admitted {
                            Err(Full::Silent) => see("its server was silent"),
                            Err(Full::Limit) => see("there were too many"),
                            Ok(()) => {
                                let held = step;
                                let number = openings.add(asked, any_file(), held, 7, now);
                                let stage = Stage::Connecting { held, mark: 7 };
                                let hold = (0..silences).fold(hold, |hold, _| hold / 2).max(hold.min(LEAST));
                                known.insert(key, (number, stage, now + hold));
                                see(if silences > 1 { "opened after silence" } else { "opened" });
                            }
                        }
                    }
                    (Some((number, Stage::Connecting { .. })), 0..=1) => {
                        openings.answered(number, now);
                        silences = 0;
                        known.insert(key, (number, Stage::Answering, now + HANDSHAKE));
                        see("answered");
                    }
                    (Some((number, stage)), 2) => {
                        assert_eq!(openings.remove(number).map(|opening| opening.stage), Some(stage));
                        known.remove(&key);
                        see("ended");
                    }
                    _ => {
                        limit = 4 + draw.below(12) as u32;
                        let before = std::mem::replace(&mut hold, Duration::from_secs(1 + draw.below(5)));
                        if hold < before {
                            see("the next ones have less time");
                        }
                        openings.set_limits(limit, 5, hold);
                    }
                }
                assert_eq!(openings.len(), known.len());
            }
        }
        for event in [
            "a client was given up",
            "a server was given up",
            "answered",
            "ended",
            "its server was silent",
            "opened",
            "opened after silence",
            "the next ones have less time",
            "there were too many",
        ] {
            assert!(events.get(event).is_some_and(|times| *times >= worlds), "{event}: {events:?}");
        }
    }
}
