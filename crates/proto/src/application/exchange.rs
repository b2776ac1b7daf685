//! The seam between an application and its transport.

use lasthop_base::{Bytes, Time};

use crate::component::{Component, Out, Request};

/// Length of the server's part of a TLS 1.3 handshake over either transport, most of it a chain of two or three certificates.
/// Our choice; compressed (RFC 8879), chains have 2 to 3 kB.
pub(crate) const SERVER_FLIGHT: Bytes = Bytes(4_000);

/// The client's end of what carries an application's requests to its server, and the responses back.
///
/// The [`Client`](super::Client) decides which requests are made, and when; an exchange decides how their bytes
/// get across. It tells the server of each request by [`Signal::Request`](crate::component::Signal::Request).
///
/// | | [TCP](super::TcpConnections) | QUIC |
/// |---|---|---|
/// | connections | one or several | one |
/// | a request | the next bytes of its connection | a stream |
/// | responses | in the order of requests, within a connection | as each one completes |
/// | opened by | the first request of each connection | the first request, and the first after a timeout |
///
/// As a [`Component`] it has the client's packets, and [reports](Component::report) on all connections together. It is
/// also [woken](Component::wake) at the activity's deadlines, and does nothing then.
pub trait Exchange: Component {
    /// Sends requests in their order, at once or as soon as the transport permits. Those of one call may share packets.
    fn ask(&mut self, now: Time, requests: &[Request], out: &mut Out);

    /// Takes the next complete response.
    fn answer(&mut self, now: Time, out: &mut Out) -> Option<Answer>;

    /// Whether a response is outstanding.
    fn is_waiting(&self) -> bool;

    /// Closes all connections, after the last response.
    fn close(&mut self, now: Time, out: &mut Out);

    /// Whether all connections that were opened are closed, as far as the client waits for that.
    fn has_closed(&self) -> bool;

    /// Whether a connection was aborted, reset or given up.
    fn is_lost(&self) -> bool;

    /// Aborts all connections after one was lost.
    fn abort(&mut self, now: Time, out: &mut Out);
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The connection of its request.
    pub connection: u8,
    /// Time of the request.
    pub since: Time,
}
