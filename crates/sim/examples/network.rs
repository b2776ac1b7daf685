//! A small network in the engine: a transfer over a wired link and a wireless last hop that fades.
//!
//! `cargo run -p lasthop-sim --example network`

use lasthop_base::{BitRate, Duration, Probability, Streams, Time};
use lasthop_channel::{FixedPeriods, Model};
use lasthop_proto::tcp::{Connection, Reactions, Receiver, Sender, Settings, Transfer};
use lasthop_proto::{FlowId, HostId, Port, arq};
use lasthop_sim::{Builder, Ended, Expansion, Exposed, Link, NoTap, Node, QueueLimit, RadioConfig};

fn main() {
    let rate = |bps| BitRate::from_bps(bps).expect("not zero");
    let ms = Duration::from_millis;
    let ber = |p| Probability::new(p).expect("a probability");

    // Good for 2 s, then a fade of 200 ms in which everything is lost.
    let fades = FixedPeriods { good: ms(2_000), bad: ms(200), good_ber: ber(0.0), bad_ber: ber(1.0) };
    let radio = RadioConfig {
        rate: rate(2_000_000),
        delay: ms(5),
        expansion: Expansion::NONE,
        mtu: None,
        unit: None,
        fec: None,
        exposed: Exposed::OnAir,
        arq: arq::Config::None,
    };
    // Both directions hold copies from the same stream, so that they meet the same fades.
    let streams = Streams::new(1, 0);
    let hop = |direction: &str| {
        let channel = Model::FixedPeriods(fades).build(streams.stream("channel"));
        let [bits, backoff] = ["bits", "backoff"].map(|name| streams.stream(&format!("{name}:{direction}")));
        Link::radio(radio, QueueLimit::Packets(50), channel, bits, backoff)
    };
    let wire = || Link::wired(rate(10_000_000), ms(20), QueueLimit::Unlimited);

    let connection = Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) };
    let (settings, transfer) = (Settings::default(), Transfer { bytes: Some(1_000_000), start: Time::ZERO });
    let mut net = Builder::new();
    let sender = net.add(Sender::new(connection, &settings, transfer, Reactions::default()));
    let receiver = net.add(Receiver::new(connection, &settings));
    // sender -> wire -> hop -> receiver -> hop -> wire -> sender
    let ring = [sender, net.add(wire()), net.add(hop("down")), receiver, net.add(hop("up")), net.add(wire())];
    for (index, &from) in ring.iter().enumerate() {
        net.connect((from, Port::ONLY), (ring[(index + 1) % ring.len()], Port::ONLY));
    }

    let mut engine = net.build(NoTap);
    let ended = engine.run(&[sender], Time::ZERO + ms(60_000));
    let Node::Sender(source) = engine.node(sender) else { unreachable!("it was added as one") };
    println!("1 MB in {}, {} timeouts", engine.now(), source.stats().timeouts);
    assert_eq!(ended, Ended::Finished);
}
