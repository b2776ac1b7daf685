//! Stated settings that have no effect beside the others.

use alloc::format;
use alloc::string::String;

use super::{Congestion, Flavour, Rules, Settings, WindowSize};

impl Settings {
    /// Why the stated `key` has no effect with these settings, and what to do about it; `None` if it has one,
    /// or if it switches off what these settings lack anyway.
    pub fn unused(&self, key: &str) -> Option<String> {
        let records = self.keeps_records();
        let duplicates = !records && !self.tells_copies();
        let flavour = |flavours: &str| format!("only flavour {flavours} uses it");
        let congestion = |controls: &str| format!("only congestion {controls} uses it");
        let prr = || flavour("\"prr\"");
        let ns2_aimd = self.rules == Rules::Ns2 && self.congestion == Congestion::Aimd;
        let by_model = matches!(self.congestion, Congestion::Bbr | Congestion::Bbr3);
        let (used, reason) = match key {
            "detection" => (records, prr()),
            "tlp" => (records || !self.tlp, prr()),
            "frto" => (records || !self.frto, prr()),
            "undo" => (records || !self.undo, prr()),
            "cwnd_validation" if records => (
                !by_model || !self.cwnd_validation,
                String::from("congestion \"bbr\" and \"bbr3\" ignore it"),
            ),
            "cwnd_validation" => (!self.cwnd_validation, prr()),
            "pacing" if by_model => {
                (self.pacing, String::from("congestion \"bbr\" and \"bbr3\" always pace"))
            }
            "pacing" => (records || !self.pacing, prr()),
            "slow_start_exit" => (self.congestion == Congestion::Cubic, congestion("\"cubic\"")),
            "initial_window" => (self.is_controlled(), String::from("congestion \"none\" ignores it")),
            "initial_ssthresh" => (
                self.is_controlled() && !by_model,
                String::from("congestion \"bbr\", \"bbr3\" and \"none\" ignore it"),
            ),
            "idle_restart" => (
                !self.idle_restart || (self.is_controlled() && !by_model),
                String::from("congestion \"bbr\", \"bbr3\" and \"none\" ignore it"),
            ),
            "delay_growth" => (
                ns2_aimd || !self.delay_growth,
                String::from("only congestion \"aimd\" with rules \"ns2\" uses it"),
            ),
            "halve_exactly" => {
                (ns2_aimd, String::from("only congestion \"aimd\" with rules \"ns2\" uses it"))
            }
            "limited_transmit" => (
                duplicates || self.limited_transmit == records,
                String::from(if records {
                    "flavour \"prr\" always sends new data for the first duplicates"
                } else {
                    "flavours \"go-back-n\" and \"selective-repeat\" do not count duplicates"
                }),
            ),
            "dupthresh" => (
                !self.tells_copies(),
                String::from("flavours \"go-back-n\" and \"selective-repeat\" do not count duplicates"),
            ),
            "careful" => (duplicates, flavour("\"tahoe\", \"reno\", \"newreno\" and \"sack\"")),
            "partial_deflation" | "impatient" => (self.flavour == Flavour::NewReno, flavour("\"newreno\"")),
            "partial_ack_sends" => (
                !self.partial_ack_sends || (self.flavour == Flavour::Sack && self.rules == Rules::Ns2),
                String::from("only flavour \"sack\" with rules \"ns2\" uses it"),
            ),
            "rtt_samples" => (!records, String::from("flavour \"prr\" measures every segment")),
            "timestamps" => (
                self.timestamps || !self.tells_copies(),
                String::from("flavours \"go-back-n\" and \"selective-repeat\" need timestamps"),
            ),
            "sack_blocks" => (self.sack(), flavour("\"sack\", \"prr\" and \"selective-repeat\"")),
            "dsack" => (self.sack() || !self.dsack, flavour("\"sack\", \"prr\" and \"selective-repeat\"")),
            "quick_acks" => (
                self.ack_every > 1 || self.quick_acks == 0,
                String::from("with ack_every = 1 every segment is acknowledged at once"),
            ),
            "ack_delay" | "ack_tick" => {
                (self.ack_every > 1, String::from("with ack_every = 1 every segment is acknowledged at once"))
            }
            "window_counts" => {
                (matches!(self.window, WindowSize::Bytes(_)), String::from("the window is in packets"))
            }
            _ => return None,
        };
        (!used).then(|| format!("found it, but it has no effect: {reason}; leave it out"))
    }
}
