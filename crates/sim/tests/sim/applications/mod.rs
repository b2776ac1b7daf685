//! A client and a server over two wired links with scripted losses.

mod pages;
mod video;

use lasthop_base::{BitRate, Bytes, Duration, Streams, Time};
use lasthop_proto::application::{
    self, Activity, Client, ConnectionEnd, Distribution, Messages, Server, TcpConnections, requests,
    responses,
};
use lasthop_proto::tcp::{Connection, Flavour, Profile, Settings};
use lasthop_proto::{
    Body, Component, ComponentId, DropReason, Dscp, Ecn, FlowId, Handle, HostId, Out, Packet, Port, Signal,
    Wait,
};
use lasthop_sim::{Builder, Ended, Engine, Link, NoTap, Node, QueueLimit, Tap};

const ASKS: Connection = Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) };
const ANSWERS: Connection = Connection { src: HostId(1), dst: HostId(0), flow: FlowId(1) };

/// Drops every packet whose bit is set, by order of arrival, and forwards the rest by flow.
struct Filter {
    pattern: u32,
    count: u32,
}

impl Component for Filter {
    fn receive(&mut self, _now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        let lost = self.count < 32 && self.pattern >> self.count & 1 == 1;
        self.count += 1;
        if lost {
            out.drop(*packet, DropReason::Scripted);
        } else {
            out.send(Port(packet.flow.0), *packet);
        }
    }
}

struct Net {
    builder: Builder,
    client: ComponentId,
    server: ComponentId,
}

fn connection_end(settings: &Settings, number: u8) -> ConnectionEnd<'_> {
    ConnectionEnd {
        requests: Connection { flow: FlowId(2 * u32::from(number)), ..ASKS },
        responses: Connection { flow: FlowId(2 * u32::from(number) + 1), ..ANSWERS },
        sending: settings,
        receiving: settings,
        ecn: None,
        reactions: Default::default(),
        receiver_reactions: Default::default(),
    }
}

/// One connection.
fn single(settings: &Settings) -> TcpConnections {
    TcpConnections::new([connection_end(settings, 0)], false)
}

/// A client and its server.
fn ends(net: &mut Builder, settings: &Settings, config: &application::Config, run: u64) -> [ComponentId; 2] {
    let number = config.activity.connections();
    let connections = || (0..number).map(|number| connection_end(settings, number));
    let exchange = TcpConnections::new(connections(), config.tls);
    let client = net.add(Client::new(config, exchange, Streams::new(1, run), "test"));
    let server = net.add(Server::new(connections()));
    net.watch(client, server);
    [client, server]
}

/// 1 Mb/s and 10 ms each way.
fn net(settings: &Settings, config: impl Into<application::Config>, run: u64, lost: [u32; 2]) -> Net {
    net_with(settings, config.into(), run, lost.map(|pattern| Filter { pattern, count: 0 }))
}

/// As [`net`], with these filters behind the links.
fn net_with<F: Component + 'static>(
    settings: &Settings,
    config: application::Config,
    run: u64,
    filters: [F; 2],
) -> Net {
    let mut net = Builder::new();
    let rate = BitRate::from_bps(1_000_000).unwrap();
    let number = config.activity.connections();
    let [client, server] = ends(&mut net, settings, &config, run);
    for ((from, to), filter) in [(client, server), (server, client)].into_iter().zip(filters) {
        let link = net.add(Link::wired(rate, Duration::from_millis(10), QueueLimit::Unlimited));
        let filter = net.add(Box::new(filter) as Box<dyn Component>);
        net.connect((link, Port::ONLY), (filter, Port::ONLY));
        for port in (0..number).flat_map(|number| [requests(number), responses(number)]) {
            net.connect((from, port), (link, Port::ONLY));
            net.connect((filter, port), (to, port));
        }
    }
    Net { builder: net, client, server }
}

/// An exchange of messages.
#[derive(Clone, Copy)]
struct Config {
    request: Distribution<Bytes>,
    response: Distribution<Bytes>,
    think: Distribution<Duration>,
    stop: Time,
    requests: Option<u64>,
    waits: bool,
}

impl From<Config> for application::Config {
    fn from(config: Config) -> application::Config {
        let Config { request, response, think, stop, requests, waits } = config;
        let activity = Activity::Messages(Messages { request, response, think, waits, requests });
        application::Config { start: Time::ZERO, stop, tls: false, activity }
    }
}

/// What a client counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    requests: u64,
    responses: u64,
    total_response_time: Duration,
    greatest_response_time: Duration,
}

fn counts(client: &Client) -> Counts {
    let times = || client.waits().iter().map(|wait| wait.length);
    Counts {
        requests: client.requests(),
        responses: times().count() as u64,
        total_response_time: times().fold(Duration::ZERO, |sum, time| sum + time),
        greatest_response_time: times().max().unwrap_or_default(),
    }
}

fn config() -> Config {
    Config {
        request: Distribution::Constant(Bytes(460)),
        response: Distribution::Constant(Bytes(960)),
        think: Distribution::Constant(Duration::from_millis(100)),
        stop: Time::NEVER,
        requests: Some(3),
        waits: true,
    }
}

/// No handshake, no delayed acknowledgements, segments of up to 1,460 B.
fn bare() -> Settings {
    Settings { handshake: false, close: false, ack_every: 1, ..Settings::default() }
}

fn at(us: u64) -> Time {
    Time::ZERO + Duration::from_micros(us)
}

/// Departures at either end: time in microseconds, component, payload.
#[derive(Default)]
struct Sent(Vec<(u64, u32, u32)>, Vec<(u64, u32)>);

impl Tap for Sent {
    fn cross(&mut self, now: Time, wire: lasthop_sim::Wire, packet: &Packet) {
        if wire.from.0.0 < 2 {
            let len = packet.segment().expect("TCP").len;
            self.0.push((now.as_nanos() / 1_000, wire.from.0.0, len));
        }
    }

    fn signal(&mut self, now: Time, from: ComponentId, signal: &Signal) {
        if *signal == Signal::Finished {
            self.1.push((now.as_nanos() / 1_000, from.0));
        }
    }
}

fn client<T: Tap>(engine: &Engine<T>, id: ComponentId) -> &Client {
    let Node::Client(client) = engine.node(id) else { panic!("it is a client") };
    client
}

fn server<T: Tap>(engine: &Engine<T>, id: ComponentId) -> &Server {
    let Node::Server(server) = engine.node(id) else { panic!("it is a server") };
    server
}

/// Calculated by hand. A request of 460 B takes 4 ms plus the delay of 10 ms; its acknowledgement leaves
/// before the response and takes 0.32 ms; the response of 960 B takes 8 ms.
#[test]
fn request_and_response_times_by_hand() {
    let Net { builder, client: asks, .. } = net(&bare(), config(), 0, [0, 0]);
    let mut engine = builder.build(Sent::default());
    assert_eq!(engine.run(&[asks], at(10_000_000)), Ended::Finished);
    let stats = counts(client(&engine, asks));
    let took = 14_000 + 320 + 8_000 + 10_000;
    let time = Duration::from_micros(took);
    let total_response_time = time * 3;
    let expected = Counts { requests: 3, responses: 3, total_response_time, greatest_response_time: time };
    assert_eq!(stats, expected);
    let cycle = |k: u64| {
        let asked = 100_000 + k * (100_000 + took);
        let heard = asked + 14_000;
        [(asked, 0, 460), (heard, 1, 0), (heard, 1, 960), (asked + took, 0, 0)]
    };
    let Sent(sent, finished) = engine.into_tap();
    assert_eq!(sent, (0..3).flat_map(cycle).collect::<Vec<_>>());
    // With its last acknowledgement long here, nothing is left when the last response is.
    assert_eq!(finished, [(100_000 + 2 * (100_000 + took) + took, 0)]);
}

/// With handshakes: the server opens its connection while the client's opens, so the first response is hardly
/// delayed, as over one bidirectional connection. Both connections are closed at the end.
#[test]
fn handshake_and_termination_by_hand() {
    let settings = Settings { ack_every: 1, ..Settings::default() };
    let Net { builder, client: asks, server: answers } =
        net(&settings, Config { requests: Some(1), ..config() }, 0, [0, 0]);
    let mut engine = builder.build(Sent::default());
    assert_eq!(engine.run(&[asks], at(10_000_000)), Ended::Finished);
    // SYN takes 44 B, 0.352 ms. The server acknowledges it and sends a SYN of its own.
    let syn = 10_352;
    let (opened, other) = (100_000 + 2 * syn, 100_000 + 2 * syn + 352);
    // The request is in flight when SYN arrives; the acknowledgement of SYN follows it.
    let heard = opened + 14_000;
    let ready = heard + 352;
    let answered = ready + 8_000 + 10_000;
    // FIN, of 40 B, takes 0.32 ms. It is queued behind the acknowledgement of the response, which is sent at
    // the same instant.
    let closed = answered + 640 + 10_000;
    let Sent(sent, finished) = engine.tap();
    let expected = [
        (100_000, 0, 0),
        (100_000 + syn, 1, 0),
        (100_000 + syn, 1, 0),
        (opened, 0, 460),
        (other, 0, 0),
        (heard, 1, 0),
        (ready, 1, 960),
        (answered, 0, 0),
        (answered, 0, 0),
        (closed, 1, 0),
        (closed, 1, 0),
    ];
    assert_eq!(sent[..expected.len()], expected);
    assert_eq!(counts(client(&engine, asks)).total_response_time.as_nanos() / 1_000, answered - 100_000);
    // The server's FIN follows its acknowledgement of the client's.
    assert_eq!(*finished, [(closed + 640 + 10_000, 0)]);
    // The remaining segments do not prevent termination.
    assert_eq!(engine.run(&[], at(10_000_000)), Ended::Idle);
    assert!(server(&engine, answers).connections()[0].sender().stats().completed.is_some());
}

/// With constant sizes and think times all cycles are equal, to the nanosecond: segments sent together arrive
/// back to back.
#[test]
fn constant_messages_give_exact_cycle_times() {
    let link = |bytes: u64| Duration::from_nanos(bytes * 8_000);
    for (request, response, think) in [(1, 1, 1), (1_460, 1_460, 7), (2_000, 14_600, 1_000), (4_380, 100, 50)]
    {
        let wire = |payload: u64| link(payload + 40 * payload.div_ceil(1_460));
        let delay = Duration::from_millis(10);
        let think = Duration::from_millis(think);
        // Queued behind the acknowledgement of the request's last segment; earlier acknowledgements have
        // left.
        let took = wire(request) + delay + link(40) + wire(response) + delay;
        let config = Config {
            request: Distribution::Constant(Bytes(request)),
            response: Distribution::Constant(Bytes(response)),
            think: Distribution::Constant(think),
            requests: Some(200),
            ..config()
        };
        let Net { builder, client: asks, server: answers } = net(&bare(), config, 0, [0, 0]);
        let mut engine = builder.build(NoTap);
        assert_eq!(engine.run(&[asks], Time::NEVER), Ended::Finished);
        let stats = counts(client(&engine, asks));
        assert_eq!((stats.requests, stats.responses), (200, 200));
        assert_eq!(stats.greatest_response_time, took, "{request} B, {response} B");
        assert_eq!(stats.total_response_time, took * 200);
        assert_eq!(engine.now(), Time::ZERO + (took + think) * 200);
        let heard = [
            server(&engine, answers).connections()[0].receiver(),
            client(&engine, asks).exchange().connections()[0].receiver(),
        ];
        let heard = heard.map(|receiver| receiver.stats().delivered);
        assert_eq!(heard, [Bytes(request) * 200, Bytes(response) * 200]);
    }
}

/// The last segment of a response does not wait for the acknowledgement of the first, which may be delayed.
#[test]
fn the_last_segment_is_not_delayed_by_nagle() {
    let config = Config { response: Distribution::Constant(Bytes(1_461)), requests: Some(1), ..config() };
    let settings = Settings { handshake: false, close: false, ..Settings::default() };
    let Net { builder, client: asks, .. } = net(&settings, config, 0, [0, 0]);
    let mut engine = builder.build(NoTap);
    assert_eq!(engine.run(&[asks], at(10_000_000)), Ended::Finished);
    let took = Duration::from_micros(14_000 + 12_000 + 328 + 10_000);
    assert_eq!(counts(client(&engine, asks)).greatest_response_time, took);
}

/// Random distributions of sizes and think times.
fn random(requests: u64) -> Config {
    Config {
        request: Distribution::Exponential(Bytes(700)),
        response: Distribution::Pareto { least: Bytes(1), most: Bytes(20_000), shape: 0.5 },
        think: Distribution::Exponential(Duration::from_millis(30)),
        requests: Some(requests),
        ..config()
    }
}

/// Asserts that each request was answered once, with the drawn number of bytes, whatever was lost.
fn check_answered(
    engine: &mut Engine<impl Tap>,
    asks: ComponentId,
    answers: ComponentId,
    config: Config,
    run: u64,
) {
    assert_eq!(engine.run(&[asks], at(3_600_000_000)), Ended::Finished);
    let count = config.requests.unwrap();
    let mut sizes = [Bytes(0); 2];
    for (size, (distribution, name)) in
        sizes.iter_mut().zip([(config.request, "request:test"), (config.response, "response:test")])
    {
        let mut stream = Streams::new(1, run).stream(name);
        *size = (0..count).map(|_| distribution.draw(&mut stream)).sum();
    }
    let stats = counts(client(engine, asks));
    assert_eq!((stats.requests, stats.responses), (count, count));
    let heard = [
        server(engine, answers).connections()[0].receiver(),
        client(engine, asks).exchange().connections()[0].receiver(),
    ];
    assert_eq!(heard.map(|receiver| receiver.stats().delivered), sizes);
    // The server has no unfinished work either.
    engine.run(&[], Time::NEVER);
    let sent = [
        client(engine, asks).exchange().connections()[0].sender(),
        server(engine, answers).connections()[0].sender(),
    ];
    assert_eq!(sent.map(|sender| Bytes(sender.acknowledged())), sizes);
    assert_eq!(sent.map(|sender| sender.unsent()), [0, 0]);
}

/// Every subset of losses of the first nine packets in either direction, and of the first six in both.
#[test]
fn any_loss_of_the_first_packets_is_recovered() {
    let variants = [
        Settings::default(),
        Settings { flavour: Flavour::Sack, timestamps: true, ..Settings::default() },
        Settings { handshake: false, close: false, flavour: Flavour::Tahoe, ..Settings::default() },
        Profile::Ns2.settings(),
    ];
    let patterns = (0..1u32 << 9).flat_map(|pattern| [[pattern, 0], [0, pattern]]);
    let both = (0..1u32 << 12).map(|pattern| [pattern & 63, pattern >> 6]);
    for (index, lost) in patterns.chain(both).enumerate() {
        let run = index as u64 % 7;
        for settings in &variants {
            let config = random(4);
            let Net { builder, client: asks, server: answers } = net(settings, config, run, lost);
            let mut engine = builder.build(NoTap);
            let mut case = || check_answered(&mut engine, asks, answers, config, run);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut case));
            if let Err(reason) = result {
                eprintln!("lost {lost:?} (first on the right) with {settings:?}");
                std::panic::resume_unwind(reason);
            }
        }
    }
}

/// The time, size and response size of a request depend only on its number, not on losses.
#[test]
fn requests_are_independent_of_losses() {
    let asked = |lost: [u32; 2], settings: &Settings| {
        let Net { builder, client: asks, server: answers } = net(settings, random(20), 3, lost);
        let mut engine = builder.build(Progress::default());
        engine.run(&[asks], at(3_600_000_000));
        let _ = answers;
        let thoughts = engine.tap().thoughts.clone();
        (thoughts, engine.tap().sizes.clone())
    };
    let expected = asked([0, 0], &bare());
    assert_eq!(expected.0.len(), 20);
    assert_eq!(expected.1.len(), 20);
    for lost in [[0b1011, 0], [0, 0b1_0110_1001], [0xfff, 0xf0]] {
        for settings in [bare(), Settings::default(), Profile::Ns2.settings()] {
            assert_eq!(asked(lost, &settings), expected, "{lost:?}");
        }
    }
    let mut stream = Streams::new(1, 3).stream("think:test");
    let mut thought = || random(20).think.draw(&mut stream);
    assert_eq!(expected.0, (0..20).map(|_| thought()).collect::<Vec<_>>());
}

/// Records a client's think times, and the bytes received at the end of each response.
#[derive(Default)]
struct Progress {
    seen: Counts,
    since: Time,
    thoughts: Vec<Duration>,
    sizes: Vec<Bytes>,
}

impl Tap for Progress {
    fn handled(&mut self, now: Time, _id: ComponentId, component: &Node) {
        let Node::Client(client) = component else { return };
        let stats = counts(client);
        if stats.requests > self.seen.requests {
            self.thoughts.push(now.since(self.since));
        }
        if stats.responses > self.seen.responses {
            self.since = now;
            self.sizes.push(client.exchange().connections()[0].receiver().stats().delivered);
        }
        self.seen = stats;
    }
}

/// No request is made from the stop time on; requests made before are answered, and then the connections
/// close.
#[test]
fn no_request_is_made_at_or_after_the_stop_time() {
    let until = |stop: u64| {
        let config = Config { requests: None, stop: at(stop), ..config() };
        let Net { builder, client: asks, server: answers } = net(&Settings::default(), config, 0, [0, 0]);
        let mut engine = builder.build(Sent::default());
        let ended = engine.run(&[asks], at(10_000_000));
        assert_eq!(ended, Ended::Finished);
        let stats = counts(client(&engine, asks));
        assert_eq!(stats.requests, stats.responses);
        engine.run(&[], Time::NEVER);
        assert_eq!(
            server(&engine, answers).connections()[0].sender().stats().completed.is_some(),
            stats.requests > 0
        );
        let Sent(sent, finished) = engine.into_tap();
        assert_eq!(finished.len(), 1, "it says so once");
        (stats.requests, sent.len(), finished[0].0)
    };
    // The first request is due after 100 ms. No connection is opened without a request.
    assert_eq!(until(50_000), (0, 0, 50_000));
    assert_eq!(until(100_000), (0, 0, 100_000));
    assert_eq!(until(100_001).0, 1);
    // Answered after the stop time; the client closes then.
    let late = until(100_001);
    assert!(late.2 > 150_000, "{late:?}");
    // A think time is cut short: the client closes at the stop time, not when the next request would be due.
    let thinking = until(200_000);
    assert_eq!(thinking.0, 1);
    assert!(thinking.2 < 200_000 + 60_000, "{thinking:?}");
}

/// If one connection aborts, so does the other, and the client finishes. If the RST is lost too and the
/// client has nothing outstanding, the client waits; but no component stays busy forever.
#[test]
fn an_aborted_dialogue_finishes() {
    let settings = Settings { user_timeout: Some(Duration::from_secs(5)), ..Settings::default() };
    let mut told = 0;
    // Forwards this many packets and drops all later ones.
    for passes in 0..12 {
        for lost in [[u32::MAX << passes; 2], [u32::MAX << passes, 0], [0, u32::MAX << passes]] {
            let config = Config { requests: Some(50), ..config() };
            let Net { builder, client: asks, server: answers } = net(&settings, config, 0, lost);
            let mut engine = builder.build(Sent::default());
            assert_ne!(engine.run(&[asks], at(3_600_000_000)), Ended::TimeLimit, "{lost:?}");
            assert_eq!(engine.run(&[], at(3_600_000_000)), Ended::Idle, "{lost:?}");
            assert!(counts(client(&engine, asks)).responses < 50);
            let client = client(&engine, asks).exchange().connections()[0].sender().is_aborted();
            let server = server(&engine, answers).connections()[0].sender().is_aborted();
            assert!(client || server, "{lost:?}");
            assert_eq!(engine.tap().1.len(), usize::from(client), "{lost:?}: it says so once");
            told += usize::from(client);
        }
    }
    assert!(told >= 24, "{told}");
}

/// Over links without delay, each request is at least a nanosecond after the previous one.
#[test]
fn zero_delay_requests_advance_time() {
    let mut net = Builder::new();
    let think = Distribution::Constant(Duration::ZERO);
    let config = Config { think, requests: None, ..config() };
    let [asks, answers] = ends(&mut net, &bare(), &config.into(), 0);
    for port in [requests(0), responses(0)] {
        net.connect((asks, port), (answers, port));
        net.connect((answers, port), (asks, port));
    }
    let mut engine = net.build(NoTap);
    assert_eq!(engine.run(&[], Time::from_nanos(99)), Ended::TimeLimit);
    let stats = counts(client(&engine, asks));
    assert_eq!((stats.requests, stats.responses), (100, 100));
    assert_eq!(stats.total_response_time, Duration::ZERO);
}

#[test]
fn packets_other_than_segments_are_ignored() {
    let settings = bare();
    let mut client = Client::new(&config().into(), single(&settings), Streams::new(1, 0), "test");
    let mut out = Out::default();
    let body = Body::Datagram(lasthop_proto::Datagram { seq: 0, sent: Time::ZERO });
    let packet = Packet {
        src: HostId(1),
        dst: HostId(0),
        flow: FlowId(1),
        size: Bytes(40),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    };
    for port in [requests(0), responses(0)] {
        client.receive(at(1), &packet, port, &mut out);
    }
    assert!(out.is_empty());
    assert_eq!(client.next_wakeup(), at(100_000));
}

#[test]
#[should_panic(expected = "think.exponential")]
fn building_an_invalid_config_panics() {
    let think = Distribution::Exponential(Duration::ZERO);
    let config = Config { think, ..config() };
    Client::new(&config.into(), single(&bare()), Streams::new(1, 0), "test");
}

#[test]
#[should_panic(expected = "requests")]
fn zero_requests_panic() {
    let config = Config { requests: Some(0), ..config() };
    Client::new(&config.into(), single(&bare()), Streams::new(1, 0), "test");
}

/// Who does not wait asks at times that do not depend on the network, and each answer is matched to its own request.
#[test]
fn requests_do_not_wait_for_responses_of_who_types() {
    let keys = |lost| {
        let config = Config { waits: false, requests: Some(20), ..random(20) };
        let Net { builder, client: asks, .. } = net(&Settings::default(), config, 5, lost);
        let mut engine = builder.build(NoTap);
        assert_eq!(engine.run(&[asks], at(3_600_000_000)), Ended::Finished);
        client(&engine, asks).waits().to_vec()
    };
    let (fast, slow) = (keys([0, 0]), keys([0b1011, 0b1_0110_1001]));
    let since = |waits: &[Wait]| waits.iter().map(|wait| wait.since).collect::<Vec<_>>();
    assert_eq!(since(&fast).len(), 20);
    assert_eq!(since(&fast), since(&slow));
    assert!(fast.is_sorted_by_key(|wait| wait.until()));
    assert!(fast.iter().map(|wait| wait.length).max() < slow.iter().map(|wait| wait.length).max());
    let mut stream = Streams::new(1, 5).stream("think:test");
    let mut due = Time::ZERO;
    for wait in &fast {
        due = (due + random(20).think.draw(&mut stream)).max(due);
        assert_eq!(wait.since, due);
    }
}
