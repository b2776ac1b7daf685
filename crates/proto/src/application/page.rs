//! Web pages with many objects, loaded by a browser.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Invalid, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;
use super::activity::Behaviour;
use super::messages::at_least_one;
use crate::component::Request;
use crate::report::{Experience, Wait};

/// A user who loads and reads one page at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Pages {
    /// The pages.
    pub page: Page,
    /// Distribution of the sizes of requests.
    pub request: Distribution<Bytes>,
    /// Distribution of reading times: before the first page, and after each.
    pub reading: Distribution<Duration>,
    /// Number of pages; `None` for no limit.
    pub pages: Option<u64>,
}

/// The objects of a page, and how a browser fetches them: first the HTML, then all objects of wave 1, which
/// the HTML references, then those of wave 2, which style sheets and scripts of wave 1 reference, and so on.
/// The page is loaded when all objects have arrived. Connections stay open between pages. There is no cache.
///
/// The default page is the median mobile home page of October 2024 (HTTP Archive, Web Almanac 2024, "Page
/// Weight"): 8 style sheets with 73 KB, 22 scripts with 558 KB and 16 images with 900 KB in wave 1, and 3
/// fonts with 111 KB in wave 2. Equal sizes within a group, and the wave of each group, are our choice.
///
/// ```toml
/// [application.web.page]
/// http = "1.1"
/// html.constant = "30 KB"
///
/// [[application.web.page.objects]]
/// count = 12
/// size.lognormal = { median = "9 KB", sigma = 1.2 }
///
/// [[application.web.page.objects]]
/// count = 2
/// size.constant = "40 KB"
/// wave = 2
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Page {
    /// Over TCP, `"1.1"`: several connections, each with one request at a time (RFC 9112); or `"2"`: all requests at once
    /// over one connection, on which the responses come one after the other, in the order of the requests (RFC 9113). Over
    /// QUIC, HTTP/3 in place of both (RFC 9114): one connection with a stream for each request.
    pub http: Http,
    /// Maximum number of HTTP/1.1 connections, each opened when an object needs it. Six as in Chromium and
    /// Firefox. Neither HTTP/2 nor HTTP/3 reads it.
    pub connections: u8,
    /// Distribution of the size of the HTML.
    pub html: Distribution<Bytes>,
    /// The other objects: a list of groups, each with a `count`, the distribution of the `size` of an object,
    /// and the `wave` of its requests, by default 1.
    pub objects: Vec<Objects>,
    /// Distribution of the parsing time before each wave.
    pub parsing: Distribution<Duration>,
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Http {
    /// Several connections, each with one request at a time (RFC 9112).
    #[serde(rename = "1.1")]
    Http11,
    /// One connection with concurrent requests (RFC 9113). The server sends the responses sequentially, as
    /// under the priorities of most browsers for render-blocking objects.
    #[default]
    #[serde(rename = "2")]
    Http2,
}

/// Objects of a page with the same size distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the keys count and size")]
pub struct Objects {
    /// Number of objects.
    pub count: u32,
    /// Distribution of the size of each.
    pub size: Distribution<Bytes>,
    /// The wave in which they are requested, from 1. A wave begins once all objects of the wave before have
    /// arrived.
    #[serde(default = "first")]
    pub wave: u8,
}

fn first() -> u8 {
    1
}

/// HTTP Archive, Web Almanac 2024, "Page Weight": requests of the median mobile page by type of content, and
/// the median weight of each type on mobile home pages: 18 KB of HTML, 73 KB of CSS, 558 KB of JavaScript,
/// 900 KB of images and 111 KB of fonts. Equal sizes within a type, and fonts in the last wave since style
/// sheets reference them, are our choice.
const HTML: Bytes = Bytes(18_000);
const OBJECTS: [(u32, Bytes, u8); 4] = [
    (8, Bytes(73_000 / 8), 1),
    (22, Bytes(558_000 / 22), 1),
    (16, Bytes(900_000 / 16), 1),
    (3, Bytes(111_000 / 3), 2),
];
/// Connections per server in Chromium and Firefox.
const CONNECTIONS: u8 = 6;
/// Limit of the number of objects of a page, to bound memory.
const MAX_OBJECTS: u64 = 100_000;
/// Limit of the number of connections; no browser opens more.
const MAX_CONNECTIONS: u8 = 32;

impl Default for Page {
    fn default() -> Page {
        let objects =
            OBJECTS.map(|(count, size, wave)| Objects { count, size: Distribution::Constant(size), wave });
        Page {
            http: Http::default(),
            connections: CONNECTIONS,
            html: Distribution::Constant(HTML),
            objects: objects.into(),
            parsing: Distribution::Constant(Duration::ZERO),
        }
    }
}

impl Page {
    /// The number of connections.
    pub(super) fn connections(&self) -> u8 {
        match self.http {
            Http::Http11 => self.connections,
            Http::Http2 => 1,
        }
    }
}

impl Pages {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// The path of the invalid key, and the problem.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Invalid)> {
        let of = |key| move |invalid| (key, invalid);
        at_least_one("requests", self.pages)?;
        self.request.validate().map_err(of("request"))?;
        self.reading.validate().map_err(of("think"))?;
        self.page.html.validate().map_err(of("page.html"))?;
        self.page.parsing.validate().map_err(of("page.parsing"))?;
        let invalid = |key, problem| Err((key, Invalid { field: "", problem }));
        if !(1..=MAX_CONNECTIONS).contains(&self.page.connections) {
            return invalid("page.connections", "expected a number of connections from 1 to 32");
        }
        for objects in &self.page.objects {
            objects.size.validate().map_err(of("page.objects"))?;
            if objects.wave == 0 {
                return invalid("page.objects", "found wave 0, expected at least 1; wave 0 is the HTML");
            }
        }
        if self.page.objects.iter().map(|objects| u64::from(objects.count)).sum::<u64>() > MAX_OBJECTS {
            return invalid("page.objects", "found more than 100,000 objects in a page");
        }
        Ok(())
    }
}

/// A browser in a run. The sizes of the k-th page do not depend on the network.
#[derive(Debug)]
pub(super) struct Browser {
    config: Pages,
    stop: Time,
    requests: Stream,
    sizes: Stream,
    times: Stream,
    state: State,
    /// Sizes of the objects of this wave that are not requested yet.
    queue: VecDeque<Bytes>,
    /// Outstanding requests of each connection.
    outstanding: Vec<u32>,
    loaded: Vec<Wait>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Waiting until this time to open the next page.
    Reading(Time),
    /// Loading the objects of this wave, of the page opened at `since`; wave 0 is the HTML.
    Loading { since: Time, wave: u8 },
    /// Parsing until `due`, before requesting the objects of this wave.
    Parsing { since: Time, wave: u8, due: Time },
    /// No more pages.
    Over,
}

impl Browser {
    pub(super) fn new(config: Pages, start: Time, stop: Time, streams: Streams, name: &str) -> Browser {
        let stream = |of: &str| streams.stream(&[of, name].concat());
        let mut times = stream("think:");
        let first = start + config.reading.draw(&mut times);
        Browser {
            outstanding: alloc::vec![0; usize::from(config.page.connections())],
            config,
            stop,
            requests: stream("request:"),
            sizes: stream("response:"),
            times,
            state: State::Reading(first),
            queue: VecDeque::new(),
            loaded: Vec::new(),
        }
    }

    /// Requests the objects of a wave.
    fn begin_wave(&mut self, since: Time, wave: u8, asked: &mut Vec<Request>) {
        let Page { html, objects, .. } = &self.config.page;
        if wave == 0 {
            self.queue.push_back(html.draw(&mut self.sizes));
        }
        for group in objects.iter().filter(|group| group.wave == wave) {
            self.queue.extend((0..group.count).map(|_| group.size.draw(&mut self.sizes)));
        }
        self.state = State::Loading { since, wave };
        self.ask(asked);
    }

    /// Requests objects of the wave, up to the concurrency of the connections.
    fn ask(&mut self, asked: &mut Vec<Request>) {
        let concurrency = match self.config.page.http {
            Http::Http11 => 1,
            Http::Http2 => u32::MAX,
        };
        for (connection, outstanding) in (0..).zip(&mut self.outstanding) {
            while *outstanding < concurrency
                && let Some(response) = self.queue.pop_front()
            {
                *outstanding += 1;
                let size = self.config.request.draw(&mut self.requests);
                asked.push(Request { connection, size, response });
            }
        }
    }

    /// The first wave after `wave` that has objects.
    fn next_wave(&self, wave: u8) -> Option<u8> {
        let objects = self.config.page.objects.iter().filter(|group| group.wave > wave && group.count > 0);
        objects.map(|group| group.wave).min()
    }

    /// The state after the last object of a page.
    fn read(&mut self, now: Time) -> State {
        if self.config.pages == Some(self.loaded.len() as u64) || now >= self.stop {
            return State::Over;
        }
        // With zero delay and reading time, pages would otherwise never advance time.
        let least = now + Duration::from_nanos(1);
        State::Reading((now + self.config.reading.draw(&mut self.times)).max(least))
    }
}

impl Behaviour for Browser {
    fn wake(&mut self, now: Time, asked: &mut Vec<Request>) {
        match self.state {
            State::Reading(_) if now >= self.stop => self.state = State::Over,
            State::Reading(due) if now >= due => self.begin_wave(now, 0, asked),
            State::Parsing { since, wave, due } if now >= due => self.begin_wave(since, wave, asked),
            _ => {}
        }
    }

    fn on_response(&mut self, now: Time, connection: u8, _since: Time, asked: &mut Vec<Request>) {
        let State::Loading { since, wave } = self.state else { return };
        self.outstanding[usize::from(connection)] -= 1;
        self.ask(asked);
        if self.outstanding.iter().any(|&number| number > 0) {
            return;
        }
        match self.next_wave(wave) {
            Some(wave) => {
                let due = now + self.config.page.parsing.draw(&mut self.times);
                self.state = State::Parsing { since, wave, due };
                self.wake(now, asked);
            }
            None => {
                self.loaded.push(Wait { since, length: now.since(since) });
                self.state = self.read(now);
            }
        }
    }

    fn next_wakeup(&self) -> Time {
        match self.state {
            State::Reading(due) => due.min(self.stop),
            State::Parsing { due, .. } => due,
            State::Loading { .. } | State::Over => Time::NEVER,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn experience(&self, _now: Time) -> Experience {
        Experience::Pages(self.loaded.clone())
    }
}
