//! Round-trip time estimation and the retransmission timeout (RFC 6298).

use lasthop_base::{Duration, Time};

use super::settings::{RttArithmetic, Settings};

/// Initial RTO for data after the SYN timed out (RFC 6298 section 5.7).
const RTO_AFTER_LOST_SYN: Duration = Duration::from_secs(3);

/// Estimates the round-trip time and derives the retransmission timeout.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    estimate: Estimate,
    /// The smoothed round-trip time, which is asked for more often than the estimate changes.
    srtt: Option<Duration>,
    tick: Duration,
    initial: Duration,
    min: Duration,
    max: Duration,
    backoff_max: u32,
    backoff: u32,
    /// The retransmission timeout, which is asked for more often, too.
    rto: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Estimate {
    Exact { srtt: Option<Duration>, rttvar: Duration },
    Ticks { nearest: bool, ticks: Ticks },
    Linux(LinuxEstimate),
}

/// The estimate of Linux (`tcp_rtt_estimator`), in nanoseconds: srtt in eighths, the deviations in quarters.
#[derive(Clone, Copy, Debug, Default)]
struct LinuxEstimate {
    srtt: u64,
    /// Smoothed deviation.
    mdev: u64,
    /// Maximum deviation in this round trip, at least the minimum RTO.
    mdev_max: u64,
    rttvar: u64,
    /// The RTO before backoff, a multiple of the tick.
    rto: u64,
}

impl LinuxEstimate {
    /// The RTO before backoff in clock ticks of so many nanoseconds.
    fn rto(&mut self, tick: u64) -> u64 {
        let least = (self.srtt >> 3) + self.rttvar;
        // Most samples change less than a tick, and a division takes longer than the rest.
        if least > self.rto || self.rto - least >= tick {
            self.rto = least.next_multiple_of(tick);
        }
        self.rto
    }

    fn sample(&mut self, rtt: u64, least: u64) {
        let rtt = rtt.max(1);
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.mdev = rtt << 1;
            self.rttvar = self.mdev.max(least);
            self.mdev_max = self.rttvar;
            return;
        }
        let error = rtt as i64 - (self.srtt >> 3) as i64;
        self.srtt = (self.srtt as i64 + error).max(1) as u64;
        let mut change = error.abs() - (self.mdev >> 2) as i64;
        // A sample far below the average has a reduced weight.
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev = (self.mdev as i64 + change).max(0) as u64;
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
    }

    /// Ends a round trip.
    fn end_round(&mut self, least: u64) {
        if self.mdev_max < self.rttvar {
            self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
        }
        self.mdev_max = least;
    }
}

/// The estimate in clock ticks, in the scaled integers of Jacobson 1988, appendix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// The last sample, in ticks; 0 before the first.
    pub rtt: u64,
    /// Smoothed round-trip time, in eighths of a tick; 0 if there is none.
    pub srtt: u64,
    /// Mean deviation, in quarters of a tick.
    pub rttvar: u64,
    /// Whether the RTO is derived from samples.
    sampled: bool,
    /// RTO before backoff in ticks, as of the last sample.
    rto: u64,
}

impl Ticks {
    /// No samples. The deviation starts at 12 s as in BSD (TCPTV_SRTTDFLT); it is used only by a backoff that
    /// discards the estimate before the first sample.
    fn new(tick: Duration) -> Ticks {
        let rttvar = 4 * (Duration::from_secs(12).as_nanos() / tick.as_nanos());
        Ticks { rtt: 0, srtt: 0, rttvar, sampled: false, rto: 0 }
    }

    fn sample(&mut self, rtt: u64) {
        self.rtt = rtt.max(1);
        if self.srtt == 0 {
            self.srtt = self.rtt << 3;
            self.rttvar = self.rtt << 1;
        } else {
            let error = self.rtt as i64 - (self.srtt >> 3) as i64;
            self.srtt = (self.srtt as i64 + error).max(1) as u64;
            let deviation = error.abs() - (self.rttvar >> 2) as i64;
            self.rttvar = (self.rttvar as i64 + deviation).max(1) as u64;
        }
        self.sampled = true;
        self.rto = ((self.rttvar << 3) + self.srtt) >> 3;
    }
}

impl RttEstimator {
    /// An estimator without samples.
    pub fn new(settings: &Settings) -> RttEstimator {
        let ticks = |nearest| Estimate::Ticks { nearest, ticks: Ticks::new(settings.tick) };
        let mut estimator = RttEstimator {
            estimate: match settings.rtt_arithmetic {
                RttArithmetic::Exact => Estimate::Exact { srtt: None, rttvar: Duration::ZERO },
                RttArithmetic::Ticks => ticks(false),
                RttArithmetic::NearestTick => ticks(true),
                RttArithmetic::Linux => Estimate::Linux(LinuxEstimate::default()),
            },
            srtt: None,
            tick: settings.tick,
            initial: settings.rto_initial,
            min: settings.rto_min,
            max: settings.rto_max,
            backoff_max: settings.backoff_max,
            backoff: 1,
            rto: Duration::ZERO,
        };
        estimator.update_rto();
        estimator
    }

    /// Adds a sample: data sent at `sent` were acknowledged at `now`. Ends the backoff (RFC 6298 section 5;
    /// Karn and Partridge 1987).
    pub fn sample(&mut self, sent: Time, now: Time) {
        self.backoff = 1;
        let tick = self.tick.as_nanos();
        self.srtt = match &mut self.estimate {
            Estimate::Exact { srtt, rttvar } => {
                let rtt = now.since(sent).as_nanos();
                match srtt {
                    None => *rttvar = Duration::from_nanos(rtt / 2),
                    Some(srtt) => {
                        let error = srtt.as_nanos().abs_diff(rtt);
                        *rttvar = Duration::from_nanos((3 * rttvar.as_nanos() + error) / 4);
                    }
                }
                let smoothed = srtt.map_or(rtt, |srtt| (7 * srtt.as_nanos() + rtt) / 8);
                *srtt = Some(Duration::from_nanos(smoothed));
                *srtt
            }
            Estimate::Ticks { nearest, ticks } => {
                ticks.sample(if *nearest {
                    (now.since(sent).as_nanos() + tick / 2) / tick
                } else {
                    now.as_nanos() / tick - sent.as_nanos() / tick
                });
                Some(Duration::from_nanos(ticks.srtt * tick / 8))
            }
            Estimate::Linux(estimate) => {
                estimate.sample(now.since(sent).as_nanos(), self.min.as_nanos());
                Some(Duration::from_nanos(estimate.srtt >> 3))
            }
        };
        self.update_rto();
    }

    /// Ends a round trip; some estimates decrease only then.
    pub fn end_round(&mut self) {
        if let Estimate::Linux(estimate) = &mut self.estimate {
            estimate.end_round(self.min.as_nanos());
            self.update_rto();
        }
    }

    /// The retransmission timeout, backoff included (RFC 6298 sections 2.2-2.5 and 5.5).
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// Called whenever the estimate or the backoff has changed.
    #[inline]
    fn update_rto(&mut self) {
        let (least, tick) = (self.min, self.tick);
        let (base, floor) = match &mut self.estimate {
            Estimate::Linux(LinuxEstimate { srtt: 0, .. }) | Estimate::Exact { srtt: None, .. } => {
                (self.initial, Duration::ZERO)
            }
            Estimate::Linux(estimate) => {
                (Duration::from_nanos(estimate.rto(tick.as_nanos())), Duration::ZERO)
            }
            Estimate::Exact { srtt: Some(srtt), rttvar } => {
                ((*srtt + tick.max(*rttvar * 4)).max(least), Duration::ZERO)
            }
            Estimate::Ticks { ticks, .. } => {
                let rto = if ticks.sampled { tick * ticks.rto } else { self.initial };
                // A timeout of one tick could expire almost immediately.
                (rto.max(least), tick * 2)
            }
        };
        self.rto = (base * self.factor()).min(self.max).max(floor);
    }

    fn factor(&self) -> u64 {
        u64::from(self.backoff)
    }

    /// Doubles the RTO, up to its limits (RFC 6298 section 5.5).
    pub fn back_off(&mut self) {
        let limited = self.backoff_max != 0 && self.backoff >= self.backoff_max;
        // Beyond 64, only as far as needed to reach the maximum RTO.
        if !limited && (self.backoff < 64 || self.rto() < self.max) {
            self.backoff = self.backoff.saturating_mul(2);
        }
        if let Estimate::Ticks { ticks, .. } = &mut self.estimate
            && self.backoff > 8
        {
            // BSD discards the estimate at this point; the next sample counts as the first.
            ticks.rttvar += ticks.srtt >> 3;
            ticks.srtt = 0;
            self.srtt = None;
        }
        self.update_rto();
    }

    /// Raises the RTO for data to 3 s after the SYN timed out and its acknowledgement gave no sample (RFC
    /// 6298 section 5.7).
    pub fn restart_after_lost_syn(&mut self) {
        if self.initial < RTO_AFTER_LOST_SYN {
            self.initial = RTO_AFTER_LOST_SYN;
            self.backoff = 1;
            self.update_rto();
        }
    }

    /// Ends the backoff without a sample, when progress shows that the path works.
    pub fn end_backoff(&mut self) {
        if self.backoff > 1 {
            self.backoff = 1;
            self.update_rto();
        }
    }

    /// The backoff factor: 1, 2, 4, ...
    pub fn backoff(&self) -> u32 {
        self.backoff
    }

    /// The smoothed round-trip time (RFC 6298: SRTT); `None` without samples.
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The round-trip time variation (RFC 6298: RTTVAR).
    pub fn rttvar(&self) -> Duration {
        match self.estimate {
            Estimate::Linux(LinuxEstimate { rttvar, .. }) => Duration::from_nanos(rttvar >> 2),
            Estimate::Exact { rttvar, .. } => rttvar,
            Estimate::Ticks { ticks, .. } => Duration::from_nanos(ticks.rttvar * self.tick.as_nanos() / 4),
        }
    }

    /// The estimate in ticks, if it is kept in ticks.
    pub fn ticks(&self) -> Option<Ticks> {
        match self.estimate {
            Estimate::Exact { .. } | Estimate::Linux(_) => None,
            Estimate::Ticks { ticks, .. } => Some(ticks),
        }
    }
}
