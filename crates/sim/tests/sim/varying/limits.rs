//! Rates and delays that are refused, and packets that outlast the run.

use super::*;

#[test]
fn impossible_rates_and_delays_are_refused() {
    for (text, field) in [
        ("rate.lognormal = { sigma = 1 }", "lognormal"),
        ("rate.lognormal = { median = \"1 Mbps\", mean = \"1 Mbps\", sigma = 1 }", "lognormal"),
        ("rate.lognormal = { median = \"1 Mbps\", sigma = -1 }", "lognormal.sigma"),
        ("rate.lognormal = { median = \"1 Mbps\", sigma = nan }", "lognormal.sigma"),
        ("rate.lognormal = { median = \"1 Mbps\", sigma = 1, step = \"0 s\" }", "lognormal.step"),
        ("rate.lognormal = { median = \"1 Mbps\", sigma = 1, slot = \"0 s\" }", "lognormal.slot"),
        ("rate.lognormal = { median = \"1 Mbps\", sigma = 1, slot_sigma = 1 }", "lognormal.slot_sigma"),
        ("rate.mahimahi.file = \"t\"", "mahimahi.file"),
        ("rate.series.file = \"t\"", "series.file"),
        ("rate.signal = { file = \"t\", table = [] }", "signal.table"),
        ("rate.signal = { file = \"t\", table = [[2, \"1 Mbps\"], [1, \"2 Mbps\"]] }", "signal.table"),
        ("rate.signal = { file = \"t\", table = [[2, \"1 Mbps\"]] }", "signal.file"),
        ("delay.lognormal = { sigma = 1 }", "lognormal"),
        ("delay.series.file = \"t\"", "series.file"),
        ("delay.per-packet.file = \"t\"", "per-packet.file"),
        ("delay.netem = { delay = \"2 h\" }", "netem.delay"),
        ("delay.netem = { delay = \"1 s\", jitter = \"2 h\" }", "netem.jitter"),
        ("delay.netem = { delay = \"1 s\", reorder = 0.1, gap = 0 }", "netem.gap"),
        ("delay.netem = { delay = \"0 s\", reorder = 0.1 }", "netem.reorder"),
        ("delay.netem = { delay = \"1 s\", reorder = 0.1, in_order = true }", "netem.in_order"),
        ("delay.netem = { delay = \"1 s\", gap = 2 }", "netem.gap"),
        ("delay.netem = { delay = \"1 s\", reorder_correlation = 0.1 }", "netem.reorder_correlation"),
        ("delay.netem = { delay = \"1 s\", correlation = 0.1 }", "netem.correlation"),
        ("delay.netem = { delay = \"1 s\", in_order = true }", "netem.in_order"),
        (
            "rate.token-bucket = { rate = \"1 Mbps\", burst = \"0 B\", peak = \"2 Mbps\" }",
            "token-bucket.burst",
        ),
        (
            "rate.token-bucket = { rate = \"1 Mbps\", burst = \"2 GB\", peak = \"2 Mbps\" }",
            "token-bucket.burst",
        ),
        (
            "rate.token-bucket = { rate = \"1 Mbps\", burst = \"2 kB\", peak = \"2 Mbps\", overhead = \"2 kB\" }",
            "token-bucket.overhead",
        ),
        (
            "rate.token-bucket = { rate = \"2 Mbps\", burst = \"2 kB\", peak = \"1 Mbps\" }",
            "token-bucket.peak",
        ),
    ] {
        let Stated { rate, delay } = toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let invalid = rate.validate().and(delay.validate()).expect_err(text);
        assert_eq!(invalid.field, field, "{text}");
    }
}

/// Nothing is computed beyond the end of a run, however long a packet takes.
#[test]
fn a_packet_may_outlast_the_run() {
    for (text, files) in [
        ("rate.mahimahi.file = \"t\"", &["500000000\n"][..]),
        ("rate.series.file = \"t\"", &["time_s,rate_bps\n0,3\n1,0\n"]),
        ("rate.lognormal = { median = \"1 bps\", sigma = 0.1 }", &[]),
        ("rate.token-bucket = { rate = \"1 bps\", burst = \"1 B\", peak = \"1 Gbps\" }", &[]),
    ] {
        let (rate, delay) = stated(text, files);
        let mut link = Link::wired_varying(
            Timing::new(&rate, &delay, streams(0), ms(1_000)),
            tail(QueueLimit::Unlimited),
        );
        let fates = drive(&mut link, &[(ms(1), 60_000), (ms(2), 40), (ms(900), 40)], true);
        assert_eq!(fates, [None, None, None], "{text}");
    }
}
