//! DCTCP (RFC 8257), as in Linux: the window shrinks by half the share of packets that were marked.
//!
//! The feedback is that of accurate ECN (RFC 9768), as in Linux with `tcp_ecn` 3, not the state machine of RFC 8257 section 3.2.
//! With a peer that has none, or only classic ECN, it is Reno. Packets have ECT(0), as in Linux, so that a queue for L4S takes them
//! for classic ones.
//!
//! The average of the share of marks has ten bits, as in Linux, and is deaf at its low end. Below 16/1024 each round forgets it, so that
//! it grows again only when a quarter of a round's packets is marked. And a window of less than 2048/alpha segments does not shrink.
//! Where few packets are marked, by chance, the window then stays until many are.

use super::marked_share::{Average, MarkedShare};
use super::reno::Reno;
use super::{AckInfo, Chosen, Control, Controller, Feedback, Loss, Window};
use crate::tcp::ecn::EcnMode;
use crate::tcp::settings::Settings;

pub(super) const CONTROL: Control = Control {
    needs_ecn: EcnMode::Accurate,
    answers_loss_after_mark: true,
    ..Control::new(
        "dctcp",
        "DCTCP",
        "DCTCP, for data centres: a window that shrinks by half the share of marked packets (RFC 8257, with accurate ECN, as in Linux)",
        |settings, _| Chosen::other(Dctcp::new(settings)),
    )
};

/// The average share of marked packets, in 1/1024 (`dctcp_update_alpha` of Linux).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alpha(u32);

impl Alpha {
    const ONE: Alpha = Alpha(1024);

    /// Half of this share of a window, in segments.
    fn half_of(self, segments: u32) -> u32 {
        (u64::from(segments) * u64::from(self.0) / 2048) as u32
    }
}

impl Average for Alpha {
    fn add(&mut self, marked: u32, delivered: u32) {
        // Less than 1/16 would take nothing from a small number, and Linux takes all of it.
        let decay = if self.0 < 16 { self.0 } else { self.0 / 16 };
        let round = u64::from(marked) * 64 / u64::from(delivered.max(1));
        self.0 = (u64::from(self.0 - decay) + round).min(u64::from(Self::ONE.0)) as u32;
    }
}

/// Reno whose response to marks depends on how many there are.
#[derive(Clone, Debug)]
struct Dctcp {
    reno: Reno,
    /// The share of marked packets; `None` without accurate feedback.
    share: Option<MarkedShare<Alpha>>,
}

impl Dctcp {
    fn new(settings: &Settings) -> Dctcp {
        Dctcp { reno: Reno::new(settings), share: None }
    }
}

impl Controller for Dctcp {
    fn window(&self) -> &Window {
        self.reno.window()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.reno.window_mut()
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        self.reno.on_ack(ack);
    }

    fn on_feedback(&mut self, feedback: &Feedback) {
        // RFC 8257 section 4.2: alpha begins with 1.
        self.share
            .get_or_insert_with(|| MarkedShare::new(Alpha::ONE, feedback.max))
            .on_feedback(feedback, true);
    }

    fn on_mark(&mut self, loss: &Loss, factor: Option<f64>) {
        let (Some(share), None) = (self.share, factor) else { return self.reno.on_loss(loss, factor) };
        let window = &mut self.reno.window;
        let segments = (f64::from(loss.flight) / window.mss()) as u32;
        window.reset();
        window.set_ssthresh(segments - share.alpha().half_of(segments));
        window.set_cwnd(window.ssthresh());
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.reno.on_loss(loss, factor);
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.reno.on_timeout(loss, factor);
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::Time;

    use super::*;
    use crate::packet::SeqNum;
    use crate::tcp::settings::Profile;

    const MSS: u32 = 1460;

    fn loss(cwnd: f64) -> Loss {
        Loss { now: Time::ZERO, flight: cwnd as u32, rwnd: u32::MAX, again: false, max: SeqNum(0) }
    }

    /// The values of Linux's integers after each round, and the window that a mark leaves of 64 segments: by a sixteenth of the
    /// distance, rounded down, to the share of marks in 1/1024 (RFC 8257 equation 1).
    #[test]
    fn the_window_shrinks_by_half_the_share() {
        let mut control = Dctcp::new(&Profile::Linux.settings());
        let first =
            Feedback { now: Time::ZERO, delivered: 0, marked: 0, una: SeqNum(0), max: SeqNum(64 * MSS) };
        control.on_feedback(&first);
        let rounds = [(0, 960), (0, 900), (0, 844), (64, 856), (64, 867), (16, 829), (0, 778)];
        for (round, (marked, expected)) in rounds.into_iter().enumerate() {
            let una = SeqNum(64 * MSS * (1 + round as u32));
            control.on_feedback(&Feedback { delivered: 64, marked, una, max: una + 64 * MSS, ..first });
            let share = control.share.expect("there was feedback");
            assert_eq!(share.alpha(), Alpha(expected));
            let mut other = control.clone();
            other.reno.window.set_cwnd(64);
            other.on_mark(&loss(64.0 * f64::from(MSS)), None);
            assert_eq!(other.reno.window.cwnd(), 64 - expected / 32);
        }
    }

    /// Below 16/1024 a round forgets all earlier ones: a fifth of marks, round after round, leaves the average where it is, more than a
    /// quarter does not. A window of 74 segments then does not shrink, as was seen of Linux 7.3.
    #[test]
    fn few_marks_are_not_heard_at_the_low_end() {
        let after = |marked: u32| {
            let mut alpha = Alpha(15);
            (0..200).for_each(|_| alpha.add(marked, 100));
            alpha
        };
        assert_eq!([0, 1, 2, 20, 24].map(after), [0, 0, 1, 12, 15].map(Alpha));
        assert_eq!(after(20).half_of(74), 0);
        // The share of a round is rounded down to 16/64.
        assert_eq!(after(26), Alpha(256));
    }

    /// Without accurate feedback, and for a loss, it is Reno.
    #[test]
    fn without_feedback_it_is_reno() {
        let mut control = Dctcp::new(&Profile::Linux.settings());
        control.reno.window.set_cwnd(64);
        control.on_mark(&loss(64.0 * f64::from(MSS)), None);
        assert_eq!(control.reno.window.cwnd(), 32);
        control.on_feedback(&Feedback {
            now: Time::ZERO,
            delivered: 64,
            marked: 0,
            una: SeqNum(0),
            max: SeqNum(0),
        });
        control.on_loss(&loss(32.0 * f64::from(MSS)), None);
        assert_eq!(control.reno.window.cwnd(), 16);
    }
}
