//! What Linux does by its version, and how long it waits.

use lasthop_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Profile, Settings};

/// How long Linux waits for a silent peer: 15 retransmissions from an RTO of 0.2 s on, up to 120 s each (`tcp_retries2`).
const PATIENCE: Duration = Duration::from_millis(924_600);

/// The same for the first answer: `tcp_syn_retries`, 6, after those that do not back off, each of a second.
const SYN_PATIENCE_S: u64 = 127;

/// So many timeouts of SYN do not double the RTO, since Linux 6.5 (`tcp_syn_linear_timeouts`; commit ccce324dabfe).
const LINEAR_SYN_TIMEOUTS: u32 = 4;

/// A Linux, by what has changed in TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Kernel {
    /// Linux 5.15.100: 5.15 with its stable fixes.
    #[serde(rename = "linux-5.15")]
    Linux515,
    /// Linux 6.18.
    #[default]
    #[serde(rename = "linux-6.18")]
    Linux618,
}

impl Kernel {
    /// Whether recovery may send what it has not sent of the segments delivered before, also while acknowledgements reveal losses
    /// (since Linux 5.19; commit 9ad084d66619).
    pub(in crate::tcp) fn banks_deliveries(self) -> bool {
        self == Kernel::Linux618
    }
}

impl Profile {
    /// Whether it is a sender of Linux, whatever its congestion control.
    pub(super) fn is_linux(self) -> bool {
        matches!(self, Profile::Linux | Profile::Linux515 | Profile::LinuxBbr | Profile::LinuxBbr3)
    }

    /// The Linux whose rules it has.
    pub(super) fn kernel(self) -> Kernel {
        if self == Profile::Linux515 { Kernel::Linux515 } else { Kernel::default() }
    }
}

impl Settings {
    /// The Linux whose rules apply: the stated one, or the profile's.
    pub(in crate::tcp) fn kernel(&self) -> Kernel {
        self.kernel.unwrap_or(self.profile.kernel())
    }

    /// How long the peer may be silent; before the connection is open if `opens`.
    pub(in crate::tcp) fn patience(&self, opens: bool) -> Option<Duration> {
        let for_syn = SYN_PATIENCE_S + u64::from(self.linear_syn_timeouts());
        let usual = if opens { Duration::from_secs(for_syn) } else { PATIENCE };
        self.user_timeout.or(self.profile.is_linux().then_some(usual))
    }

    /// Whether the RTO doubles at this timeout of SYN, from 1.
    pub(in crate::tcp) fn backs_off_syn(&self, timeout: u64) -> bool {
        timeout > u64::from(self.linear_syn_timeouts())
    }

    fn linear_syn_timeouts(&self) -> u32 {
        let has = self.profile.is_linux() && self.kernel() == Kernel::Linux618;
        self.syn_linear_timeouts.unwrap_or(if has { LINEAR_SYN_TIMEOUTS } else { 0 })
    }

    /// The allowance for the delay of other timers in those of probes and reordering: 2 ms since Linux 6.6, two ticks before (commit
    /// 1c2709cfff1d).
    pub(in crate::tcp) fn timer_allowance(&self) -> Duration {
        match self.kernel() {
            Kernel::Linux515 => self.tick * 2,
            Kernel::Linux618 => Duration::from_millis(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::Bytes;

    use super::super::{Flavour, SlowStartExit};
    use super::*;

    /// `TCP_TIMEOUT_MIN` of 2 ticks in 5.15, `TCP_TIMEOUT_MIN_US` since 6.6.
    #[test]
    fn the_allowance_of_timers_was_two_ticks() {
        let allowance = |profile: Profile| profile.settings().timer_allowance();
        assert_eq!(allowance(Profile::Linux), Duration::from_millis(2));
        assert_eq!(allowance(Profile::Linux515), Duration::from_millis(8));
    }

    /// A stated kernel prevails over the profile's, whose window and HyStart are its own.
    #[test]
    fn a_profile_has_a_kernel_unless_one_is_stated() {
        for (profile, usual, other) in [
            (Profile::Linux, Kernel::Linux618, Kernel::Linux515),
            (Profile::Linux515, Kernel::Linux515, Kernel::Linux618),
        ] {
            let settings = profile.settings();
            assert_eq!((settings.kernel, settings.kernel()), (None, usual));
            assert_eq!(Settings { kernel: Some(other), ..settings }.kernel(), other);
        }
        let (new, old) = (Profile::Linux.settings(), Profile::Linux515.settings());
        assert_eq!((new.window, old.window), (Bytes(6 << 20).into(), Bytes(3 << 20).into()));
        let (exit, window) = (SlowStartExit::Hystart16, old.window);
        assert_eq!(old, Settings { profile: Profile::Linux515, slow_start_exit: exit, window, ..new });
    }

    /// Without records, a kernel has an effect on the SYN of Linux alone.
    #[test]
    fn a_kernel_without_effect_is_refused() {
        let reno = |profile: Profile, kernel, handshake| {
            let settings = Settings { flavour: Flavour::Reno, handshake, ..profile.settings() };
            Settings { kernel: Some(kernel), ..settings }.unused("kernel")
        };
        for profile in [Profile::Linux, Profile::Linux515] {
            for kernel in [Kernel::Linux515, Kernel::Linux618] {
                assert_eq!(reno(profile, kernel, true), None);
                assert_eq!(reno(profile, kernel, false).is_none(), kernel == profile.kernel());
            }
        }
        assert!(
            reno(Profile::Rfc, Kernel::Linux515, true)
                .is_some_and(|reason| reason.contains("the SYN of a profile"))
        );
        assert_eq!(reno(Profile::Rfc, Kernel::Linux618, true), None);
    }
}
