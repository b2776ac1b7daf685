//! The states of a connection (RFC 9293 section 3.3.2).

use std::mem;

use lasthop_base::Time;

use crate::connection::Connection;
use crate::handshake::{Handshake, PeerSyn};

/// The name of a state (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateName {
    /// No connection.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN was sent.
    SynSent,
    /// SYN was sent and received.
    SynReceived,
    /// Data flow in both directions.
    Established,
    /// We have sent FIN.
    FinWait1,
    /// Our FIN is acknowledged.
    FinWait2,
    /// The peer's FIN has arrived.
    CloseWait,
    /// Both ends have sent FIN simultaneously; ours is not acknowledged.
    Closing,
    /// The peer has closed first; our FIN is not acknowledged.
    LastAck,
    /// Both FINs are acknowledged; waiting until old segments have left the network.
    TimeWait,
}

impl StateName {
    /// Whether the state diagram (RFC 9293 figure 5) or an error (section 3.10) leads from this state to `next`.
    pub(crate) fn may_become(self, next: StateName) -> bool {
        use StateName::{
            CloseWait, Closed, Closing, Established, FinWait1, FinWait2, LastAck, Listen, SynReceived,
            SynSent, TimeWait,
        };
        matches!(
            (self, next),
            (Listen, SynReceived)
                | (SynSent, SynReceived | Established)
                | (SynReceived, Established | Listen)
                | (Established, FinWait1 | CloseWait)
                | (FinWait1, FinWait2 | Closing)
                | (FinWait2 | Closing, TimeWait)
                | (CloseWait, LastAck)
                | (_, Closed)
        )
    }
}

/// A state with its data.
#[derive(Debug)]
pub(crate) enum State {
    Closed,
    Listen,
    SynSent(Handshake),
    SynReceived(Handshake, PeerSyn),
    Established(Box<Connection>),
    FinWait1(Box<Connection>),
    /// Ends at this time: finite only once the application no longer reads.
    FinWait2(Box<Connection>, Time),
    CloseWait(Box<Connection>),
    Closing(Box<Connection>),
    LastAck(Box<Connection>),
    /// Ends at this time.
    TimeWait(Box<Connection>, Time),
}

impl State {
    pub(crate) fn name(&self) -> StateName {
        match self {
            State::Closed => StateName::Closed,
            State::Listen => StateName::Listen,
            State::SynSent(_) => StateName::SynSent,
            State::SynReceived(..) => StateName::SynReceived,
            State::Established(_) => StateName::Established,
            State::FinWait1(_) => StateName::FinWait1,
            State::FinWait2(..) => StateName::FinWait2,
            State::CloseWait(_) => StateName::CloseWait,
            State::Closing(_) => StateName::Closing,
            State::LastAck(_) => StateName::LastAck,
            State::TimeWait(..) => StateName::TimeWait,
        }
    }

    /// Replaces the state by `next(state)`.
    ///
    /// # Panics
    /// In debug builds, if the state diagram has no such transition.
    pub(crate) fn change(&mut self, next: impl FnOnce(State) -> State) {
        let before = self.name();
        *self = next(mem::replace(self, State::Closed));
        let after = self.name();
        debug_assert!(before == after || before.may_become(after), "{before:?} does not lead to {after:?}");
    }

    /// The connection of a synchronised state.
    pub(crate) fn connection(&self) -> Option<&Connection> {
        match self {
            State::Closed | State::Listen | State::SynSent(_) | State::SynReceived(..) => None,
            State::Established(connection)
            | State::FinWait1(connection)
            | State::FinWait2(connection, _)
            | State::CloseWait(connection)
            | State::Closing(connection)
            | State::LastAck(connection)
            | State::TimeWait(connection, _) => Some(connection),
        }
    }

    /// The connection of a synchronised state.
    pub(crate) fn connection_mut(&mut self) -> Option<&mut Connection> {
        match self {
            State::Closed | State::Listen | State::SynSent(_) | State::SynReceived(..) => None,
            State::Established(connection)
            | State::FinWait1(connection)
            | State::FinWait2(connection, _)
            | State::CloseWait(connection)
            | State::Closing(connection)
            | State::LastAck(connection)
            | State::TimeWait(connection, _) => Some(connection),
        }
    }
}
