//! Adaptive-bitrate video over HTTP.

use alloc::vec::Vec;

use lasthop_base::{BitRate, Bytes, Duration, Invalid, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;
use super::activity::Behaviour;
use crate::component::Request;
use crate::report::{Experience, VideoStats};

/// Adaptive video streaming over HTTP (DASH, HLS): the player fetches segments, each at a bitrate that it
/// chooses, until its buffer is full, and then whenever there is room for one. Playback starts, and resumes
/// after a stall, when `startup` is buffered, or as many segments as fit. The default is the test video of
/// Mao, Netravali and Alizadeh, "Neural Adaptive Video Streaming with Pensieve" (SIGCOMM 2017), section 5.1,
/// with segments of equal size.
///
/// ```toml
/// [application.tv]
/// kind = "video"
/// from = "mobile"
/// to = "fixed"
/// video.length = "60 s"
/// video.adaptation.rate.segments = 5
/// ```
///
/// By default the test video of Mao, Netravali and Alizadeh, "Neural Adaptive Video Streaming with Pensieve"
/// (SIGCOMM 2017), section 5.1, except that all segments are equally long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Video {
    /// Length of the video.
    pub length: Duration,
    /// Length of a segment.
    pub segment: Duration,
    /// The available bitrates, in increasing order. A single bitrate gives a video without adaptation.
    pub bitrates: Vec<BitRate>,
    /// The adaptation algorithm: `buffer` or `rate`.
    pub adaptation: Adaptation,
    /// Capacity of the player's buffer.
    pub buffer: Duration,
    /// Buffered video before playback starts.
    pub startup: Duration,
}

/// A user who watches a video.
#[derive(Clone, Debug, PartialEq)]
pub struct Viewing {
    /// The video.
    pub video: Video,
    /// Distribution of the sizes of requests.
    pub request: Distribution<Bytes>,
}

/// Bitrate adaptation: how the player chooses the bitrate of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Adaptation {
    /// BBA-0 of Huang, Johari, McKeown, Trunnell and Watson, "A Buffer-Based Approach to Rate Adaptation"
    /// (SIGCOMM 2014), algorithm 1: the lowest bitrate while the buffer is below the reservoir, the highest
    /// above the sum of reservoir and cushion, and a linear map with hysteresis between. The default of
    /// `adaptation` is 5 s and 10 s, as in Pensieve.
    Buffer {
        /// The reservoir.
        reservoir: Duration,
        /// The cushion.
        cushion: Duration,
    },
    /// RB of Yin, Jindal, Sekar and Sinopoli, "A Control-Theoretic Approach for Dynamic Adaptive Video
    /// Streaming over HTTP" (SIGCOMM 2015): the highest bitrate that is at most the harmonic mean of the
    /// throughputs of the last segments.
    Rate {
        /// The number of segments averaged.
        segments: u8,
    },
}

impl Default for Video {
    fn default() -> Video {
        let bitrates = [300_000, 750_000, 1_200_000, 1_850_000, 2_850_000, 4_300_000];
        let bitrates = bitrates.into_iter().filter_map(BitRate::from_bps);
        let seconds = Duration::from_secs;
        Video {
            length: seconds(192),
            segment: seconds(4),
            bitrates: bitrates.collect(),
            adaptation: Adaptation::Buffer { reservoir: seconds(5), cushion: seconds(10) },
            buffer: seconds(60),
            startup: seconds(4),
        }
    }
}

impl Viewing {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// The path of the invalid key, and the problem.
    pub(super) fn validate(&self) -> Result<(), (&'static str, Invalid)> {
        self.request.validate().map_err(|invalid| ("request", invalid))?;
        self.video.validate()
    }
}

/// Limit of the number of segments, to bound the run: a day of one-second segments.
const MAX_SEGMENTS: u64 = 86_400;

impl Video {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// The path of the invalid key, and the problem.
    fn validate(&self) -> Result<(), (&'static str, Invalid)> {
        let invalid = |key, problem| Err((key, Invalid { field: "", problem }));
        if self.segment < Duration::from_millis(1) {
            return invalid("video.segment", "found less than 1 ms, expected a length such as \"4 s\"");
        }
        if self.length.is_zero() || self.segments() > MAX_SEGMENTS {
            return invalid("video.length", "expected a length above zero, of at most 86,400 segments");
        }
        if self.bitrates.is_empty() || !self.bitrates.is_sorted_by(|low, high| low < high) {
            return invalid("video.bitrates", "expected at least one bitrate, in increasing order");
        }
        if self.bitrates.iter().any(|&bitrate| self.size(bitrate, self.segment) == Bytes::ZERO) {
            return invalid("video.bitrates", "found a bitrate at which a segment has less than a byte");
        }
        if self.buffer < self.segment {
            return invalid("video.buffer", "expected at least the length of a segment");
        }
        if self.startup > self.buffer {
            return invalid("video.startup", "expected at most the buffer");
        }
        match self.adaptation {
            Adaptation::Buffer { cushion, .. } if cushion.is_zero() => {
                invalid("video.adaptation.buffer.cushion", "found zero, expected a length such as \"10 s\"")
            }
            Adaptation::Rate { segments: 0 } => {
                invalid("video.adaptation.rate.segments", "found 0, expected at least 1")
            }
            _ => Ok(()),
        }
    }

    fn segments(&self) -> u64 {
        self.length.as_nanos().div_ceil(self.segment.as_nanos())
    }

    fn size(&self, bitrate: BitRate, length: Duration) -> Bytes {
        Bytes((u128::from(bitrate.as_bps()) * u128::from(length.as_nanos()) / 8_000_000_000) as u64)
    }
}

/// A player in a run.
#[derive(Debug)]
pub(super) struct Player {
    video: Video,
    request: Distribution<Bytes>,
    requests: Stream,
    stop: Time,
    fetching: Fetching,
    /// Index of the bitrate of the last requested segment.
    quality: usize,
    /// Throughputs of the last segments, in bit/s.
    throughputs: Vec<f64>,
    /// Playback up to `self.at`.
    stats: VideoStats,
    playback: Playback,
    /// Playing time in the buffer at `at`.
    buffered: Duration,
    at: Time,
    opened: Time,
}

#[derive(Clone, Copy, Debug)]
enum Fetching {
    /// The next segment is requested at this time.
    At(Time),
    /// A segment was requested.
    Requested,
    /// All segments were fetched; playback ends at this time.
    Done(Time),
    /// The playback is over.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Playback {
    /// Before the start.
    Waiting,
    Playing,
    Stalled,
}

impl Player {
    pub(super) fn new(config: Viewing, start: Time, stop: Time, streams: Streams, name: &str) -> Player {
        Player {
            video: config.video,
            request: config.request,
            requests: streams.stream(&["request:", name].concat()),
            stop,
            fetching: Fetching::At(start),
            quality: 0,
            throughputs: Vec::new(),
            stats: VideoStats::default(),
            playback: Playback::Waiting,
            buffered: Duration::ZERO,
            at: start,
            opened: start,
        }
    }

    /// The counters at `now`, the state of the playback and the playing time in the buffer.
    fn played_until(&self, now: Time) -> (VideoStats, Playback, Duration) {
        let (mut stats, mut playback, mut buffered) = (self.stats, self.playback, self.buffered);
        let passed = if now > self.at { now.since(self.at) } else { Duration::ZERO };
        match playback {
            Playback::Waiting => {}
            Playback::Stalled if self.is_over() => {}
            Playback::Stalled => stats.stalled += passed,
            Playback::Playing => {
                let played = passed.min(buffered);
                stats.played += played;
                buffered = buffered - played;
                // An empty buffer after the last segment is the end, not a stall.
                if played < passed && matches!(self.fetching, Fetching::At(_) | Fetching::Requested) {
                    playback = Playback::Stalled;
                    stats.stalls += 1;
                    stats.stalled += passed - played;
                }
            }
        }
        (stats, playback, buffered)
    }

    /// The length of segment number `index`.
    fn length(&self, index: u64) -> Duration {
        let before = Duration::from_nanos(self.video.segment.as_nanos() * index);
        self.video.segment.min(self.video.length - before)
    }

    /// The index of the bitrate of the next segment.
    fn choose(&self) -> usize {
        let bitrates = &self.video.bitrates;
        let highest = bitrates.len() - 1;
        match self.video.adaptation {
            _ if self.stats.segments == 0 => 0,
            Adaptation::Rate { .. } => {
                let inverse: f64 = self.throughputs.iter().map(|rate| 1.0 / rate).sum();
                let mean = self.throughputs.len() as f64 / inverse;
                bitrates.iter().rposition(|bitrate| bitrate.as_bps() as f64 <= mean).unwrap_or(0)
            }
            Adaptation::Buffer { reservoir, .. } if self.buffered <= reservoir => 0,
            Adaptation::Buffer { reservoir, cushion } if self.buffered >= reservoir + cushion => highest,
            Adaptation::Buffer { reservoir, cushion } => {
                let bps = |index: usize| bitrates[index].as_bps() as f64;
                let share = (self.buffered - reservoir).as_secs_f64() / cushion.as_secs_f64();
                let mapped = bps(0) + share * (bps(highest) - bps(0));
                let (above, below) = ((self.quality + 1).min(highest), self.quality.saturating_sub(1));
                if mapped >= bps(above) {
                    (0..=highest).rev().find(|&index| bps(index) < mapped).unwrap_or(0)
                } else if mapped <= bps(below) {
                    (0..=highest).find(|&index| bps(index) > mapped).unwrap_or(highest)
                } else {
                    self.quality
                }
            }
        }
    }
}

impl Behaviour for Player {
    fn wake(&mut self, now: Time, asked: &mut Vec<Request>) {
        let (Fetching::At(due) | Fetching::Done(due)) = self.fetching else { return };
        (self.stats, self.playback, self.buffered) = self.played_until(now);
        self.at = now;
        if matches!(self.fetching, Fetching::Done(_)) {
            if now >= due {
                self.fetching = Fetching::Over;
            }
        } else if now >= self.stop {
            // Playback that has not started or is stalled ends immediately.
            self.fetching = match self.playback {
                Playback::Playing => Fetching::Done(now + self.buffered),
                Playback::Waiting | Playback::Stalled => Fetching::Over,
            };
        } else if now >= due {
            let quality = self.choose();
            self.stats.switches += u64::from(self.stats.segments > 0 && quality != self.quality);
            let length = self.length(self.stats.segments);
            let response = self.video.size(self.video.bitrates[quality], length).max(Bytes(1));
            (self.quality, self.fetching) = (quality, Fetching::Requested);
            asked.push(Request { connection: 0, size: self.request.draw(&mut self.requests), response });
        }
    }

    fn on_response(&mut self, now: Time, _connection: u8, since: Time, asked: &mut Vec<Request>) {
        (self.stats, self.playback, self.buffered) = self.played_until(now);
        self.at = now;
        let length = self.length(self.stats.segments);
        let bits = self.video.size(self.video.bitrates[self.quality], length).bits();
        self.stats.segments += 1;
        self.stats.fetched += length;
        self.stats.bits += bits;
        self.buffered += length;
        if let Adaptation::Rate { segments } = self.video.adaptation {
            if self.throughputs.len() == usize::from(segments) {
                self.throughputs.remove(0);
            }
            let took = now.since(since).max(Duration::from_nanos(1));
            self.throughputs.push(bits as f64 / took.as_secs_f64());
        }
        let is_last = self.stats.segments == self.video.segments();
        // How much must be played before the next segment has room.
        let surplus = match is_last {
            true => Duration::ZERO,
            false => (self.buffered + self.length(self.stats.segments)).saturating_sub(self.video.buffer),
        };
        let is_enough = is_last || !surplus.is_zero() || self.buffered >= self.video.startup;
        if self.playback != Playback::Playing && is_enough {
            if self.playback == Playback::Waiting {
                self.stats.startup_delay = Some(now.since(self.opened));
            }
            self.playback = Playback::Playing;
        }
        self.fetching = match is_last {
            true => Fetching::Done(now + self.buffered),
            false => Fetching::At(now + surplus),
        };
        self.wake(now, asked);
    }

    fn next_wakeup(&self) -> Time {
        match self.fetching {
            Fetching::At(due) => due.min(self.stop),
            Fetching::Done(end) => end,
            Fetching::Requested | Fetching::Over => Time::NEVER,
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.fetching, Fetching::Over)
    }

    fn experience(&self, now: Time) -> Experience {
        Experience::Video(self.played_until(now).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn player(adaptation: Adaptation) -> Player {
        let config = Viewing {
            video: Video { adaptation, ..Video::default() },
            request: Distribution::Constant(Bytes(350)),
        };
        assert_eq!(config.validate(), Ok(()));
        let mut player = Player::new(config, Time::ZERO, Time::NEVER, Streams::new(1, 0), "film");
        player.stats.segments = 1;
        player
    }

    /// With a reservoir of 5 s and a cushion of 10 s the map goes from 300 kb/s at 5 s to 4300 kb/s at 15 s: 400 kb/s per
    /// second. By hand for the ladder of 300, 750, 1200, 1850, 2850 and 4300 kb/s.
    #[test]
    fn the_buffer_is_mapped_to_a_bitrate_with_hysteresis() {
        let Video { adaptation, .. } = Video::default();
        let chosen = |quality, tenths: u64| {
            Player { quality, buffered: Duration::from_millis(100 * tenths), ..player(adaptation) }.choose()
        };
        for quality in 0..6 {
            assert_eq!([0, 50].map(|tenths| chosen(quality, tenths)), [0, 0], "the reservoir");
            assert_eq!([150, 600].map(|tenths| chosen(quality, tenths)), [5, 5], "beyond the cushion");
        }
        // 1100 kb/s at 7 s. From the lowest it rises to the highest below that; from 750 kb/s it stays, since the next is
        // 1200 kb/s; from 1200 kb/s it stays above the next lower; from 1850 kb/s it falls to the lowest above.
        assert_eq!([0, 1, 2, 3, 4, 5].map(|quality| chosen(quality, 70)), [1, 1, 2, 2, 2, 2]);
        // 3900 kb/s at 14 s.
        assert_eq!([0, 1, 2, 3, 4, 5].map(|quality| chosen(quality, 140)), [4, 4, 4, 4, 4, 5]);
    }

    #[test]
    fn the_rate_is_the_harmonic_mean_of_the_last_segments() {
        let chosen = |throughputs: &[f64]| {
            Player { throughputs: throughputs.to_vec(), ..player(Adaptation::Rate { segments: 5 }) }.choose()
        };
        // 2 / (1/1 + 1/3) = 1.5 Mb/s; the arithmetic mean would carry 1850 kb/s.
        assert_eq!(chosen(&[1e6, 3e6]), 2);
        assert_eq!((chosen(&[1.851e6]), chosen(&[1.849e6]), chosen(&[1.0])), (3, 2, 0));
    }

    /// A buffer of 1 s is empty until 4 s. With a warm-up until 3 s, the stall counts before it and its last second after it.
    #[test]
    fn a_stall_counts_once_and_its_time_is_divided() {
        let player = Player {
            playback: Playback::Playing,
            fetching: Fetching::Requested,
            buffered: SECOND,
            ..player(Video::default().adaptation)
        };
        let [warmup, end] = [3, 4].map(|seconds| player.played_until(Time::ZERO + SECOND * seconds).0);
        assert_eq!((warmup.played, warmup.stalls, warmup.stalled), (SECOND, 1, SECOND * 2));
        let rest = end.since(&warmup);
        assert_eq!((rest.played, rest.stalls, rest.stalled), (Duration::ZERO, 0, SECOND));
    }

    #[test]
    fn the_last_segment_is_the_rest() {
        let mut player = player(Adaptation::Rate { segments: 5 });
        player.video.length = Duration::from_millis(9_500);
        assert_eq!(player.video.segments(), 3);
        let lengths = [0, 1, 2].map(|index| player.length(index).as_nanos() / 1_000_000);
        assert_eq!(lengths, [4_000, 4_000, 1_500]);
    }

    #[test]
    fn impossible_videos_are_refused() {
        let fault = |change: fn(&mut Video)| {
            let mut video = Video::default();
            change(&mut video);
            video.validate().unwrap_err().0
        };
        assert_eq!(fault(|video| video.segment = Duration::ZERO), "video.segment");
        assert_eq!(fault(|video| video.length = Duration::ZERO), "video.length");
        assert_eq!(fault(|video| video.length = Duration::MAX), "video.length");
        assert_eq!(fault(|video| video.bitrates.clear()), "video.bitrates");
        assert_eq!(fault(|video| video.bitrates.reverse()), "video.bitrates");
        assert_eq!(fault(|video| video.bitrates[0] = BitRate::from_bps(1).unwrap()), "video.bitrates");
        assert_eq!(fault(|video| video.buffer = SECOND), "video.buffer");
        assert_eq!(fault(|video| video.startup = SECOND * 61), "video.startup");
        let buffer = |cushion| Adaptation::Buffer { reservoir: SECOND, cushion };
        let mut video = Video { adaptation: buffer(Duration::ZERO), ..Video::default() };
        assert_eq!(video.validate().unwrap_err().0, "video.adaptation.buffer.cushion");
        video.adaptation = Adaptation::Rate { segments: 0 };
        assert_eq!(video.validate().unwrap_err().0, "video.adaptation.rate.segments");
    }
}
