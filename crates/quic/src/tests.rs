//! Two ends by themselves, whose datagrams arrive at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::proto::{self, Connection, Dir, Event};
use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_proto::application::{Activity, Config, Distribution, Page, Pages};
use lasthop_proto::stack::{Contents, Dialogue, Stack, StackFlow};
use lasthop_proto::tcp::Connection as Hosts;
use lasthop_proto::{Component, Effect, EndCounters, FlowId, Handle, HostId, Out, Port, Signal, quic};

use super::config::{self, Secrets, Use};
use super::exchange;
use super::host::{Host, Loss, Place, Role, Tally};
use super::stack::Library;

/// The bytes of datagrams, by their handles.
#[derive(Debug, Default)]
struct Kept(Mutex<(u32, BTreeMap<u32, Vec<u8>>)>);

impl Contents for Kept {
    fn put(&self, bytes: &[u8]) -> Handle {
        let (last, kept) = &mut *self.0.lock().expect("one thread");
        *last += 1;
        kept.insert(*last, bytes.to_vec());
        Handle(*last)
    }

    fn take(&self, handle: Handle, read: &mut dyn FnMut(&[u8])) {
        self.0.lock().expect("one thread").1.remove(&handle.0).iter().for_each(|bytes| read(bytes));
    }
}

/// Opens a stream in one direction once it is connected.
#[derive(Default)]
struct Stranger {
    is_connected: bool,
    has_opened: bool,
}

impl Role for Stranger {
    fn on_event(&mut self, _now: Time, event: &Event, connection: &mut Connection, _out: &mut Out) {
        if matches!(event, Event::Connected) {
            self.is_connected = true;
            if let Some(stream) = connection.streams().open(Dir::Uni) {
                self.has_opened = true;
                let _ = connection.send_stream(stream).finish();
            }
        }
    }

    fn on_lost(&mut self, _is_silent: bool, _out: &mut Out) -> Loss {
        Loss::Harmless
    }

    fn act(&mut self, _now: Time, _connection: &mut Connection) {}

    fn count(&self, _counters: &mut EndCounters, _tally: Tally) {}
}

/// Lets a client and a server talk for a second; the number of datagrams that the client sends.
fn talk<'a>(client: &'a mut dyn Component, server: &'a mut dyn Component) -> u64 {
    let (ends, mut sent, mut out) = ([client, server], 0, Out::default());
    loop {
        let (index, now) =
            (0..2).map(|end| (end, ends[end].next_wakeup())).min_by_key(|each| each.1).expect("two ends");
        if now > Time::ZERO + Duration::from_secs(1) {
            return sent;
        }
        ends[index].wake(now, &mut out);
        while let Some((_, effect)) = out.take() {
            match effect {
                Effect::Send(_, packet) => {
                    let end = packet.dst.index();
                    sent += end as u64;
                    ends[end].receive(now, &packet, Port::ONLY, &mut out);
                }
                Effect::Signal(signal @ Signal::Request(_)) => ends[1].on_signal(now, &signal, &mut out),
                _ => {}
            }
        }
    }
}

fn page() -> Config {
    let page = Pages {
        page: Page::default(),
        request: Distribution::Constant(Bytes(350)),
        reading: Distribution::Constant(Duration::ZERO),
        pages: Some(1),
    };
    Config { start: Time::ZERO, stop: Time::NEVER, tls: true, activity: Activity::Pages(page).over_streams() }
}

/// A flow with these settings.
pub(crate) fn with_flow<T>(settings: &quic::Settings, test: impl FnOnce(&StackFlow<'_>) -> T) -> T {
    test(&StackFlow {
        connection: Hosts { src: HostId(0), dst: HostId(1), flow: FlowId(0) },
        sender: proto::SENDERS[0].name,
        quic: settings,
        random: Streams::new(46, 1).stream("quic"),
        contents: Arc::new(Kept::default()),
        log: None,
        sidecar: None,
    })
}

/// Without and with TLS.
fn with_ends(test: impl Fn(&StackFlow<'_>, &Dialogue<'_>)) {
    let streams = Streams::new(46, 1);
    let dialogue = Dialogue { responses: FlowId(1), config: &page(), name: "user", streams };
    for tls in [false, true] {
        with_flow(&quic::Settings { tls, ..quic::Settings::default() }, |flow| test(flow, &dialogue));
    }
}

/// A server of requests permits no streams but those in both directions, whose numbers tell it the requests.
#[test]
fn a_stream_in_one_direction_is_not_permitted() {
    with_ends(|flow, dialogue| {
        let [server, client] = Secrets::of(flow);
        let local = config::client(flow, Use::Exchange, client);
        let place = Place { own: HostId(0), peer: HostId(1), flow: FlowId(0), port: Port::ONLY };
        let mut client = Host::new(flow, place, Stranger::default(), local, [Time::ZERO; 2]);
        let mut server = exchange::server(flow, dialogue, server);
        client.connect(Time::ZERO);
        talk(&mut client, &mut server);
        assert!(client.role.is_connected && !client.role.has_opened);
    });
}

/// Requests that are made together share datagrams: four of 350 bytes.
#[test]
fn requests_of_a_page_share_datagrams() {
    with_ends(|flow, dialogue| {
        let [mut client, mut server] = Library.application(flow, dialogue);
        let sent = talk(&mut *client, &mut *server);
        let usage = client.usage(Time::ZERO + Duration::from_secs(1)).expect("a user");
        assert_eq!((usage.requests, usage.waits.len()), (50, 50));
        let acks = client.report().expect("it reports").counters.acks_sent.expect("they are counted");
        assert!(sent - acks.min(sent) < 30, "{sent} datagrams, {acks} with ACKs");
    });
}
