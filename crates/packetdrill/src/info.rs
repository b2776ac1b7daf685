//! Linux `struct tcp_info`, with the fields that the endpoint has.

use lasthop_base::Duration;
use lasthop_endpoint::{Endpoint, StateName};
use lasthop_proto::tcp::LossStage;

/// Size of the struct up to `tcpi_snd_wnd`, the last field written.
const SIZE: usize = 248;

/// Index of a 32-bit field after the first eight bytes.
mod field {
    pub(super) const RTO: usize = 0;
    pub(super) const SND_MSS: usize = 2;
    pub(super) const UNACKED: usize = 4;
    pub(super) const SACKED: usize = 5;
    pub(super) const LOST: usize = 6;
    pub(super) const RTT: usize = 15;
    pub(super) const RTTVAR: usize = 16;
    pub(super) const SND_SSTHRESH: usize = 17;
    pub(super) const SND_CWND: usize = 18;
    pub(super) const ADVMSS: usize = 19;
    pub(super) const REORDERING: usize = 20;
    pub(super) const TOTAL_RETRANS: usize = 23;
}

/// The value of an unlimited `ssthresh` in Linux.
const INFINITE: u32 = 0x7fff_ffff;

fn state_number(state: StateName) -> u8 {
    match state {
        StateName::Established => 1,
        StateName::SynSent => 2,
        StateName::SynReceived => 3,
        StateName::FinWait1 => 4,
        StateName::FinWait2 => 5,
        StateName::TimeWait => 6,
        StateName::Closed => 7,
        StateName::CloseWait => 8,
        StateName::LastAck => 9,
        StateName::Listen => 10,
        StateName::Closing => 11,
    }
}

fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_nanos() / 1_000).unwrap_or(u32::MAX)
}

/// The fields of a connection; only the state before the handshake is complete. Windows are in segments, as
/// in Linux.
pub(crate) fn tcp_info(endpoint: &Endpoint, advertised_mss: u32) -> Vec<u8> {
    let mut info = vec![0; SIZE];
    info[0] = state_number(endpoint.state());
    let Some((sender, mss)) = endpoint.sender().zip(endpoint.mss()) else { return info };
    let report = sender.loss_report();
    info[1] = match report.stage {
        LossStage::Open => 0,
        LossStage::Disorder => 1,
        LossStage::Reduced => 2,
        LossStage::Recovery => 3,
        LossStage::Loss => 4,
    };
    let segments = |bytes: u32| bytes.div_ceil(mss);
    let whole = |bytes: f64| if bytes.is_finite() { (bytes / f64::from(mss)).round() } else { f64::INFINITY };
    let sacked = sender.reported().map(|block| segments(block.end - block.start)).sum();
    let ssthresh = whole(sender.ssthresh());
    let values = [
        (field::RTO, micros(sender.rtt().rto())),
        (field::SND_MSS, mss),
        (field::UNACKED, segments(sender.flight_size())),
        (field::SACKED, sacked),
        (field::LOST, report.lost),
        (field::REORDERING, report.reordering),
        (field::RTT, sender.rtt().srtt().map_or(0, micros)),
        (field::RTTVAR, micros(sender.rtt().rttvar())),
        (field::SND_SSTHRESH, if ssthresh < f64::from(INFINITE) { ssthresh as u32 } else { INFINITE }),
        (field::SND_CWND, (sender.cwnd() / f64::from(mss)).floor() as u32),
        (field::ADVMSS, advertised_mss),
        (field::TOTAL_RETRANS, sender.stats().retransmitted_segments as u32),
    ];
    for (index, value) in values {
        let at = 8 + 4 * index;
        info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    info
}
