//! DCTCP (RFC 8257), as in Linux: the window shrinks by half the share of packets that were marked.
//!
//! The feedback is that of accurate ECN (RFC 9768), as in Linux with `tcp_ecn` 3, not the state machine of RFC 8257 section 3.2.
//! With a peer that has none, or only classic ECN, it is Reno. The share is a floating-point number, where Linux has ten bits.
//! Packets have ECT(0), as in Linux, so that a queue for L4S takes them for classic ones.

use super::marked_share::MarkedShare;
use super::reno::Reno;
use super::{AckInfo, Chosen, Control, Controller, Feedback, Loss, Window};
use crate::tcp::ecn::EcnMode;
use crate::tcp::settings::Settings;

pub(super) const CONTROL: Control = Control {
    needs_ecn: EcnMode::Accurate,
    ..Control::new(
        "dctcp",
        "DCTCP",
        "DCTCP, for data centres: a window that shrinks by half the share of marked packets (RFC 8257, with accurate ECN, as in Linux)",
        |settings, _| Chosen::other(Dctcp::new(settings)),
    )
};

/// Reno whose response to marks depends on how many there are.
#[derive(Clone, Debug)]
struct Dctcp {
    reno: Reno,
    /// The share of marked packets; `None` without accurate feedback.
    share: Option<MarkedShare>,
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
        self.share.get_or_insert_with(|| MarkedShare::new(1.0, feedback.max)).on_feedback(feedback, true);
    }

    fn on_mark(&mut self, loss: &Loss, factor: Option<f64>) {
        let (Some(share), None) = (self.share, factor) else { return self.reno.on_loss(loss, factor) };
        let window = &mut self.reno.window;
        let segments = (f64::from(loss.flight) / window.mss()) as u32;
        let reduction = (f64::from(segments) * share.alpha() / 2.0) as u32;
        window.reset();
        window.set_ssthresh(segments - reduction);
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

    /// With every packet marked the share approaches 1, and without marks 0, by a sixteenth of the distance in each round (RFC 8257
    /// equation 1). A window of 64 segments shrinks by half the share.
    #[test]
    fn the_window_shrinks_by_half_the_share() {
        let mut control = Dctcp::new(&Profile::Linux.settings());
        let first =
            Feedback { now: Time::ZERO, delivered: 0, marked: 0, una: SeqNum(0), max: SeqNum(64 * MSS) };
        control.on_feedback(&first);
        let mut expected = 1.0;
        for (round, marked) in [0, 0, 0, 0, 64, 64, 16, 0].into_iter().enumerate() {
            let una = SeqNum(64 * MSS * (1 + round as u32));
            control.on_feedback(&Feedback { delivered: 64, marked, una, max: una + 64 * MSS, ..first });
            expected += (f64::from(marked) / 64.0 - expected) / 16.0;
            let share = control.share.expect("there was feedback");
            assert!((share.alpha() - expected).abs() < 1e-12);
            let mut other = control.clone();
            other.reno.window.set_cwnd(64);
            other.on_mark(&loss(64.0 * f64::from(MSS)), None);
            assert_eq!(other.reno.window.cwnd(), 64 - (32.0 * expected) as u32);
        }
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
