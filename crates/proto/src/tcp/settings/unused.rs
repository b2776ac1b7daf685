//! Settings that are stated without effect, given the other settings.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Congestion, Deflation, EcnMode, Flavour, IdleRestart, Limit, Rules, Settings, WindowSize};
use crate::tcp::cc::Control;

const ONLY_PRR: &str = "only flavour \"prr\" uses it";
const ONLY_SACK: &str = "only flavour \"sack\", \"prr\" and \"selective-repeat\" uses it";
const ONLY_NS2_AIMD: &str = "only congestion \"aimd\" with rules \"ns2\" uses it";
const NO_DUPLICATES: &str = "flavours \"go-back-n\" and \"selective-repeat\" do not count duplicates";
const NO_DELAY: &str = "with ack_every = 1 every segment is acknowledged at once";

/// The settings that [`Settings::with_receiver`] takes from the receiver.
const RECEIVER: [&str; 9] = [
    "window",
    "window_counts",
    "window_autotuning",
    "ack_every",
    "quick_acks",
    "ack_delay",
    "ack_tick",
    "sack_blocks",
    "dsack",
];

impl Settings {
    /// The reason why the stated setting `key` has no effect, and the remedy. `None` if it has an effect, or
    /// switches off a feature that these settings lack anyway.
    pub fn unused(&self, key: &str) -> Option<String> {
        self.unused_by_control(key).or_else(|| self.unused_by_rest(key))
    }

    /// As [`unused`](Settings::unused), for a host that `sends` on a connection, `receives` on one, or both.
    pub fn unused_at(&self, key: &str, sends: bool, receives: bool) -> Option<String> {
        let reason = match key {
            _ if !sends && !receives => "no TCP connection begins or ends at this host",
            "packet_size" if receives => return None,
            "timestamps" if receives && !self.timestamps_are_unique() => return None,
            "ecn" if receives && self.handshake => return None,
            _ if RECEIVER.contains(&key) && !receives => "it is a receiver's, and this host only sends",
            _ if !RECEIVER.contains(&key) && !sends => "it is a sender's, and this host only receives",
            _ => return self.unused(key),
        };
        Some(no_effect(reason))
    }

    /// As [`unused`](Settings::unused), given the congestion control.
    fn unused_by_control(&self, key: &str) -> Option<String> {
        let Control { needs_pacing, needs_ecn, exits_slow_start, .. } = *self.congestion.control();
        let unless = |used: bool, lacks: &dyn Fn(&Control) -> bool, verbs| {
            (!used).then(|| no_effect(&controls(lacks, verbs)))
        };
        let ignore = ["ignores it", "ignore it"];
        let has_threshold = |control: &Control| matches!(control.limit, Limit::Window | Limit::PacedWindow);
        let no_threshold = |control: &Control| !has_threshold(control);
        let validates = |control: &Control| matches!(control.limit, Limit::Window | Limit::Receiver);
        let control = self.congestion.control();
        match key {
            "cwnd_validation" if self.keeps_records() => {
                let used = validates(control) || !self.cwnd_validation;
                unless(used, &|control| !validates(control), ignore)
            }
            "pacing" if needs_pacing => {
                unless(self.pacing, &|control| control.needs_pacing, ["always paces", "always pace"])
            }
            "ecn" if self.ecn < needs_ecn => unless(
                false,
                &|control| control.needs_ecn > EcnMode::Off,
                ["always asks for accurate ECN", "always ask for accurate ECN"],
            ),
            "slow_start_exit" if !exits_slow_start => {
                let using = controls(&|control| control.exits_slow_start, ["uses it", "use it"]);
                Some(no_effect(&format!("only {using}")))
            }
            "initial_window" => {
                unless(self.is_controlled(), &|control| control.limit == Limit::Receiver, ignore)
            }
            "initial_ssthresh" => unless(has_threshold(control), &no_threshold, ignore),
            "idle_restart" => unless(
                has_threshold(control) || self.idle_restart == IdleRestart::Never,
                &no_threshold,
                ignore,
            ),
            _ => None,
        }
    }

    /// As [`unused`](Settings::unused), given the other settings.
    fn unused_by_rest(&self, key: &str) -> Option<String> {
        let records = self.keeps_records();
        let duplicates = !records && !self.timestamps_are_unique();
        let ns2_aimd = self.rules == Rules::Ns2 && self.congestion == Congestion::Aimd;
        let (used, reason) = match key {
            "detection" => (records, ONLY_PRR),
            "tlp" => (records || !self.tlp, ONLY_PRR),
            "frto" => (records || !self.frto, ONLY_PRR),
            "undo" => (records || !self.undo, ONLY_PRR),
            "ecn_fallback" => (
                self.congestion == Congestion::Prague || !self.ecn_fallback,
                "only congestion \"prague\" uses it",
            ),
            "syn_linear_timeouts" => {
                (self.handshake || self.syn_linear_timeouts == Some(0), "without a handshake no SYN is sent")
            }
            "kernel" => {
                let sends_syn =
                    self.profile.is_linux() && self.handshake && self.syn_linear_timeouts.is_none();
                (
                    records || sends_syn || self.kernel() == self.profile.kernel(),
                    "only flavour \"prr\" uses it, and the SYN of a profile of Linux",
                )
            }
            "cwnd_validation" => (records || !self.cwnd_validation, ONLY_PRR),
            "pacing" => (records || !self.pacing, ONLY_PRR),
            "delay_growth" => (ns2_aimd || !self.delay_growth, ONLY_NS2_AIMD),
            "halve_exactly" => (ns2_aimd, ONLY_NS2_AIMD),
            "limited_transmit" if records => {
                (self.limited_transmit, "flavour \"prr\" always sends new data for the first duplicates")
            }
            "limited_transmit" => (duplicates || !self.limited_transmit, NO_DUPLICATES),
            "dupthresh" => (!self.timestamps_are_unique(), NO_DUPLICATES),
            "careful" => (duplicates, "only flavour \"tahoe\", \"reno\", \"newreno\" and \"sack\" uses it"),
            "deflation" => (
                self.flavour == Flavour::Reno || self.deflation == Deflation::Always,
                "only flavour \"reno\" uses it",
            ),
            "partial_deflation" | "impatient" => {
                (self.flavour == Flavour::NewReno, "only flavour \"newreno\" uses it")
            }
            "partial_ack_sends" => (
                !self.partial_ack_sends || (self.flavour == Flavour::Sack && self.rules == Rules::Ns2),
                "only flavour \"sack\" with rules \"ns2\" uses it",
            ),
            "rtt_samples" => (!records, "flavour \"prr\" measures every segment"),
            "timestamps" => (
                self.timestamps || !self.timestamps_are_unique(),
                "flavours \"go-back-n\" and \"selective-repeat\" need timestamps",
            ),
            "sack_blocks" => (self.sack(), ONLY_SACK),
            "dsack" => (self.sack() || !self.dsack, ONLY_SACK),
            "quick_acks" => (self.ack_every > 1 || self.quick_acks == 0, NO_DELAY),
            "ack_delay" | "ack_tick" => (self.ack_every > 1, NO_DELAY),
            "window_autotuning" => {
                (!self.window_autotuning || self.is_autotuned(), "a window of at most 64 KiB is not tuned")
            }
            "window_counts" => (matches!(self.window, WindowSize::Bytes(_)), "the window is in packets"),
            _ => return None,
        };
        (!used).then(|| no_effect(reason))
    }
}

/// The problem of a setting that has no effect for `reason`, and the remedy.
pub fn no_effect(reason: &str) -> String {
    format!("found it, but it has no effect: {reason}; leave it out")
}

/// What certain congestion controls do, by the verb in the singular and in the plural: `congestion "bbr" and "bbr3" always
/// pace`.
fn controls(which: &dyn Fn(&Control) -> bool, [one, several]: [&str; 2]) -> String {
    let controls = Congestion::ALL.iter().map(|congestion| congestion.control());
    let names: Vec<String> =
        controls.filter(|control| which(control)).map(|control| format!("\"{}\"", control.name)).collect();
    match names.as_slice() {
        [name] => format!("congestion {name} {one}"),
        [names @ .., last] => format!("congestion {} and {last} {several}", names.join(", ")),
        [] => String::new(),
    }
}
