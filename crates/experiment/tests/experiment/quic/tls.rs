//! Real TLS in place of its sizes.

use std::path::PathBuf;
use std::{env, fs, process, thread};

use lasthop_experiment::{Observe, Run};

use super::{TRACED, count, digest, events, only, read, run};

/// The capture of a run with a new name, its key log, and the run.
fn captured(name: &str, number: u64, overrides: &[&str]) -> (Vec<u8>, Option<String>, Run) {
    let path: PathBuf = env::temp_dir().join(format!("lasthop-{}-{name}.pcapng", process::id()));
    let common = ["sender=quinn-cubic", "transfer.size=300 KB", "radio.channel.frame-loss.loss=0.02"];
    let scenario = read(&[&common[..], overrides].concat());
    let run = run(&scenario, "basic", number, Observe { pcap: Some(&path), ..TRACED });
    let keys = path.with_extension("keys");
    let found = (fs::read(&path).expect("a capture"), fs::read_to_string(&keys).ok(), run);
    fs::remove_file(path).expect("it is there");
    let _ = fs::remove_file(keys);
    found
}

/// Every byte that is sent follows from the seed, on any thread.
#[test]
fn a_run_with_tls_repeats() {
    let threads = ["one", "two"].map(|name| thread::spawn(move || captured(name, 3, &["quic.tls=true"])));
    let [one, two] = threads.map(|thread| thread.join().expect("it runs"));
    assert_eq!((&one.0, &one.1), (&two.0, &two.1));
    assert_eq!(format!("{:?}", one.2), format!("{:?}", two.2));
    let other = captured("other", 4, &["quic.tls=true"]);
    assert_ne!(one.1, other.1);
}

/// Secrets are in the capture, before packets, and beside it: one of each direction for the handshake and for data.
#[test]
fn secrets_are_logged() {
    let (capture, keys, run) = captured("secrets", 0, &["quic.tls=true"]);
    let keys = keys.expect("a key log");
    let labels: Vec<&str> = keys.lines().filter_map(|line| line.split(' ').next()).collect();
    let expected = [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_TRAFFIC_SECRET_0",
    ];
    assert_eq!(labels, expected);
    let place = |text: &[u8]| capture.windows(text.len()).position(|window| window == text);
    assert!(keys.lines().all(|line| place(line.as_bytes()).is_some_and(|place| place < 5_000)), "{keys}");
    let numbers = events(&run).packet_number.as_ref().expect("a column");
    assert!(numbers.iter().all(|number| *number == -1), "they are protected");
    let (plain, none, _) = captured("plain", 0, &[]);
    assert_eq!((none, plain.windows(7).any(|window| window == b"TRAFFIC")), (None, false));
}

/// With the same fades, goodput is that without TLS: packets have the same sizes, but for some of the handshake.
#[test]
fn tls_changes_no_more_than_the_handshake() {
    for sender in ["quinn-newreno", "quinn-cubic", "quinn-bbr"] {
        let runs = [false, true].map(|tls| {
            let settings = [&*format!("sender={sender}"), &*format!("quic.tls={tls}"), "limit=20 s"];
            run(&read(&[&settings[..], &["radio.channel=perfect"]].concat()), "basic", 0, TRACED)
        });
        let [plain, tls] = runs.each_ref().map(|run| only(run).throughput_bps);
        assert!((tls / plain - 1.0).abs() < 0.002, "{sender}: {plain} {tls}");
        assert_ne!(digest(events(&runs[0])), digest(events(&runs[1])));
        let [plain, tls] = runs.each_ref().map(|run| count(events(run), "sent"));
        assert!(plain.abs_diff(tls) < plain / 200, "{sender}: {plain} {tls}");
    }
}
