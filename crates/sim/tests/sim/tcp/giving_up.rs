//! Connections aborted or reset while segments are in flight.

use lasthop_base::{BitRate, Duration, Time};
use lasthop_proto::tcp::{Profile, Receiver, Sender, Settings, Transfer};
use lasthop_proto::{Component, ComponentId, Out, Packet, Port};
use lasthop_sim::{Builder, Ended, Engine, Link, NoTap, Node, QueueLimit};
use lasthop_testing::check;
use lasthop_testing::net::{CONNECTION, Filter, Loses, by_order, nothing, ring, segments};
use lasthop_testing::random::FLAVOURS;

const LIMIT: Time = Time::from_nanos(3_600_000_000_000);

/// A receiver whose application resets the connection after this many bytes.
struct Resetting {
    receiver: Receiver,
    after: u64,
}

impl Component for Resetting {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.receiver.receive(now, packet, port, out);
        if !self.receiver.is_reset() && self.receiver.stats().delivered.0 >= self.after {
            self.receiver.abort(now, out);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.receiver.wake(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.receiver.next_wakeup()
    }
}

/// Drops every packet from number `packets` on.
fn all_after(packets: u32) -> Loses {
    let mut count = 0;
    Box::new(move |_: &Packet| {
        count += 1;
        count > packets
    })
}

/// Every flavour under both rule sets.
fn variants() -> impl Iterator<Item = Settings> {
    let profiles = [Profile::Rfc, Profile::Ns2].map(Profile::settings);
    profiles.into_iter().flat_map(|settings| FLAVOURS.map(|flavour| Settings { flavour, ..settings.clone() }))
}

/// Sends twenty segments over 10 Mb/s and 5 ms each way until the sender finishes, and lets packets in flight
/// arrive.
fn run(
    settings: &Settings,
    receiver: impl Into<Node>,
    data: Loses,
    acks: Loses,
) -> (Engine<NoTap>, ComponentId, ComponentId) {
    let rate = BitRate::from_bps(10_000_000).expect("not zero");
    let link = || Link::wired(rate, Duration::from_millis(5), QueueLimit::Unlimited);
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(segments(settings, 20)), start: Time::ZERO };
    let sender = net.add(Sender::new(CONNECTION, settings, transfer, None));
    let receiver = net.add(receiver);
    let there = [net.add(link()), net.add(Box::new(Filter(data)) as Box<dyn Component>)];
    let back = [net.add(link()), net.add(Box::new(Filter(acks)) as Box<dyn Component>)];
    ring(&mut net, &[sender, there[0], there[1], receiver, back[0], back[1]]);
    let mut engine = net.build(NoTap);
    assert_eq!(engine.run(&[sender], LIMIT), Ended::Finished);
    let ended = engine.now();
    if let Some(aborted) = source(&engine, sender).stats().aborted {
        assert_eq!(aborted, ended, "the run waited for one that had given up");
    }
    assert_eq!(engine.run(&[], LIMIT), Ended::Idle);
    (engine, sender, receiver)
}

fn source(engine: &Engine<NoTap>, sender: ComponentId) -> &Sender {
    match engine.node(sender) {
        Node::Sender(sender) => sender,
        _ => unreachable!("the node has this kind"),
    }
}

/// One or both directions fail permanently at any point of a connection: either everything was acknowledged,
/// or the source aborts after the user timeout plus at most one timer. The run ends then, and the receiver is
/// notified if the forward path works.
// Rule: as unanswered_data_abort_the_connection
#[test]
fn a_sender_on_a_dead_path_aborts() {
    let timeout = Duration::from_secs(10);
    for settings in variants() {
        let settings = Settings { user_timeout: Some(timeout), ..settings };
        for packets in 0..40 {
            for (data_die, acks_die) in [(true, false), (false, true), (true, true)] {
                check(&format!("{packets}, {data_die}, {acks_die}, {settings:?}"), || {
                    let filter = |dies| if dies { all_after(packets) } else { nothing() };
                    let receiver = Receiver::new(CONNECTION, &settings);
                    let (engine, sender, receiver) =
                        run(&settings, receiver, filter(data_die), filter(acks_die));
                    let source = source(&engine, sender);
                    let Node::Receiver(sink) = engine.node(receiver) else { unreachable!("it was added") };
                    let stats = source.stats();
                    assert!(source.is_aborted() != stats.completed.is_some());
                    assert_eq!(source.is_aborted(), stats.aborted.is_some());
                    if let Some(aborted) = stats.aborted {
                        assert!(aborted >= Time::ZERO + timeout && aborted <= Time::ZERO + timeout * 3);
                    }
                    let told = source.is_aborted() && !data_die && packets > 0;
                    assert_eq!(sink.is_reset(), told);
                });
            }
        }
    }
}

/// A reset by the receiver reaches the sender, whichever of the first segments in either direction are lost.
// Rule: as reset::a_lost_rst_is_repeated
#[test]
fn a_reset_reaches_the_sender() {
    for settings in variants() {
        for pattern in 0..1 << 10 {
            check(&format!("{pattern:b}, {settings:?}"), || {
                let receiver = Receiver::new(CONNECTION, &settings);
                let receiver = Resetting { receiver, after: segments(&settings, 3) };
                let receiver: Box<dyn Component> = Box::new(receiver);
                let (data, acks) = (by_order(pattern & 31), by_order(pattern >> 5));
                let (engine, sender, _) = run(&settings, receiver, data, acks);
                assert!(source(&engine, sender).is_aborted());
            });
        }
    }
}
