//! The calendar of two guests: which of them runs, until when, and what happens between them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::Path;

use lasthop_base::{Duration, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::broken;
use crate::device::{Device, Handled};
use crate::guest::{Guest, State, accept};
use crate::request::{self, Request};
use crate::time::{CALENDAR, Message, Shared, operation};

/// What a guest says by a broadcast: its program may be talked to, and its program has ended.
const READY: u64 = 1;
const ENDED: u64 = 2;

/// How far a guest may be ahead of what it has told.
const LEAD: Duration = Duration::from_millis(10);

/// The time between two looks at whether to go on, and the most messages between them.
const WATCH: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
const MOST_MESSAGES: u32 = 4096;

/// Settings of a calendar.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The time of day at which it begins, in nanoseconds since 1970.
    pub epoch_ns: u64,
    /// The second guest begins at this phase of `period`, once the first is ready.
    pub phase: Duration,
    /// See `phase`.
    pub period: Duration,
    /// How long the program of the first guest may go on when that of the second has ended.
    pub grace: Duration,
    /// Whether guests that can use shared memory do so instead of messages.
    pub shares_time: bool,
}

/// Why a calendar ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program of the second guest has ended, and that of the first or its grace.
    Ended,
    /// A guest, by number, has gone before that.
    Gone(usize),
    /// All wait, for ever.
    Asleep,
    /// It was told to.
    Stopped,
}

/// What is between the guests, and lives in the same time.
pub trait Network {
    /// When it next wants to be woken, or never.
    fn next_wakeup(&self) -> Time;

    /// Handles what is due until `now`.
    ///
    /// # Errors
    /// If a card is broken, or the network.
    fn advance(&mut self, now: Time, cards: &mut Cards) -> io::Result<()>;

    /// Takes a frame that a guest sends.
    ///
    /// # Errors
    /// As [`advance`](Network::advance).
    fn take(&mut self, now: Time, from: usize, frame: &mut [u8], cards: &mut Cards) -> io::Result<()>;
}

/// The network cards of the guests.
#[derive(Debug, Default)]
pub struct Cards([Device; 2]);

impl Cards {
    /// Gives a guest a frame; returns whether it had room for it.
    ///
    /// # Errors
    /// If its queue is broken.
    pub fn deliver(&mut self, to: usize, frame: &[u8]) -> io::Result<bool> {
        self.0[to].receive(frame).map_err(|error| of_guest(to, error))
    }

    fn has_interrupt(&self) -> Option<usize> {
        self.0.iter().position(|device| device.interrupts.contains(&true))
    }
}

/// Names the guest whose fault an error is.
fn of_guest(side: usize, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the kernel of the {}: {error}", ["server", "client"][side]))
}

/// Why the calendar cannot go on.
#[derive(Debug)]
enum Interruption {
    Failed(io::Error),
    Ended(Outcome),
}

impl From<io::Error> for Interruption {
    fn from(error: io::Error) -> Interruption {
        Interruption::Failed(error)
    }
}

impl From<rustix::io::Errno> for Interruption {
    fn from(error: rustix::io::Errno) -> Interruption {
        Interruption::Failed(error.into())
    }
}

/// An error of a guest's sockets.
fn of_socket(side: usize, error: io::Error) -> Interruption {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error.kind() {
        BrokenPipe | ConnectionReset | UnexpectedEof => Interruption::Ended(Outcome::Gone(side)),
        _ => Interruption::Failed(of_guest(side, error)),
    }
}

type Step<T = ()> = Result<T, Interruption>;

/// The calendar of two guests: of the server, which begins, and of the client.
#[derive(Debug)]
pub struct Calendar {
    guests: [Guest; 2],
    cards: Cards,
    settings: Settings,
    shared: Shared,
    now: Time,
    /// When the second guest begins, once that is known.
    release: Option<Time>,
    /// When the grace of the first guest ends, once the second has ended.
    deadline: Option<Time>,
    /// Messages since the last look at whether to go on.
    unwatched: u32,
    /// Messages in both directions.
    messages: u64,
    buffer: Vec<u8>,
}

impl Calendar {
    /// A calendar that listens on the sockets `time` and `net` in the directory of each guest.
    ///
    /// # Errors
    /// If a socket or the shared memory cannot be made.
    pub fn new(directories: [&Path; 2], settings: Settings) -> io::Result<Calendar> {
        let [server, client] = directories;
        Ok(Calendar {
            guests: [Guest::new(server)?, Guest::new(client)?],
            cards: Cards::default(),
            settings,
            shared: Shared::new(2)?,
            now: Time::ZERO,
            release: None,
            deadline: None,
            unwatched: 0,
            messages: 0,
            buffer: Vec::new(),
        })
    }

    /// The time that was reached.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many messages were exchanged with the guests.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Lets the guests run until the program of the second has ended, or `keep_going` returns false. It is called about
    /// fifty times a second of real time.
    ///
    /// # Errors
    /// If a guest does not keep to a protocol, or the network fails.
    pub fn run(
        &mut self,
        network: &mut impl Network,
        mut keep_going: impl FnMut() -> bool,
    ) -> io::Result<Outcome> {
        match self.serve(network, &mut keep_going) {
            Ok(outcome) | Err(Interruption::Ended(outcome)) => Ok(outcome),
            Err(Interruption::Failed(error)) => Err(error),
        }
    }

    fn serve(&mut self, network: &mut impl Network, keep_going: &mut impl FnMut() -> bool) -> Step<Outcome> {
        self.begin(0, network, keep_going)?;
        loop {
            // Here no guest runs.
            if let Some(side) = self.cards.has_interrupt() {
                self.interrupt(side, keep_going)?;
                continue;
            }
            if self.deadline.is_some() && self.guests[0].has_ended {
                return Ok(Outcome::Ended);
            }
            let [first, second] = self.guests.each_ref().map(|guest| guest.request);
            let events = [
                (network.next_wakeup(), Event::Network),
                (self.deadline.unwrap_or(Time::NEVER), Event::End),
                (self.release.unwrap_or(Time::NEVER), Event::Begin),
                (first, Event::Run(0)),
                (second, Event::Run(1)),
            ];
            // The first of several at one time.
            let Some(&(time, event)) = events.iter().min_by_key(|(time, _)| *time) else { continue };
            if time == Time::NEVER {
                return Ok(Outcome::Asleep);
            }
            self.now = self.now.max(time);
            match event {
                Event::Network => network.advance(self.now, &mut self.cards)?,
                Event::End => return Ok(Outcome::Ended),
                Event::Begin => {
                    self.release = None;
                    self.begin(1, network, keep_going)?;
                }
                Event::Run(side) => {
                    self.grant(side, network)?;
                    self.until_it_waits(side, network, keep_going)?;
                }
            }
        }
    }

    /// Before which time a guest may run on from now.
    fn horizon(&self, side: usize, network: &impl Network) -> Time {
        if self.cards.has_interrupt().is_some() {
            return self.now;
        }
        let ends = [self.release, self.deadline].into_iter().flatten();
        let others = ends.chain([network.next_wakeup(), self.guests[1 - side].request]);
        others.fold(self.now + LEAD, Time::min).max(self.now)
    }

    /// Waits for the guest's connection, and lets it boot.
    fn begin(
        &mut self,
        side: usize,
        network: &mut impl Network,
        keep_going: &mut impl FnMut() -> bool,
    ) -> Step {
        self.guests[side].origin = self.now;
        loop {
            let listener = &self.guests[side].listeners[0];
            if readable([listener, listener])?[0] {
                break;
            }
            self.watch(true, keep_going)?;
        }
        let stream = accept(&self.guests[side].listeners[0])?;
        self.guests[side].time = Some(stream);
        let start = self.guests[side].read().map_err(|error| of_socket(side, error))?;
        if start.operation != operation::START {
            return Err(of_guest(side, broken(format!("the operation {} first", start.operation))).into());
        }
        let horizon = self.horizon(side, network);
        self.guests[side].state = State::Runs(horizon);
        let client = client(side);
        self.shared.run(client, self.now, horizon)?;
        let bytes =
            Message { operation: operation::ACK, sequence: start.sequence, time_ns: client.into() }.bytes();
        let stream = self.guests[side].stream()?;
        if self.settings.shares_time {
            // The second file is for a log.
            let log = std::fs::File::options().write(true).open("/dev/null")?;
            let files = [self.shared.as_fd(), log.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(&files));
            sendmsg(stream, &[io::IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        } else {
            self.guests[side].write(operation::ACK, start.sequence, client.into())?;
        }
        self.until_it_waits(side, network, keep_going)
    }

    /// Lets a guest run at the present time, for which it has asked.
    fn grant(&mut self, side: usize, network: &impl Network) -> Step {
        let horizon = self.horizon(side, network);
        let (now, client) = (self.now, client(side));
        self.shared.run(client, now, horizon)?;
        let guest = &mut self.guests[side];
        guest.request = Time::NEVER;
        guest.state = State::Runs(horizon);
        let free = (!guest.shares_time && horizon > now).then_some((operation::FREE_UNTIL, horizon));
        for (operation, time) in free.into_iter().chain([(operation::RUN, now)]) {
            guest.tell(operation, time).map_err(|error| of_socket(side, error))?;
            self.messages += 1;
        }
        Ok(())
    }

    /// Serves a guest that runs until it waits.
    fn until_it_waits(
        &mut self,
        side: usize,
        network: &mut impl Network,
        keep_going: &mut impl FnMut() -> bool,
    ) -> Step {
        while self.guests[side].state != State::Waits {
            let guest = &self.guests[side];
            let [time, card] = match (&guest.time, &guest.card) {
                (Some(time), Some(card)) => readable([time, card])?,
                (Some(time), None) => readable([time.as_fd(), guest.listeners[1].as_fd()])?,
                (None, _) => [true, false],
            };
            if time {
                self.on_message(side)?;
            } else if card && self.guests[side].card.is_none() {
                self.guests[side].card = Some(accept(&self.guests[side].listeners[1])?);
            } else if card {
                self.on_request(side, network)?;
            }
            self.watch(!time && !card, keep_going)?;
        }
        if self.guests[side].shares_time {
            self.read_request(side)?;
        }
        Ok(())
    }

    /// Handles a message of virtual time.
    fn on_message(&mut self, side: usize) -> Step {
        let message = self.guests[side].read().map_err(|error| of_socket(side, error))?;
        self.messages += 1;
        self.meet(side)?;
        let guest = &mut self.guests[side];
        let mut answer = 0;
        let time = guest.global(message.time_ns);
        match message.operation {
            operation::ACK => {
                guest.confirmed = message.sequence;
                return Ok(());
            }
            operation::REQUEST => {
                let request = checked(time, self.now, Time::NEVER, "asks to run at");
                guest.request = request.map_err(|error| of_guest(side, error))?;
            }
            operation::WAIT => {
                guest.state = State::Waits;
                if guest.shares_time {
                    return Ok(());
                }
            }
            operation::GET => answer = guest.local(self.now),
            operation::UPDATE => self.reach(side, time)?,
            operation::GET_TIME_OF_DAY => answer = self.settings.epoch_ns + self.now.as_nanos(),
            operation::BROADCAST => self.on_broadcast(side, message.time_ns),
            other => return Err(of_guest(side, broken(format!("the operation {other}"))).into()),
        }
        self.messages += 1;
        let written = self.guests[side].write(operation::ACK, message.sequence, answer);
        written.map_err(|error| of_socket(side, error))
    }

    /// Finds out whether a guest that says something for the first time uses the shared memory.
    fn meet(&mut self, side: usize) -> Step {
        if !self.guests[side].is_known {
            let shares_time = self.shared.is_used(client(side))?;
            (self.guests[side].is_known, self.guests[side].shares_time) = (true, shares_time);
        }
        Ok(())
    }

    /// A guest that runs has reached a time.
    fn reach(&mut self, side: usize, time: Time) -> Step {
        let State::Runs(horizon) = self.guests[side].state else {
            return Err(of_guest(side, broken("its clock advances while it waits".into())).into());
        };
        self.now = checked(time, self.now, horizon, "is at").map_err(|error| of_guest(side, error))?;
        Ok(())
    }

    fn on_broadcast(&mut self, side: usize, said: u64) {
        let guest = &mut self.guests[side];
        guest.has_ended |= said == ENDED;
        if side == 1 && said == ENDED {
            self.deadline.get_or_insert(self.now + self.settings.grace);
        }
        if side == 0 && matches!(said, READY | ENDED) && self.guests[1].state == State::Absent {
            let Settings { phase, period, .. } = self.settings;
            let (earliest, period) = ((self.now + LEAD).as_nanos(), period.as_nanos().max(1));
            let wait = (phase.as_nanos() + period - earliest % period) % period;
            self.release.get_or_insert(Time::from_nanos(earliest + wait));
        }
    }

    /// Handles a request of vhost-user.
    fn on_request(&mut self, side: usize, network: &mut impl Network) -> Step {
        let Some(socket) = &self.guests[side].card else { return Ok(()) };
        let mut request = Request::read(socket).map_err(|error| of_socket(side, error))?;
        let files = std::mem::take(&mut request.files);
        let handled = self.cards.0[side].handle(request.number, &request.body, files);
        let Handled { value, is_kick } = handled.map_err(|error| of_guest(side, error))?;
        self.messages += 2;
        self.meet(side)?;
        if is_kick {
            self.on_kick(side, network)?;
        }
        let Some(socket) = &self.guests[side].card else { return Ok(()) };
        request.answer(socket, value).map_err(|error| of_socket(side, error))
    }

    /// Takes the frames that a guest sends, and lets it know if it may run for less than before.
    fn on_kick(&mut self, side: usize, network: &mut impl Network) -> Step {
        if self.guests[side].shares_time {
            let reached = self.shared.now()?;
            self.reach(side, reached)?;
        }
        let mut frame = std::mem::take(&mut self.buffer);
        while self.cards.0[side].take_sent(&mut frame).map_err(|error| of_guest(side, error))? {
            network.take(self.now, side, &mut frame, &mut self.cards)?;
        }
        self.buffer = frame;
        let State::Runs(before) = self.guests[side].state else { return Ok(()) };
        let horizon = self.horizon(side, network).min(before);
        if horizon == before {
            return Ok(());
        }
        self.guests[side].state = State::Runs(horizon);
        if self.guests[side].shares_time {
            return Ok(self.shared.set_free_until(horizon)?);
        }
        let guest = &mut self.guests[side];
        guest.tell(operation::FREE_UNTIL, horizon).map_err(|error| of_socket(side, error))?;
        self.messages += 1;
        // The answer to the kick must not overtake it.
        while self.guests[side].confirmed != self.guests[side].sent {
            self.on_message(side)?;
        }
        Ok(())
    }

    /// Tells a guest that waits of interrupts of its card, for which it then asks to run.
    fn interrupt(&mut self, side: usize, keep_going: &mut impl FnMut() -> bool) -> Step {
        self.shared.run(CALENDAR, self.now, self.now)?;
        for queue in 0..2 {
            if !std::mem::take(&mut self.cards.0[side].interrupts[queue]) {
                continue;
            }
            let Some(socket) = self.cards.0[side].interrupt_socket.take() else { continue };
            request::interrupt(&socket, queue as u32).map_err(|error| of_socket(side, error))?;
            self.messages += 2;
            loop {
                let [time, answered] = match &self.guests[side].time {
                    Some(time) => readable([time, &socket])?,
                    None => [false, true],
                };
                if time {
                    self.on_message(side)?;
                } else if answered {
                    request::read_answer(&socket).map_err(|error| of_socket(side, error))?;
                    break;
                }
                self.watch(!time, keep_going)?;
            }
            self.cards.0[side].interrupt_socket = Some(socket);
        }
        if self.guests[side].shares_time {
            self.read_request(side)?;
        }
        Ok(())
    }

    /// Reads when a guest wants to run from the shared memory.
    fn read_request(&mut self, side: usize) -> Step {
        let request = match self.shared.request(client(side))? {
            Some(time) if time.as_nanos() < i64::MAX as u64 => {
                checked(time, self.now, Time::NEVER, "asks to run at")
            }
            _ => Ok(Time::NEVER),
        };
        self.guests[side].request = request.map_err(|error| of_guest(side, error))?;
        Ok(())
    }

    /// Looks now and then whether to go on: `is_idle` if no guest has said anything for a while.
    fn watch(&mut self, is_idle: bool, keep_going: &mut impl FnMut() -> bool) -> Step {
        self.unwatched += 1;
        if is_idle || self.unwatched >= MOST_MESSAGES {
            self.unwatched = 0;
            if !keep_going() {
                return Err(Interruption::Ended(Outcome::Stopped));
            }
        }
        Ok(())
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Event {
    Network,
    End,
    Begin,
    Run(usize),
}

/// The number of a guest in the shared memory.
fn client(side: usize) -> u16 {
    side as u16 + 1
}

/// A time that a guest has said, if it may.
fn checked(time: Time, from: Time, until: Time, what: &str) -> io::Result<Time> {
    if (from..=until).contains(&time) {
        return Ok(time);
    }
    let [time, from, until] = [time, from, until].map(Time::as_nanos);
    Err(broken(format!("it {what} {time} ns, and not from {from} to {until}")))
}

/// Waits until any of two sockets can be read, for a while; returns which.
fn readable(sockets: [impl AsFd; 2]) -> io::Result<[bool; 2]> {
    let mut polled = sockets.each_ref().map(|socket| PollFd::new(socket, PollFlags::IN));
    match poll(&mut polled, Some(&WATCH)) {
        Ok(_) => Ok(polled.map(|polled| !polled.revents().is_empty())),
        Err(rustix::io::Errno::INTR) => Ok([false; 2]),
        Err(error) => Err(error.into()),
    }
}
