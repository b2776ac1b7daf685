//! Metrics of applications.

use lasthop_base::{Duration, Time};
use lasthop_proto::{EndCounters, Experience, Usage, VideoStats, Wait};
use lasthop_sim::Node;
use schemars::JsonSchema;
use serde::Serialize;

use super::metrics::{ActivityMetrics, ApplicationMetrics, PageMetrics, Value, VideoMetrics};

/// Counters of an application's ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApplicationCounters {
    usage: Usage,
    client: EndCounters,
    server: EndCounters,
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
    /// The counters of an application with these ends at `now`.
    ///
    /// # Panics
    /// If they are no client and server.
    pub(crate) fn of(client: &Node, server: &Node, now: Time) -> ApplicationCounters {
        let counters = |end: &Node| end.report().expect("an end of an application reports").counters;
        ApplicationCounters {
            usage: client.usage(now).expect("a client has a user"),
            client: counters(client),
            server: counters(server),
        }
    }

    /// What the reactions of schemes changed at both ends.
    pub(super) fn reactions(&self) -> u64 {
        self.client.reactions + self.server.reactions
    }

    /// What was measured since `before`; `lost_packets` were lost meanwhile.
    pub(super) fn since(&self, before: &ApplicationCounters, lost_packets: u64) -> ApplicationRun {
        let [client, server] = [self.client.since(&before.client), self.server.since(&before.server)];
        let both = client.plus(&server);
        let responses = &self.usage.waits[before.usage.waits.len()..];
        let times = Times::new(responses);
        let metrics = ApplicationMetrics {
            requests: self.usage.requests - before.usage.requests,
            responses: responses.len() as u64,
            mean_response_time_s: times.mean(),
            p50_response_time_s: times.quantile(0.5),
            p95_response_time_s: times.quantile(0.95),
            p99_response_time_s: times.quantile(0.99),
            greatest_response_time_s: times.greatest(),
            request_bytes: server.delivered.0,
            response_bytes: client.delivered.0,
            retransmitted_segments: both.retransmitted_packets,
            declared_lost: both.declared_lost,
            timeouts: both.timeouts,
            lost_packets,
        };
        let (activity, pages) = match (&self.usage.experience, &before.usage.experience) {
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
