//! The events that a congestion controller receives.

extern crate std;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::sync::{Arc, Mutex};

use lasthop_base::{Bytes, Duration, Time};

use super::SenderState;
use crate::component::Out;
use crate::packet::{SackBlock, Segment, SeqNum};
use crate::tcp::cc::{self, AckInfo, Congestion, Controller, Demand, Loss, Window};
use crate::tcp::delivery::RateSample;
use crate::tcp::reaction::{Evidence, Reactions};
use crate::tcp::recovery;
use crate::tcp::settings::{Flavour, IdleRestart, InitialWindow, Settings};
use crate::tcp::{Connection, Transfer};

/// Logs events, and leaves the window unchanged.
#[derive(Debug)]
struct Logger {
    window: Window,
    log: Arc<Mutex<Vec<String>>>,
}

impl Logger {
    fn record(&self, event: String) {
        self.log.lock().expect("one thread").push(event);
    }
}

impl Controller for Logger {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        self.record(format!("{ack:?}"));
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.record(format!("{loss:?}, {factor:?}"));
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.record(format!("timeout: {loss:?}, {factor:?}"));
    }

    fn on_recovered(&mut self, limit: u32) {
        self.record(format!("recovered: {limit}"));
    }

    fn on_idle(&mut self, rule: IdleRestart, timeouts: u32) {
        self.record(format!("idle: {rule:?} {timeouts}"));
    }

    fn on_sample(&mut self, sample: &RateSample) -> Demand {
        let RateSample { rtt, prior_in_flight, in_flight, newly_delivered, newly_lost, ack_delayed, .. } =
            *sample;
        self.record(format!(
            "{rtt:?}, {prior_in_flight} -> {in_flight}, {newly_delivered}, {newly_lost}, {ack_delayed}"
        ));
        Demand::Full
    }
}

fn at(milliseconds: u64) -> Time {
    Time::ZERO + Duration::from_millis(milliseconds)
}

#[test]
fn a_controller_receives_events() {
    let settings = Settings {
        packet_size: Bytes(1040),
        initial_window: InitialWindow::Segments(3),
        handshake: false,
        ..Settings::default()
    };
    let transfer = Transfer { bytes: None, start: Time::ZERO };
    let mut tcp = SenderState::new(Connection::default(), &settings, transfer, Reactions::default());
    let log = Arc::new(Mutex::new(Vec::new()));
    tcp.cc = cc::Chosen::Other(Box::new(Logger { window: Window::new(&settings), log: log.clone() }));
    let events = || core::mem::take(&mut *log.lock().expect("one thread"));
    let (mut out, wnd) = (Out::default(), settings.window_payload());

    tcp.send_window(at(0), 0, &mut out);
    let rtt = tcp.acknowledge(at(80), &Segment { ack: SeqNum(1000), ..Segment::default() });
    tcp.open_window(at(80), 1000, rtt);
    let ack = AckInfo { now: at(80), acked: 1000, una: SeqNum(1000), max: SeqNum(3000), undisturbed: true };
    assert_eq!(events(), [format!("{ack:?}")]);

    tcp.answer_loss(at(90), Evidence::Duplicates);
    let loss = Loss { now: at(90), flight: 2000, rwnd: wnd, again: false, max: SeqNum(3000) };
    tcp.leave_recovery();
    assert_eq!(events(), [format!("{loss:?}, None"), "recovered: 3000".into()]);

    for (now, flight, again) in [(1090, 2000, false), (3090, 0, true)] {
        tcp.time_out(at(now));
        let loss = Loss { now: at(now), flight, rwnd: wnd, again, max: SeqNum(3000) };
        assert_eq!(events(), [format!("timeout: {loss:?}, None")]);
    }

    tcp.acknowledge(at(4000), &Segment { ack: SeqNum(3000), ..Segment::default() });
    tcp.send_window(at(60_000), 0, &mut out);
    assert_eq!(events(), ["idle: InitialWindow 14"]);
}

/// A rate sample has the round-trip time of the last delivered segment, the data in flight before and after the
/// acknowledgement, and the segments delivered and lost.
#[test]
fn a_controller_receives_rate_samples() {
    let settings = Settings {
        packet_size: Bytes(1040),
        initial_window: InitialWindow::Segments(2),
        handshake: false,
        timestamps: false,
        flavour: Flavour::Prr,
        congestion: Congestion::Bbr,
        ..Settings::default()
    };
    let transfer = Transfer { bytes: None, start: Time::ZERO };
    let mut tcp = SenderState::new(Connection::default(), &settings, transfer, Reactions::default());
    let log = Arc::new(Mutex::new(Vec::new()));
    tcp.cc = cc::Chosen::Other(Box::new(Logger { window: Window::new(&settings), log: log.clone() }));
    let samples = || {
        let events = core::mem::take(&mut *log.lock().expect("one thread"));
        events.into_iter().filter(|event| event.contains("->")).collect::<Vec<_>>()
    };
    let mut recovery = recovery::of(&settings);
    let mut out = Out::default();
    recovery.send(&mut tcp, at(0), &mut out);
    tcp.window_mut().set_cwnd(8000.0);
    recovery.send(&mut tcp, at(20), &mut out);
    let ack = Segment { ack: SeqNum(3000), ..Segment::default() };
    recovery.on_ack(&mut tcp, at(100), &ack, 3000, &mut out);
    assert_eq!(samples(), [format!("{:?}, 8000 -> 5000, 3000, 0, false", Some(Duration::from_millis(80)))]);
    let block = SackBlock { start: SeqNum(4000), end: SeqNum(5000) };
    let mut ack = Segment { ack: SeqNum(3000), ..Segment::default() };
    ack.sack.push(block);
    recovery.on_duplicate(&mut tcp, at(110), &ack, &mut out);
    assert_eq!(samples(), [format!("{:?}, 5000 -> 4000, 1000, 0, false", Some(Duration::from_millis(90)))]);
}
