//! The file of observed flows: a line of JSON for each flow, and for each change of what flows get.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// The gateway has started, or the file is continued.
    Start(Settings),
    /// The gateway has read its file again: what was seen before no longer counts.
    Reload(Settings),
    /// The clock was set: what was seen before no longer counts, but that harm was found.
    Clock(Settings),
    /// Harm was found: no flow is helped until the gateway reads its file again.
    Stop {
        /// When, in seconds since 1970.
        time_s: f64,
    },
    /// A flow whose observation has ended.
    Flow(Box<FlowRow>),
}

/// What flows get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// When, in seconds since 1970.
    pub time_s: f64,
    /// The scheme of helped flows.
    pub scheme: String,
    /// Whether flows are helped; otherwise both arms are left alone.
    pub is_helping: bool,
    /// The keys on which the gain depends, as JSON.
    pub keys: String,
}

/// What a flow was chosen for by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// Help, as far as the limits allow.
    Helped,
    /// To be left alone.
    Unhelped,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The host that opened it.
    Client,
    /// The other.
    Server,
}

impl End {
    /// The opposite end.
    pub fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }
}

/// How a flow stood when its observation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Both ends had closed it.
    Closed,
    /// One end had reset it.
    Reset,
    /// It was open, and idle.
    Open,
    /// It was open, and data were under way.
    Active,
    /// It was open, and data had waited for half a minute.
    Stalled,
    /// The client had no answer from the server.
    Unanswered,
}

/// A flow as its headers have shown it, for a minute at most. All times are as the receivers of the data saw them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    /// When the client's first packet arrived, in seconds since 1970.
    pub began_s: f64,
    /// When the observation ended.
    pub ended_s: f64,
    /// The client.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
    /// Its rule, or the port of its server.
    pub class: String,
    /// What the kernel chose.
    pub arm: Arm,
    /// The share of flows that the kernel left alone.
    pub unhelped: f64,
    /// A fair coin, for comparisons between flows of one arm.
    pub coin: bool,
    /// How it stood at the end.
    pub outcome: Outcome,
    /// Time from its beginning to the first data that the client acknowledged.
    pub first_byte_s: Option<f64>,
    /// Time from its beginning to the last data that were acknowledged, without pauses of more than a second in which no data
    /// waited.
    pub active_s: Option<f64>,
    /// Data that the client acknowledged, in bytes.
    pub bytes_to_client: u64,
    /// Data that the server acknowledged, in bytes.
    pub bytes_to_server: u64,
    /// The end behind the radio.
    pub behind: End,
    /// Round-trip time of the wired part, of the handshake.
    pub wired_rtt_s: Option<f64>,
    /// Round-trip time over the radio, of the handshake.
    pub radio_rtt_s: Option<f64>,
    /// Data sent over the radio towards its far end, in bytes, retransmissions included.
    pub sent_bytes: u64,
    /// Those of them that had been sent before.
    pub retransmitted_bytes: u64,
    /// Data that arrived over the radio again, or late.
    pub repaired_bytes: u64,
}

impl FlowRow {
    /// The host to which the flow is attributed: its client, of IPv6 the network of 64 bits.
    pub fn host(&self) -> IpAddr {
        match self.client.ip() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address => address,
        }
    }

    /// Data that either end acknowledged, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes_to_client + self.bytes_to_server
    }

    /// Whether it may have had more to carry when its observation ended.
    pub fn is_cut_off(&self) -> bool {
        matches!(self.outcome, Outcome::Active | Outcome::Stalled)
    }

    /// Whether its data did not get through.
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Stalled | Outcome::Unanswered)
    }
}

/// The file that the one at `path` continues.
pub(crate) fn former(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Passes the lines of a file, and of the one that it continues, to `each`. Lines that were cut off are skipped.
///
/// # Errors
/// If there is no such file, or it cannot be read.
pub fn read(path: &Path, mut each: impl FnMut(&Line)) -> io::Result<()> {
    let wrong = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let latest = File::open(path).map_err(wrong)?;
    for file in File::open(former(path)).into_iter().chain([latest]) {
        for line in BufReader::new(file).split(b'\n') {
            if let Ok(line) = serde_json::from_slice(&line.map_err(wrong)?) {
                each(&line);
            }
        }
    }
    Ok(())
}
