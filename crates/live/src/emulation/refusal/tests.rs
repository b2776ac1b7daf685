//! What refusals name in place of what they refuse is accepted.

use std::collections::BTreeSet;

use lasthop_base::Duration;

use super::*;

/// A fading link with an ARQ and a code.
const CODED: &str = r#"
[tcp]
close = true
timestamps = true
[radio]
rate = "200 kbps"
unit = "480 B"
fec = "bch-255-131-18"
arq.selective-repeat.feedback_delay = "5 ms"
"#;

/// A link that loses packets, without an ARQ.
const LOSSY: &str = r#"
[tcp]
close = true
[radio]
rate = "8 Mbps"
channel.frame-loss.loss = 0.01
"#;

/// A sender at the mobile host, and settings that emulations refuse.
const UPLOAD: &str = r#"
[transfer]
from = "mobile"
to = "fixed"
[tcp]
flavour = "reno"
close = true
[radio]
rate = "8 Mbps"
[scheme.vs-tcp]
split = false
largest_size = "512 B"
[scheme.i-tcp]
wireless.flavour = "go-back-n"
"#;

/// A mobile host that moves between two base stations.
const MOVING: &str = r#"
[topology.hand-off]
[mobility.mobile.moves.periodic]
stay = "5 s"
[tcp]
close = true
[radio]
rate = "1 Mbps"
"#;

/// A cell of IEEE 802.11.
const CELL: &str = r#"
[topology.graph]
wired = ["fixed-base"]
cell = ["base-mobile"]
[transfer]
from = "fixed"
to = "mobile"
[tcp]
close = true
[cell]
phy.dsss.data_rate = "2 Mbps"
"#;

/// The scenario as it is emulated.
fn emulated(text: &str, changes: &[String]) -> Scenario {
    let all = ["schemes=[\"basic\"]", "wired.rate=10 Mbps", "transfer.size=unlimited"].map(String::from);
    let changes = [&all, changes].concat();
    let mut scenario = Scenario::parse(text, "test.toml", &changes).unwrap_or_else(|error| panic!("{error}"));
    scenario.limit = Duration::from_secs(24 * 3600);
    scenario
}

/// The texts in quotation marks of a refusal from `begin` on.
fn named<'a>(refusal: &'a str, begin: &str) -> impl Iterator<Item = &'a str> {
    let from = refusal.split_once(begin).map_or("", |(_, rest)| rest);
    from.split('"').skip(1).step_by(2)
}

#[test]
fn whatever_a_refusal_names_is_accepted() {
    let (mut refused, mut settings) = (0, BTreeSet::new());
    for text in [CODED, LOSSY, UPLOAD, MOVING, CELL] {
        let scenario = emulated(text, &[]);
        let schemes: Vec<&str> = scenario.scheme.all().map(|scheme| scheme.name()).collect();
        // Pairs take most of the time.
        let first = if [CODED, LOSSY].contains(&text) { &*schemes } else { &[] };
        let pairs =
            first.iter().flat_map(|first| schemes.iter().map(move |second| format!("{first} + {second}")));
        let mut accepted = BTreeSet::new();
        for name in schemes.iter().map(|name| String::from(*name)).chain(pairs) {
            let Err(error) = set_up(&scenario, &name) else { continue };
            let error = error.to_string();
            let of_hosts = error.contains("Expected a scheme of links and base stations alone: \"");
            assert!(of_hosts || !error.contains("real host"), "{error}");
            let instead =
                named(&error, "base stations alone: ").chain(named(&error, "a scheme that brings one: "));
            for instead in instead.filter(|instead| accepted.insert((*instead).to_owned())) {
                set_up(&scenario, instead)
                    .unwrap_or_else(|again| panic!("{error}\nnames {instead}: {again}"));
            }
            // ". With KEY = "VALUE", EFFECT" is a parameter of the scheme that is blamed.
            if let Some((what, setting)) = error.split_once(". With ") {
                let blamed = named(what, ". ").next().expect("it is named");
                let (key, value) = setting.split_once(" = ").expect("a key and its value");
                let value = value.split('"').nth(1).expect("a value");
                let change = format!("scheme.{blamed}.{key}={value}");
                set_up(&emulated(text, std::slice::from_ref(&change)), &name)
                    .unwrap_or_else(|again| panic!("{error}\nwith {change}: {again}"));
                settings.insert(change);
            }
            refused += usize::from(of_hosts);
        }
    }
    let expected = [
        "scheme.metp.recovery=selective-repeat",
        "scheme.selective-fec.protect=marked",
        "scheme.vs-tcp.recovery=selective-repeat",
    ];
    assert_eq!(settings.iter().collect::<Vec<_>>(), expected);
    assert!(refused > 800, "{refused} refusals");
}

/// What lacks an ARQ is refused for its hosts at once, and with a split that has one.
#[test]
fn a_lack_that_is_not_all_is_not_named_alone() {
    let error = set_up(&emulated(LOSSY, &[]), "ebsn").expect_err("refused").to_string();
    assert!(error.contains("changes the TCP of the source \"fixed\", which is a real host here"), "{error}");
    assert!(error.contains("; or \"i-tcp + ebsn + arq\", whose proxy"), "{error}");
    // Here only the ARQ is lacking.
    let error = set_up(&emulated(LOSSY, &[]), "i-tcp + ebsn").expect_err("refused").to_string();
    assert!(error.contains("brings one: \"i-tcp + ebsn + arq\""), "{error}");
}
