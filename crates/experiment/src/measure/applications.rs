//! Metrics of applications.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::application::{Client, Experience, Server, VideoStats, Wait};
use lasthop_proto::tcp::{ReceiverStats, SenderStats};
use schemars::JsonSchema;
use serde::Serialize;

use super::metrics::{ActivityMetrics, ApplicationMetrics, PageMetrics, Value, VideoMetrics};

/// Counters of an application's endpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplicationCounters {
    requests: u64,
    /// The response times.
    waits: Vec<Wait>,
    experience: Experience,
    /// Segments retransmitted at both ends.
    retransmitted_segments: u64,
    /// Timeouts of both ends.
    timeouts: u64,
    /// What the reactions of schemes changed at both ends.
    pub(super) reactions: u64,
    /// Payload delivered to the server.
    asked: Bytes,
    /// Payload delivered to the client.
    answered: Bytes,
}

/// The result of one application.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ApplicationRun {
    /// Metrics of its messages.
    #[serde(flatten)]
    pub metrics: ApplicationMetrics,
    /// Metrics of what its user does with them.
    #[serde(flatten)]
    pub activity: ActivityMetrics,
    /// The time of each response that arrived after the warm-up, in order of arrival.
    #[serde(skip)]
    pub responses: Vec<Wait>,
    /// The time of each page that was loaded after the warm-up, in order.
    #[serde(skip)]
    pub pages: Vec<Wait>,
}

impl ApplicationRun {
    /// The value of metric number `index`: those of messages come first.
    pub(super) fn value(&self, index: usize) -> Option<Value> {
        let of_activity = self.activity.named().into_iter().map(|(_, value)| value);
        self.metrics.values().chain(of_activity).nth(index)
    }
}

impl ApplicationCounters {
    /// The counters of an application at `now`.
    pub(crate) fn of(client: &Client, server: &Server, now: Time) -> ApplicationCounters {
        let mut counts = ApplicationCounters {
            requests: client.requests(),
            waits: client.waits().to_vec(),
            experience: client.experience(now),
            ..ApplicationCounters::default()
        };
        for end in client.connections() {
            counts.add(end.sender().stats(), end.receiver().stats());
            counts.answered += end.receiver().stats().delivered;
        }
        for end in server.connections() {
            counts.add(end.sender().stats(), end.receiver().stats());
            counts.asked += end.receiver().stats().delivered;
        }
        counts
    }

    fn add(&mut self, sender: &SenderStats, receiver: &ReceiverStats) {
        self.reactions += sender.reactions + receiver.reactions;
        self.retransmitted_segments += sender.retransmitted_segments;
        self.timeouts += sender.timeouts;
    }

    /// What was measured since `before`; `lost_packets` were lost meanwhile.
    pub(super) fn since(&self, before: &ApplicationCounters, lost_packets: u64) -> ApplicationRun {
        let responses = &self.waits[before.waits.len()..];
        let times = Times::new(responses);
        let metrics = ApplicationMetrics {
            requests: self.requests - before.requests,
            responses: responses.len() as u64,
            mean_response_time_s: times.mean(),
            p50_response_time_s: times.quantile(0.5),
            p95_response_time_s: times.quantile(0.95),
            p99_response_time_s: times.quantile(0.99),
            greatest_response_time_s: times.greatest(),
            request_bytes: (self.asked - before.asked).0,
            response_bytes: (self.answered - before.answered).0,
            retransmitted_segments: self.retransmitted_segments - before.retransmitted_segments,
            timeouts: self.timeouts - before.timeouts,
            lost_packets,
        };
        let (activity, pages) = match (&self.experience, &before.experience) {
            (Experience::Pages(end), Experience::Pages(before)) => pages(&end[before.len()..]),
            (Experience::Pages(end), _) => pages(end),
            (Experience::Video(end), Experience::Video(before)) => (video(&end.since(before)), &[][..]),
            (Experience::Video(end), _) => (video(end), &[][..]),
            (Experience::Messages, _) => (ActivityMetrics::Messages {}, &[][..]),
        };
        ApplicationRun { metrics, activity, responses: responses.to_vec(), pages: pages.to_vec() }
    }
}

fn pages(pages: &[Wait]) -> (ActivityMetrics, &[Wait]) {
    let times = Times::new(pages);
    let metrics = PageMetrics {
        pages: pages.len() as u64,
        mean_page_time_s: times.mean(),
        p50_page_time_s: times.quantile(0.5),
        p95_page_time_s: times.quantile(0.95),
        p99_page_time_s: times.quantile(0.99),
        greatest_page_time_s: times.greatest(),
    };
    (ActivityMetrics::Pages(metrics), pages)
}

fn video(stats: &VideoStats) -> ActivityMetrics {
    let fetched = stats.fetched.as_secs_f64();
    ActivityMetrics::Video(VideoMetrics {
        startup_delay_s: stats.startup_delay.map(Duration::as_secs_f64),
        played_s: stats.played.as_secs_f64(),
        stalls: stats.stalls,
        stalled_s: stats.stalled.as_secs_f64(),
        mean_bitrate_bps: (fetched > 0.0).then(|| stats.bits as f64 / fetched),
        bitrate_switches: stats.switches,
    })
}

/// Waiting times in increasing order.
struct Times(Vec<Duration>);

impl Times {
    fn new(waits: &[Wait]) -> Times {
        let mut times: Vec<Duration> = waits.iter().map(|wait| wait.length).collect();
        times.sort_unstable();
        Times(times)
    }

    fn mean(&self) -> Option<f64> {
        let total = self.0.iter().fold(Duration::ZERO, |sum, &time| sum + time);
        (!self.0.is_empty()).then(|| total.as_secs_f64() / self.0.len() as f64)
    }

    fn greatest(&self) -> Option<f64> {
        self.0.last().map(|time| time.as_secs_f64())
    }

    /// The quantile of order `p`, interpolated linearly between the values nearest to rank p (n − 1): type 7 of Hyndman and
    /// Fan, "Sample Quantiles in Statistical Packages" (1996), the default of NumPy and R.
    fn quantile(&self, p: f64) -> Option<f64> {
        let rank = p * self.0.len().checked_sub(1)? as f64;
        let (below, above) = (rank.floor() as usize, rank.ceil() as usize);
        let [low, high] = [below, above].map(|index| self.0[index].as_secs_f64());
        Some(low + (rank - rank.floor()) * (high - low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(ms: &[u64]) -> Times {
        let wait = |&ms| Wait { since: Time::ZERO, length: Duration::from_millis(ms) };
        Times::new(&ms.iter().map(wait).collect::<Vec<_>>())
    }

    /// The values that NumPy gives.
    #[test]
    fn quantiles_are_interpolated() {
        let all = times(&[400, 100, 200, 1_000, 300]);
        for (p, expected) in [(0.0, 0.1), (0.5, 0.3), (0.6, 0.34), (0.95, 0.88), (0.99, 0.976), (1.0, 1.0)] {
            assert!((all.quantile(p).unwrap() - expected).abs() < 1e-12, "{p}");
        }
        assert_eq!((all.mean(), all.greatest()), (Some(0.4), Some(1.0)));
        assert_eq!(times(&[70]).quantile(0.99), Some(0.07));
        let none = times(&[]);
        assert_eq!((none.quantile(0.5), none.mean(), none.greatest()), (None, None, None));
    }
}
