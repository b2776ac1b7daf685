//! A tap that records a run in the format of `trace.tcl`.

use std::collections::BTreeMap;

use lasthop_base::Time;
use lasthop_proto::tcp::{SeqNum, Settings};
use lasthop_proto::{ComponentId, DropReason, Packet, Signal};
use lasthop_sim::{Node, Tap, Wire, WireId};

use crate::ns2::trace::Row;

/// Converts our byte numbers to those of ns-2: segments from 0, SYN included.
#[derive(Clone, Copy)]
pub(crate) struct Numbering {
    iss: SeqNum,
    mss: i64,
    handshake: bool,
}

impl Numbering {
    pub(crate) fn new(settings: &Settings) -> Numbering {
        let mss = i64::from(settings.mss());
        Numbering { iss: SeqNum(settings.iss), mss, handshake: settings.handshake }
    }

    fn number(&self, seq: SeqNum) -> i64 {
        let offset = i64::from(seq - self.iss);
        if !self.handshake {
            offset / self.mss
        } else if offset == 0 {
            0
        } else {
            1 + (offset - 1) / self.mss
        }
    }

    /// The number of the segment in `packet`.
    pub(crate) fn segment(&self, packet: &Packet) -> i64 {
        self.number(packet.segment().expect("a TCP segment").seq)
    }

    /// The number of the last segment that `packet` acknowledges.
    fn acknowledged(&self, packet: &Packet) -> i64 {
        self.number(packet.segment().expect("a TCP segment").ack) - 1
    }
}

/// The observation points of the recorder.
pub(crate) struct Places {
    pub(crate) sender: ComponentId,
    pub(crate) data_queue: ComponentId,
    pub(crate) data_filter: ComponentId,
    pub(crate) ack_filter: ComponentId,
    pub(crate) sent: WireId,
    pub(crate) delivered: WireId,
    pub(crate) ack_sent: WireId,
    pub(crate) ack_arrived: WireId,
}

pub(crate) struct Recorder {
    places: Places,
    numbering: Numbering,
    rows: Vec<Row>,
    times_sent: BTreeMap<i64, i64>,
    times_on_air: BTreeMap<i64, i64>,
    acks_on_air: i64,
    timeouts: u64,
    /// The sender's state, written once all events of this instant are handled.
    pending: Option<Row>,
    written: Option<Row>,
}

impl Recorder {
    pub(crate) fn new(places: Places, numbering: Numbering) -> Recorder {
        Recorder {
            places,
            numbering,
            rows: Vec::new(),
            times_sent: BTreeMap::new(),
            times_on_air: BTreeMap::new(),
            acks_on_air: 0,
            timeouts: 0,
            pending: None,
            written: None,
        }
    }

    pub(crate) fn into_rows(mut self) -> Vec<Row> {
        self.flush();
        self.rows
    }

    fn flush(&mut self) {
        let Some(row) = self.pending.take() else { return };
        let same = |old: &Row| old.state == row.state && old.cwnd == row.cwnd;
        if !self.written.as_ref().is_some_and(same) {
            self.written = Some(row.clone());
            self.rows.push(row);
        }
    }

    /// Writes pending state of an earlier instant.
    fn pass(&mut self, now: Time) {
        if self.pending.as_ref().is_some_and(|row| row.t < now.as_secs_f64()) {
            self.flush();
        }
    }

    fn count_on_air(&mut self, packet: &Packet) -> (i64, i64) {
        let seq = self.numbering.segment(packet);
        let k = self.times_on_air.entry(seq).or_default();
        *k += 1;
        (seq, *k)
    }
}

impl Tap for Recorder {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        self.pass(now);
        let (t, size) = (now.as_secs_f64(), packet.size.0 as i64);
        if wire.id == self.places.sent {
            let seq = self.numbering.segment(packet);
            let k = self.times_sent.entry(seq).or_default();
            *k += 1;
            let k = *k;
            self.rows.push(Row::packet(t, "snd", seq, Some(k), size));
        } else if wire.id == self.places.delivered {
            let (seq, k) = self.count_on_air(packet);
            self.rows.push(Row::packet(t, "rcv", seq, Some(k), size));
        } else if wire.id == self.places.ack_sent {
            let ack = self.numbering.acknowledged(packet);
            self.rows.push(Row::packet(t, "asn", ack, None, size));
        } else if wire.id == self.places.ack_arrived {
            let ack = self.numbering.acknowledged(packet);
            self.rows.push(Row::packet(t, "ack", ack, None, size));
        }
        let on_air_back = wire.to.0 == self.places.ack_filter;
        self.acks_on_air += i64::from(on_air_back);
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, _reason: DropReason) {
        self.pass(now);
        let (t, size) = (now.as_secs_f64(), packet.size.0 as i64);
        if at == self.places.data_queue {
            self.rows.push(Row::packet(t, "qdr", self.numbering.segment(packet), None, size));
        } else if at == self.places.data_filter {
            let (seq, k) = self.count_on_air(packet);
            self.rows.push(Row::packet(t, "drp", seq, Some(k), size));
        } else {
            let ack = self.numbering.acknowledged(packet);
            self.rows.push(Row::packet(t, "adr", ack, Some(self.acks_on_air - 1), size));
        }
    }

    fn signal(&mut self, now: Time, _from: ComponentId, signal: &Signal) {
        if *signal == Signal::Finished {
            self.rows.push(Row::bare(now.as_secs_f64(), "end"));
        }
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        let Node::Sender(sender) = component else { return };
        if id != self.places.sender || sender.stats().segments_sent == 0 {
            return;
        }
        let timeouts = sender.stats().timeouts;
        if timeouts > self.timeouts {
            self.pass(now);
            self.rows.push(Row::bare(now.as_secs_f64(), "rto"));
        }
        self.timeouts = timeouts;
        let mss = self.numbering.mss as f64;
        let ticks = sender.rtt().ticks().expect("ns-2 counts ticks");
        let state = [
            (sender.ssthresh() / mss) as i64,
            i64::from(sender.dupacks()),
            ticks.rtt as i64,
            ticks.srtt as i64,
            ticks.rttvar as i64,
            i64::from(sender.rtt().backoff()),
        ];
        self.pending = Some(Row::state(now.as_secs_f64(), sender.cwnd() / mss, state));
    }
}
