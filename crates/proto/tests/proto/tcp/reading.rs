//! A slow application, and the window updates sent to the sender (RFC 9293 section 3.8.6.2.2).

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flags, Flavour, Settings};

use crate::tcp::dialogue::{Server, settings};

/// A receiver with a buffer of 4000 bytes that acknowledges each segment.
fn base() -> Settings {
    Settings { window: Bytes(4000).into(), ack_every: 1, ..settings(Flavour::NewReno, 4) }
}

/// A receiver whose application has paused, with `bytes` received.
fn holding(settings: &Settings, bytes: u32) -> Server {
    let mut tcp = Server::start(settings);
    tcp.receiver.pause();
    tcp.data(0..bytes).acks_with_window(bytes, settings.window_payload() - bytes);
    tcp
}

/// An unpaused application has read everything.
// Rule: With explicit reading, the window grows by at least a segment or half the buffer; until then the
// right edge is fixed. [9293 3.8.6.2.2; receiver.rs]
#[test]
fn data_are_read_at_once_by_default() {
    let mut tcp = Server::start(&base());
    tcp.data(0..1000).acks_with_window(1000, 4000).unread(0).reads(1000, 0).is_silent();
}

/// Only data received in order are read, and only once.
// Rule: as data_are_read_at_once_by_default
#[test]
fn data_are_read_once_and_in_order() {
    let mut tcp = holding(&base(), 900);
    tcp.unread(900).reads(400, 400).unread(500).reads(u64::MAX, 500).unread(0).reads(1, 0).is_silent();
    tcp.data(1900..2900).acks(900).unread(0).reads(5000, 0).is_silent();
    tcp.data(900..1900).acks_with_window(2900, 1100).unread(2000).delivered(2900);
}

/// A window update is sent immediately when the window can grow by a full segment, and not before: small steps
/// add up.
// Rule: as data_are_read_at_once_by_default
#[test]
fn growth_by_a_segment_triggers_a_window_update() {
    let mut tcp = holding(&base(), 3500);
    tcp.reads(999, 999).is_silent().reads(1, 1).acks_with_window(3500, 1500);
    tcp.reads(500, 500).is_silent().reads(700, 700).acks_with_window(3500, 2700);
    tcp.reads(5000, 1300).acks_with_window(3500, 4000);
}

/// Half of a small buffer also triggers an update.
// Rule: as data_are_read_at_once_by_default
#[test]
fn growth_by_half_the_buffer_triggers_a_window_update() {
    let mut tcp = holding(&Settings { window: Bytes(1401).into(), ..base() }, 1000);
    tcp.reads(699, 699).is_silent().reads(1, 1).acks_with_window(1000, 1101);
    let mut tcp = holding(&Settings { window: Bytes(1).into(), packet_size: Bytes(41), ..base() }, 1);
    tcp.reads(0, 0).is_silent().reads(1, 1).acks_with_window(1, 1).reads(1, 0).is_silent();
}

/// Until then the right edge does not move, in acknowledgements of arriving data as well.
// Rule: as data_are_read_at_once_by_default
#[test]
fn the_right_edge_does_not_move_by_small_steps() {
    let mut tcp = holding(&base(), 1000);
    tcp.reads(600, 600).is_silent().data(1000..1500).acks_with_window(1500, 2500).unread(900);
    tcp.data(1500..4000).acks_with_window(4000, 0).data(4000..4001).acks_with_window(4000, 0).unread(3400);
    tcp.reads(400, 400).acks_with_window(4000, 1000).data(4000..5000).acks_with_window(5000, 0);
    tcp.delivered(5000).unread(4000);
}

/// A window update acknowledges received data and replaces a delayed acknowledgement.
// Rule: as data_are_read_at_once_by_default
#[test]
fn a_window_update_replaces_a_delayed_ack() {
    let mut tcp = Server::start(&Settings { ack_every: 2, ..base() });
    tcp.receiver.pause();
    tcp.data(0..1000).is_silent().reads(1000, 1000).acks_with_window(1000, 4000).no_timer();
}

/// Resuming opens the window at once; an update is sent if the growth is sufficient.
// Rule: as data_are_read_at_once_by_default
#[test]
fn resuming_opens_the_window() {
    let mut tcp = holding(&base(), 1500);
    tcp.reads(700, 700).is_silent().resume().acks_with_window(1500, 4000).unread(0);
    tcp.data(1500..2500).acks_with_window(2500, 4000).unread(0);
    let mut tcp = holding(&base(), 900);
    tcp.reads(700, 700).resume().is_silent().data(900..1000).acks_with_window(1000, 4000);
    let mut tcp = Server::start(&Settings { ack_every: 2, ..base() });
    tcp.receiver.pause();
    tcp.data(0..1000).is_silent().resume().acks_with_window(1000, 4000);
}

/// The stream ends when FIN and all data before it have arrived (RFC 9293 section 3.10.7.4), read or not;
/// afterwards there are no window updates.
// Rule: The stream ends with FIN; no window updates follow. [9293 3.10.7.4; receiver.rs]
#[test]
fn the_stream_ends_with_fin() {
    let mut tcp = holding(&Settings { close: true, ..base() }, 1000);
    tcp.data_fin(2000..3000).acks(1000);
    assert!(!tcp.receiver.has_ended());
    let answer = tcp.data(1000..2000).answer();
    assert!(tcp.receiver.has_ended() && answer.flags.has(Flags::FIN));
    tcp.unread(3000).reads(2000, 2000).is_silent().unread(1000).reads(2000, 1000).is_silent().resume();
    tcp.is_silent().delivered(3000);
}

/// A FIN beyond the window is processed only with the data before it (RFC 9293 section 3.10.7.4).
// Rule: as the_stream_ends_with_fin
#[test]
fn a_fin_beyond_the_window_is_not_processed() {
    let mut tcp = holding(&base(), 3500);
    tcp.data_fin(3500..4500).acks_with_window(4000, 0);
    assert!(!tcp.receiver.has_ended());
    tcp.reads(1000, 1000).acks_with_window(4000, 1000).data_fin(4000..4500).acks(4501).unread(3500);
    assert!(tcp.receiver.has_ended());
}
