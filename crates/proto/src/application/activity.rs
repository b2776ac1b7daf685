//! Activities: which requests a client makes, and when.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::Debug;

use lasthop_base::{Invalid, Streams, Time};

use super::messages::{self, Messages};
use super::page::{self, Http, Pages};
use super::video::{Player, Viewing};
use crate::component::Request;
use crate::report::Experience;

/// Parameters of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// When the activity begins.
    pub start: Time,
    /// No request, page or segment begins at or after this time; [`Time::NEVER`] if unlimited.
    pub stop: Time,
    /// Whether each TCP connection begins with a TLS 1.3 handshake, which takes one round trip before the first request. The
    /// handshake of QUIC includes it.
    pub tls: bool,
    /// The user's activity.
    pub activity: Activity,
}

/// The activity of an application's user.
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
    /// The number of connections that the activity uses.
    pub fn connections(&self) -> u8 {
        match self {
            Activity::Messages(_) | Activity::Video(_) => 1,
            Activity::Pages(pages) => pages.page.connections(),
        }
    }

    /// The activity over a transport with streams: on one connection, with all requests at once, as by HTTP/3 (RFC 9114).
    pub fn over_streams(mut self) -> Activity {
        if let Activity::Pages(pages) = &mut self {
            pages.page.http = Http::Http2;
        }
        self
    }

    /// Whether it is finite. A run waits for finite activities.
    pub fn ends(&self) -> bool {
        match self {
            Activity::Messages(messages) => messages.requests.is_some(),
            Activity::Pages(pages) => pages.pages.is_some(),
            Activity::Video(_) => true,
        }
    }

    /// The running activity of the application called `name`. The name seeds its random streams.
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

/// A running activity. It decides which requests are made; the [`Client`](super::Client) sends them.
pub(super) trait Behaviour: Debug + Send {
    /// Appends to `asked` the requests due at `now`. Called at the [next wake-up](Behaviour::next_wakeup) or later.
    fn wake(&mut self, now: Time, asked: &mut Vec<Request>);

    /// Processes the complete response to a request of a connection, made at `since`, and appends to `asked` the
    /// requests that follow. Requests of a connection that are outstanding together may be answered in any order.
    fn on_response(&mut self, now: Time, connection: u8, since: Time, asked: &mut Vec<Request>);

    /// The next deadline; [`Time::NEVER`] while waiting for a response.
    fn next_wakeup(&self) -> Time;

    /// Whether all requests were made.
    fn is_over(&self) -> bool;

    /// The user's experience until `now`.
    fn experience(&self, now: Time) -> Experience;
}
