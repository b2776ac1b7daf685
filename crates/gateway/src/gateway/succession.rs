//! A successor takes over from a running gateway.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};

use super::{COMMANDS, Gateway, Inheritance, LISTENERS, OPENINGS, QUEUE};
use crate::setup::{observer_of, routes_of};
use crate::split::worker::Worker;

impl Gateway {
    /// Completes what is being opened, and gives up everything that a successor needs.
    pub(super) fn bequeath(&mut self) -> io::Result<Inheritance> {
        // New connections wait as long, and for the successor's start.
        const PATIENCE: Duration = Duration::from_millis(500);
        let end = Instant::now() + PATIENCE;
        epoll::delete(&self.epoll, &self.queue)?;
        let mut events: Vec<Event> = Vec::with_capacity(256);
        while self.openings.len() > 0 && Instant::now() < end {
            events.clear();
            let wait = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait))?;
            for event in &events {
                match event.data.u64() {
                    QUEUE | COMMANDS => {}
                    number if number < OPENINGS => self.accept((number - LISTENERS) as usize, Instant::now()),
                    number => self.connected(number, Instant::now())?,
                }
            }
        }
        while let Some(opening) = self.openings.pop() {
            self.give_up(opening)?;
        }
        // The successor's have the same names. Flows that have agents go on without.
        (self.agents, self.tunnel, self.shaper) = (None, None, None);
        if let Some(observer) = self.observer.take() {
            observer.end();
        }
        self.beat()?;
        let listeners = self.listeners.iter().map(|listener| listener.socket.as_fd().try_clone_to_owned());
        Ok(Inheritance {
            rules: self.rules.as_fd().try_clone_to_owned()?,
            queue: self.queue.as_fd().try_clone_to_owned()?,
            listeners: listeners.collect::<io::Result<_>>()?,
            seed: self.seed,
            asked: Instant::now(),
        })
    }

    /// Goes on without a successor, whose settings may have come as far as the kernel.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        routes_of(&self.config).install()?;
        self.installed = None;
        let _ = epoll::delete(&self.epoll, &self.queue);
        epoll::add(&self.epoll, &self.queue, EventData::new_u64(QUEUE), EventFlags::IN)?;
        if self.observer.is_none() {
            self.observer = observer_of(&self.config, self.is_observing, &self.evidence, &self.counters)?;
        }
        if self.agents.is_none() {
            self.agents = self.agents_if_possible();
        }
        if self.tunnel.is_none() {
            self.tunnel = self.new_tunnel()?;
        }
        if self.shaper.is_none() {
            self.shaper = self.new_shaper()?;
        }
        self.configure()
    }

    /// Carries the established connections to their end, after a successor has taken over.
    pub(crate) fn drain(self) -> io::Result<()> {
        let Gateway { workers, rules, queue, listeners, .. } = self;
        drop((rules, queue, listeners));
        workers.iter().for_each(Worker::finish);
        workers.into_iter().try_for_each(Worker::join)
    }
}
