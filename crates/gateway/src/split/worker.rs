//! A thread that carries the data of split connections.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::net::sockopt;

use super::Split;
use super::direction::{Direction, Pipes, Progress};
use crate::counters::Counters;

/// A worker, by the thread that gives it connections.
#[derive(Debug)]
pub(crate) struct Worker {
    inbox: Arc<Inbox>,
    thread: JoinHandle<io::Result<()>>,
}

/// What a worker is told.
#[derive(Debug)]
struct Inbox {
    mail: Mutex<Mail>,
    /// Wakes the worker.
    bell: OwnedFd,
    /// Connections of the worker.
    load: AtomicUsize,
}

#[derive(Debug, Default)]
struct Mail {
    splits: Vec<Split>,
    /// Whether the worker ends once its connections have.
    is_last: bool,
}

impl Worker {
    /// Starts a worker whose connections have at most `buffer` bytes between their parts.
    pub(crate) fn start(number: usize, buffer: usize, counters: Arc<Counters>) -> io::Result<Worker> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let inbox = Arc::new(Inbox { mail: Mutex::default(), bell, load: AtomicUsize::new(0) });
        let mut connections = Connections::new(Arc::clone(&inbox), buffer, counters)?;
        let thread =
            thread::Builder::new().name(format!("splits-{number}")).spawn(move || connections.run())?;
        Ok(Worker { inbox, thread })
    }

    /// The number of its connections.
    pub(crate) fn load(&self) -> usize {
        self.inbox.load.load(Ordering::Relaxed)
    }

    /// Gives it a connection.
    pub(crate) fn give(&self, split: Split) {
        self.inbox.load.fetch_add(1, Ordering::Relaxed);
        self.tell(|mail| mail.splits.push(split));
    }

    /// Lets it end with the last of its connections.
    pub(crate) fn finish(&self) {
        self.tell(|mail| mail.is_last = true);
    }

    /// Waits until it has ended.
    pub(crate) fn join(self) -> io::Result<()> {
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the gateway panicked")))
    }

    fn tell(&self, change: impl FnOnce(&mut Mail)) {
        change(&mut self.inbox.mail.lock().unwrap_or_else(PoisonError::into_inner));
        // Full, it rings anyway.
        let _ = rustix::io::write(&self.inbox.bell, &1u64.to_ne_bytes());
    }
}

/// A split connection as a worker has it.
#[derive(Debug)]
struct Connection {
    split: Split,
    to_server: Direction,
    to_client: Direction,
    /// Whether it is in the list of those that can continue.
    is_ready: bool,
}

/// Events of the bell; those of sockets have the index of the connection and the side.
const BELL: u64 = u64::MAX;

/// Connections by index, and what happens to them.
#[derive(Debug)]
struct Connections {
    inbox: Arc<Inbox>,
    counters: Arc<Counters>,
    epoll: OwnedFd,
    all: Vec<Option<Connection>>,
    free: Vec<usize>,
    ready: VecDeque<usize>,
    pipes: Pipes,
}

impl Connections {
    fn new(inbox: Arc<Inbox>, buffer: usize, counters: Arc<Counters>) -> io::Result<Connections> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &inbox.bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Connections {
            inbox,
            counters,
            epoll,
            all: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            pipes: Pipes::new(buffer),
        })
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(256);
        let mut is_last = false;
        while !(is_last && self.free.len() == self.all.len()) {
            is_last |= self.turn(&mut events, None)?;
        }
        Ok(())
    }

    /// Waits for events, for at most `longest` if that is stated, and does what they ask for. Returns whether it was told that
    /// there will be no further connections.
    fn turn(&mut self, events: &mut Vec<Event>, longest: Option<&Timespec>) -> io::Result<bool> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = if self.ready.is_empty() { longest } else { Some(&now) };
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let of_sockets = events.iter().filter(|event| event.data.u64() != BELL);
        let mut count = 0;
        for event in of_sockets {
            let data = event.data.u64();
            self.notice((data / 2) as usize, data % 2 == 0, event.flags);
            count += 1;
        }
        // After the events of sockets, since a new connection may get the index of one that these have ended.
        let is_last = count < events.len() && self.open_mail();
        for _ in 0..self.ready.len() {
            if let Some(index) = self.ready.pop_front() {
                self.carry(index);
            }
        }
        Ok(is_last)
    }

    /// Takes over new connections. Returns whether there will be no others.
    fn open_mail(&mut self) -> bool {
        let _ = rustix::io::read(&self.inbox.bell, &mut [0; 8]);
        let mail = {
            let mut mail = self.inbox.mail.lock().unwrap_or_else(PoisonError::into_inner);
            Mail { splits: mem::take(&mut mail.splits), is_last: mail.is_last }
        };
        for split in mail.splits {
            let index = self.free.pop().unwrap_or_else(|| {
                self.all.push(None);
                self.all.len() - 1
            });
            let data = index as u64 * 2;
            let flags =
                EventFlags::IN | EventFlags::OUT | EventFlags::PRI | EventFlags::RDHUP | EventFlags::ET;
            let watched = epoll::add(&self.epoll, &split.client, EventData::new_u64(data), flags)
                .and_then(|()| epoll::add(&self.epoll, &split.server, EventData::new_u64(data + 1), flags));
            let (to_server, to_client) = Default::default();
            self.all[index] = Some(Connection { split, to_server, to_client, is_ready: false });
            if watched.is_err() {
                self.counters.failures.one();
                self.end(index, true);
            }
        }
        mail.is_last
    }

    /// Notes what a socket is ready for.
    fn notice(&mut self, index: usize, is_client: bool, flags: EventFlags) {
        let Some(connection) = self.all.get_mut(index).and_then(Option::as_mut) else { return };
        let (from, to) = match is_client {
            true => (&mut connection.to_server, &mut connection.to_client),
            false => (&mut connection.to_client, &mut connection.to_server),
        };
        let fails = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        from.is_readable |= fails || flags.intersects(EventFlags::IN | EventFlags::RDHUP);
        from.has_urgent |= flags.contains(EventFlags::PRI);
        to.is_writable |= fails || flags.contains(EventFlags::OUT);
        if !mem::replace(&mut connection.is_ready, true) {
            self.ready.push_back(index);
        }
        if flags.contains(EventFlags::ERR) {
            self.end(index, true);
        }
    }

    /// Carries data of a connection in both directions.
    fn carry(&mut self, index: usize) {
        let Some(connection) = self.all.get_mut(index).and_then(Option::as_mut) else { return };
        connection.is_ready = false;
        let Split { client, server } = &connection.split;
        let progress = [
            connection.to_server.carry(client, server, &mut self.pipes),
            connection.to_client.carry(server, client, &mut self.pipes),
        ];
        self.counters.bytes_to_servers.add(mem::take(&mut connection.to_server.carried));
        self.counters.bytes_to_clients.add(mem::take(&mut connection.to_client.carried));
        if progress.contains(&Progress::Broken) {
            self.end(index, true);
        } else if connection.to_server.is_ended() && connection.to_client.is_ended() {
            self.end(index, false);
        } else if progress.contains(&Progress::Continues) && !mem::replace(&mut connection.is_ready, true) {
            self.ready.push_back(index);
        }
    }

    /// Ends a connection: both parts are reset, or closed in order.
    fn end(&mut self, index: usize, by_reset: bool) {
        let Some(Connection { split, .. }) = self.all[index].take() else { return };
        self.free.push(index);
        self.inbox.load.fetch_sub(1, Ordering::Relaxed);
        self.counters.open.less_one();
        if by_reset {
            self.counters.reset.one();
        } else {
            self.counters.closed.one();
            for socket in [&split.client, &split.server] {
                // What the kernel still has to send, it sends.
                let _ = sockopt::set_socket_linger(socket, None);
            }
        }
    }
}

#[cfg(test)]
mod tests;
