//! The ARQ of a link as a scenario describes it.

use alloc::boxed::Box;

use lasthop_base::{Bytes, Duration, Invalid, Stream};

use super::{Arq, Config, Retransmissions};

/// Parameters of an ARQ protocol, as in scenario files.
pub trait Protocol {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter.
    fn validate(&self) -> Result<(), Invalid>;

    /// Builds the ARQ with nothing to send; `backoff` is its random stream.
    ///
    /// # Panics
    /// If the parameters are not [valid](Protocol::validate).
    fn build(&self, backoff: Stream) -> Box<dyn Arq>;

    /// Maximum number of retransmissions of a unit, and the mean wait from a failed attempt to the next.
    fn retries(&self) -> (Retransmissions, Duration);

    /// Size of the smallest frame, for a protocol that cuts frames itself. The link's units are then single bytes, and one
    /// attempt carries several.
    fn frame(&self) -> Option<Bytes> {
        None
    }
}

impl Config {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// A random backoff with a mean or maximum of zero; a window or reports of no units; frames without data.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.protocol().map_or(Ok(()), Protocol::validate)
    }

    /// [`Protocol::build`]; `None` without an ARQ: each unit is then sent once, whatever its outcome.
    ///
    /// # Panics
    /// If the parameters are not [valid](Config::validate).
    pub fn build(&self, backoff: Stream) -> Option<Box<dyn Arq>> {
        if let Err(invalid) = self.validate() {
            panic!("{invalid}");
        }
        self.protocol().map(|protocol| protocol.build(backoff))
    }

    /// [`Protocol::retries`]; `None` without an ARQ.
    pub fn retries(&self) -> Option<(Retransmissions, Duration)> {
        self.protocol().map(Protocol::retries)
    }

    /// [`Protocol::frame`]; `None` without an ARQ.
    pub fn frame(&self) -> Option<Bytes> {
        self.protocol().and_then(Protocol::frame)
    }

    /// Whether the ARQ cuts [frames](Protocol::frame) itself.
    pub fn cuts_frames(&self) -> bool {
        self.frame().is_some()
    }
}
