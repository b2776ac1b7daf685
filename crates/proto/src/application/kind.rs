//! Applications as they usually are.

use lasthop_base::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::Law;

/// A usual kind of application, which gives its laws. The defaults of OPNET, which the WENP paper took
/// (section VI), are not public; these numbers are from elsewhere, each with its source or its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Someone who reads pages: the main object of each page, with none of those that it shows. After the
    /// web browsing model of the cdma2000 evaluation methodology (3GPP2 C.R1002).
    Http,
    /// A clerk at a terminal who looks up and enters records.
    Database,
    /// Someone who fetches a message, reads it and fetches the next.
    Email,
}

/// 3GPP2 C.R1002: the size of an HTTP request.
const HTTP_REQUEST: Bytes = Bytes(350);
/// 3GPP2 C.R1002: the main object's size is lognormal with μ = 8.37, and e^8.37 is 4,316 B. Its mean is then
/// 11 KB.
const HTTP_MEDIAN: Bytes = Bytes(4_316);
/// 3GPP2 C.R1002: its σ.
const HTTP_SIGMA: f64 = 1.37;
/// 3GPP2 C.R1002: the mean time for which a page is read, which is exponential.
const HTTP_READING: Duration = Duration::from_secs(30);

/// Our choice: a short statement with few values, and a longer one with many.
const STATEMENT: [Bytes; 2] = [Bytes(100), Bytes(500)];
/// Our choice: on average a full screen of the terminals of TPC-C (clause 2.1: 24 lines of 80 characters).
const SCREEN: Bytes = Bytes(24 * 80);
/// TPC-C (clause 5.2.5.7): the mean think time after a New-Order or a Payment, which most transactions are; it
/// is exponential.
const ORDERING: Duration = Duration::from_secs(12);

/// Our choice: the command that fetches a message (RFC 1939: RETR), in a packet of its own anyway.
const FETCH: Bytes = Bytes(32);
/// Our choice: half of all messages are text with headers of a few kilobytes.
const MAIL_MEDIAN: Bytes = Bytes(8_000);
/// Our choice: one message in forty, with attachments, has more than 400 KB. Its mean is then 59 KB.
const MAIL_SIGMA: f64 = 2.0;
/// Our choice: the mean time for which a message is read.
const MAIL_READING: Duration = Duration::from_secs(60);

impl Kind {
    /// The size of requests.
    pub const fn request(self) -> Law<Bytes> {
        match self {
            Kind::Http => Law::Constant(HTTP_REQUEST),
            Kind::Database => Law::Uniform { least: STATEMENT[0], most: STATEMENT[1] },
            Kind::Email => Law::Constant(FETCH),
        }
    }

    /// The size of responses.
    pub const fn response(self) -> Law<Bytes> {
        match self {
            Kind::Http => Law::Lognormal { median: HTTP_MEDIAN, sigma: HTTP_SIGMA },
            Kind::Database => Law::Exponential(SCREEN),
            Kind::Email => Law::Lognormal { median: MAIL_MEDIAN, sigma: MAIL_SIGMA },
        }
    }

    /// From a response to the next request.
    pub const fn think(self) -> Law<Duration> {
        match self {
            Kind::Http => Law::Exponential(HTTP_READING),
            Kind::Database => Law::Exponential(ORDERING),
            Kind::Email => Law::Exponential(MAIL_READING),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_sound() {
        for kind in [Kind::Http, Kind::Database, Kind::Email] {
            assert_eq!(kind.request().validate(), Ok(()));
            assert_eq!(kind.response().validate(), Ok(()));
            assert_eq!(kind.think().validate(), Ok(()));
        }
        // What the comments say of the numbers.
        assert_eq!(libm::round(libm::exp(8.37)) as u64, HTTP_MEDIAN.0);
        let mean = |median: Bytes, sigma: f64| median.0 as f64 * libm::exp(sigma * sigma / 2.0);
        assert!((mean(HTTP_MEDIAN, HTTP_SIGMA) - 11_000.0).abs() < 100.0);
        assert!((mean(MAIL_MEDIAN, MAIL_SIGMA) - 59_000.0).abs() < 200.0);
        let beyond = 0.5 * libm::erfc(libm::log(50.0) / MAIL_SIGMA / core::f64::consts::SQRT_2);
        assert!((beyond - 1.0 / 40.0).abs() < 0.001);
    }
}
