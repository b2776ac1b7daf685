//! Valid and invalid BSS parameters in files.

use std::array::IntoIter;

use lasthop_base::{Bytes, Duration, Probability, Streams};
use lasthop_channel::Model;
use lasthop_sim::wlan::{
    AboveMac, Band, Bss, BssConfig, Cw, Dsss, DsssRate, Ofdm, OfdmRate, Phy, Preamble, RetryLimit, Timing,
};
use serde::de::IntoDeserializer;
use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer};
use serde::{Deserialize, Serialize};

use crate::wlan::harness::{host, stations};

type Table<'a, V> = MapAccessDeserializer<MapDeserializer<'a, IntoIter<(&'a str, V), 1>, Error>>;

/// A table with one key, as a deserialiser presents it.
fn table<'a, V: IntoDeserializer<'a, Error>>(key: &'a str, value: V) -> Table<'a, V> {
    MapAccessDeserializer::new(MapDeserializer::new([(key, value)].into_iter()))
}

fn phy<'a>(kind: &'a str, key: &'a str, value: &'a str) -> Result<Phy, String> {
    Phy::deserialize(table(kind, table(key, value))).map_err(|error| error.to_string())
}

#[test]
fn rates_are_parsed_from_text() {
    let default = Dsss::default();
    for (text, rate) in [
        ("1 Mbps", DsssRate::Mbps1),
        ("2 Mbps", DsssRate::Mbps2),
        ("5.5 Mbps", DsssRate::Mbps5_5),
        ("11 Mbps", DsssRate::Mbps11),
    ] {
        assert_eq!(phy("dsss", "data_rate", text), Ok(Phy::Dsss(Dsss { data_rate: rate, ..default })));
    }
    for (text, rate) in [("6 Mbps", OfdmRate::Mbps6), ("54 Mbps", OfdmRate::Mbps54)] {
        let expected = Ofdm { data_rate: rate, ..Ofdm::default() };
        assert_eq!(phy("ofdm", "data_rate", text), Ok(Phy::Ofdm(expected)));
    }
    let short = Dsss { preamble: Preamble::Short, ..default };
    assert_eq!(phy("dsss", "preamble", "short"), Ok(Phy::Dsss(short)));
    let g = Ofdm { band: Band::TwoGhz, ..Ofdm::default() };
    assert_eq!(phy("ofdm", "band", "two-ghz"), Ok(Phy::Ofdm(g)));
    assert_eq!(
        phy("dsss", "control_rate", "3 Mbps").unwrap_err(),
        "found \"3 Mbps\", expected 1, 2, 5.5 or 11 Mbps, such as \"11 Mbps\""
    );
    assert!(phy("dsss", "rate", "1 Mbps").unwrap_err().starts_with("unknown field `rate`, expected"));
}

#[test]
fn retry_limits_parse() {
    fn read<'a>(value: impl IntoDeserializer<'a, Error>) -> Result<RetryLimit, String> {
        RetryLimit::deserialize(value.into_deserializer()).map_err(|error| error.to_string())
    }
    assert_eq!(read(7u64), Ok(RetryLimit::at_most(7)));
    assert_eq!(read(4i64), Ok(RetryLimit::at_most(4)));
    assert_eq!(read("unlimited"), Ok(RetryLimit::Unlimited));
    for wrong in [read(0u64), read(-1i64), read(1u64 << 32), read("many")] {
        let error = wrong.unwrap_err();
        assert!(error.ends_with("expected a number from 1 such as 7, or \"unlimited\""), "{error}");
    }
    fn is_written<T: Serialize>(_: &T) {}
    is_written(&RetryLimit::Unlimited);
    let above: Result<AboveMac, Error> = AboveMac::deserialize(table("down", 0.1));
    assert_eq!(above.map(|above| above.down), Ok(Probability::new(0.1).unwrap()));
}

#[test]
fn invalid_parameters_are_rejected() {
    let check = |config: BssConfig| config.validate().map_err(|invalid| invalid.field);
    let sound = BssConfig::default();
    assert_eq!(check(sound), Ok(()));
    let dsss = Dsss { data_rate: DsssRate::Mbps1, control_rate: DsssRate::Mbps2, ..Dsss::default() };
    assert_eq!(check(BssConfig { phy: Phy::Dsss(dsss), ..sound }), Err("phy.dsss.control_rate"));
    let ofdm = Ofdm { data_rate: OfdmRate::Mbps12, ..Ofdm::default() };
    assert_eq!(check(BssConfig { phy: Phy::Ofdm(ofdm), ..sound }), Err("phy.ofdm.control_rate"));
    for (min, max, expected) in [
        (0, 0, Ok(())),
        (15, 65_535, Ok(())),
        (32, 1023, Err("cw.min")),
        (31, 1000, Err("cw.max")),
        (31, 15, Err("cw.max")),
        (31, 131_071, Err("cw.max")),
    ] {
        assert_eq!(check(BssConfig { cw: Some(Cw { min, max }), ..sound }), expected);
    }
}

/// The constants of the standards, in microseconds.
#[test]
fn physical_layers_have_the_standards_constants() {
    let us = Duration::from_micros;
    let timing = |phy| BssConfig { phy, ..BssConfig::default() }.timing();
    let dsss = Timing {
        slot: us(20),
        sifs: us(10),
        difs: us(50),
        eifs: us(10 + 304 + 50),
        rts: us(352),
        cts: us(304),
        ack: us(304),
        plcp: us(192),
        cw: Cw { min: 31, max: 1023 },
    };
    assert_eq!(timing(Phy::Dsss(Dsss::default())), dsss);
    let short = Dsss { preamble: Preamble::Short, control_rate: DsssRate::Mbps2, ..Dsss::default() };
    let [rts, cts, ack] = [96 + 80, 96 + 56, 96 + 56].map(us);
    assert_eq!(timing(Phy::Dsss(short)), Timing { rts, cts, ack, plcp: us(96), ..dsss });
    // 16 + 8 · 20 + 6 bits are 2 symbols of 96 bits at 24 Mb/s; 14 bytes are 2 symbols as well, and 6 at 6
    // Mb/s.
    let a = Timing {
        slot: us(9),
        sifs: us(16),
        difs: us(34),
        eifs: us(16 + 44 + 34),
        rts: us(28),
        cts: us(28),
        ack: us(28),
        plcp: us(20),
        cw: Cw { min: 15, max: 1023 },
    };
    assert_eq!(timing(Phy::Ofdm(Ofdm::default())), a);
    let [rts, cts, ack] = [34, 34, 34].map(us);
    let g = Timing { sifs: us(10), difs: us(28), eifs: us(10 + 50 + 28), rts, cts, ack, ..a };
    assert_eq!(timing(Phy::Ofdm(Ofdm { band: Band::TwoGhz, ..Ofdm::default() })), g);
}

/// 1536 bytes with 22 bits of service and tail are 12,310 bits: 57 symbols of 216 at 54 Mb/s, 513 of 24 at
/// 6 Mb/s.
#[test]
fn ofdm_frames_are_whole_symbols() {
    let us = Duration::from_micros;
    let time = |data_rate, band| {
        let ofdm = Ofdm { data_rate, control_rate: OfdmRate::Mbps6, band };
        Phy::Ofdm(ofdm).data_time(Bytes(1500))
    };
    for (rate, symbols) in [
        (OfdmRate::Mbps6, 513),
        (OfdmRate::Mbps9, 342),
        (OfdmRate::Mbps12, 257),
        (OfdmRate::Mbps18, 171),
        (OfdmRate::Mbps24, 129),
        (OfdmRate::Mbps36, 86),
        (OfdmRate::Mbps48, 65),
        (OfdmRate::Mbps54, 57),
    ] {
        assert_eq!(time(rate, Band::FiveGhz), us(20 + 4 * symbols), "{rate:?}");
        assert_eq!(time(rate, Band::TwoGhz), us(20 + 4 * symbols + 6), "{rate:?}");
    }
    // With one more byte, payload and service field fill 513 symbols; the tail needs another.
    let slowest = Ofdm { data_rate: OfdmRate::Mbps6, control_rate: OfdmRate::Mbps6, band: Band::FiveGhz };
    assert_eq!(Phy::Ofdm(slowest).data_time(Bytes(1501)), us(20 + 4 * 514));
}

#[test]
#[should_panic(expected = "host 100 has two stations")]
fn a_host_with_two_stations_panics() {
    let streams = Streams::new(1, 0);
    let mut all = stations(streams, 2, Model::Perfect, AboveMac::default());
    all[1].hosts.push(host(0));
    Bss::new(BssConfig::default(), streams.stream("backoff:ap"), all);
}
