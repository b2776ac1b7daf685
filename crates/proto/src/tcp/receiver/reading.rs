//! Reading by the application, and the receive window.

use lasthop_base::Time;

use super::Receiver;
use crate::component::Out;

impl Receiver {
    /// Pauses the application: arriving data stay in the buffer until they are [read](Receiver::read).
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// Sends window updates sparingly, like Linux: only if the window is at least twice as large as last
    /// advertised. Otherwise, an application that reads each segment immediately causes two acknowledgements
    /// per segment.
    pub fn spare_updates(&mut self) {
        self.spares_updates = true;
    }

    /// Reads everything and resumes automatic reading. Updates the sender's window as
    /// [`read`](Receiver::read) does.
    pub fn resume(&mut self, now: Time, out: &mut Out) {
        self.paused = false;
        let opens = self.is_worth_telling(self.withheld);
        (self.withheld, self.taken) = (0, 0);
        if opens {
            self.acknowledge(now, None, out);
        }
    }

    /// Reads at most `most` bytes for a paused application; returns the number of bytes read. The right edge
    /// of the window moves when the window can grow by a full segment or half the buffer (RFC 9293 section
    /// 3.8.6.2.2). A window update then leaves immediately, unless updates are
    /// [spared](Receiver::spare_updates). No update is sent after the peer's FIN.
    pub fn read(&mut self, now: Time, most: u64, out: &mut Out) -> u64 {
        let read = most.min(self.unread());
        self.taken += read as u32;
        if self.is_worth_telling(self.taken) {
            self.withheld -= core::mem::take(&mut self.taken);
            if !self.spares_updates || self.has_doubled() {
                self.acknowledge(now, None, out);
            }
        }
        read
    }

    /// Bytes in order that a paused application has not read.
    pub fn unread(&self) -> u64 {
        u64::from(self.withheld - self.taken)
    }

    /// Whether to send a window update for a growth by `growth` bytes.
    fn is_worth_telling(&self, growth: u32) -> bool {
        let least = self.settings.mss().min(self.buffer / 2).max(1);
        growth >= least && !self.has_ended() && !self.reset
    }

    /// Whether the window is at least twice as large as last advertised.
    fn has_doubled(&self) -> bool {
        let known = if self.advertised_edge > self.rcv_nxt { self.advertised_edge - self.rcv_nxt } else { 0 };
        u64::from(self.window()) >= 2 * u64::from(known)
    }

    /// The receive window beyond `rcv_nxt` in bytes (RFC 9293 section 3.3.1: RCV.WND).
    pub fn window(&self) -> u32 {
        self.buffer - self.withheld
    }
}
