//! Typical applications.

use lasthop_base::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::Distribution;

/// A typical application, with its distributions of sizes and think times. The OPNET defaults that the WENP
/// paper used (section VI) are not public; these values come from the sources given with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApplicationKind {
    /// Web browsing: the main object of each page, without embedded objects. After the web browsing model of
    /// the cdma2000 evaluation methodology (3GPP2 C.R1002).
    Http,
    /// Database access: an operator who queries and enters records.
    Database,
    /// E-mail: a user who fetches and reads one message after the other.
    Email,
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

/// Chosen here: between a short statement with few values and a longer one with many.
const STATEMENT: [Bytes; 2] = [Bytes(100), Bytes(500)];
/// Chosen here: on average a full screen of a TPC-C terminal (clause 2.1: 24 lines of 80 characters).
const SCREEN: Bytes = Bytes(24 * 80);
/// TPC-C (clause 5.2.5.7): mean of the exponential think time after a New-Order or a Payment, the most
/// frequent transactions.
const ORDERING: Duration = Duration::from_secs(12);

/// Chosen here: the RETR command (RFC 1939), which takes a packet of its own.
const FETCH: Bytes = Bytes(32);
/// Chosen here: half of all messages are text with headers of a few kilobytes.
const MAIL_MEDIAN: Bytes = Bytes(8_000);
/// Chosen here: one message in forty has attachments and exceeds 400 KB. The mean is 59 KB.
const MAIL_SIGMA: f64 = 2.0;
/// Chosen here: mean reading time.
const MAIL_READING: Duration = Duration::from_secs(60);

impl ApplicationKind {
    /// Distribution of request sizes.
    pub const fn request(self) -> Distribution<Bytes> {
        match self {
            ApplicationKind::Http => Distribution::Constant(HTTP_REQUEST),
            ApplicationKind::Database => Distribution::Uniform { least: STATEMENT[0], most: STATEMENT[1] },
            ApplicationKind::Email => Distribution::Constant(FETCH),
        }
    }

    /// Distribution of response sizes.
    pub const fn response(self) -> Distribution<Bytes> {
        match self {
            ApplicationKind::Http => Distribution::Lognormal { median: HTTP_MEDIAN, sigma: HTTP_SIGMA },
            ApplicationKind::Database => Distribution::Exponential(SCREEN),
            ApplicationKind::Email => Distribution::Lognormal { median: MAIL_MEDIAN, sigma: MAIL_SIGMA },
        }
    }

    /// Distribution of think times.
    pub const fn think(self) -> Distribution<Duration> {
        match self {
            ApplicationKind::Http => Distribution::Exponential(HTTP_READING),
            ApplicationKind::Database => Distribution::Exponential(ORDERING),
            ApplicationKind::Email => Distribution::Exponential(MAIL_READING),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_sound() {
        for kind in [ApplicationKind::Http, ApplicationKind::Database, ApplicationKind::Email] {
            assert_eq!(kind.request().validate(), Ok(()));
            assert_eq!(kind.response().validate(), Ok(()));
            assert_eq!(kind.think().validate(), Ok(()));
        }
        // The values stated in the comments above.
        assert_eq!(libm::round(libm::exp(8.37)) as u64, HTTP_MEDIAN.0);
        let mean = |median: Bytes, sigma: f64| median.0 as f64 * libm::exp(sigma * sigma / 2.0);
        assert!((mean(HTTP_MEDIAN, HTTP_SIGMA) - 11_000.0).abs() < 100.0);
        assert!((mean(MAIL_MEDIAN, MAIL_SIGMA) - 59_000.0).abs() < 200.0);
        let beyond = 0.5 * libm::erfc(libm::log(50.0) / MAIL_SIGMA / core::f64::consts::SQRT_2);
        assert!((beyond - 1.0 / 40.0).abs() < 0.001);
    }
}
