//! All subsets of losses over the first twelve data packets, or their acknowledgements, and all single losses
//! of a retransmission: the transfer completes and the invariants hold.

use std::collections::HashSet;

use lasthop_base::{Bytes, Time};
use lasthop_proto::tcp::{
    Congestion, Detection, Flavour, Hole, InitialWindow, Profile, Reaction, Response, SenderState, SeqNum,
    Settings,
};
use lasthop_proto::{Body, Component, Notice, NoticeCode, Out, Packet, Port};
use lasthop_testing::check;
use lasthop_testing::net::{Filter, LARGEST_CUT, by_order, nothing, segments, transfer, transfer_with};
use lasthop_testing::random::{ENDLESS_PATIENCE, FLAVOURS};

/// Every flavour under both rule sets, and variants of other settings.
fn variants() -> Vec<(String, Settings)> {
    let mut variants = Vec::new();
    for flavour in FLAVOURS {
        let rfc = Settings { flavour, ..Settings::default() };
        // Per-segment records do not exist in ns-2; the Linux profile is used instead.
        let by_records = flavour == Flavour::Prr;
        let ns2 = if by_records { Profile::Linux.settings() } else { Profile::Ns2.settings() };
        // Losses of the first packets may last longer than Linux waits.
        let ns2 = Settings { flavour, user_timeout: ENDLESS_PATIENCE, ..ns2 };
        let one_by_one = Settings {
            initial_window: InitialWindow::Segments(1),
            ack_every: 1,
            limited_transmit: false,
            handshake: false,
            close: false,
            ..rfc.clone()
        };
        let extras = Settings { timestamps: true, dsack: true, iss: u32::MAX - 5_000, ..rfc.clone() };
        let bursts = Settings { max_burst: 3, impatient: false, partial_deflation: false, ..rfc.clone() };
        let window = Bytes(10 * 1460);
        let free =
            Settings { congestion: Congestion::None, window: window.into(), ack_every: 1, ..rfc.clone() };
        for (name, settings) in [
            ("rfc", rfc),
            ("ns2", ns2),
            ("one by one", one_by_one),
            ("extras", extras),
            ("bursts", bursts),
            ("no control", free),
        ] {
            variants.push((format!("{flavour:?}, {name}"), settings));
        }
    }
    variants
}

// Rule: Any losses of the first twelve data packets or of their ACKs, any one of a retransmission: the stream
// arrives intact, windows are respected, the timer runs. []
#[test]
fn any_loss_of_the_first_twelve_data_packets() {
    for (name, settings) in variants() {
        for pattern in 0..1u32 << 12 {
            check(&format!("{name}, data lost {pattern:012b} (first on the right)"), || {
                let drops = transfer(&settings, segments(&settings, 20), by_order(pattern), nothing());
                assert_eq!(drops, u64::from(pattern.count_ones()), "a packet was lost twice or not at all");
            });
        }
    }
}

/// With per-segment records: every congestion control and loss detector, paced or not.
// Rule: The stream arrives intact under any loss of nine packets or ACKs, with every controller and detector,
// paced or not. []
#[test]
fn any_loss_of_the_first_nine_packets_under_every_control() {
    for (name, settings) in controls() {
        for pacing in [false, true] {
            let settings = Settings { pacing, ..settings.clone() };
            for pattern in 0..1u32 << 9 {
                check(&format!("{name}, paced: {pacing}, lost {pattern:09b}"), || {
                    transfer(&settings, segments(&settings, 30), by_order(pattern), nothing());
                    transfer(&settings, segments(&settings, 30), nothing(), by_order(pattern));
                });
            }
        }
    }
}

// Rule: as any_loss_of_the_first_twelve_data_packets
#[test]
fn any_loss_of_the_first_twelve_acknowledgements() {
    for (name, settings) in variants() {
        for pattern in 0..1u32 << 12 {
            check(&format!("{name}, acknowledgements lost {pattern:012b} (first on the right)"), || {
                transfer(&settings, segments(&settings, 20), nothing(), by_order(pattern));
            });
        }
    }
}

/// The Linux profile with every congestion control and loss detector.
fn controls() -> Vec<(String, Settings)> {
    let detections = [Detection::Rack, Detection::Sack];
    let pairs =
        Congestion::ALL.iter().copied().flat_map(|control| detections.map(|detection| (control, detection)));
    let settings = |(congestion, detection)| {
        let linux = Profile::Linux.settings();
        (format!("{congestion:?}, {detection:?}"), Settings { congestion, detection, ..linux })
    };
    pairs.map(settings).collect()
}

/// Loses one of the first twelve packets, and one of the retransmissions that follow.
// Rule: as any_loss_of_the_first_twelve_data_packets
#[test]
fn any_single_loss_of_a_retransmission() {
    for (name, settings) in variants().into_iter().chain(controls()) {
        for first in 0..12 {
            for again in 0..6 {
                check(&format!("{name}, packet {first} lost, and retransmission {again}"), || {
                    let (mut count, mut repeated, mut seen) = (0, 0, HashSet::new());
                    let loses = move |packet: &Packet| {
                        let new = seen.insert(packet.segment().expect("data").seq.0);
                        let lost = if new { count == first } else { repeated == again };
                        count += i32::from(new);
                        repeated += i32::from(!new);
                        lost
                    };
                    transfer(&settings, segments(&settings, 20), Box::new(loses), nothing());
                });
            }
        }
    }
}

/// Changes the segment size after every acknowledgement.
struct Nag;

const NAG: NoticeCode = NoticeCode { kind: 254, code: 0 };

impl Component for Nag {
    fn receive(&mut self, _now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        out.send(Port::ONLY, *packet);
        let notice = Notice { code: NAG, seq: SeqNum(0) };
        out.send(Port::ONLY, Packet { body: Body::Notice(notice), ..*packet });
    }
}

/// Cycles through segment sizes.
#[derive(Debug)]
struct Recut(usize);

impl Reaction for Recut {
    fn on_notice(&mut self, _now: Time, _notice: &Notice, sender: &mut SenderState) {
        const SIZES: [u32; 5] = [LARGEST_CUT, 536, 1000, 128, 700];
        self.0 += 1;
        sender.set_mss(SIZES[self.0 % SIZES.len()]);
    }
}

/// Retransmissions have other boundaries than the originals; the stream arrives intact.
// Rule: Retransmissions may be resegmented. [9293 3.8.6, 1122 4.2.2.15; state.rs]
#[test]
fn resegmentation_survives_any_loss_of_the_first_twelve() {
    for flavour in FLAVOURS {
        let settings =
            Settings { flavour, limited_transmit: false, ..Settings::default() }.with_mss(LARGEST_CUT);
        for pattern in 0..1u32 << 12 {
            check(&format!("{flavour:?}, cut anew, data lost {pattern:012b} (first on the right)"), || {
                let (acks, reaction) = (Box::new(Nag), Some(Box::new(Recut(0)) as Box<dyn Reaction>));
                transfer_with(&settings, segments(&settings, 12), by_order(pattern), acks, reaction);
            });
        }
    }
}

/// Cycles through classifications of losses, and changes the duplicate threshold each time.
#[derive(Debug)]
struct Fickle(usize);

impl Reaction for Fickle {
    fn dupthresh(&self, set: u32, _sender: &SenderState) -> u32 {
        set - (self.0 % 2) as u32
    }

    fn judge(&mut self, _now: Time, _hole: Hole, _sender: &mut SenderState) -> Response {
        const ANSWERS: [Response; 3] = [Response::Corruption, Response::Reduce(0.75), Response::Congestion];
        self.0 += 1;
        ANSWERS[self.0 % ANSWERS.len()]
    }
}

/// Losses are repaired and windows are respected for every classification.
// Rule: as reactions::corruption_leaves_the_window_unchanged
#[test]
fn losses_are_repaired_for_any_classification() {
    for (name, settings) in variants() {
        for pattern in 0..1u32 << 12 {
            check(&format!("{name}, judged, data lost {pattern:012b} (first on the right)"), || {
                let reaction = Some(Box::new(Fickle(pattern as usize)) as Box<dyn Reaction>);
                let acks = Box::new(Filter(nothing()));
                transfer_with(&settings, segments(&settings, 20), by_order(pattern), acks, reaction);
            });
        }
    }
}

/// A transfer across the end of the sequence space, with a loss on either side.
// Rule: as wrap::losses_around_the_wrap_are_repaired
#[test]
fn the_sequence_space_wraps() {
    for flavour in FLAVOURS {
        let settings = Settings { flavour, iss: u32::MAX - 20_000, ..Settings::default() };
        for lost in 10..20 {
            check(&format!("{flavour:?}, packet {lost} lost"), || {
                transfer(&settings, segments(&settings, 40), by_order(1 << lost), nothing());
            });
        }
    }
}
