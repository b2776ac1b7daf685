//! Error messages of invalid scenarios, exactly as users see them.

use std::fmt::Write;
use std::fs;

use crate::common::without_lists;
use lasthop_scenario::{ErrorKind, Scenario};
use lasthop_testing::scenario_texts::{NETWORK, SCENARIO, with};

/// A replacement that makes the scenario invalid.
const EDITS: &[(&str, &str, &str)] = &[
    ("an unknown key", "delay = \"0 s\"", "dealy = \"0 s\""),
    ("an unknown table", "[wired]", "[wierd]"),
    ("a title of two lines", "\"a test\"", "\"a\\ntest\""),
    ("a title over two lines", "\"a test\"", "\"\"\"a\ntest\"\"\""),
    ("a name that colours a terminal", "[wired]", "[connection.\"a\\u001b[31m\"]\n[wired]"),
    ("a name in a list that turns letters round", "\"ebsn\"]", "\"eb\\u202esn\"]"),
    ("an unknown scheme's table", "[transfer]", "[scheme.ebns]\n\n[transfer]"),
    ("a unit with a slip", "\"56 kbps\"", "\"2 Mbs\""),
    ("no unit", "\"56 kbps\"", "\"56000\""),
    ("a bare number", "\"56 kbps\"", "56000"),
    ("a quantity without quotes", "\"56 kbps\"", "56 kbps"),
    ("a rate of zero", "\"56 kbps\"", "\"0 bps\""),
    ("a negative delay", "delay = \"0 s\"", "delay = \"-30 ms\""),
    ("a probability above one", "bad = \"4 s\"", "bad = \"4 s\"\nbad_ber = 1.5"),
    ("a wrong type", "mtu = \"128 B\"", "mtu = true"),
    ("a list that is none", "[\"basic\", \"ebsn\"]", "\"ebsn\""),
    ("a number that is none", "expansion = 1.5", "expansion = \"much\""),
    ("a factor out of range", "expansion = 1.5", "expansion = 0.5"),
    ("no number, no word", "delay = \"0 s\"", "queue = \"50 pakets\""),
    ("an unknown discipline", "delay = \"0 s\"", "queue.codle = {}"),
    ("a discipline without its table", "delay = \"0 s\"", "queue = \"codel\""),
    ("two disciplines", "delay = \"0 s\"", "queue = { codel = {}, red = {} }"),
    ("no discipline", "delay = \"0 s\"", "queue = {}"),
    ("a queue that is a number", "delay = \"0 s\"", "queue = 50"),
    ("an unknown key of a discipline", "delay = \"0 s\"", "queue.codel = { traget = \"5 ms\" }"),
    ("no limit of a discipline", "delay = \"0 s\"", "queue.fq-codel.limit = \"50 pakets\""),
    ("a target of no length", "delay = \"0 s\"", "queue.codel.target = \"0 s\""),
    ("an interval of no length", "expansion = 1.5", "queue.fq-codel.interval = \"0 s\""),
    ("no quantum", "delay = \"0 s\"", "queue.fq-codel.quantum = \"0 B\""),
    ("no queue", "delay = \"0 s\"", "queue.fq-codel.flows = 0"),
    ("an update of no length", "delay = \"0 s\"", "queue.pie.update = \"0 s\""),
    ("too many updates", "delay = \"0 s\"", "queue.dualpi2.update = \"99 us\""),
    ("a negative weight", "delay = \"0 s\"", "queue.pie.alpha = -1"),
    (
        "thresholds in the wrong order",
        "delay = \"0 s\"",
        "queue.adaptive-red = { min = \"9 KB\", max = \"8 KB\" }",
    ),
    ("a burst below the lower threshold", "delay = \"0 s\"", "queue.adaptive-red.burst = 3"),
    ("a coupling of less than one", "delay = \"0 s\"", "queue.dualpi2.coupling = 0.5"),
    ("a round trip without a target", "delay = \"0 s\"", "queue.cake.rtt = \"19 us\""),
    ("an empty bucket", "delay = \"0 s\"", "queue.policer.burst = \"0 B\""),
    ("a bucket that no full packet fits", "delay = \"0 s\"", "queue.policer.burst = \"575 B\""),
    (
        "a shaper that no full packet fits",
        "rate = \"56 kbps\"",
        "rate.token-bucket = { rate = \"56 kbps\", burst = \"600 B\", peak = \"1 Mbps\", overhead = \"38 B\" }",
    ),
    (
        "packets that overtake too many",
        "rate = \"56 kbps\"\ndelay = \"0 s\"",
        "rate = \"10 Gbps\"\ndelay.netem = { delay = \"1 s\", jitter = \"1 s\" }",
    ),
    ("a black hole below a SYN", "delay = \"0 s\"", "black_hole = \"0 B\""),
    ("thresholds in the wrong order", "delay = \"0 s\"", "queue.red = { min = 15, max = 5 }"),
    ("a threshold below zero", "delay = \"0 s\"", "queue.red.min = -1.0"),
    ("an average that never moves", "delay = \"0 s\"", "queue.red.weight = 0.0"),
    ("a usual packet of no size", "delay = \"0 s\"", "queue.red.mean_packet = \"0 B\""),
    ("a discipline of one way", "expansion = 1.5", "uplink.queue.codel.target = \"0 s\""),
    ("a count below zero", "\"unlimited\"", "-1"),
    ("a missing key", "size = \"100 KB\"", ""),
    ("a missing table", "[transfer]\nsize = \"100 KB\"", ""),
    ("a missing key of a choice", "bad = \"4 s\"", ""),
    ("an unknown choice", "[radio.channel.two-state]", "[radio.channel.two-sate]"),
    ("an unknown choice by key", "backoff.uniform", "backoff.unifrom"),
    ("an unknown word", "profile = \"ebsn\"", "profile = \"esbn\""),
    ("two choices at once", "[radio.arq", "[radio.channel.iid]\nber = 0.1\n\n[radio.arq"),
    (
        "a choice without a name",
        "[radio.arq.stop-and-wait]\nretransmissions = \"unlimited\"\nbackoff.uniform = \"100 ms\"",
        "[radio.arq]",
    ),
    ("a choice without its parameters", "backoff.uniform = \"100 ms\"", "backoff = \"uniform\""),
    ("a misspelt scheme", "\"ebsn\"]", "\"ebns\"]"),
    ("nothing like a scheme", "\"ebsn\"]", "\"magic\"]"),
    ("a scheme twice", "\"ebsn\"]", "\"basic\"]"),
    ("no scheme", "[\"basic\", \"ebsn\"]", "[]"),
    (
        "a scheme that cannot work",
        "[radio.arq.stop-and-wait]\nretransmissions = \"unlimited\"\nbackoff.uniform = \"100 ms\"",
        "",
    ),
    ("a period of no length", "bad = \"4 s\"", "bad = \"0 s\""),
    ("a random wait of no length", "\"100 ms\"", "\"0 s\""),
    ("a size of all units beside a largest one", MTU, "mtu = \"128 B\"\nunit = \"480 B\""),
    ("a size of one way's units beside a largest one", MTU, "mtu = \"128 B\"\nuplink.unit = \"480 B\""),
    ("one way's largest unit beside a size of all", MTU, "unit = \"480 B\"\nuplink.mtu = \"128 B\""),
    ("a unit without room for a codeword", MTU, "unit = \"31 B\"\nfec = \"bch-255-131-18\""),
    ("a unit of no size", MTU, "unit = \"0 B\""),
    ("a code that corrects too much", MTU, "fec = { n = 255, k = 131, t = 60 }"),
    ("a code that lacks a number", MTU, "fec = { n = 255, k = 131 }"),
    ("a code that no BCH code is", MTU, "fec = \"bch-255-130-18\""),
    ("a code without a name", MTU, "fec = 255"),
    ("something protected by no code", MTU, "protect = \"all\""),
    ("protection of another kind", MTU, "protect = \"selective\""),
    ("a unit that holds no codeword", MTU, "unit = \"31 B\"\nfec = \"bch-255-131-18\""),
    ("an outage of one way", MTU, "uplink.outage = { first = \"1 s\", lasts = \"1 s\" }"),
    ("a way within a way", MTU, "uplink.uplink.rate = \"1 Mbps\""),
    ("an unknown key of one way", MTU, "uplink.maximum = \"128 B\""),
    ("a fault of one way's channel", MTU, "uplink.channel.two-state = { good = \"0 s\", bad = \"1 s\" }"),
    ("a fault of one way's ARQ", MTU, "uplink.arq.stop-and-wait.backoff.uniform = \"0 s\""),
    (
        "a margin that is none",
        "two-state]\ngood = \"10 s\"\nbad = \"4 s\"",
        "rayleigh-gilbert]\nfading_margin = \"200 dB\"\ndoppler = 0.1\nstep = \"10 ms\"",
    ),
    ("a scheme without its code", "\"ebsn\"]", "\"selective-fec\"]"),
    (
        "a scheme's misspelt choice",
        "[transfer]",
        "[scheme.selective-fec]\nprotect = \"selectve\"\n\n[transfer]",
    ),
    ("a scheme's parameter out of bounds", "\"ebsn\"]", "\"wenp\"]\nscheme.wenp.alpha = 1.5"),
    ("a scheme's parameter that TCP bounds", "\"ebsn\"]", "\"wenp\"]\nscheme.wenp.threshold = 4"),
    ("a limit of zero", "title = \"a test\"", "limit = \"0 s\""),
    ("a start too late", "size = \"100 KB\"", "size = \"100 KB\"\nstart = \"1 h\""),
    ("nothing to send", "\"100 KB\"", "\"0 B\""),
    ("a fault of TCP", "profile = \"ebsn\"", "profile = \"ebsn\"\nwindow = \"500 B\""),
    ("a fault of TCP by its profile", "profile = \"ebsn\"", "profile = \"ebsn\"\npacket_size = \"8 KiB\""),
    ("a key twice", "delay = \"0 s\"", "rate = \"1 Mbps\""),
    ("an open string", "title = \"a test\"", "title = \"a test"),
    ("no TOML at all", "[wired]", "wired: {"),
    ("tabs and wide letters before the place", "rate = \"56 kbps\"", "rate\t=\t\"５６ kbps\""),
];

/// Invalid tables for every scheme that splits connections.
const SPLITS: &[(&str, &str)] = &[
    ("a buffer that holds no packet", "[scheme.i-tcp]\nbuffer = \"500 B\""),
    ("a buffer of nothing", "[scheme.metp]\nbuffer = \"0 B\""),
    ("an unknown key of a wireless part", "[scheme.metp.wireless]\nwindw = \"8 KB\""),
    ("a profile of a wireless part", "[scheme.metp.wireless]\nprofile = \"ns2\""),
    ("a wireless part that is not a table", "[scheme.metp]\nwireless = \"ns2\""),
    ("a fault of a wireless part", "[scheme.i-tcp]\nwireless = { window = \"100 B\" }"),
    ("another fault of one", "[scheme.metp.wireless]\nack_every = 0"),
    ("a flavour that is the scheme's", "[scheme.metp.wireless]\nflavour = \"tahoe\""),
    ("congestion control that is the scheme's", "[scheme.vs-tcp.wireless]\ncongestion = \"aimd\""),
    ("a size that is the scheme's", "[scheme.vs-tcp.wireless]\npacket_size = \"1 KB\""),
    ("a misspelt recovery", "[scheme.metp]\nrecovery = \"go-back-m\""),
    ("a method that there is not", "[scheme.vs-tcp]\nmethod = 3"),
    ("a method that is not a number", "[scheme.vs-tcp]\nmethod = \"halve\""),
    ("a misspelt growth", "[scheme.vs-tcp]\ngrowth = \"per-windw\""),
    ("a smallest size that is too small", "[scheme.vs-tcp]\nsmallest_size = \"4 B\""),
    ("a smallest size that is not a multiple", "[scheme.vs-tcp]\nsmallest_size = \"100 B\""),
    ("a largest size below the smallest", "[scheme.vs-tcp]\nlargest_size = \"120 B\""),
    ("a largest size that no packet holds", "[scheme.vs-tcp]\nlargest_size = \"70 KB\""),
    (
        "an initial size above the largest",
        "[scheme.vs-tcp]\ninitial_size = \"1 KiB\"\nlargest_size = \"1000 B\"",
    ),
    ("an initial size below the smallest", "[scheme.vs-tcp]\ninitial_size = \"64 B\""),
    ("a step of nothing", "[scheme.vs-tcp]\nstep = \"0 B\""),
    ("a loss window of nothing", "[scheme.vs-tcp]\nloss_window = 0"),
    ("a loss window that is too long", "[scheme.vs-tcp]\nloss_window = 1001"),
    ("a wanted loss that is none", "[scheme.vs-tcp]\nwanted_loss = 1.1"),
    (
        "a window without room for a segment",
        "[scheme.vs-tcp]\nwireless = { window = \"1 KB\", window_counts = \"payload\" }",
    ),
    (
        "a window that is not a number of packets",
        "[scheme.vs-tcp]\nwireless = { window_counts = \"packets\", window = \"500 B\" }",
    ),
    ("a wireless part that does not close", "[scheme.metp.wireless]\nclose = false"),
];

const MTU: &str = "mtu = \"128 B\"";

/// An invalid override.
const OVERRIDES: &[&str] = &[
    "radio.rate=2 Mbs",
    "radio.rat=2 Mbps",
    "raido.rate=2 Mbps",
    "radio.rate.x=1",
    "radio.channel.two-state.bda=1s",
    "radio.channel.two-sate.bad=1s",
    "radio.channel.fixed-periods.good=1s",
    "radio.channel.two-state.bad=0s",
    "radio.unit=480 B",
    "radio.uplink.unit=480 B",
    "radio.uplink.channel.iid.bre=0.1",
    "radio.uplink.uplink.uplink={}",
    "radio.fec=bch-256-131-18",
    "radio.fec.n=255",
    "scheme.selective-fec.segments=-1",
    "scheme.selective-fec.mark=64",
    "radio.arq=none",
    "schemes=[\"basic\", \"ebns\"]",
    "scheme.ebsn.notice_size=40",
    "tcp.window=100 B",
    "tcp.window=4 Kib",
    "tcp.window=0 packets",
    "tcp.window=10",
    "tcp.window=10 segments",
    "tcp.initial_window=2",
    "tcp={packet_size=\"40000 B\", window=\"65535 packets\"}",
    "transfer.start=1996-05-28",
    "radio.rate",
    "=1",
    "radio..rate=1",
];

/// A replacement that makes a scenario with a network invalid.
const NETWORK_EDITS: &[(&str, &str, &str)] = &[
    ("an unknown shape", "[topology.graph]", "[topology.star]"),
    ("a shape without its parameters", NETWORK_TOPOLOGY, "topology = \"path\"\n"),
    ("two shapes", "[transfer]", "[topology.path]\nrouters = 2\n\n[transfer]"),
    ("no link", NETWORK_TOPOLOGY, "[topology.graph]\n"),
    ("a path without routers", NETWORK_TOPOLOGY, "[topology.path]\nrouters = 0\n"),
    ("no pair", NETWORK_TOPOLOGY, "[topology.dumbbell]\npairs = 0\n"),
    ("a name that is not a link's", "\"R1-R2\"", "\"R1R2\""),
    ("a link with one end", "\"R1-R2\"", "\"R1-R1\""),
    ("a link twice", "\"R2-base1\"", "\"R2-R1\""),
    ("an exception for no link", "[link.R1-R2]", "[link.R1-R4]"),
    ("what is for wireless links", "queue = \"10 packets\"", "channel.iid.ber = 0.1"),
    ("what is for wireless links, twice", "queue = \"10 packets\"", "arq.stop-and-wait = {}"),
    ("a fault of a link's own channel", "iid.ber = 1e-6", "two-state = {good = \"0 s\", bad = \"1 s\"}"),
    (
        "a fault of a link's one way",
        "iid.ber = 1e-6",
        "iid.ber = 1e-6\nuplink.channel.two-state = { good = \"0 s\", bad = \"1 s\" }",
    ),
    (
        "a fault of every link's one way",
        "rate = \"2 Mbps\"",
        "rate = \"2 Mbps\"\nuplink.channel.two-state = { good = \"0 s\", bad = \"1 s\" }",
    ),
    (
        "an outage of a link's one way",
        "iid.ber = 1e-6",
        "iid.ber = 1e-6\nuplink.outage = { first = \"1 s\", lasts = \"1 s\" }",
    ),
    (
        "a size of a link's units beside a largest one of all",
        RADIO_LINKS,
        "rate = \"2 Mbps\"\nmtu = \"128 B\"\n\n[link.base2-laptop]\nunit = \"480 B\"\n",
    ),
    (
        "a link's largest unit beside a size of all, in one way",
        RADIO_LINKS,
        "rate = \"2 Mbps\"\nuplink.unit = \"480 B\"\n\n[link.base2-laptop]\nmtu = \"128 B\"\n",
    ),
    ("a fault of a link's own queue", "queue = \"10 packets\"", "queue.codel.interval = \"0 s\""),
    ("a way of a wired link", "queue = \"10 packets\"", "uplink.rate = \"1 Mbps\""),
    (
        "a fault of every link's channel",
        "rate = \"2 Mbps\"",
        "rate = \"2 Mbps\"\noutage = {first = \"1 s\", lasts = \"0 s\"}",
    ),
    (
        "outages without end",
        "rate = \"2 Mbps\"",
        "rate = \"2 Mbps\"\noutage = {first = \"1 s\", every = \"1 s\", lasts = \"1 s\"}",
    ),
    ("no rate for wired links", "[wired]\nrate = \"1 Mbps\"\ndelay = \"30 ms\"", ""),
    ("no rate for wireless links", "[radio]\nrate = \"2 Mbps\"", ""),
    ("from nowhere", "from = \"server\"", ""),
    ("from an unknown node", "from = \"server\"", "from = \"sever\""),
    ("to an unknown node", "to = \"laptop\"", "to = \"desktop\""),
    ("to itself", "to = \"laptop\"", "to = \"server\""),
    ("no way", "\"R2-base1\", ", ""),
    ("a way over no link", "via = [\"R1\", \"R3\", \"base2\"]", "via = [\"R1\", \"base2\"]"),
    ("a way over no node", "via = [\"R1\", \"R3\", \"base2\"]", "via = [\"R1\", \"R5\", \"base2\"]"),
    ("a way round", "via = [\"R1\", \"R3\", \"base2\"]", "via = [\"R1\", \"R2\", \"R1\", \"R3\", \"base2\"]"),
    ("nothing to send in a connection", "start = \"1 s\"", "size = \"0 B\""),
    ("a connection that begins too late", "start = \"1 s\"", "start = \"20 s\""),
    ("an unknown key of a connection", "start = \"1 s\"", "strat = \"1 s\""),
    ("traffic that begins too late", "start = \"2 s\"", "start = \"1 h\""),
    ("traffic that ends before it begins", "stop = \"3 s\"", "stop = \"2 s\""),
    ("traffic without a law", "law.poisson.rate = \"400 kbps\"", ""),
    ("an unknown law", "law.poisson.rate", "law.possion.rate"),
    ("an unknown key of a law", "law.poisson.rate", "law.poisson.rat"),
    ("packets that are too small", "packet_size = \"500 B\"", "packet_size = \"20 B\""),
    ("a rate too high for a law", "400 kbps", "100000 Gbps"),
    ("traffic with the name of a connection", "[traffic.cross]", "[traffic.first]"),
    ("a warm-up without end", "limit = \"20 s\"", "limit = \"20 s\"\nwarmup = \"20 s\""),
    ("a scheme that cannot work on all links", "\"basic\"", "\"ebsn\""),
];

/// A valid application, appended to the network.
const APPLICATION: &str = r#"
[application.web]
kind = "http"
from = "phone"
to = "server"
via = ["base1", "R2", "R1"]
start = "1 s"
stop = "10 s"
requests = 7
request.constant = "350 B"
response.pareto = { least = "1 KB", most = "1 MB", shape = 1.2 }
think.exponential = "2 s"
"#;

/// A description, and the text that replaces another.
const APPLICATION_EDITS: &[(&str, &str, &str)] = &[
    ("an unknown kind", "\"http\"", "\"htpp\""),
    ("nobody who asks", "from = \"phone\"", ""),
    ("nobody who answers", "to = \"server\"", ""),
    ("an unknown node", "\"server\"", "\"sever\""),
    ("one that asks itself", "\"server\"", "\"phone\""),
    ("a way without a link", "\"R2\", \"R1\"", "\"R1\""),
    ("one that begins too late", "start = \"1 s\"", "start = \"20 s\""),
    ("one that ends before it begins", "stop = \"10 s\"", "stop = \"1 s\""),
    ("no requests", "requests = 7", "requests = 0"),
    ("an unknown key", "requests = 7", "request_count = 7"),
    ("an empty request", "\"350 B\"", "\"0 B\""),
    ("a request that never ends", "\"350 B\"", "\"2000 GB\""),
    ("a law without its parameters", "{ least = \"1 KB\", most = \"1 MB\", shape = 1.2 }", "{}"),
    ("bounds in the wrong order", "most = \"1 MB\"", "most = \"1 B\""),
    ("a shape that is none", "shape = 1.2", "shape = 0.0"),
    ("an unknown law", "response.pareto", "response.paretto"),
    ("a size in place of a time", "\"2 s\"", "\"2 KB\""),
    ("no time in the mean", "\"2 s\"", "\"0 s\""),
    ("a quantity in place of a law", "think.exponential = \"2 s\"", "think = \"2 s\""),
    ("a name that is taken", "[application.web]", "[application.first]"),
    ("a name that traffic has", "[application.web]", "[application.cross]"),
];

const NETWORK_TOPOLOGY: &str = r#"[topology.graph]
wired = ["server-R1", "R1-R2", "R2-base1", "R1-R3", "R3-base2"]
radio = ["base1-phone", "base2-laptop"]
"#;

const RADIO_LINKS: &str = r#"rate = "2 Mbps"

[link.R1-R2]
queue = "10 packets"

[link.base2-laptop]
"#;

/// A cell with a station that has its own path, and a wireless link.
const CELL: &str = r#"schemes = ["basic"]
limit = "20 s"

[topology.graph]
wired = ["server-R1", "R1-ap", "R1-base", "A-laptop", "B-laptop", "R1-laptop"]
radio = ["base-phone"]
cell = ["ap-A", "ap-B"]

[transfer]
size = "100 KB"
from = "server"
to = "laptop"

[connection.first]
via = ["R1", "ap", "A"]

[connection.second]
to = "B"

[wired]
rate = "1 Mbps"

[radio]
rate = "2 Mbps"

[cell]
rts_threshold = "500 B"
queue = "10 packets"
channel.iid.ber = 1e-6
drop.down = 0.01

[cell.phy.dsss]
data_rate = "2 Mbps"

[cell.cw]
min = 31
max = 1023

[link.ap-A]
drop = { down = 0.02, up = 0.03 }
"#;

const GRAPH_OF_CELL: &str = r#"[topology.graph]
wired = ["server-R1", "R1-ap", "R1-base", "A-laptop", "B-laptop", "R1-laptop"]
radio = ["base-phone"]
cell = ["ap-A", "ap-B"]
"#;

const TWO_STATES: &str = "two-state = { good = \"0 s\", bad = \"1 s\" }";

/// A replacement that makes a scenario with a cell invalid.
const CELL_EDITS: &[(&str, &str, &str)] = &[
    ("no station", GRAPH_OF_CELL, "[topology.cell]\nstations = 0\n"),
    ("no number of stations", GRAPH_OF_CELL, "[topology.cell]\n"),
    ("a cell without its number of stations", GRAPH_OF_CELL, "topology = \"cell\"\n"),
    ("a name that is not a link's", "\"ap-A\"", "\"apA\""),
    ("a link of a cell twice", "\"ap-B\"", "\"ap-A\""),
    ("a link of a cell that is wired", "\"ap-B\"", "\"ap-B\", \"R1-ap\""),
    ("a host behind two stations", "to = \"B\"", "to = \"laptop\"\nvia = [\"R1\", \"ap\", \"B\"]"),
    ("a host behind a station and not", "to = \"B\"", "from = \"B\"\nvia = [\"ap\", \"R1\"]"),
    (
        "a host whose acknowledgements are to leave the cell",
        "to = \"B\"",
        "from = \"laptop\"\nto = \"B\"\nvia = [\"R1\", \"ap\"]",
    ),
    ("what is for other links", "drop = { down = 0.02, up = 0.03 }", "rate = \"1 Mbps\""),
    ("what is for wireless links", "drop = { down = 0.02, up = 0.03 }", "arq.stop-and-wait = {}"),
    ("what is for cells, on a wired link", "[link.ap-A]", "[link.R1-ap]"),
    ("what is for cells, on a wireless link", "[link.ap-A]", "[link.base-phone]"),
    ("what is for cells, on all wireless links", "rate = \"2 Mbps\"", "rate = \"2 Mbps\"\ndrop.down = 0.1"),
    ("what is for cells, on one way", "rate = \"2 Mbps\"", "rate = \"2 Mbps\"\nuplink.drop = { down = 0.1 }"),
    ("what is for cells, on one way of a link", "[link.ap-A]", "[link.base-phone.uplink]"),
    ("an exception for no link", "[link.ap-A]", "[link.ap-C]"),
    ("a rate of another layer", "\"2 Mbps\"\n\n[cell.cw]", "\"12 Mbps\"\n\n[cell.cw]"),
    ("a rate of the other layer", "[cell.phy.dsss]\ndata_rate = \"2", "[cell.phy.ofdm]\ndata_rate = \"11"),
    (
        "answers faster than data",
        "data_rate = \"2 Mbps\"",
        "control_rate = \"5.5 Mbps\"\ndata_rate = \"2 Mbps\"",
    ),
    ("two physical layers", "[cell.cw]", "[cell.phy.ofdm]\n\n[cell.cw]"),
    ("a physical layer without parameters", "[cell.phy.dsss]\ndata_rate = \"2 Mbps\"", "[cell.phy]"),
    ("an unknown physical layer", "[cell.phy.dsss]", "[cell.phy.dss]"),
    ("an unknown key of a physical layer", "data_rate", "rate"),
    ("an unknown preamble", "data_rate = \"2 Mbps\"", "preamble = \"middle\""),
    ("a window that is none", "min = 31", "min = 32"),
    ("a largest window that is none", "max = 1023", "max = 1000"),
    ("a largest window below the smallest", "max = 1023", "max = 15"),
    ("a window without an end", "max = 1023", ""),
    ("an unknown key of a window", "[cell.cw]\nmin = 31\nmax = 1023", "[cell.cw.x]"),
    (
        "answers faster than data, by default",
        "[cell.phy.dsss]\ndata_rate = \"2",
        "[cell.phy.ofdm]\ndata_rate = \"6",
    ),
    ("no attempt", "rts_threshold = \"500 B\"", "short_retry_limit = 0"),
    ("a limit that is none", "rts_threshold = \"500 B\"", "long_retry_limit = \"never\""),
    ("a drop of both ways", "drop.down = 0.01", "drop = 0.01"),
    ("a drop above one", "drop.down = 0.01", "drop.down = 1.5"),
    ("an unknown key of a cell", "rts_threshold", "rts_treshold"),
    ("a fault of the channel", "iid.ber = 1e-6", TWO_STATES),
    (
        "a fault of a station's channel",
        "drop = { down = 0.02, up = 0.03 }",
        "channel.two-state = { good = \"0 s\", bad = \"1 s\" }",
    ),
    ("a scheme that needs a code", "\"basic\"", "\"selective-fec\""),
];

#[test]
fn invalid_cells_are_reported() {
    Scenario::parse::<&str>(CELL, "test.toml", &[]).expect("it is sound as it is");
    let mut told = String::new();
    for (what, from, to) in CELL_EDITS {
        assert!(CELL.contains(from), "the scenario has no {from:?}");
        let text = CELL.replacen(from, to, 1);
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err(what);
        writeln!(told, "# {what}\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(without_lists(&told));
}

const WIFI: &str = r#"
[topology.cell]
stations = 2

[transfer]
size = "1 MB"

[wired]
rate = "1 Gbps"

[wifi]
standard = "802.11ac"
streams = 2
rate.fixed = { mcs = 7, streams = 2 }

[link.ap-MH2]
station = { snr = "20 dB" }
"#;

#[test]
fn invalid_wifi_is_reported() {
    Scenario::parse::<&str>(WIFI, "test.toml", &[]).expect("it is sound as it is");
    let mut told = String::new();
    for (what, from, to) in [
        ("an unknown standard", "\"802.11ac\"", "\"802.11be\""),
        ("a width without its unit", "\"802.11ac\"", "\"802.11ac\"\nwidth = 80"),
        ("segments that no MSDU holds", "[wifi]", "[tcp]\npacket_size = \"4000 B\"\n[wifi]"),
        (
            "datagrams that no MSDU holds",
            "[wifi]",
            "[traffic.big]\nfrom = \"server\"\nto = \"MH1\"\npacket_size = \"2297 B\"\nlaw.constant.rate = \"1 Mbps\"\n[wifi]",
        ),
        ("a width of another standard", "\"802.11ac\"", "\"802.11n\"\nwidth = \"80 MHz\""),
        (
            "a guard interval of another standard",
            "streams = 2\nrate",
            "guard_interval = \"3200 ns\"\nstreams = 2\nrate",
        ),
        ("too many streams", "streams = 2\nrate", "streams = 5\nrate"),
        ("more streams than the station has", "streams = 2 }\n", "streams = 3 }\n"),
        ("an MCS of another standard", "mcs = 7", "mcs = 11"),
        ("a window of another standard", "streams = 2\nrate", "window = 256\nstreams = 2\nrate"),
        ("an aggregate of another standard", "streams = 2\nrate", "ampdu = \"2 MB\"\nstreams = 2\nrate"),
        ("a PPDU that is too long", "streams = 2\nrate", "longest_ppdu = \"6 ms\"\nstreams = 2\nrate"),
        ("a discipline for all stations", "streams = 2\nrate", "queue.codel = {}\nstreams = 2\nrate"),
        ("an invalid discipline", "streams = 2\nrate", "station_queue.fq-codel.flows = 0\nstreams = 2\nrate"),
        (
            "an AIFSN below 1",
            "streams = 2\nrate",
            "edca.video = { aifsn = 0, cw = { min = 7, max = 15 }, txop = \"0 s\" }\nstreams = 2\nrate",
        ),
        (
            "a window that is no power of two",
            "streams = 2\nrate",
            "edca.voice = { aifsn = 2, cw = { min = 7, max = 16 }, txop = \"0 s\" }\nstreams = 2\nrate",
        ),
        (
            "a TXOP beyond the standard's field",
            "streams = 2\nrate",
            "edca.voice = { aifsn = 2, cw = { min = 3, max = 7 }, txop = \"2.1 s\" }\nstreams = 2\nrate",
        ),
        ("a neighbour that takes all", "streams = 2\nrate", "neighbour.share = 1\nstreams = 2\nrate"),
        (
            "a neighbour that takes more than its backoff leaves",
            "streams = 2\nrate",
            "neighbour = { share = 0.9, exchange = \"500 us\" }\nstreams = 2\nrate",
        ),
        ("more streams than a byte holds", "streams = 2\nrate", "streams = 300\nrate"),
        (
            "an exchange that is too long",
            "streams = 2\nrate",
            "neighbour = { share = 0.5, exchange = \"1 s\" }\nstreams = 2\nrate",
        ),
        (
            "beacons that are too frequent",
            "streams = 2\nrate",
            "power_save.beacon = \"10 us\"\nstreams = 2\nrate",
        ),
        (
            "a station that listens to no beacon",
            "snr = \"20 dB\"",
            "power_save = { timeout = \"0 s\", listen = 0 }",
        ),
        (
            "a station with beacons of its own",
            "streams = 2\nrate.fixed = { mcs = 7, streams = 2 }",
            "streams = 2\nrate.fixed = { mcs = 7, streams = 2 }\npower_save.beacon = \"50 ms\"\n[link.ap-MH1]\nstation = { power_save = {} }",
        ),
        (
            "bursts without a pause",
            "streams = 2\nrate",
            "interference = { period = \"10 ms\", burst = \"10 ms\" }\nstreams = 2\nrate",
        ),
        ("a signal that fades and is not stated", "snr = \"20 dB\"", "fading = {}"),
        ("a signal that fades at no pace", "snr = \"20 dB\"", "snr = \"20 dB\", fading.doppler_hz = 0"),
        ("a timeout of nothing", "streams = 2\nrate", "reorder_timeout = \"0 s\"\nstreams = 2\nrate"),
        ("a roam before the scans are over", "snr = \"20 dB\"", "roaming = { every = \"2 s\" }"),
        ("a preset that is none of Wi-Fi", "streams = 2\nrate", "preset = \"geo\"\nstreams = 2\nrate"),
        ("a rate that one station does not have", "snr = \"20 dB\"", "rate.fixed.mcs = 10"),
        ("a channel with an error", "streams = 2\nrate", "channel.iid.ber = 2\nstreams = 2\nrate"),
        ("both kinds of cells", "[wifi]", "[cell]\n[wifi]"),
        (
            "a station of the other kind of cells",
            "[wifi]\nstandard = \"802.11ac\"\nstreams = 2\nrate.fixed = { mcs = 7, streams = 2 }",
            "",
        ),
        ("a station that is none", "[link.ap-MH2]", "[link.server-ap]"),
        ("an unknown key", "streams = 2\nrate", "antennas = 2\nrate"),
        ("an unknown rate control", "rate.fixed = { mcs = 7, streams = 2 }", "rate = \"arf\""),
    ] {
        assert!(WIFI.contains(from), "the scenario has no {from:?}");
        let text = WIFI.replacen(from, to, 1);
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err(what);
        writeln!(told, "# {what}\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(without_lists(&told));
}

/// All keys of `[wifi]` round-trip.
#[test]
fn wifi_round_trips() {
    for overrides in [
        &["wifi.rate=minstrel-ht", "wifi.snr=20 dB", "wifi.fading={}", "wifi.reorder_timeout=100 ms"][..],
        &[
            "wifi.rate=ideal",
            "wifi.queue.fq-codel={}",
            "wifi.scheduler=airtime",
            "wifi.retry_limit=unlimited",
        ],
        &["wifi.width=40 MHz", "wifi.guard_interval=400 ns", "wifi.window=32", "wifi.ampdu=0 B"],
        &[
            "wifi.neighbour.share=0.2",
            "wifi.loss.down=0.1",
            "wifi.channel.iid.ber=1e-6",
            "wifi.rts=true",
            "wifi.power_save={ delivery = \"u-apsd\" }",
            "wifi.interference={ heard = false }",
            "wifi.roaming={ every = \"10 s\", fast_transition = true, queued = \"forwarded\" }",
        ],
        &["wifi.edca.voice={aifsn=1, cw={min=3, max=7}, txop=\"1 ms\"}", "wifi.eifs=true"],
        &[
            "link.ap-MH1.station={rate=\"minstrel-ht-ewma\", streams=1, area=3, snr=\"9 dB\", fading={doppler_hz=23, direct=\"3 dB\"}}",
        ],
    ] {
        let read = |text: &str, overrides: &[&str]| {
            Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
        };
        let scenario = read(WIFI, overrides);
        let canonical = scenario.to_toml();
        assert_eq!(read(&canonical, &[]).to_toml(), canonical);
    }
}

#[test]
fn invalid_networks_are_reported() {
    Scenario::parse::<&str>(NETWORK, "test.toml", &[]).expect("it is sound as it is");
    let mut told = String::new();
    for (what, from, to) in NETWORK_EDITS {
        assert!(NETWORK.contains(from), "the scenario has no {from:?}");
        let text = NETWORK.replacen(from, to, 1);
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err(what);
        writeln!(told, "# {what}\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(without_lists(&told));
}

#[test]
fn invalid_applications_are_reported() {
    let sound = [NETWORK, APPLICATION].concat();
    Scenario::parse::<&str>(&sound, "test.toml", &[]).expect("it is sound as it is");
    let mut told = String::new();
    for (what, from, to) in APPLICATION_EDITS {
        assert!(APPLICATION.contains(from), "the application has no {from:?}");
        let text = [NETWORK, &APPLICATION.replacen(from, to, 1)].concat();
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err(what);
        writeln!(told, "# {what}\n{error}\n").unwrap();
    }
    // Without a kind all distributions are required.
    let without_a_kind = sound.replacen("kind = \"http\"\n", "", 1);
    Scenario::parse::<&str>(&without_a_kind, "test.toml", &[]).expect("the laws are stated");
    for law in ["request", "response", "think"] {
        let stated = |line: &&str| !line.starts_with(&format!("{law}."));
        let text: Vec<&str> = without_a_kind.lines().filter(stated).collect();
        let error = Scenario::parse::<&str>(&text.join("\n"), "test.toml", &[]).expect_err(law);
        writeln!(told, "# no law of {law}\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(told);
}

/// Tables that pages and videos refuse, after `from` and `to`.
const WEB_TABLES: &[(&str, &str)] = &[
    ("both", "kind = \"page\"\nvideo = {}"),
    ("responses of pages", "kind = \"page\"\nresponse.constant = \"1 KB\""),
    ("pages that do not wait", "kind = \"page\"\nwaits = false"),
    ("pages without a reading time", "page = {}\nrequest.constant = \"300 B\""),
    ("no such version", "kind = \"page\"\npage.http = \"3\""),
    ("no connection", "kind = \"page\"\npage.connections = 0"),
    ("too many connections", "kind = \"page\"\npage.http = \"1.1\"\npage.connections = 255"),
    (
        "the wave of the HTML",
        "kind = \"page\"\n[[application.a.page.objects]]\ncount = 1\nwave = 0\nsize.constant = \"1 B\"",
    ),
    (
        "too many objects",
        "kind = \"page\"\n[[application.a.page.objects]]\ncount = 100001\nsize.constant = \"1 B\"",
    ),
    ("an object without a size", "kind = \"page\"\n[[application.a.page.objects]]\ncount = 1"),
    ("an invalid size", "kind = \"page\"\npage.html.exponential = \"0 B\""),
    ("a misspelt key", "kind = \"page\"\npage.htmll.constant = \"1 B\""),
    ("a number of requests of a video", "kind = \"video\"\nrequests = 3"),
    ("a thoughtful video", "kind = \"video\"\nthink.constant = \"3 s\""),
    ("no bitrate", "kind = \"video\"\nvideo.bitrates = []"),
    ("bitrates out of order", "kind = \"video\"\nvideo.bitrates = [\"2 Mbps\", \"1 Mbps\"]"),
    ("a buffer below a segment", "kind = \"video\"\nvideo.buffer = \"1 s\""),
    ("a late start", "kind = \"video\"\nvideo.startup = \"70 s\""),
    ("an endless video", "kind = \"video\"\nvideo.length = \"400000 s\""),
    ("a flat map", "kind = \"video\"\nvideo.adaptation.buffer = { reservoir = \"5 s\", cushion = \"0 s\" }"),
    ("two adaptations", "kind = \"video\"\nvideo.adaptation = { buffer = {}, rate = {} }"),
];

#[test]
fn invalid_pages_and_videos_are_reported() {
    let mut told = String::new();
    for (what, tables) in WEB_TABLES {
        let text = format!("{NETWORK}\n[application.a]\nfrom = \"fixed\"\nto = \"mobile\"\n{tables}\n");
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err(what);
        writeln!(told, "# {what}\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn invalid_files_are_reported() {
    let mut told = String::new();
    for (what, from, to) in EDITS {
        let error = Scenario::parse::<&str>(&with(from, to), "test.toml", &[]).expect_err(what);
        writeln!(told, "# {what}\n{error}\n").unwrap();
    }
    insta::assert_snapshot!(without_lists(&told));
}

/// Schemes that split connections take parameters for their wireless parts.
#[test]
fn invalid_split_settings_are_reported() {
    let sound = SCENARIO.replacen("[\"basic\", \"ebsn\"]", "[\"i-tcp\", \"metp\", \"vs-tcp\"]", 1);
    let closes = sound.replacen("profile = \"ebsn\"", "profile = \"ebsn\"\nclose = true", 1);
    Scenario::parse::<&str>(&closes, "test.toml", &[]).expect("it is sound as it is");
    let mut told = String::new();
    let without_end = ("a transfer without an end to see", sound);
    let others = SPLITS.iter().map(|(what, tables)| (*what, format!("{closes}\n{tables}\n")));
    for (what, text) in others.chain([without_end]) {
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err(what);
        writeln!(told, "# {what}\n{error}\n").unwrap();
    }
    // An unbounded transfer needs no end.
    let endless = closes.replacen("\"100 KB\"", "\"unlimited\"", 1).replacen("close = true", "", 1);
    let parts = "[scheme.metp.wireless]\nclose = false\n";
    Scenario::parse::<&str>(&format!("{endless}\n{parts}"), "test.toml", &[]).expect("it has no end");
    insta::assert_snapshot!(told);
}

/// Numbers beyond any packet or window size are reported as well.
#[test]
fn numeric_names_are_not_reported_as_indices() {
    let text = with("[wired]", "[connection.1]\nfrom = \"fixed\"\nto = \"mobile\"\n[wired]");
    for (assignment, expected) in [
        ("connection.1.star=1 s", "unknown key connection.1.star, expected"),
        ("connection.1.via=[\"fixed\", \"x\"]", "connection.1.via[1]: found \"x\""),
        ("connection.1.tcp.dupthresh=0", "connection.1.tcp.dupthresh: found 0"),
        ("traffic.2.from=5", "traffic.2.from: found 5"),
        ("schemes=[\"ebsn\", \"nosuch\"]", "schemes[1]: found \"nosuch\""),
    ] {
        let error = Scenario::parse(&text, "test.toml", &[assignment]).expect_err("it is refused");
        assert!(error.message().starts_with(expected), "{assignment}: {}", error.message());
    }
}

#[test]
fn absurd_sizes_are_rejected() {
    let largest = "\"1000000 GB\"";
    for key in ["buffer", "initial_size", "largest_size", "smallest_size", "step"]
        .map(str::to_owned)
        .into_iter()
        .chain(["packet_size", "header", "window"].map(|key| format!("wireless.{key}")))
    {
        for counts in ["payload", "packets"] {
            let overrides = [
                "schemes=[\"vs-tcp\"]".to_owned(),
                "tcp.close=true".to_owned(),
                format!("scheme.vs-tcp.wireless.window_counts={counts}"),
                format!("scheme.vs-tcp.{key}={largest}"),
            ];
            let told = Scenario::parse(SCENARIO, "test.toml", &overrides);
            // A buffer and a step have no upper limit.
            assert_eq!(told.is_ok(), key == "buffer" || key == "step", "{key}: {told:?}");
        }
    }
}

#[test]
fn invalid_overrides_are_reported() {
    let mut told = String::new();
    for assignment in OVERRIDES {
        let error = Scenario::parse(SCENARIO, "test.toml", &[assignment]).expect_err(assignment);
        writeln!(told, "{error}\n").unwrap();
    }
    insta::assert_snapshot!(without_lists(&told));
}

#[test]
fn unreadable_files_are_reported() {
    let folder = std::env::temp_dir().join("lasthop-unreadable");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("latin1.toml"), b"# fine\ntitle = \"caf\xe9\"\n").unwrap();
    let mut told = String::new();
    for name in ["absent.toml", "latin1.toml", "."] {
        let error = Scenario::load::<&str>(&folder.join(name), &[]).expect_err(name);
        writeln!(told, "{}\n", error.to_string().replace(folder.to_str().unwrap(), "FOLDER")).unwrap();
    }
    insta::assert_snapshot!(without_lists(&told));
}

#[test]
#[cfg(unix)]
fn a_file_without_an_end_is_refused() {
    let error = Scenario::load::<&str>(std::path::Path::new("/dev/zero"), &[]).expect_err("a device");
    let expected = "found more than 16 MiB, expected a scenario; data belong into files of their own";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn unusable_schemes_are_reported() {
    let refusal = |scheme, overrides: &[&str]| {
        let overrides = [&["schemes=[\"basic\"]"], overrides].concat();
        let scenario = Scenario::parse(SCENARIO, "test.toml", &overrides).unwrap();
        let network = scenario.network().unwrap();
        scenario.combination_on(scheme, &network).expect_err(scheme).to_string()
    };
    let told = [
        refusal("esbn", &["radio.arq=none"]),
        refusal("ebsn", &["radio.arq=none"]),
        refusal("selective-fec", &["radio.arq=none", "radio.fec=bch-255-131-18"]),
        refusal("selective-fec", &[]),
        refusal("selective-fec", &["radio.uplink.fec=bch-255-131-18"]),
        refusal("selective-fec", &["radio.fec=bch-255-131-18", "scheme.selective-fec.mark=0"]),
        refusal("ebsn + esbn", &[]),
        refusal("ebsn +", &[]),
        refusal("ebsn + lhack + ebsn", &[]),
        refusal("basic + ebsn", &[]),
        refusal("basic + ebsn", &["scheme.basic.arq=false"]),
        refusal("arq + basic", &["scheme.basic.arq=false"]),
        refusal("i-tcp + metp", &["tcp.close=true"]),
        refusal("arq + local-recovery", &[]),
        refusal("ebsn + arq", &["scheme.arq.protocol=none"]),
        refusal("lhack + vs-tcp", &[SIZED, "radio.queue=20 packets"]),
    ]
    .join("\n\n");
    insta::assert_snapshot!(without_lists(&told));
    let roomy = Scenario::parse(
        SCENARIO,
        "test.toml",
        &["schemes=[\"lhack + vs-tcp\"]", SIZED, "radio.queue=unlimited"],
    );
    roomy.expect("a queue that drops nothing");
}

/// Sizes of segments end to end.
const SIZED: &str = "scheme.vs-tcp={split=false, largest_size=\"128 B\", initial_size=\"128 B\"}";

/// A scenario with any one line deleted, doubled, truncated or overwritten is accepted or rejected without a
/// panic.
#[test]
fn mutated_files_do_not_panic() {
    let lines: Vec<&str> = SCENARIO.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let cuts =
            (0..line.len()).filter(|&end| line.is_char_boundary(end)).map(|end| line[..end].to_owned());
        let values = [
            "-1",
            "0",
            "1e308",
            "nan",
            "\"\"",
            "[]",
            "{}",
            "\"9e18 h\"",
            "\"18446744073 GB\"",
            "\"unlimited\"",
        ];
        let overwritten = values
            .iter()
            .filter_map(|value| line.split_once(" = ").map(|(key, _)| format!("{key} = {value}")));
        for other in cuts.chain(overwritten).chain([format!("{line}\n{line}")]) {
            let text = [&lines[..index], &[&other], &lines[index + 1..]].concat().join("\n");
            if let Err(error) = Scenario::parse::<&str>(&text, "test.toml", &[]) {
                assert!(!error.message().is_empty() && error.to_string().contains("test.toml"), "{text}");
            }
        }
    }
}

#[test]
fn tcp_settings_without_effect_are_refused() {
    for (overrides, place, reason) in [
        (&["tcp.profile=rfc", "tcp.pacing=true"][..], "tcp.pacing", "only flavour \"prr\" uses it"),
        (&["tcp.profile=linux-bbr", "tcp.initial_ssthresh=20 segments"], "tcp.initial_ssthresh", "\"bbr\""),
        (&["tcp.profile=rfc", "tcp.detection=sack"], "tcp.detection", "only flavour \"prr\" uses it"),
        (&["tcp.profile=linux", "tcp.careful=false"], "tcp.careful", "only flavour"),
        (
            &["tcp.profile=linux", "tcp.congestion=reno", "tcp.slow_start_exit=loss"],
            "slow_start_exit",
            "\"cubic\"",
        ),
        (&["tcp.profile=ns2", "tcp.dsack=true"], "tcp.dsack", "only flavour \"sack\""),
        (&["tcp.profile=ns2", "tcp.ack_delay=40 ms"], "tcp.ack_delay", "ack_every = 1"),
        (&["tcp.profile=ns2", "tcp.flavour=tahoe", "tcp.impatient=false"], "tcp.impatient", "\"newreno\""),
        (
            &["senders.own={profile=\"linux-bbr\", pacing=false}", "sender=own"],
            "senders.own.pacing",
            "always pace",
        ),
        (
            &["host.fixed.tcp={profile=\"linux\", limited_transmit=false}"],
            "host.fixed.tcp.limited_transmit",
            "\"prr\"",
        ),
        (&["host.base.tcp.dupthresh=2"], "host.base.tcp.dupthresh", "no TCP connection begins or ends"),
        (&["host.mobile.tcp.dupthresh=2"], "host.mobile.tcp.dupthresh", "this host only receives"),
        (&["host.fixed.tcp.window=8 KB"], "host.fixed.tcp.window", "this host only sends"),
        (&["host.mobile.tcp.ecn=true"], "host.mobile.tcp.ecn", "this host only receives"),
        (&["sender=quinn-cubic", "tcp.ecn=true"], "tcp.ecn", "no connection uses TCP"),
        (&["sender=quinn-cubic", "tcp={profile=\"rfc\"}"], "tcp", "no connection uses TCP"),
        (
            &["sender=quinn-cubic", "host.mobile.tcp.ack_every=1"],
            "host.mobile.tcp.ack_every",
            "no connection uses TCP",
        ),
        (
            &["sweep.sender=[\"quinn-cubic\"]", "sweep.tcp.window=[\"8 KB\", \"9 KB\"]"],
            "sweep.tcp.window",
            "no connection uses TCP",
        ),
        (&["connection.a.tcp={profile=\"rfc\", frto=true}"], "connection.a.tcp.frto", "only flavour \"prr\""),
        (&["sweep.tcp.flavour=[\"tahoe\", \"reno\"]", "tcp.impatient=false"], "tcp.impatient", "\"newreno\""),
        // Their values are those of the profile.
        (&["tcp.profile=linux", "tcp.congestion=bbr", "tcp.pacing=false"], "tcp.pacing", "always pace"),
        (
            &["tcp.profile=linux", "tcp.window=64 KiB", "tcp.window_autotuning=true"],
            "tcp.window_autotuning",
            "not tuned",
        ),
        (
            &["schemes=[\"i-tcp\"]", "tcp.close=true", "scheme.i-tcp.wireless.pacing=true"],
            "scheme.i-tcp.wireless.pacing",
            "only flavour \"prr\" uses it",
        ),
        (
            &["schemes=[\"metp\"]", "tcp={profile=\"linux\"}", "scheme.metp.wireless.detection=sack"],
            "scheme.metp.wireless.detection",
            "only flavour \"prr\" uses it",
        ),
        (&["sender=linux-bbr", "tcp.pacing=false"], "tcp.pacing", "always pace"),
        (&["sender=rfc", "tcp.frto=true"], "tcp.frto", "only flavour \"prr\""),
        // One of the two values would do nothing, and the other is what happens anyway.
        (&["tcp.profile=rfc", "sweep.tcp.pacing=[false, true]"], "sweep.tcp.pacing", "only flavour \"prr\""),
        (
            &["sweep.sender=[\"linux-bbr\", \"linux-bbr3\"]", "sweep.tcp.pacing=[true, false]"],
            "sweep.tcp.pacing",
            "always pace",
        ),
    ] {
        let error = Scenario::parse(SCENARIO, "test.toml", overrides).expect_err(place).to_string();
        assert!(error.contains(place) && error.contains(reason) && error.contains("no effect"), "{error}");
    }
}

#[test]
fn tcp_settings_that_some_connection_or_point_uses_are_accepted() {
    for overrides in [
        &["sweep.tcp.flavour=[\"tahoe\", \"newreno\"]", "tcp.impatient=false"][..],
        &[
            "tcp.profile=linux",
            "tcp.congestion=reno",
            "tcp.slow_start_exit=loss",
            "connection.a.tcp.congestion=cubic",
        ],
        &["sweep.sender=[\"linux\", \"linux-bbr\"]", "sweep.tcp.pacing=[true, false]"],
        &["tcp.profile=linux", "sweep.tcp.pacing=[true]"],
        &["schemes=[\"i-tcp\"]", "tcp.profile=linux", "scheme.i-tcp.wireless.pacing=true"],
        &["sweep.sender=[\"linux\", \"quinn-cubic\"]", "tcp.window=100 KB"],
        // A receiver's.
        &["sender=linux-prague", "host.mobile.tcp={ ecn = false, window = \"100 KB\" }"],
        // What is off is off.
        &["tcp.profile=rfc", "tcp.tlp=false", "tcp.frto=false", "tcp.pacing=false"],
    ] {
        if let Err(error) = Scenario::parse(SCENARIO, "test.toml", overrides) {
            panic!("{error}");
        }
    }
}

/// Where another topology leaves the file's tables unused, they stay. One point of a sweep that uses a table is enough.
#[test]
fn tables_of_links_that_the_topology_does_not_have_are_refused() {
    let cell = "topology.cell={ stations = 1 }";
    for (overrides, place, reason) in [
        (&["wifi.snr=5 dB"][..], "wifi.snr", "the topology has no cell"),
        (&["cell={}"], "cell", "the topology has no cell"),
        (&["shared.dispatch=fifo"], "shared.dispatch", "no links that share a radio"),
        (&[cell, "wifi={}", "radio.rate=1 Mbps"], "radio.rate", "no wireless links of [radio]"),
        (&["sweep.wifi.snr=[\"5 dB\", \"9 dB\"]"], "sweep.wifi.snr", "the topology has no cell"),
    ] {
        let error = Scenario::parse(SCENARIO, "test.toml", &[&["schemes=[\"basic\"]"], overrides].concat());
        let error = error.expect_err(place).to_string();
        assert!(error.starts_with(&format!("{place}: found it, but it has no effect")), "{error}");
        assert!(error.contains(reason), "{error}");
    }
    for table in ["[wifi]\n", "[cell]\n", "[shared]\n"] {
        let error = Scenario::parse::<&str>(&with("[radio]", &format!("{table}[radio]")), "test.toml", &[]);
        let error = error.expect_err(table).to_string();
        assert!(error.contains("found it, but it has no effect: the topology has no"), "{error}");
    }
    for overrides in [
        &[cell][..],
        &[
            "sweep.topology=[\"last-hop\", { cell = { stations = 1 } }]",
            "sweep.radio.rate=[\"1 Mbps\", \"2 Mbps\"]",
        ],
    ] {
        let overrides = [&["schemes=[\"basic\"]"], overrides].concat();
        let read = |text: &str, overrides: &[&str]| {
            Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
        };
        let scenario = read(SCENARIO, &overrides);
        assert_eq!(read(&scenario.to_toml(), &[]), scenario);
    }
}

/// Where changes give each connection a sender, that of the file stays. One point of a sweep that uses it is enough.
#[test]
fn a_sender_that_no_connection_takes_is_refused() {
    let own = "connection={ a = { sender = \"linux\" } }";
    let both = "connection={ a = { sender = \"linux\" }, b = {} }";
    let file = with("title =", "sender = \"linux\"\ntitle =").replace("profile = \"ebsn\"", "");
    let read = |text: &str, overrides: &[&str]| {
        Scenario::parse(text, "test.toml", &[&["schemes=[\"basic\"]"], overrides].concat())
    };
    for (text, overrides, place) in [
        (SCENARIO, &[own, "sender=linux-bbr"][..], "sender"),
        (SCENARIO, &["sender=linux-bbr", own], "sender"),
        (SCENARIO, &[own, "sweep.sender=[\"linux\", \"linux-bbr\"]"], "sweep.sender"),
        (&file, &[own, "sender=linux-bbr"], "sender"),
        (&format!("{file}\n[connection.a]\nsender = \"linux\"\n"), &[], "sender"),
    ] {
        let error = read(text, overrides).expect_err("no connection takes it").to_string();
        let problem = "found it, but it has no effect: every connection states its own sender";
        assert!(error.starts_with(&format!("{place}: {problem}")), "{error}");
    }
    for (text, overrides) in [
        (SCENARIO, &[own][..]),
        (SCENARIO, &[both, "sender=linux-bbr"]),
        (SCENARIO, &["sender=linux-bbr", "sweep.connection=[{ a = { sender = \"linux\" } }, { a = {} }]"]),
        (&file, &[own]),
        (&file, &[own, "sender=linux"]),
    ] {
        let scenario = read(text, overrides).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read(&scenario.to_toml(), &[]).unwrap_or_else(|error| panic!("{error}")), scenario);
    }
}

/// A file is held to the same rule as the command line, but its canonical form states every setting.
#[test]
fn a_stated_value_of_the_profile_needs_an_effect_as_well() {
    let text = with("profile = \"ebsn\"", "profile = \"linux-bbr\"\npacing = false");
    let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err("BBR paces").to_string();
    assert!(
        error.starts_with("tcp.pacing: found it, but it has no effect") && error.contains("pacing = false"),
        "{error}"
    );
    // A setting of the file that other overrides leave without effect can be taken back.
    let text = with("profile = \"ebsn\"", "profile = \"ebsn\"\ncareful = false");
    let go_back_n = "tcp.flavour=go-back-n";
    let error = Scenario::parse(&text, "test.toml", &[go_back_n]).expect_err("it has no effect");
    assert!(error.message().starts_with("tcp.careful: found it, but it has no effect"), "{error}");
    let swept = [go_back_n, "tcp.careful=true", "sweep.tcp.dupthresh=[3]", "sweep.limit=[\"1 s\", \"2 s\"]"];
    Scenario::parse(&text, "test.toml", &swept[..2]).expect("it is taken back");
    let error = Scenario::parse(&text, "test.toml", &swept).expect_err("it counts no duplicates");
    assert!(error.message().starts_with("sweep.tcp.dupthresh: found it, but it has no effect"), "{error}");
    Scenario::parse(&text, "test.toml", &[swept[0], swept[1], swept[3]]).expect("it is taken back");
    Scenario::parse(SCENARIO, "test.toml", &swept[..2]).expect_err("there is none");
    let canonical = Scenario::parse(SCENARIO, "test.toml", &["tcp.profile=linux-bbr"])
        .expect("a sound scenario")
        .to_toml();
    assert!(canonical.contains("pacing = false"));
    Scenario::parse::<&str>(&canonical, "again.toml", &[]).expect("it is canonical");
    let error = Scenario::parse(&canonical, "again.toml", &["tcp.pacing=false"]).expect_err("BBR paces");
    assert!(error.message().starts_with("tcp.pacing: found it, but it has no effect"), "{error}");
}

/// Where an override chooses another discipline than the file, the error is the override's.
#[test]
fn errors_of_another_choice_name_the_override() {
    let text = with("expansion = 1.5", "queue = \"50 packets\"");
    let change = "radio.queue.policer={burst=\"1 B\"}";
    let error = Scenario::parse(&text, "test.toml", &[change]).expect_err("no packet passes").to_string();
    assert!(error.contains(&format!("--> --set {change}")), "{error}");
}

/// Errors in the settings of a sender name what the user wrote.
#[test]
fn errors_of_senders_name_their_place() {
    let own = "senders.own={profile=\"linux\", flavour=\"newreno\", congestion=\"bbr\"}";
    for (overrides, place, expected) in [
        (&[own, "sender=own"][..], "senders.own=", "senders.own.congestion: found \"bbr\", which needs"),
        (
            &["senders.own.sack_blocks=9", "sender=own"],
            "senders.own.sack",
            "senders.own.sack_blocks: found 9",
        ),
        (&["tcp.sack_blocks=9", "sender=linux"], "tcp.sack", "tcp.sack_blocks: found 9"),
        (&["tcp.packet_size=20 B", "sender=linux"], "tcp.packet", "tcp.packet_size: found 20 B"),
        (
            &["sender=rfc-bbr"],
            "sender=",
            "sender: found \"rfc-bbr\", whose congestion is invalid: found \"bbr\"",
        ),
        (
            &["sender=linux-bbr", "tcp.flavour=newreno"],
            "sender=",
            "sender: found \"linux-bbr\", whose congestion is invalid: found \"bbr\", which needs",
        ),
        (
            &["sender=linux-bbr", "tcp.congestion=reno"],
            "tcp.congestion=",
            "tcp.congestion: found \"reno\" beside the sender \"linux-bbr\", which decides it, expected one of the \
             two; name the sender \"linux-reno\"",
        ),
        (&["sender=linux", "tcp.profile=freebsd"], "tcp.profile=", "tcp.profile: found \"freebsd\" beside"),
        (
            &["senders.own.ecn=true", "sender=own", "tcp.congestion=reno"],
            "tcp.congestion=",
            "tcp.congestion: found \"reno\" beside the sender \"own\", which decides it, expected one of the two; \
             state it as senders.own.congestion",
        ),
        (
            &["sender=linux", "sweep.tcp.congestion=[\"cubic\", \"vegas\"]"],
            "sweep.tcp.congestion=",
            "tcp.congestion: found \"vegas\" beside the sender \"linux\"",
        ),
        (
            &["sweep.sender=[\"linux\", \"linux-reno\"]", "sweep.tcp.congestion=[\"cubic\", \"reno\"]"],
            "sweep.tcp.congestion=",
            "tcp.congestion: found \"reno\" beside the sender \"linux\"",
        ),
    ] {
        let error = Scenario::parse(SCENARIO, "test.toml", overrides).expect_err(expected);
        assert!(error.message().starts_with(expected), "{error}");
        assert!(error.to_string().contains(&format!("--> --set {place}")), "{error}");
    }
}

/// What code may decide by: the kind of an error, and the key that has the problem.
#[test]
fn errors_have_kinds_and_keys() {
    let wrong = |text: &str, overrides: &[&str]| Scenario::parse(text, "test.toml", overrides).unwrap_err();
    let error = Scenario::load::<&str>("/nowhere/absent.toml".as_ref(), &[]).unwrap_err();
    assert_eq!((error.kind(), error.key()), (ErrorKind::Unreadable, None));
    for (overrides, kind, key) in [
        (&["radio.rate"][..], ErrorKind::Syntax, None),
        (&["radio.rat=1 Mbps"], ErrorKind::Key, Some("radio.rat")),
        (&["radio.rate=fast"], ErrorKind::Key, Some("radio.rate")),
        (&["limit=0 s"], ErrorKind::Value, Some("limit")),
        (&["radio.uplink.power.idle=1 W"], ErrorKind::Key, Some("radio.uplink.power.transmit")),
        (&["radio.channel.trace.file=absent"], ErrorKind::Key, Some("radio.channel")),
        (&["schemes=[\"basic\", \"esbn\"]"], ErrorKind::Scheme, Some("schemes[1]")),
        (&["schemes=[\"selective-fec\"]"], ErrorKind::Scheme, Some("schemes[0]")),
        (&["sweep.limit=[]"], ErrorKind::Value, Some("sweep.limit")),
    ] {
        let error = wrong(SCENARIO, overrides);
        assert_eq!((error.kind(), error.key()), (kind, key), "{error}");
        let with_key = format!("{}: {}", key.unwrap_or_default(), error.problem());
        assert!([error.problem(), &with_key].contains(&error.message()), "{error}");
    }
    assert_eq!(wrong("limit = ", &[]).kind(), ErrorKind::Syntax);
    let swept = wrong(SCENARIO, &["sweep.'radio.arq'=[\"none\"]", "schemes=[\"ebsn\"]"]);
    assert_eq!((swept.kind(), swept.key()), (ErrorKind::Scheme, Some("schemes[0]")), "{swept}");
}

/// A remedy is of the program: what the user wrote is none, whatever its words and quotes.
#[test]
fn remedies_are_told_from_texts_of_users() {
    for (set, remedy) in [
        ("radio.rat=1 Mbps", "did you mean \"rate\"?"),
        ("radio.rate=56", "expected a rate with its unit"),
        ("radio.rate", "expected KEY=VALUE"),
        ("sender=expected x", "expected \""),
        ("sender=x\", expected y; z", "expected \""),
        ("sender=did you mean \"z\"?", "expected \""),
        ("schemes=[\"snoop + x; y\"]", "expected \""),
        ("'a; expected b'=1", "expected \""),
        ("title=\"expected\\nx; y\"", "expected a single line"),
    ] {
        let error = Scenario::parse(SCENARIO, "test.toml", &[set]).expect_err(set);
        assert!(
            error.remedy().is_some_and(|found| found.starts_with(remedy)),
            "{:?}: {error}",
            error.remedy()
        );
    }
}

#[test]
fn codes_of_packets_that_cannot_be_are_refused() {
    for (scheme, set, message) in [
        ("packet-fec", "k=0", "found 0, expected at least 1"),
        ("packet-fec", "n=7", "found 7, expected at least k = 8"),
        ("packet-fec", "interleave=0", "found 0, expected at least 1"),
        ("sidekick", "every=0", "found 0, expected at least 1"),
        ("sidekick", "wait=0 s", "found 0 s, expected more than zero"),
        ("sidekick", "threshold=21", "found 21, expected from 1 to 20"),
        ("sidekick", "bits=17", "found 17, expected 16, 24 or 32"),
        ("sidekick", "buffer=65536", "found 65536, expected at most 65535"),
    ] {
        let (key, _) = set.split_once('=').expect("a setting");
        let overrides = [format!("schemes=[{scheme:?}]"), format!("scheme.{scheme}.{set}")];
        let error = Scenario::parse(SCENARIO, "test.toml", &overrides).expect_err(set).to_string();
        assert!(error.contains(&format!("scheme.{scheme}.{key}: {message}")), "{set}: {error}");
    }
}

/// Reports of what has arrived need a link that keeps the order, and see nothing of what passes between two stations.
#[test]
fn links_that_reorder_or_pass_agents_by_are_refused() {
    let check = |overrides: &[&str]| {
        Scenario::parse(SCENARIO, "test.toml", &[overrides, &["schemes=[\"sidekick\"]"]].concat())
    };
    for netem in ["jitter=\"2 ms\"", "reorder=0.1"] {
        let reordered = format!("{{netem={{delay=\"5 ms\", {netem}}}}}");
        let only_down = [format!("radio.delay={reordered}"), String::from("radio.uplink.delay=5 ms")];
        let only_up = [String::from("radio.delay=5 ms"), format!("radio.uplink.delay={reordered}")];
        for ([radio, uplink], way, back) in [(&only_down, "down", "up"), (&only_up, "up", "down")] {
            let in_directions = |way| check(&[radio, uplink, &format!("scheme.sidekick.directions={way}")]);
            for way in [way, "both"] {
                let error = in_directions(way).expect_err(way).to_string();
                assert!(error.contains("\"sidekick\" relies on the order of packets"), "{netem}: {error}");
            }
            in_directions(back).expect("quACKs may overtake each other");
        }
    }
    for netem in ["jitter=\"2 ms\", in_order=true", "jitter=\"0 ms\""] {
        check(&[&format!("radio.delay={{netem={{delay=\"5 ms\", {netem}}}}}")]).expect(netem);
    }
    let cell = [
        "topology.graph={wired=[\"server-ap\"], cell=[\"ap-a\", \"ap-b\"]}",
        "scheme.sidekick.expedite=false",
    ];
    let ends = |from: &str| format!("connection.only={{from=\"{from}\", to=\"b\"}}");
    check(&[&cell[..], &[&ends("server")]].concat()).expect("all packets pass the access point");
    let error = check(&[&cell[..], &[&ends("a")]].concat()).expect_err("from station to station").to_string();
    assert!(error.contains("which packets from one station to another do not pass"), "{error}");
}
