//! What a client asks for, and when.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use lasthop_base::{Bytes, Duration, Invalid, Streams, Time};

use super::messages::{self, Messages};
use super::page::{self, Pages};
use super::video::{Player, VideoStats, Viewing};

/// A request that a client makes: its connection and size, and the size of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The number of the connection.
    pub connection: u8,
    /// Its size, without the response.
    pub size: Bytes,
    /// Size of the response.
    pub response: Bytes,
}

/// A user's wait for a response or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Time of the request.
    pub since: Time,
    /// From the request until its last byte was delivered.
    pub length: Duration,
}

impl Wait {
    /// The end of the wait.
    pub fn until(&self) -> Time {
        self.since + self.length
    }
}

/// Parameters of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// When the activity begins.
    pub start: Time,
    /// No request, page or segment begins from this instant on; [`Time::NEVER`] if unlimited.
    pub stop: Time,
    /// Whether each connection begins with a TLS 1.3 handshake: an exchange of its own before the first request.
    pub tls: bool,
    /// What the user does.
    pub activity: Activity,
}

/// What the user of an application does.
#[derive(Clone, Debug, PartialEq)]
pub enum Activity {
    /// Exchanges messages with a server.
    Messages(Messages),
    /// Reads pages.
    Pages(Pages),
    /// Watches a video.
    Video(Viewing),
}

impl Config {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// The path of the invalid key within the application's table, and the problem.
    pub fn validate(&self) -> Result<(), (&'static str, Invalid)> {
        match &self.activity {
            Activity::Messages(messages) => messages.validate(),
            Activity::Pages(pages) => pages.validate(),
            Activity::Video(viewing) => viewing.validate(),
        }
    }
}

impl Activity {
    /// The number of its connections.
    pub fn connections(&self) -> u8 {
        match self {
            Activity::Messages(_) | Activity::Video(_) => 1,
            Activity::Pages(pages) => pages.page.connections(),
        }
    }

    /// Whether it has an end, so that a run waits for it.
    pub fn ends(&self) -> bool {
        match self {
            Activity::Messages(messages) => messages.requests.is_some(),
            Activity::Pages(pages) => pages.pages.is_some(),
            Activity::Video(_) => true,
        }
    }

    /// The activity of the application called `name` in a run.
    pub(super) fn behaviour(
        &self,
        start: Time,
        stop: Time,
        streams: Streams,
        name: &str,
    ) -> Box<dyn Behaviour> {
        match self {
            Activity::Messages(config) => {
                Box::new(messages::Exchanges::new(*config, start, stop, streams, name))
            }
            Activity::Pages(config) => {
                Box::new(page::Browser::new(config.clone(), start, stop, streams, name))
            }
            Activity::Video(config) => Box::new(Player::new(config.clone(), start, stop, streams, name)),
        }
    }
}

/// What a user experienced, beyond the response times.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Experience {
    /// Of messages there are response times only.
    #[default]
    Messages,
    /// The pages that were loaded, in order.
    Pages(Vec<Wait>),
    /// The playback of a video.
    Video(VideoStats),
}

/// The running activity of a client. It decides what is asked for; the [`Client`](super::Client) carries it out.
pub(super) trait Behaviour: Debug + Send {
    /// Does what is due at `now`, the [next wakeup](Behaviour::next_wakeup) or later.
    fn wake(&mut self, now: Time, asked: &mut Vec<Request>);

    /// The oldest request of a connection, made at `since`, has its whole response. A connection answers in the order of
    /// its requests.
    fn answered(&mut self, now: Time, connection: u8, since: Time, asked: &mut Vec<Request>);

    /// When it has something to do next; [`Time::NEVER`] if that depends on a response.
    fn next_wakeup(&self) -> Time;

    /// Whether it makes no more requests.
    fn is_over(&self) -> bool;

    /// What the user experienced until `now`.
    fn experience(&self, now: Time) -> Experience;
}
