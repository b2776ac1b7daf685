//! Links whose base station grants intervals.

use lasthop_link::varying::Grants;
use lasthop_proto::arq::{Backoff, stop_and_wait};

use super::*;

/// Without failures of blocks.
fn granted(link: &(Rate, Delay), grants: Grants, up: bool) -> Timing {
    let grants = Grants { loss: Probability::new(0.0).unwrap(), ..grants };
    assert_eq!(grants.validate(), Ok(()));
    let streams = Streams::new(43, 0);
    timing(link, 0).granted(grants, up, streams.stream("failures"), streams.stream("grants"))
}

/// A packet leaves the queue with its first bits, so after the pause: the second one finds the queue full.
#[test]
fn nothing_is_granted_without_a_rate() {
    let link = stated("rate.series.file = \"t\"", &["time_s,rate_mbps\n0,8\n1,0\n2,8\n"]);
    for neighbours in [0, 3] {
        let grants = granted(&link, Grants { neighbours, ..Grants::default() }, false);
        let mut wired = Link::wired_varying(grants, tail(QueueLimit::Packets(1)));
        let found = drive(&mut wired, &[(ms(1_500), 1_000), (ms(1_600), 1_000)], true);
        assert_eq!(found, [Some(ms(2_001)), None]);
    }
}

/// One request is enough for an uplink that always has data, also while its ARQ waits: it does what one without requests does, later.
#[test]
fn packets_that_an_arq_holds_back_keep_the_grant() {
    #[derive(Deserialize)]
    struct Wrapped {
        model: Model,
    }
    let link = stated("rate = \"20 Mbps\"", &[]);
    let arrivals: Vec<_> = (0..2_000).map(|n| (Time::from_nanos(250_000 * n), 1_250)).collect();
    let [asked, free] = [Duration::from_millis(10), Duration::ZERO].map(|request| {
        let timing = granted(&link, Grants { request, ..Grants::default() }, true);
        let backoff = Backoff::Fixed(Duration::from_millis(3));
        let arq = Config::StopAndWait(stop_and_wait::Params { backoff, ..Default::default() });
        let config = RadioConfig { arq, ..plain_radio(link.0.nominal()) };
        let streams = Streams::new(9, 0);
        let model = toml::from_str::<Wrapped>("model.frame-loss.loss = 0.2").unwrap().model;
        let channel = model.build(streams.stream("channel"));
        let [bits, backoff] = ["bits", "backoff"].map(|name| streams.stream(name));
        let mut radio =
            Link::radio_varying(config, timing, tail(QueueLimit::Unlimited), channel, bits, backoff);
        let fates = drive(&mut radio, &arrivals, true);
        assert!(radio.stats().failed_attempts > 300);
        fates.into_iter().map(|fate| fate.expect("it is repeated")).collect::<Vec<_>>()
    });
    let later = asked[0].since(free[0]);
    assert!(later >= Duration::from_millis(7) && later <= Duration::from_millis(18), "{later}");
    assert!(asked.iter().zip(&free).all(|(asked, free)| *asked == *free + later));
}
