//! Transfers whose slow start overshoots: half of a window is lost, every other segment of it.

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::tcp::{
    Congestion, Connection, Flavour, Profile, Receiver, Sender, Settings, SlowStartExit, Transfer,
};
use lasthop_proto::{FlowId, HostId, Port};
use lasthop_sim::{Builder, Ended, Link, NoTap, QueueLimit};

/// Windows in each transfer.
const WINDOWS: u64 = 4;
/// The round-trip time without queueing, whatever the window: only the rate depends on it.
const ROUND_TRIP: Duration = Duration::from_millis(100);
const HEADERS: u64 = 40;

/// A sender of the flavour `sack`, `ns2-sack` or `prr` that has `window` segments in flight when it learns of
/// the first loss.
pub(crate) fn settings(flavour: &str, window: u64) -> Option<Settings> {
    let settings = match flavour {
        "sack" => Settings { flavour: Flavour::Sack, ..Profile::Rfc.settings() },
        "ns2-sack" => Settings { flavour: Flavour::Sack, ..Profile::Ns2.settings() },
        "prr" => Settings {
            congestion: Congestion::Reno,
            slow_start_exit: SlowStartExit::Loss,
            ..Profile::Linux.settings()
        },
        _ => return None,
    };
    let bytes = Bytes(window * u64::from(settings.mss()));
    Some(Settings { window: bytes.into(), ack_every: 1, ..settings })
}

/// One transfer; returns segments delivered and events. The path and its queue hold half a window.
pub(crate) fn transfer(settings: &Settings, window: u64) -> (u64, u64) {
    let (src, dst) = (HostId(0), HostId(1));
    let connection = Connection { src, dst, flow: FlowId(0) };
    let segments = WINDOWS * window;
    let mss = u64::from(settings.mss());
    let link = |limit| {
        let bits = 8 * (mss + HEADERS) * window / 4;
        let rate = BitRate::from_bps(bits * 1_000_000_000 / ROUND_TRIP.as_nanos()).expect("not zero");
        Link::wired(rate, Duration::from_nanos(ROUND_TRIP.as_nanos() / 2), limit)
    };
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(segments * mss), start: Time::ZERO };
    let sender = net.add(Sender::new(connection, settings, transfer, None));
    let receiver = net.add(Receiver::new(connection, settings));
    let there = net.add(link(QueueLimit::Packets(window as u32 / 4)));
    let back = net.add(link(QueueLimit::Unlimited));
    for (from, to) in [(sender, there), (there, receiver), (receiver, back), (back, sender)] {
        net.connect((from, Port::ONLY), (to, Port::ONLY));
    }
    let mut engine = net.build(NoTap);
    let ended = engine.run(&[sender], Time::ZERO + Duration::from_secs(3_600));
    assert_eq!(ended, Ended::Finished, "every segment arrives");
    (segments, engine.handled())
}
