//! The end of recovery, and its undo.

use super::*;

#[test]
fn the_end_of_recovery_restores_the_window() {
    let mut flow = Flow::cruising();
    let cwnd = flow.bbr.window.cwnd;
    let loss = Loss { now: flow.now, flight: 0, rwnd: 0, again: false, max: SeqNum(0) };
    flow.bbr.on_timeout(&loss, None);
    flow.bbr.window.cwnd = MSS;
    let sample = RateSample { in_loss: true, ..flow.sample(RATE / 100.0, 1000.0) };
    flow.feed(&sample);
    assert_close(flow.bbr.window.cwnd, 4.0 * MSS);
    flow.round(RATE / 100.0, 4000.0);
    assert!(flow.bbr.window.cwnd >= cwnd);
}

#[test]
fn spurious_losses_are_undone() {
    let mut flow = Flow::cruising();
    flow.round(RATE / 2.0, BDP);
    flow.recover();
    flow.lose(1000, BDP);
    let before = flow.bbr.window;
    flow.round(RATE / 2.0, BDP);
    assert_close(flow.bbr.bandwidth, 0.7 * RATE);
    flow.bbr.on_undo(&before);
    flow.round(RATE / 2.0, BDP);
    assert_close(flow.bbr.bandwidth, RATE);
    assert_close(flow.bbr.window.cwnd, before.cwnd);
}

#[test]
fn a_probe_ended_by_a_spurious_loss_is_restarted() {
    let mut flow = bounded();
    let before = flow.bbr.window;
    flow.bbr.on_undo(&before);
    assert_eq!(flow.bbr.state, State::Refill);
    assert!(flow.longterm().is_infinite());
    let mut flow = Flow::new();
    lossy_startup(&mut flow, 6, 2.9e5);
    flow.bbr.on_undo(&before);
    assert_eq!(flow.bbr.state, State::Startup);
    assert_eq!(flow.round(RATE, BDP), State::Startup);
}
