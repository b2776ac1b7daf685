//! Random extreme scenarios: each is refused with a reason and a location, or runs and can be interrupted at
//! any time. None panics, hangs or exhausts memory.
//!
//! `LASTHOP_HOSTILE=5000` sets their number; `LASTHOP_HOSTILE_ONLY=17` replays number 17 alone.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::panic::catch_unwind;
#[cfg(unix)]
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use lasthop_base::{Bytes, Stream, Streams};
use lasthop_channel::Model;
use lasthop_experiment::{Experiment, Observe, RunError};
use lasthop_link::QueueLimit;
use lasthop_link::queue::Management;
use lasthop_link::wifi::rate::RateSelection;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Congestion, Profile};
use lasthop_scenario::Scenario;
use lasthop_testing::random::{coin, pick, pick_name};

const SCENARIOS: u64 = 600;

/// Wake-ups before a run is stopped, in units of 65,536.
const POLLS: u32 = 3;

/// CPU time limit of one scenario with all its runs. Most take milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

const MOST_MEMORY_KB: u64 = 3_000_000;

const QUIC_SENDERS: &[&str] = &["quinn-newreno", "quinn-cubic", "quinn-bbr", "quinn-linux-bbr", "noq-cubic"];

/// Draws values: mostly usual ones, some at the limits of the format.
struct Draw(Stream);

impl Draw {
    fn chance(&mut self, p: f64) -> bool {
        self.0.bernoulli(p)
    }

    fn value(&mut self, usual: &[&'static str], hostile: &[&'static str]) -> &'static str {
        if self.chance(0.1) { pick(&mut self.0, hostile) } else { pick(&mut self.0, usual) }
    }

    fn span(&mut self) -> &'static str {
        let hostile =
            ["0 s", "1 ns", "2 ns", "1 us", "1 h", "24 h", "10000 h", "9000000000 s", "18000000000 s"];
        self.value(&["1 ms", "10 ms", "100 ms", "1 s", "4 s"], &hostile)
    }

    fn rate(&mut self) -> &'static str {
        let hostile = ["1 bps", "100 bps", "1000 Gbps", "1000000 Gbps", "10000000000 Gbps"];
        self.value(&["19.2 kbps", "1 Mbps", "11 Mbps", "100 Mbps"], &hostile)
    }

    fn size(&mut self) -> &'static str {
        let hostile = ["0 B", "1 B", "8 B", "41 B", "65535 B", "65536 B", "1 MB", "1 GB", "1000 GB"];
        self.value(&["128 B", "576 B", "1000 B", "1500 B"], &hostile)
    }

    fn queue(&mut self) -> &'static str {
        let hostile = ["0 packets", "1 packet", "4000000000 packets", "1 B", "1000 GB"];
        self.value(&["unlimited", "10 packets", "64 KiB"], &hostile)
    }

    fn probability(&mut self) -> &'static str {
        self.value(
            &["0", "1e-6", "1e-4", "0.01", "0.3"],
            &["1", "1e-300", "0.9999999", "-1", "nan", "2", "1e300"],
        )
    }

    fn count(&mut self) -> &'static str {
        self.value(&["1", "2", "5", "13"], &["0", "4294967295", "1000", "65535", "65536"])
    }

    /// A channel of any model; sometimes none.
    fn channel(&mut self, text: &mut String, table: &str) {
        if self.0.below(12) == 0 {
            return;
        }
        let models: Vec<_> = Model::examples().collect();
        let names: Vec<&str> = models.iter().map(|(name, _)| name.as_str()).collect();
        let name = pick_name(&mut self.0, &names);
        let (_, examples) = models.iter().find(|(model, _)| model == name).expect("it was picked");
        let example = format!("{name} = {{ {} }}", pick(&mut self.0, examples));
        let channel = self.distorted(toml::from_str(&example).expect("an example is TOML"));
        writeln!(text, "{table}channel = {channel}").expect("text grows");
    }

    /// Other values of the same kinds; sometimes a key is left out.
    fn distorted(&mut self, value: toml::Value) -> toml::Value {
        use toml::Value;
        let number = |text: &str| text.parse::<f64>().expect("a number");
        match value {
            Value::Table(table) => {
                let kept = table.into_iter().filter(|_| !self.chance(0.05)).collect::<Vec<_>>();
                kept.into_iter()
                    .map(|(key, value)| (key, self.distorted(value)))
                    .collect::<toml::Table>()
                    .into()
            }
            Value::Array(values) => {
                values.into_iter().map(|value| self.distorted(value)).collect::<Vec<_>>().into()
            }
            Value::Boolean(_) => coin(&mut self.0).into(),
            Value::Integer(_) => (number(self.count()) as i64).into(),
            Value::Float(usual) if usual <= 1.0 => number(self.probability()).into(),
            Value::Float(_) => number(self.count()).into(),
            Value::String(text) if ["good", "bad", "stationary"].contains(&text.as_str()) => {
                pick(&mut self.0, &["good", "bad", "stationary"]).into()
            }
            Value::String(text) if text.parse::<lasthop_base::Duration>().is_ok() => self.span().into(),
            Value::String(text) if text.parse::<Bytes>().is_ok() => self.size().into(),
            Value::String(text) if text.parse::<QueueLimit>().is_ok() => self.queue().into(),
            Value::String(text) if text.ends_with(" dB") => {
                self.value(&["10 dB", "5 dB"], &["-15 dB", "150 dB", "1000 dB"]).into()
            }
            other => other,
        }
    }

    fn sigma(&mut self) -> &'static str {
        self.value(&["0.3", "1"], &["0", "5", "6", "-1", "nan"])
    }

    /// The keys that a random rate and a random delay have in common.
    fn variation(&mut self) -> String {
        let sigma = self.sigma();
        let mut keys = format!("sigma = {sigma}");
        for key in ["step", "correlation", "slot"] {
            if self.chance(0.3) {
                write!(keys, ", {key} = \"{}\"", self.span()).expect("text grows");
            }
        }
        if keys.contains("slot") {
            write!(keys, ", slot_sigma = {}", self.sigma()).expect("text grows");
        }
        keys
    }

    /// A fixed rate or one that varies.
    fn any_rate(&mut self, text: &mut String, table: &str) {
        let rate = self.rate();
        let line = match self.0.below(7) {
            0 => format!("rate.lognormal = {{ median = \"{rate}\", {} }}", self.variation()),
            1 => {
                let (burst, peak) = (self.size(), self.rate());
                format!("rate.token-bucket = {{ rate = \"{rate}\", burst = \"{burst}\", peak = \"{peak}\" }}")
            }
            _ => format!("rate = \"{rate}\""),
        };
        writeln!(text, "{table}{line}").expect("text grows");
    }

    /// A fixed delay or one that varies.
    fn any_delay(&mut self, text: &mut String, table: &str) {
        let (delay, least) = (self.span(), self.span());
        let line = match self.0.below(7) {
            0 => {
                let keys = self.variation();
                format!("delay.lognormal = {{ least = \"{least}\", median = \"{delay}\", {keys} }}")
            }
            1 => {
                let [reorder, correlation] =
                    [(); 2].map(|()| self.value(&["0", "0.02"], &["1", "0.5", "-1"]));
                let (gap, in_order) = (self.count(), self.chance(0.2));
                let gap = if reorder == "0" { "1" } else { gap };
                format!(
                    "delay.netem = {{ delay = \"{delay}\", jitter = \"{least}\", correlation = {correlation}, \
                     reorder = {reorder}, gap = {gap}, in_order = {in_order} }}"
                )
            }
            _ => format!("delay = \"{delay}\""),
        };
        writeln!(text, "{table}{line}").expect("text grows");
    }

    fn arq(&mut self, text: &mut String, table: &str) {
        let again = if self.chance(0.5) { "\"unlimited\"" } else { self.count() };
        let (a, b) = (self.span(), self.span());
        let line = match self.0.below(5) {
            0 => return,
            1 => format!("arq.stop-and-wait = {{ retransmissions = {again}, backoff.fixed = \"{a}\" }}"),
            2 => format!("arq.stop-and-wait = {{ retransmissions = {again}, backoff.uniform = \"{a}\" }}"),
            3 => {
                format!("arq.stop-and-wait = {{ retransmissions = {again}, backoff.exponential = \"{a}\" }}")
            }
            _ => format!(
                "arq.selective-repeat = {{ retransmissions = {again}, feedback_delay = \"{a}\", slot = \"{b}\" }}"
            ),
        };
        writeln!(text, "{table}{line}").expect("text grows");
    }

    /// A few keys of `[radio]`, or of a link.
    fn radio(&mut self, text: &mut String, table: &str) {
        let line = |text: &mut String, line: String| writeln!(text, "{table}{line}").expect("text grows");
        if self.chance(0.4) {
            self.any_delay(text, table);
        }
        if self.chance(0.4) {
            self.discipline(text, table);
        }
        match self.0.below(4) {
            0 => line(text, format!("mtu = \"{}\"", self.size())),
            1 => line(text, format!("unit = \"{}\"", self.size())),
            _ => {}
        }
        if self.chance(0.2) {
            line(text, format!("expansion = {}", self.value(&["1", "1.5"], &["1000", "1e9", "0.5"])));
        }
        if self.chance(0.3) {
            line(text, String::from("fec = \"bch-255-131-18\""));
            if coin(&mut self.0) {
                line(text, format!("protect = \"{}\"", pick(&mut self.0, &["all", "repeats", "scheme"])));
            }
        }
        if self.chance(0.1) {
            line(text, format!("black_hole = \"{}\"", self.size()));
        }
        if self.chance(0.15) {
            let (first, every, lasts) = (self.span(), self.span(), self.span());
            let table =
                format!("outage = {{ first = \"{first}\", every = \"{every}\", lasts = \"{lasts}\" }}");
            line(text, table);
        }
        if self.chance(0.15) {
            let (request, every, gap) = (self.span(), self.span(), self.span());
            let interval = pick(&mut self.0, &["500 us", "1 ms", "100 ms", "1 us"]);
            let neighbours = pick(&mut self.0, &["0", "3", "64"]);
            let others = format!("handover = \"{every}\", gap = \"{gap}\", loss = {}", self.probability());
            let own =
                format!("interval = \"{interval}\", neighbours = {neighbours}, request = \"{request}\"");
            line(
                text,
                if self.chance(0.5) {
                    String::from("grants = {}")
                } else {
                    format!("grants = {{ {own}, {others} }}")
                },
            );
        }
        self.channel(text, table);
        self.arq(text, table);
    }

    /// A few keys of a table of TCP's settings.
    fn tcp(&mut self, text: &mut String) {
        let profile = pick_name(&mut self.0, &Profile::ALL.map(Profile::name));
        writeln!(text, "profile = \"{profile}\"\nclose = true").expect("text");
        if self.chance(0.2) {
            writeln!(text, "packet_size = \"{}\"", self.size()).expect("text");
        }
        if self.chance(0.2) {
            let hostile = ["1 packet", "65535 packets", "0 B", "1 B", "1 GiB", "1000 GB"];
            let window = self.value(&["4 KiB", "65535 B", "10 packets", "6 MB"], &hostile);
            writeln!(text, "window = \"{window}\"").expect("text");
        }
        for key in ["tick", "rto_initial", "rto_min", "rto_max", "ack_delay", "user_timeout"] {
            if self.chance(0.1) {
                writeln!(text, "{key} = \"{}\"", self.span()).expect("text");
            }
        }
        for key in [
            "max_burst",
            "dupthresh",
            "ack_every",
            "quick_acks",
            "sack_blocks",
            "backoff_max",
            "syn_linear_timeouts",
            "iss",
        ] {
            if self.chance(0.07) {
                writeln!(text, "{key} = {}", self.count()).expect("text");
            }
        }
        for key in [
            "ecn",
            "pacing",
            "tlp",
            "frto",
            "undo",
            "timestamps",
            "dsack",
            "handshake",
            "limited_transmit",
            "mtu_probing",
            "ecn_fallback",
            "thin_linear_timeouts",
        ] {
            if self.chance(0.15) {
                writeln!(text, "{key} = {}", coin(&mut self.0)).expect("text");
            }
        }
        if self.chance(0.1) {
            let kernel = pick(&mut self.0, &["linux-5.15", "linux-6.18"]);
            writeln!(text, "kernel = \"{kernel}\"").expect("text");
        }
        let of_records = profile.starts_with("linux");
        if self.chance(0.3) {
            let flavours = ["tahoe", "reno", "newreno", "sack", "prr", "go-back-n", "selective-repeat"];
            let flavour = if of_records { "prr" } else { pick(&mut self.0, &flavours) };
            writeln!(text, "flavour = \"{flavour}\"").expect("text");
        }
        if self.chance(0.5) {
            let controls = Congestion::ALL.iter().map(|congestion| congestion.control());
            let usable = controls.filter(|control| of_records || !control.needs_samples);
            let names: Vec<_> = usable.map(|control| control.name).collect();
            let congestion = pick_name(&mut self.0, &names);
            writeln!(text, "congestion = \"{congestion}\"").expect("text");
        }
        for (key, words) in [
            ("detection", &["rack", "sack"] as &[&str]),
            ("slow_start_exit", &["loss", "hystart", "hystart-16", "hystart++"]),
            ("rtt_arithmetic", &["exact", "ticks", "nearest-tick", "linux"]),
            ("rtt_samples", &["one-at-a-time", "every-ack"]),
            ("initial_window", &["1 segment", "rfc5681", "65535 segments"]),
            ("initial_ssthresh", &["unlimited", "window", "1 segment", "65535 segments"]),
        ] {
            if self.chance(0.1) {
                writeln!(text, "{key} = \"{}\"", pick(&mut self.0, words)).expect("text");
            }
        }
    }

    /// The queue of `[wired]`, of `[radio]` or of a link: drop-tail or another discipline.
    fn discipline(&mut self, text: &mut String, table: &str) {
        let queue = match self.0.below(8) {
            0..3 => format!("{{ {} = {{}} }}", self.management().0),
            3..6 => {
                let (_, usual) = self.management();
                self.distorted(toml::Value::try_from(usual).expect("parameters are a table")).to_string()
            }
            _ => format!("\"{}\"", self.queue()),
        };
        writeln!(text, "{table}queue = {queue}").expect("text grows");
    }

    /// A discipline with its name.
    fn management(&mut self) -> (String, Management) {
        let all: Vec<_> = Management::all().collect();
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let name = pick_name(&mut self.0, &names);
        let picked = all.iter().find(|(management, _)| management == name);
        picked.cloned().expect("it was picked")
    }

    fn traffic(&mut self, text: &mut String, ends: (&str, &str)) {
        let (from, to) = if coin(&mut self.0) { ends } else { (ends.1, ends.0) };
        if self.chance(0.2) {
            let codec = pick(&mut self.0, &["g711", "g711-plc", "g729a", "gsm-efr"]);
            let pauses = coin(&mut self.0);
            let buffer = if self.chance(0.3) { "adaptive" } else { self.span() };
            let voip = format!(
                "voip = {{ codec = \"{codec}\", silence_suppression = {pauses}, playout_buffer = \"{buffer}\" }}"
            );
            writeln!(text, "[traffic.call]\nfrom = \"{from}\"\nto = \"{to}\"\n{voip}").expect("text");
            return;
        }
        let (rate, size, a, b) = (self.rate(), self.size(), self.span(), self.span());
        let law = match self.0.below(4) {
            0 => format!("constant.rate = \"{rate}\""),
            1 => format!("poisson.rate = \"{rate}\""),
            2 => format!("on-off = {{ rate = \"{rate}\", on = \"{a}\", off = \"{b}\" }}"),
            _ => {
                format!("on-off = {{ rate = \"{rate}\", on = \"{a}\", off = \"{b}\", periods = \"fixed\" }}")
            }
        };
        let head = format!("[traffic.cross]\nfrom = \"{from}\"\nto = \"{to}\"\npacket_size = \"{size}\"");
        writeln!(text, "{head}\nlaw.{law}").expect("text");
        if self.chance(0.3) {
            writeln!(text, "stop = \"{}\"", self.span()).expect("text");
        }
    }

    fn application(&mut self, text: &mut String, ends: (&str, &str)) {
        let kinds = ["http", "database", "email", "ssh", "telemetry", "page", "video"];
        let kind = pick(&mut self.0, &kinds);
        let head =
            format!("[application.web]\nfrom = \"{}\"\nto = \"{}\"\nkind = \"{kind}\"", ends.1, ends.0);
        writeln!(text, "{head}").expect("text");
        if self.chance(0.5) && kind != "video" {
            writeln!(text, "think.constant = \"{}\"", self.span()).expect("text");
        }
        if self.chance(0.5) && kind != "video" && kind != "page" {
            writeln!(text, "response.constant = \"{}\"", self.size()).expect("text");
        }
        if self.chance(0.3) && kind != "video" {
            writeln!(text, "requests = {}", self.count()).expect("text");
        }
        match kind {
            "page" => self.page(text),
            "video" => self.video(text),
            _ => {}
        }
    }

    fn page(&mut self, text: &mut String) {
        let http = pick(&mut self.0, &["1.1", "2"]);
        writeln!(text, "page.http = \"{http}\"").expect("text");
        if self.chance(0.3) {
            writeln!(text, "page.connections = {}", self.value(&["1", "6"], &["0", "32", "33", "255"]))
                .expect("text");
        }
        if self.chance(0.3) {
            writeln!(text, "page.parsing.exponential = \"{}\"", self.span()).expect("text");
        }
        if self.chance(0.5) {
            let (count, size, median, sigma) = (self.count(), self.size(), self.size(), self.sigma());
            let wave = self.value(&["1", "2"], &["0", "255", "256"]);
            let objects = format!(
                "page.objects = [{{ count = {count}, size.constant = \"{size}\" }}, {{ count = 3, size.lognormal = {{ \
                 median = \"{median}\", sigma = {sigma} }}, wave = {wave} }}]"
            );
            writeln!(text, "{objects}").expect("text");
        }
    }

    fn video(&mut self, text: &mut String) {
        for key in ["length", "segment", "buffer", "startup"] {
            if self.chance(0.3) {
                writeln!(text, "video.{key} = \"{}\"", self.span()).expect("text");
            }
        }
        if self.chance(0.3) {
            writeln!(text, "video.bitrates = [\"{}\"]", self.rate()).expect("text");
        }
        match self.0.below(3) {
            0 => writeln!(text, "video.adaptation.rate.segments = {}", self.count()).expect("text"),
            1 => {
                let (reservoir, cushion) = (self.span(), self.span());
                let keys = format!("{{ reservoir = \"{reservoir}\", cushion = \"{cushion}\" }}");
                writeln!(text, "video.adaptation.buffer = {keys}").expect("text");
            }
            _ => {}
        }
    }

    fn quic(&mut self, text: &mut String) {
        text.push_str("[quic]\n");
        for key in ["mtu", "window", "handshake"] {
            if self.chance(0.3) {
                writeln!(text, "{key} = \"{}\"", self.size()).expect("text");
            }
        }
        if self.chance(0.2) {
            writeln!(text, "tick = \"{}\"", self.span()).expect("text");
        }
        if self.chance(0.2) {
            writeln!(text, "batch = {}", self.count()).expect("text");
        }
        writeln!(text, "mtu_discovery = {}", coin(&mut self.0)).expect("text");
    }

    fn mobility(&mut self, text: &mut String) {
        let (gap, a, b) = (self.span(), self.span(), self.span());
        let moves = match self.0.below(4) {
            0 => format!("periodic.stay = \"{a}\""),
            1 => format!("random.stay = \"{a}\""),
            2 => format!("strongest = {{ crossing = \"{a}\", beacon = \"{b}\", shadowing = \"6 dB\" }}"),
            _ => format!("timetable = [{{ at = \"{a}\", to = \"BS2\" }}, {{ at = \"{b}\", to = \"BS1\" }}]"),
        };
        let gap = if self.chance(0.2) { String::from("overlap = true") } else { format!("gap = \"{gap}\"") };
        writeln!(text, "[mobility.mobile]\n{gap}\nmoves.{moves}").expect("text");
    }

    fn scenario(&mut self) -> String {
        let schemes = Schemes::default();
        let combined = [
            "snoop + airmail",
            "m-tcp + arq",
            "i-tcp + ebsn + arq",
            "snoop + multicast",
            "lhack + wenp + arq",
        ];
        let all: Vec<&str> = schemes.all().map(|scheme| scheme.name()).chain(combined).collect();
        let mut text = format!("schemes = [\"{}\"]\n", pick_name(&mut self.0, &all));
        let limit = self.value(&["10 s", "60 s"], &["1 ns", "600 s", "1000000 s", "10000000000 s"]);
        writeln!(text, "limit = \"{limit}\"").expect("text");
        let sender = self.0.below(8);
        match sender {
            0 => text.push_str("sender = \"mine\"\n"),
            1 => text.push_str("sender = \"linux-bbr\"\n"),
            2 => writeln!(text, "sender = \"{}\"", pick_name(&mut self.0, QUIC_SENDERS)).expect("text"),
            _ => {}
        }
        if self.chance(0.2) {
            writeln!(text, "warmup = \"{}\"", self.span()).expect("text");
        }
        let (shape, ends, wireless) = match self.0.below(10) {
            0 => ("topology.path.routers = 2\n", ("source", "destination"), "R2-destination"),
            1 => ("topology.dumbbell = { pairs = 2, wireless = \"both\" }\n", ("S1", "D2"), "right-D1"),
            2 => ("topology.cell.stations = 3\n", ("server", "MH2"), "ap-MH1"),
            3 => {
                let graph = "topology.graph = { wired = [\"A-B\", \"C-A\"], radio = [\"B-M\"], cell = \
                             [\"B-N\", \"B-O\"] }\n";
                (graph, ("N", "O"), "B-M")
            }
            4 => ("topology.shared-radio.mobiles = 3\n", ("server", "MH2"), "base-MH1"),
            5 => ("topology.hand-off.stations = 2\n", ("fixed", "mobile"), "BS2-mobile"),
            _ => ("", ("fixed", "mobile"), "base-mobile"),
        };
        text.push_str(shape);
        let size = self.value(&["10 KB", "1 MB", "unlimited"], &["1 B", "1000 GB", "0 B"]);
        let has_transfer = !self.chance(0.05);
        if has_transfer {
            writeln!(text, "[transfer]\nsize = \"{size}\"").expect("text");
        }
        if has_transfer && shape.contains("graph") {
            writeln!(text, "from = \"{}\"\nto = \"{}\"", ends.0, ends.1).expect("text");
        }
        text.push_str("[tcp]\n");
        self.tcp(&mut text);
        if sender == 2 && self.chance(0.5) {
            self.quic(&mut text);
        }
        text.push_str("[wired]\n");
        self.any_rate(&mut text, "");
        self.any_delay(&mut text, "");
        self.discipline(&mut text, "");
        text.push_str("[radio]\n");
        self.any_rate(&mut text, "");
        self.radio(&mut text, "");
        if self.chance(0.2) {
            self.radio(&mut text, "uplink.");
        }
        if shape.contains("cell") && self.chance(0.5) {
            self.wifi(&mut text);
        } else if shape.contains("cell") {
            text.push_str("[cell]\n");
            if self.chance(0.4) {
                writeln!(text, "queue = \"{}\"", self.queue()).expect("text");
            }
            if self.chance(0.3) {
                writeln!(text, "drop = {{ down = {} }}", self.probability()).expect("text");
            }
            self.channel(&mut text, "");
        }
        if self.chance(0.2) && !shape.contains("cell") {
            writeln!(text, "[link.{wireless}]").expect("text");
            self.radio(&mut text, "");
        }
        if shape.contains("shared") {
            let wait = self.span();
            let slow = format!("{{ channel-state.wait = \"{wait}\" }}");
            let dispatch = pick(&mut self.0, &["\"fifo\"", "\"round-robin\"", "\"ideal\"", slow.as_str()]);
            writeln!(text, "[shared]\ndispatch = {dispatch}").expect("text");
        }
        if shape.contains("hand-off") {
            self.mobility(&mut text);
        }
        let connection = match shape {
            _ if shape.contains("pairs") => "connection.2",
            _ if shape.contains("cell.stations") || shape.contains("mobiles") => "connection.3",
            _ => "connection.transfer",
        };
        let host = format!("host.{}", if coin(&mut self.0) { ends.0 } else { ends.1 });
        // Most settings have an effect at one end of a connection alone, and are refused at the other.
        for (table, share) in [(connection, 0.15), (&host, 0.05)] {
            if has_transfer && self.chance(share) {
                writeln!(text, "[{table}.tcp]").expect("text");
                self.tcp(&mut text);
            }
        }
        if sender == 0 {
            text.push_str("[senders.mine]\n");
            self.tcp(&mut text);
        }
        if !has_transfer || self.chance(0.4) {
            self.traffic(&mut text, ends);
        }
        if self.chance(0.3) {
            self.application(&mut text, ends);
        }
        text
    }

    fn wifi(&mut self, text: &mut String) {
        text.push_str("[wifi]\n");
        let standard = pick(&mut self.0, &["802.11n", "802.11ac", "802.11ax"]);
        writeln!(text, "standard = \"{standard}\"").expect("text");
        let keys = [
            "width = \"40 MHz\"",
            "width = \"80 MHz\"",
            "streams = 2",
            "guard_interval = \"400 ns\"",
            "snr = \"12 dB\"",
            "snr = \"-40 dB\"",
            "fading = {}",
            "fading = { doppler_hz = 1e4, direct = \"-40 dB\" }",
            "reorder_timeout = \"1 ms\"",
            "ampdu = \"0 B\"",
            "window = 1",
            "window = 0",
            "retry_limit = 1",
            "rts = true",
            "eifs = true",
            "requests_block_ack = true",
            "longest_ppdu = \"1 ms\"",
            "scheduler = \"airtime\"",
            "neighbour = { share = 0.4, exchange = \"100 us\" }",
            "interference = {}",
            "interference = { period = \"1 ms\", burst = \"999999 ns\", loss = 0.5 }",
            "roaming = { every = \"3 s\", queued = \"forwarded\" }",
            "roaming = { every = \"100 ms\", channels = 0, gap = \"100 ms\" }",
            "edca.best_effort = { aifsn = 15, cw = { min = 0, max = 0 }, txop = \"1 ns\" }",
        ];
        let mut stated: Vec<&str> = Vec::new();
        for _ in 0..self.0.below(5) {
            let key = pick(&mut self.0, &keys);
            // A key is stated once.
            if stated.iter().all(|other| other.split(' ').next() != key.split(' ').next()) {
                writeln!(text, "{key}").expect("text");
                stated.push(key);
            }
        }
        let rates = RateSelection::examples();
        let rate = toml::Value::try_from(pick(&mut self.0, &rates)).expect("a word or a table");
        writeln!(text, "rate = {rate}").expect("text");
        if self.chance(0.3) {
            writeln!(text, "loss = {{ down = {} }}", self.probability()).expect("text");
        }
        if self.chance(0.3) {
            self.discipline(text, "");
        }
        self.channel(text, "");
    }
}

fn text_of(number: u64) -> String {
    Draw(Streams::new(number, 0).stream("hostile")).scenario()
}

/// Whether scenario number `number` was accepted; if so, it is run.
pub(crate) fn try_scenario(number: u64) -> bool {
    let text = text_of(number);
    let scenario = match Scenario::parse::<&str>(&text, "hostile.toml", &[]) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(error.message().len() > 20, "{number}: {error}");
            return false;
        }
    };
    for (run, scheme) in (0..).zip(&scenario.schemes) {
        let observe = Observe {
            trace: number.is_multiple_of(4),
            series: number.is_multiple_of(2),
            delays: false,
            pcap: None,
            qlog: false,
        };
        let mut polls = 0;
        let result = scenario.run_while(scheme, 1, run, observe, |_| {
            polls += 1;
            polls < POLLS
        });
        match result {
            Ok(_) | Err(RunError::Stopped | RunError::Scenario(_)) => {}
            Err(error) => panic!("{number}: {error}\n{text}"),
        }
    }
    let periods = lasthop_predict::bad_periods(&scenario, 1, 0, 1.0);
    assert!(periods.is_sorted_by(|a, b| a.1 <= b.0), "{number}");
    // Links without a closed form return an error.
    let _ = lasthop_predict::packet_loss(&scenario, "552 B".parse().expect("a size"), None);
    true
}

/// CPU time of the process, independent of the machine's load; zero where unavailable.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses, user and system time are the 12th and 13th field, in hundredths of a second.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// Resident memory of the process; zero where unavailable.
fn memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Aborts the process with the reason if the current scenario hangs or exhausts memory, which no panic could
/// report.
fn watch(under_way: &'static AtomicU64) {
    thread::spawn(move || {
        let (mut seen, mut since) = (u64::MAX, Duration::ZERO);
        loop {
            thread::sleep(Duration::from_millis(20));
            let number = under_way.load(SeqCst);
            if number != seen {
                (seen, since) = (number, cpu_time());
            }
            let (taken, memory) = (cpu_time() - since, memory_kb());
            if taken > PATIENCE || memory > MOST_MEMORY_KB {
                // Output of the printing macros would be captured by the test harness.
                let text = text_of(number);
                let _ = writeln!(io::stderr(), "scenario {number}: {taken:?}, {memory} kB\n{text}");
                process::exit(101);
            }
        }
    });
}

#[test]
fn random_extreme_scenarios_are_rejected_or_can_be_stopped() {
    static UNDER_WAY: AtomicU64 = AtomicU64::new(0);
    let number = |name| env::var(name).ok().map(|text: String| text.parse::<u64>().expect("a number"));
    let numbers = match number("LASTHOP_HOSTILE_ONLY") {
        Some(only) => {
            println!("{}", text_of(only));
            only..only + 1
        }
        None => 0..number("LASTHOP_HOSTILE").unwrap_or(SCENARIOS),
    };
    watch(&UNDER_WAY);
    let (mut accepted, mut failed) = (0, Vec::new());
    for number in numbers.clone() {
        UNDER_WAY.store(number, SeqCst);
        match catch_unwind(|| try_scenario(number)) {
            Ok(is_accepted) => accepted += u64::from(is_accepted),
            Err(_) => failed.push(number),
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}; LASTHOP_HOSTILE_ONLY replays one");
    // Some scenarios are rejected and some accepted.
    let tried = numbers.end - numbers.start;
    assert!(tried < 100 || (accepted > tried / 20 && accepted < tried), "{accepted} of {tried} accepted");
}

const LAST_HOP: &str = "limit = \"60 s\"\n[transfer]\nsize = \"10 KB\"\n[wired]\nrate = \"1 Mbps\"\n[radio]\nrate = \
                        \"1 Mbps\"\n";

/// Rejected overrides, with the location and the remedy in the message.
#[test]
fn intractable_scenarios_are_rejected_with_a_remedy() {
    let two_state = "radio.channel.two-state={ good = \"1 us\", bad = \"1 us\" }";
    let on_off = "traffic.t={ from = \"fixed\", to = \"mobile\", packet_size = \"100 B\", law.on-off = { rate = \
                  \"1 Mbps\", on = \"1 ns\", off = \"1 ns\" } }";
    let cases: [(&[&str], &str); 12] = [
        (&["limit=10000000000 s"], "limit: found \"10000000000 s\", expected at most \"100000000 s\""),
        (&["wired.rate=1000000 Gbps"], "wired.rate: found \"1000000 Gbps\" and a limit of \"60 s\""),
        (&["radio.rate=1000000 Gbps"], "radio.rate: found \"1000000 Gbps\" and a limit of \"60 s\""),
        (&["link.base-mobile.rate=1000000 Gbps"], "link.base-mobile.rate: found"),
        (&["radio.uplink.rate=1000000 Gbps"], "radio.uplink.rate: found"),
        (
            &[two_state],
            "radio.channel: found 30000000 periods until the limit of \"60 s\", expected at most 20000000",
        ),
        (
            &[two_state, "limit=10 s", "radio.rate=10 bps"],
            "radio.channel: found 1200000000 periods while one unit is on the air",
        ),
        (
            &["radio.unit=1 GB"],
            "radio.unit: found more than the largest packet, expected at most \"65535 B\"",
        ),
        (
            &["radio.outage={ first = \"1 s\", every = \"2 us\", lasts = \"1 us\" }"],
            "radio.outage.every: found 30000000 periods",
        ),
        (
            &["radio.rate=1000 Gbps", "radio.arq.stop-and-wait={ backoff.fixed = \"0 s\" }", "limit=600 s"],
            "radio.arq: found unlimited retransmissions, up to 600000000000 until the limit",
        ),
        (&[on_off], "traffic.t.law.on-off: found 30000037500 packets until the limit or the stop"),
        (
            &["tcp.packet_size=53 B", "tcp.window=1 GiB"],
            "tcp.window: found 1073741824 B, which is 1073741824 segments of 1 B",
        ),
    ];
    for (overrides, expected) in cases {
        let error = Scenario::parse(LAST_HOP, "test.toml", overrides).expect_err("it is refused");
        assert!(error.message().starts_with(expected), "{overrides:?}: {}", error.message());
    }
}

/// A source faster than its link, and an unlimited queue.
#[test]
fn the_number_of_packets_in_a_run_is_bounded() {
    let traffic = "traffic.t={ from = \"fixed\", to = \"mobile\", packet_size = \"100 B\", law.constant.rate = \
                   \"1 Gbps\" }";
    let scenario =
        Scenario::parse(LAST_HOP, "test.toml", &[traffic, "wired.rate=1 kbps"]).expect("it is sound");
    let error = scenario.run("basic", 1, 0, Observe::default()).expect_err("it is too much").to_string();
    assert!(error.contains("more than 4000000 packets wait before links"), "{error}");
}

/// A trace of an unbounded run.
#[test]
fn the_number_of_recorded_rows_is_bounded() {
    let fast = ["transfer.size=unlimited", "wired.rate=1 Gbps", "radio.rate=1 Gbps"];
    let scenario = Scenario::parse(LAST_HOP, "test.toml", &fast).expect("it is sound");
    let ended_at = |observe| {
        // A run that completed would be printed in full.
        let Err(error) = scenario.run("basic", 1, 0, observe) else { panic!("it is too much") };
        let error = error.to_string();
        let (at, reason) =
            error.split_once(" s the traces, series and qlogs of this run ").expect("it says when");
        assert!(reason.starts_with("have more than 4000000 rows; lower the limit or"), "{reason}");
        at.rsplit_once("after ").expect("it says when").1.parse::<f64>().expect("seconds")
    };
    let trace = ended_at(Observe { trace: true, ..Observe::default() });
    let both = ended_at(Observe { trace: true, series: true, ..Observe::default() });
    assert!(10.0 < both && both < trace && trace < 30.0, "{both} and {trace}");
}

/// The capture of an unbounded run, written to a device that takes everything.
#[cfg(unix)]
#[test]
fn the_number_of_captured_packets_is_bounded() {
    let fast = ["transfer.size=unlimited", "wired.rate=1 Gbps", "radio.rate=1 Gbps", "tcp.window=1 MB"];
    let scenario = Scenario::parse(LAST_HOP, "test.toml", &fast).expect("it is sound");
    let observe = Observe { pcap: Some(Path::new("/dev/null")), ..Observe::default() };
    let Err(error) = scenario.run("basic", 1, 0, observe) else { panic!("it is too much") };
    let error = error.to_string();
    let reason = error.split_once(" s the capture of this run ").expect("it says when").1;
    assert!(reason.starts_with("has reached its limit of 4000000 packets; lower the limit or"), "{reason}");
}

/// A capture that cannot be continued ends an unbounded run.
#[cfg(target_os = "linux")]
#[test]
fn a_failed_capture_ends_the_run() {
    let endless = ["transfer.size=unlimited", "limit=100000000 s"];
    let scenario = Scenario::parse(LAST_HOP, "test.toml", &endless).expect("it is sound");
    let observe = Observe { pcap: Some(Path::new("/dev/full")), ..Observe::default() };
    let Err(error) = scenario.run("basic", 1, 0, observe) else { panic!("it cannot be written") };
    assert!(error.to_string().starts_with("cannot write /dev/full: "), "{error}");
}

/// A proxy without split connections has empty series.
#[test]
fn series_of_a_split_scheme_without_split_connections() {
    let text = "limit = \"5 s\"\nschemes = [\"i-tcp\", \"vs-tcp\"]\n[topology.graph]\ncell = [\"B-N\", \"B-O\"]\n\
                [transfer]\nsize = \"10 KB\"\nfrom = \"N\"\nto = \"O\"\n[tcp]\nclose = true\n[traffic.t]\n\
                from = \"B\"\nto = \"O\"\npacket_size = \"100 B\"\nlaw.constant.rate = \"10 kbps\"\n";
    let scenario = Scenario::parse::<&str>(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    for scheme in &scenario.schemes {
        let observe = Observe { series: true, ..Observe::default() };
        let run = scenario.run(scheme, 1, 0, observe).expect("it runs");
        assert!(run.connections[0].metrics.finished && run.agents.is_empty(), "{scheme}");
    }
}

/// A chain of links, with so many connections from end to end.
fn chain(links: usize, connections: usize) -> String {
    let names: Vec<String> = (0..links).map(|n| format!("\"N{n}-N{}\"", n + 1)).collect();
    let connections: String = (0..connections).map(|n| format!("[connection.c{n}]\n")).collect();
    format!(
        "limit = \"1 s\"\n[topology.graph]\nwired = [{}]\n[transfer]\nsize = \"1 KB\"\nfrom = \"N0\"\nto = \
         \"N{links}\"\n{connections}[wired]\nrate = \"1 Gbps\"\n",
        names.join(", ")
    )
}

fn assert_refused(text: &str, expected: &str) {
    let refused = Scenario::parse::<&str>(text, "test.toml", &[]).expect_err("it is refused");
    assert!(refused.message().starts_with(expected), "{}", refused.message());
}

#[test]
fn the_number_of_links_and_flows_is_bounded() {
    assert_refused(&chain(1, (1 << 18) + 1), "topology: found 262145 flows, expected at most 262144");
    assert_refused(&chain(3_000, 1_400), "topology: found flows over more than 4194304 links");
    for (links, connections) in [(70_000, 1), (1, 70_000)] {
        let text = chain(links, connections);
        let scenario = Scenario::parse::<&str>(&text, "test.toml", &[]).expect("it is sound");
        let run = scenario.run("basic", 1, 0, Observe::default()).expect("it runs");
        assert!(run.metrics.connections.finished, "{links} links, {connections} connections");
    }
}
