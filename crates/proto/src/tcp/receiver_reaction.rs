//! Hooks for schemes in the receiver.

use core::fmt::Debug;

use lasthop_base::Time;

use super::reaction::Reactions;
use super::receiver::Receiver;
use crate::component::Reach;
use crate::packet::{Notice, Segment};

/// A scheme's extension of the receiver.
pub trait ReceiverReaction: Debug + Send {
    /// A segment of an open connection has arrived and is not processed yet; `receiver` is in the state
    /// before it.
    fn on_segment(&mut self, _now: Time, _segment: &Segment, _receiver: &mut Receiver) {}

    /// A control message about this connection has arrived.
    fn on_notice(&mut self, _now: Time, _notice: &Notice, _receiver: &mut Receiver) {}

    /// The radio signal of the receiver's mobile host has changed, or is about to. Called only if a scheme
    /// [watches](crate::scheme::Installer::watch_signal) the signal.
    fn on_reach(&mut self, _now: Time, _reach: Reach, _receiver: &mut Receiver) {}

    /// An acknowledgement is about to be sent, and may be changed.
    fn on_ack(&mut self, _now: Time, _ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        AckResponse::Send
    }

    /// Deadline of [`on_timer`](ReceiverReaction::on_timer). It may change with each call of another hook.
    fn next_wakeup(&self) -> Time {
        Time::NEVER
    }

    /// The deadline was reached; the next one must be later.
    fn on_timer(&mut self, _now: Time, _receiver: &mut Receiver) {}
}

/// Whether an acknowledgement is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckResponse {
    /// It is sent.
    #[default]
    Send,
    /// It is suppressed. Its content may be sent later ([`Receiver::acknowledge_now`]).
    Withhold,
}

/// The reactions of a receiver, in calling order. An acknowledgement suppressed by one is not passed to the
/// next.
pub type ReceiverReactions = Reactions<dyn ReceiverReaction>;

impl ReceiverReactions {
    pub(super) fn next_wakeup(&self) -> Time {
        self.each().map(|reaction| reaction.next_wakeup()).min().unwrap_or(Time::NEVER)
    }
}
