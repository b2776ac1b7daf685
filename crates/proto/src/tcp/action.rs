//! What schemes do to a connection, and which senders heed it.
//!
//! A scheme [declares](crate::scheme::Installer::at_sender) the actions of its reactions. Every recovery and every
//! congestion control [answers](super::Settings::ignored) for each of them, so that a run without effect has its reason.

/// An action of a scheme's reaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// At the sender: classifies a loss ([`Reaction::judge`](super::Reaction::judge)), so that the window shrinks less.
    Judge,
    /// At the sender: changes the duplicate ACK threshold ([`Reaction::dupthresh`](super::Reaction::dupthresh)).
    Threshold,
    /// At the sender: requests a retransmission ([`SenderState::resend`](super::SenderState::resend)).
    Resend,
    /// At the sender: restarts the retransmission timer.
    RestartTimer,
    /// At the sender: sets the congestion window.
    SetWindow,
    /// At the sender: sets the pacing rate.
    SetRate,
    /// At the sender: sets the segment size.
    SetSegmentSize,
    /// At the sender: sets the DSCP of packets, which links read.
    SetDscp,
    /// At the receiver: repeats its acknowledgement although nothing has arrived.
    RepeatAck,
    /// At the receiver: withholds or changes acknowledgements, or sends other messages.
    ChangeAck,
}
