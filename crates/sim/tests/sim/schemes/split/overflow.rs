//! The wireless part of METP and VS-TCP with an overflowing queue: without congestion control each go-back-N
//! sends a whole window, and the first segment must not be dropped every time.

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Profile, Receiver, Sender, Settings, Transfer};
use lasthop_sim::{Builder, Ended, Link, QueueLimit};
use lasthop_testing::net::{CONNECTION, ring};
use lasthop_testing::schemes::installed;

/// More wake-ups than any of these transfers needs.
const MOST_WAKEUPS: u64 = 500_000;

/// Whether 60 segments of `scheme` arrive through a queue of this many packets.
fn arrives(scheme: &str, max_burst: u32, packets: u32, rate: u64) -> bool {
    let wired = Settings {
        packet_size: Bytes(1_064),
        window: Bytes(54_000).into(),
        max_burst,
        ..Profile::Rfc.settings()
    };
    let schemes = Schemes::default();
    let scheme = installed(&schemes, scheme);
    let wireless = scheme.split(&wired).expect("it splits connections").wireless;
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(60 * 1_024), start: Time::ZERO };
    let sender = net.add(Sender::new(CONNECTION, &wireless, transfer, scheme.reactions()));
    let link = |bps, queue| {
        let rate = BitRate::from_bps(bps).expect("not zero");
        Link::wired(rate, Duration::from_millis(20), queue)
    };
    let fast = net.add(link(10_000_000, QueueLimit::Unlimited));
    let slow = net.add(link(rate, QueueLimit::Packets(packets)));
    let receiver = net.add(Receiver::new(CONNECTION, &wireless));
    let back = net.add(link(10_000_000, QueueLimit::Unlimited));
    ring(&mut net, &[sender, fast, slow, receiver, back]);
    let mut engine = net.build(lasthop_sim::NoTap);
    let limit = Time::ZERO + Duration::from_secs(10_000);
    let mut rounds = 0;
    let ended = engine.run_while(&[sender], limit, || {
        rounds += 1;
        rounds * 65_536 < MOST_WAKEUPS
    });
    ended == Some(Ended::Finished)
}

#[test]
fn a_bounded_queue_does_not_livelock_go_back_n() {
    let mut stuck = Vec::new();
    for scheme in ["metp", "vs-tcp"] {
        for max_burst in 0..=5 {
            for packets in 1..=12 {
                for rate in [19_200, 1_000_000, 2_872_436] {
                    if !arrives(scheme, max_burst, packets, rate) {
                        stuck.push((scheme, max_burst, packets, rate));
                    }
                }
            }
        }
    }
    assert_eq!(stuck, []);
}
