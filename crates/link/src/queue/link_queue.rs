//! The queue of one link in one run.

use lasthop_base::{Bytes, Duration, Stream};

use super::black_hole::BlackHole;
use super::{Discipline, DropTail, Queue, QueueLimit};

/// An empty queue for a link. Drop-tail is a value of its own, because some links need no discipline for it.
#[allow(missing_debug_implementations)]
pub enum LinkQueue {
    /// Drop-tail with this capacity.
    DropTail(QueueLimit),
    /// A queue with a discipline.
    Managed(Box<dyn Discipline>),
}

impl LinkQueue {
    /// Builds the queue that a scenario describes, for a link that transmits a packet of a given size in `air_time`.
    /// `random` makes the stream of a discipline.
    ///
    /// # Panics
    /// If the parameters are not [valid](Queue::validate).
    pub fn new(
        queue: &Queue,
        air_time: impl Fn(Bytes) -> Duration,
        random: impl FnOnce() -> Stream,
    ) -> LinkQueue {
        match queue {
            Queue::DropTail(limit) => LinkQueue::DropTail(*limit),
            Queue::Managed(management) => LinkQueue::Managed(management.build(air_time, random())),
        }
    }

    /// The queue, which no packet above `largest` enters.
    pub fn in_black_hole(self, largest: Option<Bytes>) -> LinkQueue {
        match largest {
            None => self,
            Some(largest) => {
                LinkQueue::Managed(Box::new(BlackHole { largest, queue: self.into_discipline() }))
            }
        }
    }

    /// The queue as a discipline.
    pub fn into_discipline(self) -> Box<dyn Discipline> {
        match self {
            LinkQueue::DropTail(limit) => Box::new(DropTail::new(limit)),
            LinkQueue::Managed(queue) => queue,
        }
    }
}

impl From<QueueLimit> for LinkQueue {
    fn from(limit: QueueLimit) -> LinkQueue {
        LinkQueue::DropTail(limit)
    }
}

impl From<Box<dyn Discipline>> for LinkQueue {
    fn from(queue: Box<dyn Discipline>) -> LinkQueue {
        LinkQueue::Managed(queue)
    }
}
