//! Other files than scenarios, read by the same rules.

use lasthop_base::BitRate;
use lasthop_scenario::{Fault, TomlFile};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Settings {
    box_: Box_,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct Box_ {
    rates: Vec<BitRate>,
}

#[test]
fn settings_have_units_and_errors_have_places() {
    let file = |text: &str| TomlFile::parse(text, "box.toml").expect("TOML");
    let good = file("[box_]\nrates = [\"2 Mbps\"]\n");
    assert!(good.has("box_") && !good.has("radio"));
    assert_eq!(good.read::<Settings>().expect("valid").box_.rates, ["2 Mbps".parse().unwrap()]);
    let error = file("[box_]\nrates = [\"2 miles\"]\n").read::<Settings>().unwrap_err();
    assert_eq!((error.line(), error.key()), (Some(2), Some("box_.rates[0]")));
    let error = good.error(&Fault::new("box_.rates", "found one, expected two"));
    assert_eq!((error.line(), error.message()), (Some(2), "box_.rates: found one, expected two"));
    let error = file("[box_]\nrate = 1\n").read::<Settings>().unwrap_err();
    assert_eq!(error.message(), "unknown key box_.rate, expected \"rates\"; did you mean \"rates\"?");
}
