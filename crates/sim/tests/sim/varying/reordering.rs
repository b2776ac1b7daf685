//! Delays with netem's jitter and reordering.

use super::*;

/// Two packets have the delay, the third skips it, and so on. Sent by 1, 11, 21 ... ms.
#[test]
fn packets_that_skip_the_delay_overtake() {
    let link = stated("rate = \"8 Mbps\"\ndelay.netem = { delay = \"30 ms\", reorder = 1, gap = 3 }", &[]);
    let arrivals: Vec<_> = (0..6).map(|n| (ms(10 * n), 1_000)).collect();
    let expected = [31, 41, 21, 61, 71, 51].map(|at| Some(ms(at)));
    let wired = &mut Link::wired_varying(timing(&link, 0), tail(QueueLimit::Unlimited));
    assert_eq!(drive(wired, &arrivals, true), expected);
    let repeat = Config::SelectiveRepeat(selective_repeat::Params::default());
    for arq in [Config::None, repeat] {
        let mut radio = radio(&link, arq, Model::default());
        assert_eq!(drive(&mut radio, &arrivals, false), expected);
        assert_eq!(radio.stats().delivered, 6);
    }
}

/// Jitter reorders packets unless they keep their order: then each arrives with the latest of those before it.
#[test]
fn jitter_keeps_the_order_if_asked_to() {
    let arrivals: Vec<_> = (0..2_000).map(|n| (ms(2 * n), 1_000)).collect();
    let of = |text: &str| {
        let link = stated(text, &[]);
        let mut wired = Link::wired_varying(timing(&link, 0), tail(QueueLimit::Unlimited));
        let found = drive(&mut wired, &arrivals, true);
        found.into_iter().map(|fate| fate.expect("it arrives")).collect::<Vec<_>>()
    };
    let free = of("rate = \"8 Mbps\"\ndelay.netem = { delay = \"30 ms\", jitter = \"5 ms\" }");
    let kept =
        of("rate = \"8 Mbps\"\ndelay.netem = { delay = \"30 ms\", jitter = \"5 ms\", in_order = true }");
    let overtaken = free.windows(2).filter(|two| two[1] < two[0]).count() as f64 / 1_999.0;
    // Of two that are 2 ms apart, the difference of their jitters is triangular over 10 ms: P = (8 / 10)² / 2.
    assert!((overtaken - 0.32).abs() < 5.0 * (0.32_f64 * 0.68 / 1_999.0).sqrt(), "{overtaken}");
    let mut latest = Time::ZERO;
    for (free, kept) in free.iter().zip(kept) {
        latest = latest.max(*free);
        assert_eq!(kept, latest);
    }
}

/// What arrives is counted when it arrives: at 35 ms, the four packets that skipped the delay and the first one.
#[test]
fn radios_count_packets_in_the_order_of_arrival() {
    let link = stated("rate = \"8 Mbps\"\ndelay.netem = { delay = \"30 ms\", reorder = 0.5 }", &[]);
    let mut radio = radio(&link, Config::None, Model::default());
    let mut out = Out::default();
    (0..4).for_each(|n| radio.receive(Time::ZERO, &packet(n, 1_000), Port::ONLY, &mut out));
    let (mut arrived, mut counted) = (Vec::new(), Vec::new());
    while radio.next_wakeup() != Time::NEVER {
        let now = radio.next_wakeup();
        radio.wake(now, &mut out);
        while let Some((_, effect)) = out.take() {
            if let Effect::Send(_, Packet { body: Body::Datagram(datagram), .. }) = effect {
                arrived.push(datagram.seq);
            }
        }
        counted.push((arrived.len() as u64, radio.stats().delivered));
    }
    assert!(counted.iter().all(|(arrived, counted)| arrived == counted), "{counted:?}");
    assert!(arrived.len() == 4 && !arrived.is_sorted(), "{arrived:?}");
}
