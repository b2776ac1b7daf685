//! One case: its options in the format of `trace.tcl`, and the simulation they describe.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use lasthop_proto::tcp::{
    Connection, Flavour, InitialThreshold, InitialWindow, Profile, Receiver, Sender, Settings, Transfer,
};
use lasthop_proto::{Component, DropReason, FlowId, HostId, Out, Packet, Port};
use lasthop_sim::{Builder, Ended, Link, QueueLimit};

use crate::ns2::recorder::{Numbering, Places, Recorder};
use crate::ns2::trace::Row;

/// A case of `index.csv`.
pub(crate) struct Case {
    pub(crate) name: String,
    options: BTreeMap<String, String>,
}

/// Defaults of `trace.tcl`.
const DEFAULTS: &[(&str, &str)] = &[
    ("tcp", "Reno"),
    ("sink", "Imm"),
    ("n", "100"),
    ("win", "32"),
    ("psize", "1500"),
    ("headers", "0"),
    ("init", "1"),
    ("ssthresh", "0"),
    ("syn", "0"),
    ("delgrow", "0"),
    ("singledup", "0"),
    ("tick", "0.01"),
    ("minrto", "1.0"),
    ("maxrto", "60"),
    ("rtoinit", "3.0"),
    ("start", "0.033"),
    ("loss", ""),
    ("aloss", ""),
    ("outage", ""),
    ("wbw", "10Mb"),
    ("wdelay", "30ms"),
    ("lbw", "384kb"),
    ("ldelay", "1ms"),
    ("qlim", "1000"),
    ("delack", "0.1"),
    ("tail", "2.0"),
    ("maxtime", "600"),
    ("set", ""),
];

/// Reads the cases of an `index.csv`.
pub(crate) fn read_index(path: &Path) -> Result<Vec<Case>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rows = text.lines().skip(1).filter(|line| !line.is_empty());
    rows.map(|line| {
        let fields: Vec<&str> = line.splitn(7, ',').collect();
        let &[name, .., options] = fields.as_slice() else { return Err(format!("unreadable row: {line}")) };
        Ok(Case { name: name.into(), options: split_options(options)? })
    })
    .collect()
}

/// `a=1 b='x y'` as a map; double quotes may stand around the whole.
fn split_options(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut options: BTreeMap<String, String> =
        DEFAULTS.iter().map(|&(key, value)| (key.into(), value.into())).collect();
    let mut rest = text.trim().trim_matches('"').trim();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(|| format!("no value: {rest}"))?;
        let (value, after) = match after.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'').ok_or_else(|| format!("unclosed quote: {rest}"))?,
            None => after.split_once(' ').unwrap_or((after, "")),
        };
        let known = options.insert(key.trim().into(), value.into()).is_some();
        known.then_some(()).ok_or_else(|| format!("unknown option {key}"))?;
        rest = after.trim_start();
    }
    Ok(options)
}

impl Case {
    fn text(&self, key: &str) -> &str {
        &self.options[key]
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, String> {
        self.text(key).parse().map_err(|_| format!("bad {key}={}", self.text(key)))
    }

    fn seconds(&self, key: &str) -> Result<Duration, String> {
        self.number(key).map(Duration::from_secs_f64)
    }

    fn settings(&self) -> Result<Settings, String> {
        let psize: u64 = self.number("psize")?;
        let header = 40;
        let packet_size = if self.text("headers") == "1" { psize + header } else { psize };
        let window: u32 = self.number("win")?;
        let mut settings = Settings {
            flavour: match self.text("tcp") {
                "Tahoe" => Flavour::Tahoe,
                "Reno" => Flavour::Reno,
                "Newreno" => Flavour::NewReno,
                "Sack1" => Flavour::Sack,
                other => return Err(format!("unknown tcp={other}")),
            },
            packet_size: Bytes(packet_size),
            header: Bytes(header),
            window: Bytes(u64::from(window) * (packet_size - header)).into(),
            initial_window: InitialWindow::Segments(self.number("init")?),
            initial_ssthresh: match self.number("ssthresh")? {
                0 => InitialThreshold::Window,
                segments => InitialThreshold::Segments(segments),
            },
            handshake: self.text("syn") == "1",
            delay_growth: self.text("delgrow") == "1",
            limited_transmit: self.text("singledup") == "1",
            tick: self.seconds("tick")?,
            rto_initial: self.seconds("rtoinit")?,
            rto_min: self.seconds("minrto")?,
            rto_max: self.seconds("maxrto")?,
            ack_every: if self.text("sink") == "DelAck" { 2 } else { 1 },
            ack_delay: self.seconds("delack")?,
            ..Profile::Ns2.settings()
        };
        let words: Vec<&str> = self.text("set").split_whitespace().collect();
        for pair in words.chunks(2) {
            self.set_variable(&mut settings, pair[0], pair.get(1).copied().unwrap_or(""))?;
        }
        Ok(settings)
    }

    /// Applies an ns-2 agent variable to the settings.
    fn set_variable(&self, settings: &mut Settings, name: &str, value: &str) -> Result<(), String> {
        let on = matches!(value, "1" | "true");
        let number = || value.parse::<u32>().map_err(|_| format!("bad {name} {value}"));
        match name {
            "precisionReduce_" => settings.halve_exactly = on,
            "bugFix_" => settings.careful = on,
            "maxburst_" => settings.max_burst = number()?,
            "numdupacks_" => settings.dupthresh = number()?,
            "partial_ack_" => settings.partial_ack_sends = on,
            "newreno_changes1_" => settings.impatient = on,
            "partial_window_deflation_" => settings.partial_deflation = on,
            _ => return Err(format!("ns-2 variable {name} has no counterpart")),
        }
        Ok(())
    }

    /// Runs the case and returns the rows that ns-2 would have written.
    pub(crate) fn simulate(&self) -> Result<Vec<Row>, String> {
        let settings = self.settings()?;
        let connection = Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) };
        let segments: u64 = self.number("n")?;
        let start = Time::ZERO + self.seconds("start")?;
        let transfer = Transfer { bytes: Some(segments * u64::from(settings.mss())), start };
        let (wired_rate, wired_delay) = (rate(self.text("wbw"))?, delay(self.text("wdelay"))?);
        let (hop_rate, hop_delay) = (rate(self.text("lbw"))?, delay(self.text("ldelay"))?);
        let queue = QueueLimit::Packets(self.number::<u32>("qlim")? - 1);
        let wired = || Link::wired(wired_rate, wired_delay, QueueLimit::Unlimited);
        let hop = |limit| Link::wired(hop_rate, hop_delay, limit);
        let numbering = Numbering::new(&settings);
        let outages = self.outages()?;
        let dropper = |lost| Dropper { lost, outages: outages.clone(), rate: hop_rate, delay: hop_delay };

        let mut net = Builder::new();
        // Hosts come first: at the same instant a timer expires before a packet arrives, as in ns-2.
        let sender = net.add(Sender::new(connection, &settings, transfer, None));
        let receiver = net.add(Receiver::new(connection, &settings));
        let (there, back) = (net.add(wired()), net.add(wired()));
        let (down, up) = (net.add(hop(queue)), net.add(hop(QueueLimit::Unlimited)));
        let lost_data = LostData { which: self.losses()?, arrivals: BTreeMap::new(), numbering };
        let lost_acks = LostAcks { which: self.lost_acks()?, arrivals: 0 };
        let data_filter = net.add(Box::new(dropper(Lost::Data(lost_data))) as Box<dyn Component>);
        let ack_filter = net.add(Box::new(dropper(Lost::Acks(lost_acks))) as Box<dyn Component>);
        let path = [sender, there, down, data_filter, receiver, up, ack_filter, back, sender];
        let wires: Vec<_> =
            path.windows(2).map(|pair| net.connect((pair[0], Port::ONLY), (pair[1], Port::ONLY))).collect();
        let places = Places {
            sender,
            data_queue: down,
            data_filter,
            ack_filter,
            sent: wires[0],
            delivered: wires[3],
            ack_sent: wires[4],
            ack_arrived: wires[7],
        };

        let mut engine = net.build(Recorder::new(places, numbering));
        let limit = Time::ZERO + self.seconds("maxtime")?;
        if engine.run(&[sender], limit) == Ended::Finished {
            engine.run(&[], (engine.now() + self.seconds("tail")?).min(limit));
        }
        Ok(engine.into_tap().into_rows())
    }

    /// `SEQ:K ...`: the K-th transmission of segment SEQ.
    fn losses(&self) -> Result<HashSet<(i64, i64)>, String> {
        let pair = |word: &str| {
            let (seq, k) = word.split_once(':')?;
            Some((seq.parse().ok()?, k.parse().ok()?))
        };
        let words = self.text("loss").split_whitespace();
        words.map(|word| pair(word).ok_or_else(|| format!("bad loss {word}"))).collect()
    }

    fn lost_acks(&self) -> Result<HashSet<i64>, String> {
        let words = self.text("aloss").split_whitespace();
        words.map(|word| word.parse().map_err(|_| format!("bad aloss {word}"))).collect()
    }

    /// `A-B ...` in seconds.
    fn outages(&self) -> Result<Vec<(f64, f64)>, String> {
        let pair = |word: &str| {
            let (from, to) = word.split_once('-')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        let words = self.text("outage").split_whitespace();
        words.map(|word| pair(word).ok_or_else(|| format!("bad outage {word}"))).collect()
    }
}

/// `384kb` as ns-2 writes rates.
fn rate(text: &str) -> Result<BitRate, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &text[..text.len() - unit.len()];
    let unit = match unit {
        "" => "bps",
        "kb" | "Kb" => "kbps",
        "Mb" => "Mbps",
        other => return Err(format!("unknown unit {other}")),
    };
    format!("{number} {unit}").parse().map_err(|error| format!("{error}"))
}

/// `30ms` as ns-2 writes delays.
fn delay(text: &str) -> Result<Duration, String> {
    let text = if text.ends_with('s') { text.to_owned() } else { format!("{text}s") };
    text.parse().map_err(|error| format!("{error}"))
}

/// Sits at the end of the last hop and drops the packets that the case lists.
struct Dropper {
    lost: Lost,
    outages: Vec<(f64, f64)>,
    rate: BitRate,
    delay: Duration,
}

enum Lost {
    Data(LostData),
    Acks(LostAcks),
}

struct LostData {
    which: HashSet<(i64, i64)>,
    arrivals: BTreeMap<i64, i64>,
    numbering: Numbering,
}

struct LostAcks {
    which: HashSet<i64>,
    arrivals: i64,
}

impl Lost {
    fn scripted(&mut self, packet: &Packet) -> bool {
        match self {
            Lost::Data(data) => {
                let seq = data.numbering.segment(packet);
                let k = data.arrivals.entry(seq).or_default();
                *k += 1;
                data.which.contains(&(seq, *k))
            }
            Lost::Acks(acks) => {
                acks.arrivals += 1;
                acks.which.contains(&(acks.arrivals - 1))
            }
        }
    }
}

impl Dropper {
    /// Whether the packet was on the air during an outage.
    fn in_outage(&self, now: Time, packet: &Packet) -> bool {
        let on_air = self.rate.time_for(packet.size).as_secs_f64();
        let start = now.as_secs_f64() - self.delay.as_secs_f64() - on_air;
        self.outages.iter().any(|&(from, to)| start < to && start + on_air > from)
    }
}

impl Component for Dropper {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        if self.lost.scripted(packet) || self.in_outage(now, packet) {
            out.drop(*packet, DropReason::Scripted);
        } else {
            out.send(Port::ONLY, *packet);
        }
    }
}
