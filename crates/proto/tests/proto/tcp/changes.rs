//! Overrides of settings for a part of a connection: each key changes only the setting that it names.

use lasthop_proto::tcp::{Changes, Profile, Settings};
use toml::{Table, Value};

/// A value for each key that differs from every profile.
const OTHERS: &str = r#"
flavour = "go-back-n"
detection = "sack"
congestion = "none"
slow_start_exit = "loss"
rules = "ns2"
packet_size = "777 B"
header = "28 B"
window = "12345 B"
window_counts = "packets"
window_autotuning = true
initial_window = "7 segments"
delay_growth = true
initial_ssthresh = "9 segments"
iss = 4711
handshake = false
close = false
dupthresh = 5
limited_transmit = false
max_burst = 6
idle_restart = "never"
halve_exactly = false
careful = false
deflation = "net3"
partial_deflation = false
impatient = false
partial_ack_sends = true
tlp = false
frto = false
undo = false
cwnd_validation = false
ecn = true
pacing = true
rtt_arithmetic = "nearest-tick"
rtt_samples = "every-ack"
tick = "17 ms"
rto_initial = "5 s"
rto_min = "321 ms"
rto_max = "33 s"
backoff_max = 16
ack_every = 4
quick_acks = 3
ack_delay = "77 ms"
ack_tick = "3 ms"
sack_blocks = 2
dsack = true
timestamps = true
"#;

fn table(settings: &Settings) -> Table {
    Table::try_from(settings).expect("settings are a table")
}

/// Every key of the settings except the profile, which sets several.
// Rule: A part of a connection may differ in any setting. [settings.rs]
#[test]
fn each_key_changes_its_setting_only() {
    let others: Table = toml::from_str(OTHERS).expect("a table");
    let usual = Settings::default();
    let keys: Vec<String> = table(&usual).keys().filter(|key| *key != "profile").cloned().collect();
    assert_eq!(keys.len(), others.len(), "every key has another value here");
    for key in keys {
        let one: Table = [(key.clone(), others[&key].clone())].into_iter().collect();
        let changes: Changes = Value::Table(one).try_into().expect("it is a change");
        let mut expected = table(&usual);
        assert_ne!(expected.insert(key.clone(), others[&key].clone()).as_ref(), Some(&others[&key]));
        assert_eq!(table(&changes.of(&usual)), expected, "{key}");
    }
    let all: Changes = toml::from_str(OTHERS).expect("changes");
    let changed = all.of(&usual);
    for profile in [Profile::Rfc, Profile::Ns2, Profile::Ebsn] {
        assert_eq!(all.of(&profile.settings()), Settings { profile, ..changed.clone() });
    }
}

/// Empty changes have no effect, and omitted keys are not written.
// Rule: as each_key_changes_its_setting_only
#[test]
fn empty_changes_round_trip() {
    for profile in [Profile::Rfc, Profile::Ns2, Profile::Ebsn] {
        assert_eq!(Changes::default().of(&profile.settings()), profile.settings());
    }
    assert_eq!(toml::to_string(&Changes::default()), Ok(String::new()));
    let some: Changes = toml::from_str("window = \"1 KiB\"\nclose = true").expect("changes");
    assert_eq!(toml::from_str::<Changes>(&toml::to_string(&some).expect("text")), Ok(some));
}

/// A profile is not a change, and unknown keys are rejected.
// Rule: as each_key_changes_its_setting_only
#[test]
fn other_keys_are_rejected() {
    for wrong in ["profile = \"ns2\"", "windows = \"1 KiB\""] {
        assert!(toml::from_str::<Changes>(wrong).is_err(), "{wrong}");
    }
}
