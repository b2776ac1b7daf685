//! Typical applications.

use lasthop_base::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;

/// A typical application, which gives the keys of an application that are not stated. The OPNET defaults that the
/// WENP paper used (section VI) are not public; these values come from the sources given with each.
///
/// For a bulk download or upload, use `[transfer]` from the server or from the mobile host; for a call,
/// `[traffic.NAME.voip]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApplicationKind {
    /// Web browsing: the main object of each page, without embedded objects. After the web browsing model of
    /// the cdma2000 evaluation methodology (3GPP2 C.R1002).
    Http,
    /// Database access: an operator who queries and enters records. A screen of 24 lines of 80 characters, and
    /// the think time after an order, as in TPC-C; the size of requests is our choice.
    Database,
    /// E-mail: a user who fetches and reads one message after the other. Our choice: most messages are text,
    /// and one in forty exceeds 400 KB.
    Email,
    /// A remote shell: keystrokes and their echoes with OpenSSH's default cipher (RFC 4253, RFC 4254). The time
    /// between keystrokes is 239 ± 112 ms (Dhakal et al., CHI 2018).
    Ssh,
    /// A sensor that reports at fixed intervals (3GPP TR 45.820, annex E.2.1), each report confirmed by an MQTT
    /// PUBACK; the interval is our choice.
    Telemetry,
    /// Web browsing: whole pages, such as the median mobile home page of the HTTP Archive; reading time as for
    /// `http`.
    Page,
    /// A video of adaptive bitrate: the test video of Pensieve (SIGCOMM 2017).
    Video,
}

/// 3GPP2 C.R1002: the size of an HTTP request.
const HTTP_REQUEST: Bytes = Bytes(350);
/// 3GPP2 C.R1002: the main object's size is lognormal with μ = 8.37; the median e^8.37 is 4,316 B and the
/// mean 11 KB.
const HTTP_MEDIAN: Bytes = Bytes(4_316);
/// 3GPP2 C.R1002: σ.
const HTTP_SIGMA: f64 = 1.37;
/// 3GPP2 C.R1002: mean of the exponential reading time.
const HTTP_READING: Duration = Duration::from_secs(30);

/// Our choice: between a short statement with few values and a longer one with many.
const STATEMENT: [Bytes; 2] = [Bytes(100), Bytes(500)];
/// Our choice: on average a full screen of a TPC-C terminal (clause 2.1: 24 lines of 80 characters).
const SCREEN: Bytes = Bytes(24 * 80);
/// TPC-C (clause 5.2.5.7): mean of the exponential think time after a New-Order or a Payment, the most
/// frequent transactions.
const ORDERING: Duration = Duration::from_secs(12);

/// Our choice: the RETR command (RFC 1939), in a separate packet.
const FETCH: Bytes = Bytes(32);
/// Our choice: half of all messages are text with headers of a few kilobytes.
const MAIL_MEDIAN: Bytes = Bytes(8_000);
/// Our choice: one message in forty has attachments and exceeds 400 KB. The mean is 59 KB.
const MAIL_SIGMA: f64 = 2.0;
/// Our choice: mean reading time.
const MAIL_READING: Duration = Duration::from_secs(60);

/// One keystroke, or its echo, of OpenSSH's default cipher: 10 B of SSH_MSG_CHANNEL_DATA (RFC 4254 section 5.2) with the
/// length of its padding, padded to 16 B, its own length of 4 B (RFC 4253 section 6) and a tag of 16 B.
const KEYSTROKE: Bytes = Bytes(36);
/// Dhakal, Feit, Kristensson and Oulasvirta, "Observations on Typing from 136 Million Keystrokes" (CHI 2018): intervals
/// between keystrokes of 239 ms on average, with a standard deviation of 112 ms; a lognormal distribution with these.
const TYPING_MEDIAN: Duration = Duration::from_millis(216);
/// As [`TYPING_MEDIAN`].
const TYPING_SIGMA: f64 = 0.446;

/// 3GPP TR 45.820 annex E.2.1: the payload of periodic reports is Pareto distributed with this shape, from 20 B to 200 B.
const REPORT: [Bytes; 2] = [Bytes(20), Bytes(200)];
/// As [`REPORT`].
const REPORT_SHAPE: f64 = 2.5;
/// A PUBACK of MQTT (version 3.1.1, section 3.4).
const PUBACK: Bytes = Bytes(4);
/// Our choice: the interval between reports.
const REPORTING: Duration = Duration::from_secs(10);

impl ApplicationKind {
    /// Distribution of request sizes.
    pub const fn request(self) -> Distribution<Bytes> {
        match self {
            ApplicationKind::Http | ApplicationKind::Page | ApplicationKind::Video => {
                Distribution::Constant(HTTP_REQUEST)
            }
            ApplicationKind::Database => Distribution::Uniform { least: STATEMENT[0], most: STATEMENT[1] },
            ApplicationKind::Email => Distribution::Constant(FETCH),
            ApplicationKind::Ssh => Distribution::Constant(KEYSTROKE),
            ApplicationKind::Telemetry => {
                Distribution::Pareto { least: REPORT[0], most: REPORT[1], shape: REPORT_SHAPE }
            }
        }
    }

    /// Distribution of response sizes; `None` if pages or a video give them.
    pub const fn response(self) -> Option<Distribution<Bytes>> {
        Some(match self {
            ApplicationKind::Http => Distribution::Lognormal { median: HTTP_MEDIAN, sigma: HTTP_SIGMA },
            ApplicationKind::Database => Distribution::Exponential(SCREEN),
            ApplicationKind::Email => Distribution::Lognormal { median: MAIL_MEDIAN, sigma: MAIL_SIGMA },
            ApplicationKind::Ssh => Distribution::Constant(KEYSTROKE),
            ApplicationKind::Telemetry => Distribution::Constant(PUBACK),
            ApplicationKind::Page | ApplicationKind::Video => return None,
        })
    }

    /// Distribution of think times; `None` for a video.
    pub const fn think(self) -> Option<Distribution<Duration>> {
        Some(match self {
            ApplicationKind::Http | ApplicationKind::Page => Distribution::Exponential(HTTP_READING),
            ApplicationKind::Database => Distribution::Exponential(ORDERING),
            ApplicationKind::Email => Distribution::Exponential(MAIL_READING),
            ApplicationKind::Ssh => Distribution::Lognormal { median: TYPING_MEDIAN, sigma: TYPING_SIGMA },
            ApplicationKind::Telemetry => Distribution::Constant(REPORTING),
            ApplicationKind::Video => return None,
        })
    }

    /// Whether the next request waits for the response.
    pub const fn waits(self) -> bool {
        !matches!(self, ApplicationKind::Ssh | ApplicationKind::Telemetry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_sound() {
        for kind in [
            ApplicationKind::Http,
            ApplicationKind::Database,
            ApplicationKind::Email,
            ApplicationKind::Ssh,
            ApplicationKind::Telemetry,
            ApplicationKind::Page,
            ApplicationKind::Video,
        ] {
            assert_eq!(kind.request().validate(), Ok(()));
            assert!(kind.response().is_none_or(|law| law.validate() == Ok(())));
            assert!(kind.think().is_none_or(|law| law.validate() == Ok(())));
        }
        // The values stated in the comments above.
        assert_eq!(libm::round(libm::exp(8.37)) as u64, HTTP_MEDIAN.0);
        let mean = |median: Bytes, sigma: f64| median.0 as f64 * libm::exp(sigma * sigma / 2.0);
        assert!((mean(HTTP_MEDIAN, HTTP_SIGMA) - 11_000.0).abs() < 100.0);
        assert!((mean(MAIL_MEDIAN, MAIL_SIGMA) - 59_000.0).abs() < 200.0);
        let beyond = 0.5 * libm::erfc(libm::log(50.0) / MAIL_SIGMA / core::f64::consts::SQRT_2);
        assert!((beyond - 1.0 / 40.0).abs() < 0.001);
        let variance = TYPING_SIGMA * TYPING_SIGMA;
        let typing = TYPING_MEDIAN.as_secs_f64() * libm::exp(variance / 2.0);
        assert!((typing - 0.239).abs() < 0.001);
        assert!((typing * libm::sqrt(libm::exp(variance) - 1.0) - 0.112).abs() < 0.001);
    }
}
