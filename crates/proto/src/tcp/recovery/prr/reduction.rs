//! Proportional rate reduction (RFC 6937, with its slow-start reduction bound).

/// The number of segments that may be sent during recovery. All counts are in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reduction {
    /// The window at the detection of the loss (RecoverFS).
    prior_cwnd: u32,
    /// The window to come to.
    ssthresh: u32,
    /// Delivered since.
    delivered: u32,
    /// Sent since.
    out: u32,
    /// Whether what was delivered and not sent for counts, too, while acknowledgements reveal losses.
    banks: bool,
}

impl Reduction {
    pub(super) fn new(prior_cwnd: u32, ssthresh: u32, banks: bool) -> Reduction {
        Reduction { prior_cwnd, ssthresh, delivered: 0, out: 0, banks }
    }

    /// The window to come to.
    pub(super) fn target(&self) -> u32 {
        self.ssthresh
    }

    /// Lowers the target to at most `segments`.
    pub(super) fn lower_target(&mut self, segments: u32) {
        self.ssthresh = self.ssthresh.min(segments.max(1));
    }

    /// Records the transmission of a segment, new or retransmitted.
    pub(super) fn on_sent(&mut self) {
        self.out += 1;
    }

    /// Records an acknowledgement: `delivered` segments left the network, `in_flight` remain; `advances` if
    /// it advances the left edge without revealing another loss. Returns the number of segments that may be
    /// sent now.
    pub(super) fn on_delivered(&mut self, delivered: u32, in_flight: u32, advances: bool) -> u32 {
        self.delivered += delivered;
        let allowed = if in_flight > self.ssthresh {
            // In proportion to the segments delivered.
            let share = u64::from(self.ssthresh) * u64::from(self.delivered);
            let share = share.div_ceil(u64::from(self.prior_cwnd.max(1))) as u32;
            share.saturating_sub(self.out)
        } else {
            // Slow start up to the threshold while acknowledgements reveal no further loss.
            let banked = if self.banks || advances { self.delivered.saturating_sub(self.out) } else { 0 };
            let slow_start = banked.max(delivered) + u32::from(advances);
            slow_start.min(self.ssthresh - in_flight)
        };
        // The first retransmission is always allowed.
        allowed.max(u32::from(self.out == 0))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Processes one acknowledgement: sends the allowed number of segments, and returns it.
    fn ack(reduction: &mut Reduction, in_flight: &mut u32, lost: u32, advances: bool) -> u32 {
        *in_flight -= 1 + lost;
        let allowed = reduction.on_delivered(1, *in_flight, advances);
        (0..allowed).for_each(|_| reduction.on_sent());
        *in_flight += allowed;
        allowed
    }

    /// RFC 6937 section 4, first figure: 20 segments, the first lost, a target of half the window. Every
    /// other acknowledgement releases a segment.
    #[test]
    fn the_rfcs_example_of_a_single_loss() {
        let mut reduction = Reduction::new(20, 10, true);
        // The third duplicate starts recovery; limited transmit has replaced the first two delivered
        // segments.
        let mut in_flight = 20;
        let sent: Vec<u32> =
            (0..16).map(|n| ack(&mut reduction, &mut in_flight, u32::from(n == 0), false)).collect();
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(in_flight, 11);
    }

    /// RFC 6937 section 4, second figure: 15 of 20 segments are lost and few acknowledgements arrive: each
    /// releases two segments, without a burst, up to the threshold.
    #[test]
    fn the_rfcs_example_of_a_burst_of_losses() {
        let mut reduction = Reduction::new(20, 10, true);
        let mut in_flight = 4;
        assert_eq!(reduction.on_delivered(1, in_flight, false), 1);
        reduction.on_sent();
        in_flight += 1;
        let sent: Vec<u32> = (0..4).map(|_| ack(&mut reduction, &mut in_flight, 0, true)).collect();
        assert_eq!(sent, [2, 2, 2, 2]);
        assert_eq!(in_flight, 9);
    }

    /// What four acknowledgements delivered while the sender could send nothing leaves with the next one, in Linux 5.15 only if that one
    /// advances and reveals no loss.
    #[test]
    fn deliveries_are_banked_since_linux_5_19() {
        for (banks, advances, allowed) in
            [(true, false, 4), (true, true, 5), (false, false, 1), (false, true, 5)]
        {
            let mut reduction = Reduction::new(20, 10, banks);
            (0..4).for_each(|_| _ = reduction.on_delivered(1, 4, advances));
            reduction.on_sent();
            assert_eq!(reduction.on_delivered(1, 4, advances), allowed, "{banks} {advances}");
        }
    }

    #[test]
    fn the_first_retransmission_is_sent_regardless_of_the_flight() {
        assert_eq!(Reduction::new(100, 50, true).on_delivered(0, 99, false), 1);
    }
}
