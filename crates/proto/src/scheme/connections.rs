//! An agent's table of connections.
//!
//! **Bounds.** A connection that was idle too long is removed, at its own next packet or when another one is
//! added. If the table is full, a new connection replaces the one that was idle longest.
//! **Cost.** A lookup takes a binary search. With the slot that it returns, the rest of a packet's work takes
//! constant time, since slots are linked in the order of their activity. Adding or removing a connection
//! takes a few more searches.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Index;

use lasthop_base::{Duration, Time};

use crate::tcp::Connection;

/// An agent's state of one connection.
pub(super) trait ConnectionState {
    /// What is known of a packet: its [segment](crate::tcp::Segment) if the agent reads TCP.
    type Read;

    /// The state before `read`, the first packet seen.
    fn new(now: Time, read: &Self::Read) -> Self;

    /// Whether the state is outdated: `read` is of a different window.
    fn is_outdated(&self, read: &Self::Read) -> bool;

    /// The number of cached packets.
    fn cached(&self) -> usize;
}

/// The index of a connection in the table, valid until a connection is added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

/// A connection with its state.
#[derive(Debug)]
struct Entry<S> {
    connection: Connection,
    state: S,
    last_active: Time,
    /// The neighbours in the order of activity.
    older: Option<Slot>,
    newer: Option<Slot>,
}

/// Connections by addresses and flow.
#[derive(Debug)]
pub(super) struct ConnectionTable<S> {
    /// The maximum number of connections.
    most: usize,
    /// The idle time after which a connection is removed.
    idle: Duration,
    slots: BTreeMap<Connection, Slot>,
    entries: Vec<Entry<S>>,
    /// The ends of the order of activity.
    oldest: Option<Slot>,
    newest: Option<Slot>,
    /// Currently cached packets of all connections, and their peak.
    cached: usize,
    cached_peak: usize,
}

impl<S: ConnectionState> ConnectionTable<S> {
    /// An empty table for at most `most` connections, which is not zero.
    pub(super) fn new(most: u32, idle: Duration) -> ConnectionTable<S> {
        ConnectionTable {
            most: most as usize,
            idle,
            slots: BTreeMap::new(),
            entries: Vec::new(),
            oldest: None,
            newest: None,
            cached: 0,
            cached_peak: 0,
        }
    }

    /// Removes all connections; the peak remains.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.entries.clear();
        (self.oldest, self.newest, self.cached) = (None, None, 0);
    }

    /// The number of connections. Idle ones count until another packet causes their removal.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of cached packets of all connections.
    pub(super) fn cached(&self) -> usize {
        self.cached
    }

    /// The peak of [`cached`](ConnectionTable::cached).
    pub(super) fn cached_peak(&self) -> usize {
        self.cached_peak
    }

    /// Finds a connection. It is removed instead if it was idle too long.
    pub(super) fn find(&mut self, now: Time, connection: Connection) -> Option<Slot> {
        let slot = *self.slots.get(&connection)?;
        if self.is_idle(now, slot) {
            self.remove(slot);
            return None;
        }
        Some(slot)
    }

    /// Finds the connection of a packet with data. A missing, expired or outdated connection is replaced by a new
    /// one.
    pub(super) fn find_or_add(&mut self, now: Time, connection: Connection, read: &S::Read) -> Slot {
        match self.find(now, connection) {
            Some(slot) if !self[slot].is_outdated(read) => return slot,
            Some(slot) => self.remove(slot),
            None => {}
        }
        self.make_room(now);
        let slot = Slot(self.entries.len());
        let state = S::new(now, read);
        self.entries.push(Entry { connection, state, last_active: now, older: None, newer: None });
        self.slots.insert(connection, slot);
        self.append(slot);
        slot
    }

    /// Updates the state of a connection, which is active now.
    pub(super) fn update<R>(&mut self, now: Time, slot: Slot, update: impl FnOnce(&mut S) -> R) -> R {
        if self.newest != Some(slot) {
            self.unlink(slot);
            self.append(slot);
        }
        let entry = &mut self.entries[slot.0];
        entry.last_active = now;
        let before = entry.state.cached();
        let result = update(&mut entry.state);
        self.cached = self.cached - before + entry.state.cached();
        self.cached_peak = self.cached_peak.max(self.cached);
        result
    }

    /// Calls `action` with every state, in ascending order of addresses and flow. It must not change the
    /// number of cached packets.
    pub(super) fn for_each(&mut self, mut action: impl FnMut(&mut S)) {
        for slot in self.slots.values() {
            action(&mut self.entries[slot.0].state);
        }
    }

    /// The slots of all connections, in ascending order of addresses and flow.
    pub(super) fn slots(&self) -> Vec<Slot> {
        self.slots.values().copied().collect()
    }

    /// The states of all connections.
    pub(super) fn states(&self) -> impl Iterator<Item = &S> {
        self.entries.iter().map(|entry| &entry.state)
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, slot: Slot) {
        self.unlink(slot);
        let removed = self.entries.swap_remove(slot.0);
        self.slots.remove(&removed.connection);
        self.cached -= removed.state.cached();
        // The last entry has moved to this slot.
        if let Some(&Entry { connection, older, newer, .. }) = self.entries.get(slot.0) {
            self.slots.insert(connection, slot);
            *self.newer_than(older) = Some(slot);
            *self.older_than(newer) = Some(slot);
        }
    }

    /// Removes a connection, if it is in the table.
    pub(super) fn remove_connection(&mut self, connection: Connection) {
        if let Some(&slot) = self.slots.get(&connection) {
            self.remove(slot);
        }
    }

    fn is_idle(&self, now: Time, slot: Slot) -> bool {
        now.since(self.entries[slot.0].last_active) > self.idle
    }

    /// Makes room for another connection: removes those that are idle, or else the one that was idle longest.
    fn make_room(&mut self, now: Time) {
        while let Some(oldest) = self.oldest
            && (self.is_idle(now, oldest) || self.len() >= self.most)
        {
            self.remove(oldest);
        }
    }

    /// The link to the next newer slot than `slot`, or to the oldest one.
    fn newer_than(&mut self, slot: Option<Slot>) -> &mut Option<Slot> {
        match slot {
            Some(slot) => &mut self.entries[slot.0].newer,
            None => &mut self.oldest,
        }
    }

    /// The link to the next older slot than `slot`, or to the newest one.
    fn older_than(&mut self, slot: Option<Slot>) -> &mut Option<Slot> {
        match slot {
            Some(slot) => &mut self.entries[slot.0].older,
            None => &mut self.newest,
        }
    }

    /// Takes a slot out of the order of activity.
    fn unlink(&mut self, slot: Slot) {
        let Entry { older, newer, .. } = self.entries[slot.0];
        *self.newer_than(older) = newer;
        *self.older_than(newer) = older;
    }

    /// Adds a slot to the order of activity, as the newest.
    fn append(&mut self, slot: Slot) {
        let older = self.newest;
        *self.newer_than(older) = Some(slot);
        self.newest = Some(slot);
        let entry = &mut self.entries[slot.0];
        (entry.older, entry.newer) = (older, None);
    }
}

impl<S> Index<Slot> for ConnectionTable<S> {
    type Output = S;
    fn index(&self, slot: Slot) -> &S {
        &self.entries[slot.0].state
    }
}
