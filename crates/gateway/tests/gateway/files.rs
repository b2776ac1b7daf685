//! Files: what they mean, and their errors.

use std::fs;

use lasthop_gateway::cli;
use lasthop_gateway::config::{Class, Config, SchemeName};
use lasthop_proto::arq::Retransmissions;
use lasthop_tunnel::Help;

fn error(text: &str) -> String {
    Config::parse(text, "gateway.toml").expect_err("an invalid file").to_string()
}

#[test]
fn the_wireless_part_differs_from_the_wired_one_in_what_it_states() {
    let text = r#"
        [gateway]
        radio = ["wlan0", "wlan1"]
        unhelped = "10%"
        [tcp]
        congestion = "cubic"
        notsent_lowat = "128 KiB"
        [scheme.i-tcp.wireless]
        congestion = "bbr"
        packet_size = "1400 B"
        pacing_rate = "20 Mbps"
        [[match]]
        ports = [22, "5000-5010"]
        scheme = "basic"
    "#;
    let config = Config::parse(text, "gateway.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.caveats(), [""; 0]);
    let other = text.replace("\"bbr\"", "\"reno\"");
    let caveats = Config::parse(&other, "gateway.toml").unwrap_or_else(|error| panic!("{error}")).caveats();
    assert!(
        caveats[0].starts_with("scheme.i-tcp.wireless.congestion: \"reno\" is the control over the radio")
    );
    assert_eq!(config.gateway.unhelped_permille(), 100);
    assert_eq!(config.gateway.scheme, SchemeName::ITcp);
    assert_eq!(config.wired_tcp().congestion.as_deref(), Some("cubic"));
    assert_eq!(config.wired_tcp().packet_size, None);
    let wireless = config.wireless_tcp();
    assert_eq!(wireless.congestion.as_deref(), Some("bbr"));
    assert_eq!(wireless.notsent_lowat, config.tcp.notsent_lowat);
    assert_eq!(wireless.pacing_rate.map(lasthop_base::BitRate::as_bps), Some(20_000_000));

    let canonical = config.to_toml();
    let again = Config::parse(&canonical, "canonical").unwrap_or_else(|error| panic!("{error}\n{canonical}"));
    assert_eq!(again, config);
    assert_eq!(again.to_toml(), canonical);
}

#[test]
fn errors_have_place_cause_and_remedy() {
    let of = |key: &str| error(&format!("[gateway]\nradio = [\"wlan0\"]\n{key}\n"));
    for (key, expected) in [
        (
            "metrics = \"0.0.0.0:9330\"",
            "gateway.metrics: found \"0.0.0.0:9330\", expected an address of the loopback",
        ),
        ("metrics = \"9330\"", "gateway.metrics: found \"9330\", expected an address and a port, such as"),
        ("unhelped = 0.0005", "gateway.unhelped: found 0.0005, expected steps of 0.001"),
        ("hold = \"1 us\"", "gateway.hold: found 1 us, expected 100 ms to 60 s"),
        ("clients = []", "gateway.clients: found none, expected \"radio\", \"wired\" or both"),
        ("port = 80", "gateway.port: found 80, expected 1024 to 65534"),
        ("mark_bit = 30", "gateway.mark_bit: found 30, expected 0 to 29"),
        ("number = 254", "gateway.number: found 254, which is a table of the kernel"),
        ("connections = 0", "gateway.connections: found 0, expected 1 to 1000000"),
        ("threads = 0", "gateway.threads: found 0, expected 1 to 256"),
        ("conections = 9", "did you mean \"connections\"?"),
        (
            "scheme = \"itcp\"",
            "gateway.scheme: found \"itcp\", expected \"basic\", \"i-tcp\", \"snoop\", \"wtcp-timestamps\", \"eln\", \"delayed-dupacks\", \"ack-thinning\", \"packet-fec\" or \"arq\"; did",
        ),
        (
            "scheme = \"ebsn\"",
            "acts on events of the radio that no driver reports; the nearest is \"snoop\" or \"i-tcp\"",
        ),
        ("scheme = \"eln\"", "or set scheme.eln.holes = true, which infers losses from the packets alone"),
        ("scheme = \"packet-fec\"", "which needs a [tunnel] to a gateway at the other end of the radio"),
        ("scheme = \"airmail\"", "is an ARQ of the radio's driver; the nearest is \"arq\", in a [tunnel]"),
        (
            "scheme = \"delayed-dupacks\"",
            "or set scheme.delayed-dupacks.agent = true, which delays them here",
        ),
        ("scheme = \"selective-fec\"", "is part of the radio"),
        ("scheme = \"vs-tcp\"", "needs another TCP than the kernel's"),
        ("scheme = \"i-tcp + snoop\"", "is a combination"),
        ("control = \"here\"", "gateway.control: found \"here\", expected an absolute path"),
    ] {
        let message = of(key);
        assert!(message.contains(expected), "{key}: {message}");
        assert!(message.contains("--> gateway.toml:3:"), "{key}: {message}");
    }
    for (radios, expected) in [
        ("\"lo\"", "gateway.radio[0]: found \"lo\", expected the name of another interface"),
        ("\"wlan0\", \"wlan0\"", "gateway.radio[1]: found \"wlan0\", expected the name of another interface"),
    ] {
        let message = error(&format!("[gateway]\nradio = [{radios}]\n"));
        assert!(message.contains(expected), "{message}");
    }
    let of = |rule: &str| {
        error(&format!("[gateway]\nradio = [\"wlan0\"]\n[[match]]\nscheme = \"basic\"\n{rule}\n"))
    };
    for (rule, expected) in [
        ("ports = [0]", "match[0].ports[0]: found 0, expected a port from 1 to 65535"),
        ("prefixes = [\"10.0.0.1/8\"]", "match[0].prefixes[0]: found \"10.0.0.1/8\", expected a network"),
        ("hosts = [\"no-such.example\"]", "expected the address of a host, or its name in /etc/hosts"),
        ("dscp = [64]", "match[0].dscp[0]: found 64, expected 0 to 63"),
        ("in_order = true", "match[0].in_order: found an order, expected none"),
        ("packet-fec = { k = 2 }", "match[0].packet-fec: found parameters, expected none"),
    ] {
        let message = of(rule);
        assert!(message.contains(expected) && message.contains("--> gateway.toml:5:"), "{rule}: {message}");
    }
    let of = |table: &str| error(&format!("[gateway]\nradio = [\"wlan0\"]\n[scheme.{table}\n"));
    for (table, expected) in [
        ("snoop]\nconnections = 9", "scheme.snoop.connections: found 9, expected 256: each flow has agents"),
        ("snoop]\nattempts = 0", "scheme.snoop.attempts: found 0, expected at least 1"),
        ("wtcp-timestamps]\nbuffer = 0", "scheme.wtcp-timestamps.buffer: found 0, expected more"),
        ("eln]\nhole = true", "did you mean \"holes\"?"),
    ] {
        let message = of(table);
        assert!(message.contains(expected) && message.contains("--> gateway.toml:4:"), "{table}: {message}");
    }
    let moves = "[gateway]\nradio = [\"wlan0\"]\nscheme = \"snoop\"\n[scheme.snoop]\ntransfer = true\n";
    assert!(
        error(moves).contains("gateway.scheme: found \"snoop\", which is part of the radio"),
        "{}",
        error(moves)
    );
    assert!(error("[gateway]\nradio = []\n").contains("gateway.radio: found no interface"));
    assert!(error("[gateway]\nradio = [\"a/b\"]\n").contains("expected the name of an interface"));
    let wireless = error("[gateway]\nradio = [\"w\"]\n[scheme.i-tcp.wireless]\nrto_min = \"1 s\"\n");
    assert!(
        wireless.contains("scheme.i-tcp.wireless.rto_min: found 1 s, expected 1 ms to 200 ms"),
        "{wireless}"
    );
    let large = error("[gateway]\nradio = [\"wlan0\"]\n[tcp]\npacket_size = \"40 kB\"\n");
    assert!(large.contains("tcp.packet_size: found 40000 B, expected 296 B to 32807 B"), "{large}");
}

#[test]
fn tunnels_have_a_class_for_each_rule() {
    const TEXT: &str = r#"
        [gateway]
        scheme = "packet-fec"
        [tunnel]
        key = "/etc/lasthop/tunnel.key"
        peer = "192.0.2.1:9332"
        routes = ["0.0.0.0/0", "2001:db8::/32"]
        [scheme.packet-fec]
        k = 20
        n = 24
        [scheme.arq.protocol.selective-repeat]
        retransmissions = 2
        [[match]]
        ports = [22]
        scheme = "arq"
        [[match]]
        dscp = [46]
        max_size = "300 B"
        scheme = "packet-fec"
        packet-fec = { k = 2, n = 3 }
        [[match]]
        ports = [80]
        scheme = "i-tcp"
    "#;
    let config = Config::parse(TEXT, "gateway.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.radios(), ["lasthop-tun"]);
    let classes = config.tunnel_classes();
    let names: Vec<&str> = classes.iter().map(|class| &*class.name).collect();
    assert_eq!(names, ["basic", "packet-fec", "match[0]", "match[1]"]);
    let code = |class: &Class| match &class.help {
        Help::Fec(code) => Some((code.k, code.n)),
        _ => None,
    };
    assert_eq!((code(&classes[1]), code(&classes[3])), (Some((20, 24)), Some((2, 3))));
    let retransmissions = Retransmissions::AtMost(2);
    assert_eq!(classes[2].help, Help::Arq { retransmissions, in_order: true });
    let canonical = config.to_toml();
    let again = Config::parse(&canonical, "canonical").unwrap_or_else(|error| panic!("{error}\n{canonical}"));
    assert_eq!(again, config);
    // Both codes wait for a time that follows from the rate.
    let caveats = |change: [&str; 2]| {
        let text = TEXT.replacen(change[0], change[1], 1);
        let config = Config::parse(&text, "gateway.toml").unwrap_or_else(|error| panic!("{error}"));
        let mut caveats = config.caveats();
        caveats.retain(|caveat| caveat.starts_with("tunnel."));
        caveats
    };
    let both = caveats(["", ""]);
    assert!(both[0].starts_with("tunnel.rate: found none, so that a block of packet-fec closes"));
    assert_eq!(both.len(), 2);
    assert_eq!(caveats(["n = 24", "n = 24\nwait = \"30 ms\""]).len(), 1);
    assert_eq!(caveats(["peer", "rate = \"5 Mb/s\"\npeer"]).len(), 0);

    for (change, expected) in [
        (["20\n", "0\n"], "scheme.packet-fec.k: found 0, expected at least 1"),
        (
            ["n = 24", "n = 24\ninterleave = 65"],
            "scheme.packet-fec.interleave: found 65, expected at most 64",
        ),
        (
            ["n = 24", "n = 24\ndirections = \"up\""],
            "scheme.packet-fec.directions: found another, expected \"both\"",
        ),
        (["n = 24", "n = 24\nheader = \"1 B\""], "scheme.packet-fec.header: found 1 B, expected none stated"),
        (["k = 2,", "k = 9,"], "match[1].packet-fec.n: found 3, expected at least k = 9"),
        (
            [
                "[scheme.arq.protocol.selective-repeat]\n        retransmissions = 2",
                "[scheme.arq]\nprotocol.rlp = {}",
            ],
            "scheme.arq.protocol: found another, expected selective-repeat",
        ),
        (
            ["scheme = \"arq\"", "scheme = \"snoop\"\nmax_size = \"9 B\""],
            "match[0].max_size: found a size, expected none",
        ),
        (["/etc/lasthop", "etc"], "tunnel.key: found \"etc/tunnel.key\", expected an absolute path"),
        (
            ["peer", "packet_size = \"100 B\"\npeer"],
            "tunnel.packet_size: found 100 B, expected 576 B to 9000 B",
        ),
        (
            ["peer", "packet_size = \"1373 B\"\npeer"],
            "tunnel.packet_size: found 1373 B, expected at least 1374 B, or no routes of IPv6",
        ),
        (
            ["n = 24", "n = 24\ninterleave = 63"],
            "scheme.packet-fec.n: found n = 24 with interleave = 63, for which the other gateway has no room; expected \
             n * interleave of at most 1398 with packets of 1500 B",
        ),
        (
            ["n = 3 }", "n = 250, interleave = 6 }"],
            "match[1].packet-fec.n: found n = 250 with interleave = 6",
        ),
        (
            ["peer", "min_packet_size = \"1600 B\"\npeer"],
            "tunnel.min_packet_size: found 1600 B, expected 576 B to packet_size, 1500 B",
        ),
        (["192.0.2.1:9332", "192.0.2.1"], "tunnel.peer: found \"192.0.2.1\", expected an address and a port"),
        (["peer", "patience = \"1 ms\"\npeer"], "tunnel.patience: found 1 ms, expected 500 ms to 60 s"),
        (
            ["[gateway]", "[gateway]\nradio = [\"lasthop-tun\"]"],
            "gateway.radio[0]: found the tunnel's interface",
        ),
        (
            ["[gateway]", "[gateway]\nnumber = 252"],
            "gateway.number: found 252, which is a table of the kernel",
        ),
    ] {
        let [from, to] = change;
        assert!(TEXT.contains(from), "{from}");
        let message = error(&TEXT.replacen(from, to, 1));
        assert!(message.contains(expected) && message.contains("--> gateway.toml:"), "{to}: {message}");
    }
}

/// Every scheme of scenarios has a reason, or is one of the gateway's.
#[test]
fn schemes_of_scenarios_are_known() {
    for scheme in lasthop_scenario::Schemes::default().all() {
        let found = SchemeName::find(scheme.name());
        let is_known = SchemeName::all().any(|each| each.name() == scheme.name());
        assert_eq!(found.is_ok(), is_known, "{}", scheme.name());
        if let Err(reason) = found {
            assert!(reason.contains("; the nearest is \""), "{reason}");
        }
    }
}

#[test]
fn the_schema_has_every_key_with_a_meaning() {
    let schema: serde_json::Value = serde_json::from_str(&Config::json_schema()).expect("JSON");
    let tables = schema["definitions"].as_object().expect("tables").values().chain([&schema]);
    let mut keys = 0;
    for (key, meaning) in tables.flat_map(|table| table["properties"].as_object().into_iter().flatten()) {
        assert!(meaning["description"].is_string(), "{key}");
        keys += 1;
    }
    assert!(keys >= 25, "{keys}");
}

/// What the program prints, or what is wrong.
fn command(words: &[&str]) -> Result<String, String> {
    cli::run(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

#[test]
fn every_command_says_its_options() {
    let all = command(&["--help"]).expect("help");
    for (name, options) in [
        ("run", ["--observe", "--replace"].as_slice()),
        ("status", &["--json"]),
        ("report", &["--json"]),
        ("check", &[]),
        ("rules", &[]),
        ("reload", &[]),
        ("remove", &[]),
        ("key", &[]),
        ("schema", &[]),
    ] {
        let own = command(&[name, "--help"]).expect("help");
        assert!(own.starts_with(&format!("Usage: lasthop-gateway {name}")), "{own}");
        let found = own.lines().filter_map(|line| line.trim_start().strip_prefix("--")).count();
        assert_eq!(found, options.len(), "{own}");
        for option in options {
            assert!(own.contains(&format!("\n  {option} ")) && all.contains(option), "{own}");
        }
        assert!(all.contains(&format!("\n  {name} ")), "{all}");
    }
}

/// Whatever is asked with a broken file says where it is broken; a key is looked at as well.
#[test]
fn what_is_broken_is_named_by_every_command() {
    let directory = std::env::temp_dir().join(format!("lasthop-files-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let (file, key) = (directory.join("gateway.toml"), directory.join("key"));
    let path = file.display().to_string();
    fs::write(&file, "[gateway]\nradio = [\"a\"]\nhold = 3\n").expect("a file");
    for name in ["check", "status", "report", "reload", "rules", "remove"] {
        let error = command(&[name, &path]).expect_err("a broken file");
        assert!(error.contains("gateway.hold") && error.contains(&format!("--> {path}:3:8")), "{error}");
    }
    let text = format!("[gateway]\nscheme = \"arq\"\n[tunnel]\nkey = {key:?}\n");
    fs::write(&file, text).expect("a file");
    let check = || command(&["check", &path]);
    let place = format!("tunnel.key {}", key.display());
    let caveat = |expected: &str| {
        let printed = check().expect("a valid file");
        printed.lines().any(|line| line.contains(&place) && line.contains(expected))
    };
    assert!(caveat("`lasthop-gateway key` prints one"), "it may be made later");
    let shorter = "5a".repeat(31);
    for wrong in [&shorter, "5a", &"xy".repeat(32)] {
        fs::write(&key, wrong).expect("a file");
        let error = check().expect_err("no key");
        let expected = format!("{place}: found {} characters, expected 64 hexadecimal digits", wrong.len());
        assert!(error.starts_with(&expected), "{error}");
    }
    fs::write(&key, "5a".repeat(32)).expect("a file");
    #[cfg(unix)]
    for (mode, is_open) in [(0o640, true), (0o600, false)] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("its owner");
        assert_eq!(caveat("others may read it"), is_open, "{mode:o}");
    }
    fs::remove_file(&key).expect("a file");
    fs::create_dir(&key).expect("a directory");
    assert!(check().expect_err("no file").starts_with(&place));
    fs::remove_dir_all(directory).expect("a directory");
}
