//! What a scheme makes the sender do.

use core::fmt::Debug;

use lasthop_base::Time;

use super::state::SenderState;
use crate::packet::Notice;

/// A scheme's hooks in the sender. The sender knows no scheme by name; a scheme's file implements
/// those that it needs.
pub trait Reaction: Debug + Send {
    /// A control message about this connection arrived.
    fn on_notice(&mut self, now: Time, notice: &Notice, sender: &mut SenderState);
}
