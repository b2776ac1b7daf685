//! Random worlds with QUIC among TCP: every datagram is accounted for, and its bytes are kept no longer than it is under way.

use std::collections::HashMap;

use lasthop_base::{Stream, Streams, Time};
use lasthop_experiment::Experiment;
use lasthop_proto::{ComponentId, DropReason, Handle, Packet};
use lasthop_scenario::Scenario;
use lasthop_sim::{Custody, Tap, Wire};
use lasthop_testing::random::{coin, pick};

const WORLDS: u64 = 24;

/// A hand-off, a cell, a shared radio or a last hop, with a download over each transport, an upload of QUIC, and an application
/// over it.
fn world(random: &mut Stream) -> (String, &'static str) {
    let (shape, from, to) = pick(
        random,
        &[
            ("", "fixed", "mobile"),
            ("topology.cell.stations = 2", "server", "MH1"),
            ("topology.shared-radio.mobiles = 2", "server", "MH2"),
            ("topology.path.routers = 2", "source", "destination"),
            (
                "topology.hand-off.stations = 2\nmobility.mobile = { gap = \"20 ms\", moves.periodic.stay = \"2 s\" }",
                "fixed",
                "mobile",
            ),
        ],
    );
    let scheme = pick(
        random,
        &[
            "basic",
            "arq",
            "snoop",
            "multicast",
            "forwarding",
            "packet-fec",
            "i-tcp",
            "snoop + arq",
            "sidekick",
            "sidekick + arq",
            "pemi",
            "pemi + arq",
        ],
    );
    let channel =
        pick(random, &["\"perfect\"", "{ frame-loss = { loss = 0.03 } }", "{ iid = { ber = 2e-6 } }"]);
    let queue = pick(random, &["\"unlimited\"", "\"15 packets\"", "{ fq-codel = {} }", "{ red = {} }"]);
    let arq = pick(
        random,
        &["\"none\"", "{ stop-and-wait = {} }", "{ selective-repeat = { retransmissions = 3 } }"],
    );
    let senders = [
        "quinn-newreno",
        "quinn-cubic",
        "quinn-bbr",
        "quinn-linux-cubic",
        "quinn-linux-bbr3",
        "noq-newreno",
        "noq-cubic",
    ];
    let [one, other] = [(); 2].map(|()| pick(random, &senders));
    let activity = pick(
        random,
        &[
            "kind = \"http\"",
            "kind = \"ssh\"",
            "kind = \"page\"\n[application.user.page]\nhtml.constant = \"9 KB\"\nobjects = [{ count = 30, size.constant = \"4 KB\" }]",
            "kind = \"video\"\nvideo = { length = \"8 s\", segment = \"2 s\" }",
            "kind = \"database\"\nrequest.constant = \"60 KB\"",
        ],
    );
    let requests = if activity.contains("video") { "" } else { "requests = 3" };
    let (resumed, in_order, reader) = (coin(random), coin(random), pick(random, &["link", "source"]));
    let moves_window = reader == "source" && coin(random);
    // Not every control of Linux takes reports.
    let is_linux = [one, other].iter().any(|sender| sender.starts_with("quinn-linux"));
    let (reader, moves_window) = if is_linux { ("link", false) } else { (reader, moves_window) };
    let (size, mtu, discovery) =
        (pick(random, &["1 B", "30 KB", "300 KB"]), pick(random, &["1200 B", "1472 B"]), coin(random));
    let text = format!(
        r#"
        limit = "300 s"
        sender = "{one}"
        {shape}
        [transfer]
        size = "{size}"
        from = "{from}"
        to = "{to}"
        [connection.tcp]
        sender = "linux"
        size = "100 KB"
        [connection.down]
        [connection.up]
        sender = "{other}"
        from = "{to}"
        to = "{from}"
        start = "500 ms"
        [application.user]
        from = "{to}"
        to = "{from}"
        {requests}
        {activity}
        [quic]
        mtu = "{mtu}"
        mtu_discovery = {discovery}
        zero_rtt = {resumed}
        one_stream = {in_order}
        [scheme.sidekick]
        reader = "{reader}"
        moves_window = {moves_window}
        directions = "both"
        [wired]
        rate = "10 Mbps"
        delay = "10 ms"
        [radio]
        rate = "2 Mbps"
        delay = "5 ms"
        queue = {queue}
        channel = {channel}
        arq = {arq}
        "#
    );
    (text, scheme)
}

/// The copies of each datagram, and where they are.
#[derive(Default)]
struct Ledger {
    keepers: Vec<ComponentId>,
    ends: Vec<ComponentId>,
    /// Of each handle that was sent: arrivals.
    arrived: HashMap<Handle, u32>,
    /// The datagram in each slot that has neither arrived nor was dropped.
    under_way: HashMap<usize, Handle>,
    sent: u64,
    dropped: u64,
}

impl Ledger {
    fn rest(&mut self, handle: Handle) {
        if self.under_way.get(&handle.slot()) == Some(&handle) {
            self.under_way.remove(&handle.slot());
        }
    }
}

impl Tap for Ledger {
    fn cross(&mut self, _now: Time, wire: Wire, packet: &Packet) {
        if packet.handle == Handle::NONE {
            return;
        }
        if self.ends.contains(&wire.from.0) {
            // Fewer datagrams are sent than a slot has generations.
            assert_eq!(self.arrived.insert(packet.handle, 0), None, "a handle of its own");
            let before = self.under_way.insert(packet.handle.slot(), packet.handle);
            assert!(before.is_none() || !self.keepers.is_empty(), "{before:?} is under way");
            self.sent += 1;
        }
        if self.ends.contains(&wire.to.0) {
            let arrivals = self.arrived.get_mut(&packet.handle).expect("it was sent");
            *arrivals += 1;
            assert!(*arrivals == 1 || !self.keepers.is_empty(), "only agents copy packets");
            self.rest(packet.handle);
        }
    }

    fn drop(&mut self, _now: Time, at: ComponentId, packet: &Packet, _reason: DropReason) {
        self.dropped += u64::from(packet.handle != Handle::NONE && !self.keepers.contains(&at));
        self.rest(packet.handle);
    }
}

#[test]
fn every_datagram_is_accounted_for() {
    let mut random = Streams::new(46, 0).stream("worlds");
    let mut ran = 0;
    for number in 0..WORLDS {
        let (text, scheme) = world(&mut random);
        let Ok(scenario) = Scenario::parse::<&str>(&text, "world.toml", &[])
            .and_then(|scenario| scenario.with_schemes(vec![String::from(scheme)], []))
        else {
            continue;
        };
        ran += 1;
        lasthop_testing::check(&format!("world {number} with {scheme}:\n{text}"), || {
            let setup = scenario.set_up(scheme).expect("it was checked");
            let layout = setup.layout();
            let world = layout.world(setup.combination(), Streams::new(1, number));
            let contents = world.contents.clone().expect("a flow has contents");
            let custody = Custody::new(contents.clone(), world.builder.len(), layout.keepers());
            let quic = &world.connections[1..];
            let transfers = quic.iter().map(|flow| (flow.sender, flow.receiver));
            let ends = transfers.chain(world.applications.iter().copied());
            let ends = ends.flat_map(|(one, other)| [one, other]).collect();
            let ledger = Ledger { keepers: layout.keepers().collect(), ends, ..Ledger::default() };
            let mut engine = world.builder.build((custody, ledger));
            engine.run(&[], Time::ZERO + scenario.limit);
            let mut kept = Vec::new();
            layout.keepers().for_each(|id| engine.node(id).kept(&mut |packet| kept.push(packet.handle)));
            contents.sweep(&kept);
            let (_, ledger) = engine.into_tap();
            assert!(ledger.sent > 0);
            // All have come to rest: only agents may have some.
            kept.sort_unstable();
            kept.dedup();
            let distinct = kept.iter().filter(|handle| ledger.arrived.contains_key(handle)).count();
            assert_eq!(contents.held(), (0, distinct), "sent {}, dropped {}", ledger.sent, ledger.dropped);
            if ledger.keepers.is_empty() {
                let arrived: u64 = ledger.arrived.values().map(|arrivals| u64::from(*arrivals)).sum();
                assert_eq!((arrived + ledger.dropped, ledger.under_way.len()), (ledger.sent, 0));
            }
        });
        let run = scenario.run(scheme, 1, number, Default::default()).expect("it runs");
        let finished = run.connections.iter().filter(|each| each.metrics.finished).count();
        let user = &run.applications[0].1.metrics;
        let is_served = user.requests > 0 && user.responses == user.requests;
        assert!(
            (finished == 3 && is_served) || run.connections.iter().any(|each| each.metrics.aborted),
            "{number} {scheme}: {text}"
        );
    }
    assert!(ran >= WORLDS / 2, "{ran} worlds ran");
}
