//! Settings that are stated without effect, given the other settings.

use alloc::format;
use alloc::string::String;

use super::{Congestion, Flavour, Rules, Settings, WindowSize};

const ONLY_PRR: &str = "only flavour \"prr\" uses it";
const ONLY_SACK: &str = "only flavour \"sack\", \"prr\" and \"selective-repeat\" uses it";
const ONLY_NS2_AIMD: &str = "only congestion \"aimd\" with rules \"ns2\" uses it";
const NO_DUPLICATES: &str = "flavours \"go-back-n\" and \"selective-repeat\" do not count duplicates";
const NO_THRESHOLD: &str = "congestion \"bbr\", \"bbr3\" and \"none\" ignore it";
const NO_DELAY: &str = "with ack_every = 1 every segment is acknowledged at once";

impl Settings {
    /// The reason why the stated setting `key` has no effect, and the remedy. `None` if it has an effect, or
    /// switches off a feature that these settings lack anyway.
    pub fn unused(&self, key: &str) -> Option<String> {
        let records = self.keeps_records();
        let duplicates = !records && !self.timestamps_are_unique();
        let ns2_aimd = self.rules == Rules::Ns2 && self.congestion == Congestion::Aimd;
        let by_model = matches!(self.congestion, Congestion::Bbr | Congestion::Bbr3);
        let (used, reason) = match key {
            "detection" => (records, ONLY_PRR),
            "tlp" => (records || !self.tlp, ONLY_PRR),
            "frto" => (records || !self.frto, ONLY_PRR),
            "undo" => (records || !self.undo, ONLY_PRR),
            "cwnd_validation" if records => {
                (!by_model || !self.cwnd_validation, "congestion \"bbr\" and \"bbr3\" ignore it")
            }
            "cwnd_validation" => (!self.cwnd_validation, ONLY_PRR),
            "pacing" if by_model => (self.pacing, "congestion \"bbr\" and \"bbr3\" always pace"),
            "pacing" => (records || !self.pacing, ONLY_PRR),
            "slow_start_exit" => (self.congestion == Congestion::Cubic, "only congestion \"cubic\" uses it"),
            "initial_window" => (self.is_controlled(), "congestion \"none\" ignores it"),
            "initial_ssthresh" => (self.is_controlled() && !by_model, NO_THRESHOLD),
            "idle_restart" => (!self.idle_restart || (self.is_controlled() && !by_model), NO_THRESHOLD),
            "delay_growth" => (ns2_aimd || !self.delay_growth, ONLY_NS2_AIMD),
            "halve_exactly" => (ns2_aimd, ONLY_NS2_AIMD),
            "limited_transmit" if records => {
                (self.limited_transmit, "flavour \"prr\" always sends new data for the first duplicates")
            }
            "limited_transmit" => (duplicates || !self.limited_transmit, NO_DUPLICATES),
            "dupthresh" => (!self.timestamps_are_unique(), NO_DUPLICATES),
            "careful" => (duplicates, "only flavour \"tahoe\", \"reno\", \"newreno\" and \"sack\" uses it"),
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
        (!used).then(|| format!("found it, but it has no effect: {reason}; leave it out"))
    }
}
