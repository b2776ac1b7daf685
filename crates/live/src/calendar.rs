//! The driver in virtual time: the network of a scenario between two Linux kernels.

use std::io;
use std::path::Path;

use lasthop_base::{Duration, Time};
use lasthop_uml::{Cards, Network};
pub use lasthop_uml::{Outcome, Settings as Guests};

use crate::burst::Leaving;
use crate::emulation::{Emulation, Side};
use crate::emulator_core::{Books, Core, Exit, Settings};
use crate::frames::Mergeable;
use crate::interface::Sent;
use crate::report::Report;

/// The network of a scenario between two kernels, which it lets run: its events and theirs happen in one time.
#[allow(missing_debug_implementations)]
pub struct Calendar {
    calendar: lasthop_uml::Calendar,
    between: Between,
}

/// What is between the kernels. Its driver's clock is that of the calendar.
struct Between(Core);

/// Network cards, to which packets leave at a time.
struct Exits<'a> {
    now_ns: u64,
    cards: &'a mut Cards,
}

impl Exit for Exits<'_> {
    fn leave(
        &mut self,
        books: &mut Books,
        side: Side,
        frame: &[u8],
        _mergeable: Mergeable,
        leaving: Leaving,
    ) -> io::Result<()> {
        let sent = if self.cards.deliver(side as usize, frame)? { Sent::Delivered } else { Sent::NoRoom };
        let late_ns = self.now_ns.saturating_sub(leaving.due_ns) + leaving.delayed_ns;
        books.left(side, leaving, sent, Duration::from_nanos(late_ns))
    }
}

impl Network for Between {
    fn next_wakeup(&self) -> Time {
        Time::from_nanos(self.0.due_ns())
    }

    fn advance(&mut self, now: Time, cards: &mut Cards) -> io::Result<()> {
        let now_ns = now.as_nanos();
        self.0.advance(now_ns, &mut Exits { now_ns, cards })
    }

    fn take(&mut self, now: Time, from: usize, frame: &mut [u8], cards: &mut Cards) -> io::Result<()> {
        let now_ns = now.as_nanos();
        self.0.accept(Side::BOTH[from], frame, now_ns, 0, &mut Exits { now_ns, cards })
    }
}

impl Calendar {
    /// The network of an emulation between two kernels, of its source and of its destination. They are to connect to the
    /// sockets `time` and `net` in these directories. Of the settings, those about real time do not matter.
    ///
    /// # Errors
    /// As [`Emulator::new`](crate::Emulator::new), and if the sockets cannot be made.
    pub fn new(
        emulation: Emulation,
        directories: [&Path; 2],
        guests: Guests,
        settings: Settings,
    ) -> io::Result<Calendar> {
        let between = Between(Core::new(emulation, settings)?);
        Ok(Calendar { calendar: lasthop_uml::Calendar::new(directories, guests)?, between })
    }

    /// Lets the kernels run until the program of the destination has ended, or `keep_going` returns false. It is called at
    /// least fifty times a second.
    ///
    /// # Errors
    /// If a kernel does not keep to the protocols, or the capture cannot be written.
    pub fn run(&mut self, keep_going: impl FnMut() -> bool) -> io::Result<Outcome> {
        self.calendar.run(&mut self.between, keep_going)
    }

    /// How many messages were exchanged with the kernels.
    pub fn messages(&self) -> u64 {
        self.calendar.messages()
    }

    /// Ends the emulation. Its report depends on the scenario, the kernels and the programs, and not on this machine.
    ///
    /// # Errors
    /// If the capture cannot be written.
    pub fn finish(self) -> io::Result<Report> {
        self.between.0.finish(self.calendar.now().as_nanos(), Duration::ZERO)
    }
}
