//! Split connections through a proxy: all losses of the first packets on either side, with data from the
//! fixed and from the mobile host.

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::scheme::{Combination, Schemes};
use lasthop_proto::split::{LossRecovery, Proxy, Split};
use lasthop_proto::tcp::{
    Changes, Flavour, InitialWindow, Profile, Reactions, Receiver, Rules, Sender, Settings, Transfer,
};
use lasthop_proto::{ComponentId, Port};
use lasthop_sim::{Builder, Ended, Engine, Link, Node, QueueLimit, Tap};
use lasthop_testing::check;
use lasthop_testing::endpoint_invariants::RelayInvariants;
use lasthop_testing::invariants::Invariants;
use lasthop_testing::net::{CONNECTION, Loses, by_order, first_byte, join, nothing, segments, slack};
use lasthop_testing::schemes::installed;

/// A scheme that splits connections, and the direction of the data.
#[derive(Clone, Debug)]
struct Case {
    scheme: &'static str,
    schemes: Schemes,
    wired: Settings,
    from: Port,
}

impl Case {
    /// The same case with data from either host.
    fn both(scheme: &'static str, schemes: Schemes, wired: Settings) -> [Case; 2] {
        [Port::WIRED, Port::RADIO].map(|from| Case {
            scheme,
            schemes: schemes.clone(),
            wired: wired.clone(),
            from,
        })
    }

    fn combination(&self) -> Combination<'_> {
        installed(&self.schemes, self.scheme)
    }

    /// The split with a buffer of this size.
    fn split(&self, buffer: u64) -> Split {
        assert_eq!(self.combination().faults(&self.wired).next(), None);
        let split = self.combination().split(&self.wired).expect("it splits");
        // Losses may last longer than a base station's user timeout.
        let wireless = Settings { user_timeout: None, ..split.wireless };
        Split { buffer: Bytes(buffer), wireless, ..split }
    }
}

/// Common settings of the parts: segments of 1000 B on the wired part, of at most 900 B on the wireless one,
/// which crosses the end of the sequence space.
fn sides(rules: Rules, flavour: Flavour) -> (Settings, Changes) {
    let profile = if rules == Rules::Rfc { Profile::Rfc } else { Profile::Ns2 };
    let wired = Settings {
        flavour,
        close: true,
        packet_size: Bytes(1040),
        window: Bytes(3_500).into(),
        ..profile.settings()
    };
    let wireless = Changes {
        packet_size: Some(Bytes(940)),
        window: Some(Bytes(6 * 900).into()),
        initial_window: Some(InitialWindow::Segments(3)),
        iss: Some(u32::MAX - 2_000),
        ..Changes::default()
    };
    (wired, wireless)
}

/// I-TCP with every flavour that needs no per-segment records.
fn i_tcp() -> Vec<Case> {
    let mut cases = Vec::new();
    for rules in [Rules::Rfc, Rules::Ns2] {
        for flavour in [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack] {
            let (wired, wireless) = sides(rules, flavour);
            let mut schemes = Schemes::default();
            schemes.i_tcp.wireless = wireless;
            cases.extend(Case::both("i-tcp", schemes, wired));
        }
    }
    cases
}

/// M-TCP with every flavour that needs no per-segment records.
fn m_tcp() -> Vec<Case> {
    let as_m_tcp = |case: Case| {
        let mut schemes = Schemes::default();
        schemes.m_tcp.wireless = case.schemes.i_tcp.wireless;
        Case { scheme: "m-tcp", schemes, ..case }
    };
    i_tcp().into_iter().map(as_m_tcp).collect()
}

fn metp() -> Vec<Case> {
    let mut cases = Vec::new();
    for rules in [Rules::Rfc, Rules::Ns2] {
        for recovery in [LossRecovery::GoBackN, LossRecovery::SelectiveRepeat] {
            let (wired, wireless) = sides(rules, Flavour::NewReno);
            let mut schemes = Schemes::default();
            (schemes.metp.wireless, schemes.metp.recovery) = (wireless, recovery);
            cases.extend(Case::both("metp", schemes, wired));
        }
    }
    cases
}

/// VS-TCP with either method; the size changes at every step.
fn vs_tcp() -> Vec<Case> {
    let mut cases = Vec::new();
    for rules in [Rules::Rfc, Rules::Ns2] {
        for (method, recovery) in
            [(1, LossRecovery::GoBackN), (2, LossRecovery::GoBackN), (1, LossRecovery::SelectiveRepeat)]
        {
            let (wired, wireless) = sides(rules, Flavour::NewReno);
            let mut schemes = Schemes::default();
            let vs_tcp = &mut schemes.vs_tcp;
            vs_tcp.method = u8::try_into(method).expect("a method");
            (vs_tcp.initial_size, vs_tcp.largest_size) = (Bytes(600), Bytes(900));
            vs_tcp.recovery = recovery;
            vs_tcp.wireless = Changes { packet_size: None, ..wireless };
            cases.extend(Case::both("vs-tcp", schemes, wired));
        }
    }
    cases
}

/// A transfer of `bytes` through a buffer of this size; `losses` apply to data and acknowledgements, before
/// the proxy and behind it. Returns the source, the proxy and the sink.
fn relayed<T: Tap>(
    case: &Case,
    (bytes, buffer): (u64, u64),
    losses: [[Loses; 2]; 2],
    tap: impl FnOnce([ComponentId; 3]) -> T,
) -> (Engine<T>, [ComponentId; 3]) {
    let Case { wired, from, .. } = case;
    let split = case.split(buffer);
    let link = |bps, ms| {
        let rate = BitRate::from_bps(bps).expect("not zero");
        move || Link::wired(rate, Duration::from_millis(ms), QueueLimit::Unlimited)
    };
    let own = *from == Port::WIRED;
    let (near, far) = if own { (wired, &split.wireless) } else { (&split.wireless, wired) };
    let reactions = |has_them: bool| match has_them {
        true => case.combination().reactions(),
        false => Reactions::default(),
    };
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(bytes), start: Time::ZERO };
    let source = net.add(Sender::new(CONNECTION, near, transfer, reactions(!own)));
    let mut proxy = Proxy::new();
    proxy.join(CONNECTION, (wired, &split), *from, true, (reactions(own), None));
    let proxy = net.add(proxy);
    let sink = net.add(Receiver::new(CONNECTION, far));
    let (wire, air) = (link(10_000_000, 5), link(1_000_000, 2));
    let [before, behind] = losses;
    let (wire_losses, air_losses) = if own { (before, behind) } else { (behind, before) };
    let (wire_end, air_end) = if own { (source, sink) } else { (sink, source) };
    // Data first, in either direction.
    let join = |net: &mut Builder, end, port, link: &dyn Fn() -> Link, losses| match end == source {
        true => join(net, [(end, Port::ONLY), (proxy, port)], link, losses),
        false => join(net, [(proxy, port), (end, Port::ONLY)], link, losses),
    };
    join(&mut net, wire_end, Port::WIRED, &wire, wire_losses);
    join(&mut net, air_end, Port::RADIO, &air, air_losses);
    let places = [source, proxy, sink];
    (net.build(tap(places)), places)
}

fn minutes(minutes: u64) -> Time {
    Time::ZERO + Duration::from_secs(60 * minutes)
}

/// Runs a case to its end and checks the invariants. Returns the number of losses, the time of the end, and
/// the largest number of bytes held.
fn play(case: &Case, buffer: u64, losses: [[Loses; 2]; 2]) -> (u64, Time, u64) {
    let split = case.split(buffer);
    let (near, far) = match case.from {
        Port::WIRED => (&case.wired, &split.wireless),
        _ => (&split.wireless, &case.wired),
    };
    let bytes = segments(&case.wired, 8) + 123;
    let tap = |[_, proxy, sink]: [ComponentId; 3]| {
        let invariants = Invariants::new(sink, first_byte(far), slack(near, case.from == Port::RADIO));
        (invariants, RelayInvariants::new(proxy, case.from, &case.wired, &split, case.from == Port::WIRED))
    };
    let (mut engine, [source, proxy, sink]) = relayed(case, (bytes, buffer), losses, tap);
    let ended = engine.run(&[source, proxy], minutes(600));
    assert_eq!(ended, Ended::Finished);
    let (Node::Sender(from), Node::Receiver(to)) = (engine.node(source), engine.node(sink)) else {
        unreachable!("the node has this kind")
    };
    let (invariants, books) = engine.tap();
    invariants.check_end(from, to, bytes);
    books.check_end(bytes);
    assert!(to.has_ended(), "FIN is passed on");
    (invariants.drops, engine.now(), books.peak)
}

/// Losses on one side: of data or acknowledgements, by order of arrival.
fn lost(data: bool, pattern: u32) -> [Loses; 2] {
    match data {
        true => [by_order(pattern), nothing()],
        false => [nothing(), by_order(pattern)],
    }
}

/// Every loss pattern of the first six packets on one side, data or acknowledgements, combined with up to two
/// losses of the first six on the other: each byte arrives once and in order, the small buffer is never
/// exceeded, and it is empty at the end.
fn any_loss_of_the_first_six(cases: &[Case]) {
    const BUFFERS: [u64; 3] = [2_500, 1_100, 950];
    const KINDS: [bool; 2] = [true, false];
    let few = |pattern: u32| pattern.count_ones() <= 2;
    let patterns = || (0..1u32 << 12).map(|both| (both & 63, both >> 6));
    for case in cases {
        for (before, behind) in patterns().filter(|&(a, b)| a == 0 || b == 0 || few(a) && few(b)) {
            let buffer = BUFFERS[(before + behind) as usize % BUFFERS.len()];
            for (first, second) in KINDS.into_iter().flat_map(|first| KINDS.map(|second| (first, second))) {
                // Without losses, data and acknowledgements are the same case.
                if (before == 0 && !first) || (behind == 0 && !second) {
                    continue;
                }
                let Case { scheme, wired, from, .. } = case;
                let kinds = [first, second].map(|data| if data { "data" } else { "acknowledgements" });
                let flavours = [wired.flavour, case.split(buffer).wireless.flavour];
                let name = format!(
                    "{scheme}, {:?}, {flavours:?}, from {from:?}, {buffer} B, {kinds:?} lost {before:06b} {behind:06b}",
                    wired.rules
                );
                check(&name, || {
                    let (drops, ..) = play(case, buffer, [lost(first, before), lost(second, behind)]);
                    // There may be fewer acknowledgements than the pattern has places.
                    let most = u64::from(before.count_ones() + behind.count_ones());
                    assert!(if first && second { drops == most } else { drops <= most }, "{drops} of {most}");
                });
            }
        }
    }
}

// Rule: Two connections joined by a proxy, any loss of the first six packets on either side, data or ACKs,
// with every scheme that splits connections: every byte arrives, the buffer bound is respected, FIN is
// relayed. []
#[test]
fn i_tcp_delivers_the_stream() {
    any_loss_of_the_first_six(&i_tcp());
}

#[test]
fn m_tcp_delivers_the_stream() {
    any_loss_of_the_first_six(&m_tcp());
}

// Rule: as i_tcp_delivers_the_stream
#[test]
fn metp_delivers_the_stream() {
    any_loss_of_the_first_six(&metp());
}

// Rule: as i_tcp_delivers_the_stream
#[test]
fn vs_tcp_delivers_the_stream() {
    any_loss_of_the_first_six(&vs_tcp());
}

/// Every loss pattern of data among the first six packets of both sides, with and without resegmentation.
// Rule: as i_tcp_delivers_the_stream
#[test]
fn any_data_losses_on_both_sides() {
    for case in [&metp()[0], &vs_tcp()[0]] {
        for pattern in 0..1u32 << 12 {
            check(&format!("{}, data lost {pattern:012b}", case.scheme), || {
                let losses = [lost(true, pattern & 63), lost(true, pattern >> 6)];
                assert_eq!(play(case, 2_500, losses).0, u64::from(pattern.count_ones()));
            });
        }
    }
}

/// A buffer below two segments, of either part, does not make the transfer wait for timers: if a whole
/// segment does not fit, a part of one is sent. The SACK of ns-2 sends partial segments as probes only.
// Rule: A buffer below two segments causes no timeouts. [9293 3.8.6.2.1; state/output.rs]
#[test]
fn a_small_buffer_does_not_stall() {
    let whole = |case: &&Case| case.wired.rules == Rules::Rfc || case.wired.flavour != Flavour::Sack;
    for case in i_tcp().iter().chain(&metp()).chain(&vs_tcp()).filter(whole) {
        for buffer in [950, 1_100, 1_500, 1_900, 2_500, 20_000] {
            let case = Case { wired: Settings { ack_every: 1, ..case.wired.clone() }, ..case.clone() };
            check(&format!("{case:?}, {buffer} B"), || {
                let (_, end, peak) = play(&case, buffer, [lost(true, 0), lost(true, 0)]);
                assert!(end < Time::ZERO + Duration::from_secs(1), "it took until {end}");
                // The faster side fills the buffer up to less than a segment.
                let fills = case.from == Port::WIRED && buffer <= 2_500;
                assert!(
                    peak <= buffer && (!fills || peak + 1_000 > buffer),
                    "{peak} of {buffer} B were held"
                );
            });
        }
    }
}

/// A component that is not awaited does not end the run, and one that finished is not awaited again.
// Rule: A run waits for the awaited components. []
#[test]
fn a_run_ends_with_the_awaited_components() {
    let case = &i_tcp()[4];
    let losses = || [lost(true, 0), lost(true, 0)];
    let start = || {
        relayed(case, (20_000, 15_000), losses(), |[_, proxy, _]| {
            RelayInvariants::new(proxy, case.from, &case.wired, &case.split(15_000), false)
        })
    };
    let (mut engine, [source, proxy, sink]) = start();
    assert_eq!(engine.run(&[source], minutes(1)), Ended::Finished);
    assert!(engine.tap().held > 0, "the source ends before the relay does");
    let first = engine.now();
    assert_eq!(engine.run(&[source], minutes(1)), Ended::Finished);
    assert_eq!(engine.now(), first);
    assert_eq!(engine.run(&[source, proxy], first), Ended::TimeLimit);
    assert_eq!(engine.run(&[proxy, source, proxy], minutes(1)), Ended::Finished);
    assert!(engine.now() > first && engine.tap().held == 0);
    assert_eq!(engine.run(&[], minutes(1)), Ended::Idle);
    assert_eq!(engine.run(&[proxy, source], Time::ZERO), Ended::Finished);
    let (mut engine, _) = start();
    assert_eq!(engine.run(&[proxy], minutes(1)), Ended::Finished);
    assert_eq!(engine.tap().held, 0, "that was the end of the source");
    let (mut engine, _) = start();
    assert_eq!(
        engine.run(&[source, proxy, sink], minutes(1)),
        Ended::Idle,
        "a receiver says nothing of an end"
    );
}
