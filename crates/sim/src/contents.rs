//! The contents of packets: who may still need the bytes behind a [`Handle`].
//!
//! Components copy a handle with its packet. An agent may hold, suppress and copy packets, so that one packet may arrive
//! several times, or never: its bytes are needed until no link and no agent has it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lasthop_base::Time;
use lasthop_proto::{ComponentId, DropReason, Handle, Packet, stack};

use crate::tap::{Tap, Wire};

/// Handles in use without a packet in the network, beyond those that agents keep, after which agents are
/// asked again.
const SPARE: usize = 64;

/// The number of copies of each packet with contents in a network, without those that agents keep.
#[derive(Debug, Default)]
pub struct Copies {
    /// Indexed by slot.
    slots: Vec<Slot>,
    /// Handles in use without a copy in the network.
    idle: usize,
    /// Handles that agents kept when they were last asked.
    kept: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    handle: Handle,
    copies: u32,
    is_kept: bool,
}

impl Copies {
    /// Takes a new handle into use, with one copy.
    pub fn begin(&mut self, handle: Handle) {
        let index = handle.slot();
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::default());
        }
        self.slots[index] = Slot { handle, copies: 1, is_kept: false };
    }

    /// The slot of a handle in use.
    fn slot(&mut self, handle: Handle) -> Option<&mut Slot> {
        self.slots.get_mut(handle.slot()).filter(|slot| slot.handle == handle && handle != Handle::NONE)
    }

    /// A copy enters the network, whose handle may be new.
    pub fn add_or_begin(&mut self, handle: Handle) {
        match self.slot(handle) {
            Some(_) => self.add(handle),
            None => self.begin(handle),
        }
    }

    /// An agent sends the packet.
    pub fn add(&mut self, handle: Handle) {
        let Some(slot) = self.slot(handle) else { return };
        slot.copies += 1;
        self.idle -= usize::from(slot.copies == 1);
    }

    /// A copy has left, was dropped, or is with an agent. Whether it was the last one in the network.
    pub fn remove(&mut self, handle: Handle) -> bool {
        let Some(slot) = self.slot(handle).filter(|slot| slot.copies > 0) else { return false };
        slot.copies -= 1;
        let is_last = slot.copies == 0;
        self.idle += usize::from(is_last);
        is_last
    }

    /// Ends the use of a handle whose last copy was [removed](Copies::remove), in a network without agents.
    fn end(&mut self, handle: Handle) {
        if let Some(slot) = self.slot(handle) {
            *slot = Slot::default();
            self.idle -= 1;
        }
    }

    /// Whether enough handles are idle that a pass over all of them costs little for each.
    pub fn is_worth_a_pass(&self) -> bool {
        self.idle > 2 * self.kept + SPARE + self.slots.len() / 4
    }

    /// Ends the use of all handles without a copy in the network that are not among those that agents `keep`.
    pub fn sweep(&mut self, keep: &[Handle], mut unused: impl FnMut(Handle)) {
        for &handle in keep {
            if let Some(slot) = self.slot(handle) {
                slot.is_kept = slot.copies == 0;
            }
        }
        self.kept = 0;
        for slot in self.slots.iter_mut().filter(|slot| slot.handle != Handle::NONE && slot.copies == 0) {
            if std::mem::take(&mut slot.is_kept) {
                self.kept += 1;
            } else {
                unused(std::mem::take(&mut slot.handle));
            }
        }
        self.idle = self.kept;
    }

    /// The number of copies in the network, and the number of packets that only agents kept at the last
    /// [sweep](Copies::sweep).
    pub fn held(&self) -> (usize, usize) {
        (self.slots.iter().map(|slot| slot.copies as usize).sum(), self.kept)
    }
}

/// The bytes of simulated packets. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Contents(Arc<Mutex<Store>>);

#[derive(Debug, Default)]
struct Store {
    copies: Copies,
    /// The bytes of each slot, but for slot 0, and how often it was used.
    slots: Vec<(Vec<u8>, u32)>,
    free: Vec<usize>,
    /// Whether agents may keep packets, so that one without a copy in the network may return.
    may_return: bool,
    /// Whether there was no room for a packet.
    is_overfull: bool,
    /// Lines of a key log.
    secrets: String,
}

impl Store {
    fn put(&mut self, bytes: &[u8]) -> Handle {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.resize_with(self.slots.len().max(1) + 1, Default::default);
            self.slots.len() - 1
        });
        if slot > Handle::MAX_SLOT {
            self.slots.pop();
            self.is_overfull = true;
            return Handle::NONE;
        }
        let (kept, generation) = &mut self.slots[slot];
        *generation += 1;
        kept.clear();
        kept.extend_from_slice(bytes);
        let handle = Handle::new(slot, *generation);
        self.copies.begin(handle);
        handle
    }

    fn remove(&mut self, handle: Handle) {
        if self.copies.remove(handle) && !self.may_return {
            self.copies.end(handle);
            self.free.push(handle.slot());
        }
    }
}

impl Contents {
    fn store(&self) -> MutexGuard<'_, Store> {
        // A panic elsewhere leaves the counts as they are.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether agents should be asked what they keep, for a [sweep](Contents::sweep).
    pub fn is_worth_a_pass(&self) -> bool {
        self.store().copies.is_worth_a_pass()
    }

    /// Forgets the bytes of packets that are neither in the network nor among those that agents `keep`.
    pub fn sweep(&self, keep: &[Handle]) {
        let Store { copies, free, .. } = &mut *self.store();
        copies.sweep(keep, |handle| free.push(handle.slot()));
    }

    /// Whether there was no room for a packet: more than [`Handle::MAX_SLOT`] were in the network.
    pub fn is_overfull(&self) -> bool {
        self.store().is_overfull
    }

    /// Calls `read` with the bytes of a packet in the network; not at all if there are none.
    pub fn read(&self, handle: Handle, read: impl FnOnce(&[u8])) {
        let mut store = self.store();
        if store.copies.slot(handle).is_some() {
            read(&store.slots[handle.slot()].0);
        }
    }

    /// Calls `read` with the secrets that protect packets, as lines of a key log, after the first `skipped` bytes of it.
    pub fn read_secrets<T>(&self, skipped: usize, read: impl FnOnce(&str) -> T) -> T {
        read(self.store().secrets.get(skipped..).unwrap_or_default())
    }

    /// As [`Copies::held`].
    pub fn held(&self) -> (usize, usize) {
        self.store().copies.held()
    }
}

impl stack::Contents for Contents {
    fn put(&self, bytes: &[u8]) -> Handle {
        self.store().put(bytes)
    }

    fn take(&self, handle: Handle, read: &mut dyn FnMut(&[u8])) {
        let mut store = self.store();
        if store.copies.slot(handle).is_some() {
            read(&store.slots[handle.slot()].0);
            store.remove(handle);
        }
    }

    fn log_secret(&self, line: &str) {
        self.store().secrets.extend([line, "\n"]);
    }
}

/// Counts the copies of packets with [`Contents`] that agents make, and those that are dropped. The ends of flows count what
/// they send and receive.
#[derive(Debug)]
pub struct Custody {
    contents: Contents,
    /// Indexed by component.
    agents: Vec<bool>,
}

impl Custody {
    /// The custody in a network of `components`, in which `agents` may keep packets.
    pub fn new(contents: Contents, components: usize, agents: impl Iterator<Item = ComponentId>) -> Custody {
        let mut are_agents = vec![false; components];
        for agent in agents {
            are_agents[agent.index()] = true;
            contents.store().may_return = true;
        }
        Custody { contents, agents: are_agents }
    }

    fn is_agent(&self, id: ComponentId) -> bool {
        self.agents[id.index()]
    }
}

impl Tap for Custody {
    fn cross(&mut self, _now: Time, wire: Wire, packet: &Packet) {
        if packet.handle == Handle::NONE {
            return;
        }
        if self.is_agent(wire.from.0) {
            self.contents.store().copies.add(packet.handle);
        }
        if self.is_agent(wire.to.0) {
            self.contents.store().copies.remove(packet.handle);
        }
    }

    fn drop(&mut self, _now: Time, at: ComponentId, packet: &Packet, _reason: DropReason) {
        if packet.handle != Handle::NONE && !self.is_agent(at) {
            self.contents.store().remove(packet.handle);
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        self.is_agent(wire.from.0) || self.is_agent(wire.to.0)
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, _id: ComponentId) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::stack::Contents as _;

    use super::*;

    fn read(contents: &Contents, handle: Handle) -> Option<Vec<u8>> {
        let mut found = None;
        contents.take(handle, &mut |bytes| found = Some(bytes.to_vec()));
        found
    }

    #[test]
    fn bytes_are_read_once_and_their_room_is_used_again_under_another_handle() {
        let contents = Contents::default();
        let [one, two] = [&b"one"[..], b"two"].map(|bytes| contents.put(bytes));
        assert_eq!(read(&contents, one), Some(b"one".to_vec()));
        assert_eq!(read(&contents, one), None);
        let three = contents.put(b"3");
        let mut seen = Vec::new();
        [two, one].into_iter().for_each(|handle| contents.read(handle, |bytes| seen.push(bytes.to_vec())));
        assert_eq!(seen, [b"two"]);
        assert_eq!(three.slot(), one.slot());
        assert_ne!(three, one);
        assert_eq!((read(&contents, one), contents.held()), (None, (2, 0)));
        assert_eq!(read(&contents, two), Some(b"two".to_vec()));
        assert_eq!(read(&contents, three), Some(b"3".to_vec()));
        assert_eq!((read(&contents, Handle::NONE), contents.held()), (None, (0, 0)));
    }

    /// Where agents keep packets, one that has arrived may arrive again.
    #[test]
    fn an_agents_packet_is_kept_until_the_agent_has_none() {
        let contents = Contents::default();
        let _custody = Custody::new(contents.clone(), 1, [ComponentId(0)].into_iter());
        let handle = contents.put(b"kept");
        assert!(read(&contents, handle).is_some());
        contents.sweep(&[handle]);
        assert_eq!(contents.held(), (0, 1));
        contents.store().copies.add(handle);
        assert_eq!(read(&contents, handle), Some(b"kept".to_vec()));
        contents.sweep(&[]);
        assert_eq!(read(&contents, handle), None);
        assert_eq!(contents.put(b"next").slot(), handle.slot());
    }

    #[test]
    fn without_room_a_packet_is_empty_and_the_lack_is_noted() {
        let contents = Contents::default();
        let handles: Vec<Handle> = (0..Handle::MAX_SLOT).map(|_| contents.put(b"")).collect();
        assert!(!handles.contains(&Handle::NONE) && !contents.is_overfull());
        assert_eq!(contents.put(b"more"), Handle::NONE);
        assert!(contents.is_overfull());
        assert!(read(&contents, handles[7]).is_some());
        assert_eq!(contents.put(b"more").slot(), handles[7].slot());
    }
}
