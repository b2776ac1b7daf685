//! An endpoint with a scripted peer, whose sequence numbers are relative to those of the endpoint.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_endpoint::{Config, Endpoint, Incoming, Outgoing, StateName};
use lasthop_proto::Ecn;
use lasthop_proto::tcp::{Flags, Profile, Segment, SeqNum, Settings, Timestamps};
use lasthop_wire::TcpHeader;

use crate::world::{address, secret};

/// The peer's initial sequence number; its stream wraps early.
pub(crate) const IRS: SeqNum = SeqNum(u32::MAX - 500);

pub(crate) const SYN: Flags = Flags::SYN;
pub(crate) const ACK: Flags = Flags::ACK;
pub(crate) const RST: Flags = Flags::RST;
pub(crate) const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);
pub(crate) const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// Plain settings: no timestamps, a window of 10,000 bytes, every segment acknowledged immediately.
pub(crate) fn config() -> Config {
    let settings = Settings {
        window: Bytes(10_000).into(),
        packet_size: Bytes(1040),
        ack_every: 1,
        quick_acks: 0,
        ..Profile::Rfc.settings()
    };
    Config { settings, nagle: false, ..Config::default() }
}

/// An endpoint and its scripted peer.
pub(crate) struct Peer {
    pub(crate) endpoint: Endpoint,
    pub(crate) now: Time,
    /// Initial sequence number of the endpoint, once it has one.
    pub(crate) iss: SeqNum,
    /// The peer's next sequence number, and the next that it expects, both relative to the initial ones.
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u32,
    /// Timestamps of the peer: its value, and whether it echoes the last one of the endpoint.
    pub(crate) timestamp: Option<u32>,
    pub(crate) last_timestamp: u32,
}

impl Peer {
    fn new(endpoint: Endpoint) -> Peer {
        let now = Time::from_nanos(1_000_000_000);
        Peer {
            endpoint,
            now,
            iss: SeqNum(0),
            seq: 0,
            ack: 0,
            window: 50_000,
            timestamp: None,
            last_timestamp: 0,
        }
    }

    pub(crate) fn listening(config: Config) -> Peer {
        Peer::new(Endpoint::listen(config, address(1, true), secret(1)))
    }

    pub(crate) fn connecting(config: Config) -> Peer {
        let (local, remote) = (address(1, true), address(2, true));
        let mut peer =
            Peer::new(Endpoint::connect(Time::from_nanos(1_000_000_000), config, local, remote, secret(1)));
        peer.expect_syn(SYN);
        peer
    }

    /// In ESTABLISHED after a passive open without options.
    pub(crate) fn established(config: Config) -> Peer {
        let mut peer = Peer::listening(config);
        peer.send(SYN, b"");
        peer.expect_syn(SYN_ACK);
        peer.send(ACK, b"");
        assert_eq!((peer.state(), peer.sent().len()), (StateName::Established, 0));
        peer
    }

    /// In any state, reached by the transitions of RFC 9293.
    pub(crate) fn in_state(state: StateName) -> Peer {
        let peer = match state {
            StateName::Closed => {
                let mut peer = Peer::established(config());
                peer.endpoint.abort(peer.now);
                peer
            }
            StateName::Listen => Peer::listening(config()),
            StateName::SynSent => Peer::connecting(config()),
            StateName::SynReceived => {
                let mut peer = Peer::listening(config());
                peer.send(SYN, b"");
                peer.expect_syn(SYN_ACK);
                peer
            }
            StateName::Established => Peer::established(config()),
            StateName::FinWait1 => {
                let mut peer = Peer::established(config());
                peer.endpoint.shutdown(peer.now);
                peer
            }
            StateName::FinWait2 => {
                let mut peer = Peer::in_state(StateName::FinWait1);
                peer.ack += 1;
                peer.send(ACK, b"");
                peer
            }
            StateName::CloseWait => {
                let mut peer = Peer::established(config());
                peer.send(FIN, b"");
                peer
            }
            StateName::Closing => {
                let mut peer = Peer::in_state(StateName::FinWait1);
                peer.send(FIN, b"");
                peer
            }
            StateName::LastAck => {
                let mut peer = Peer::in_state(StateName::CloseWait);
                peer.endpoint.shutdown(peer.now);
                peer
            }
            StateName::TimeWait => {
                let mut peer = Peer::in_state(StateName::FinWait2);
                peer.send(FIN, b"");
                peer
            }
        };
        let mut peer = peer;
        peer.sent();
        assert_eq!(peer.state(), state);
        peer
    }

    pub(crate) fn state(&self) -> StateName {
        self.endpoint.state()
    }

    /// A segment with the next sequence number.
    pub(crate) fn header(&self, flags: Flags) -> TcpHeader {
        let echo = self.last_timestamp;
        let segment = Segment {
            seq: IRS + self.seq,
            ack: if flags.has(ACK) { self.iss + self.ack } else { SeqNum(0) },
            wnd: self.window,
            flags,
            timestamps: self.timestamp.map(|value| Timestamps { value, echo }),
            ..Segment::default()
        };
        TcpHeader { src_port: 5002, dst_port: 5001, segment, ..TcpHeader::default() }
    }

    /// Delivers a segment as it is.
    pub(crate) fn deliver(&mut self, header: TcpHeader, payload: &[u8]) {
        self.deliver_marked(header, payload, Ecn::NotEct);
    }

    pub(crate) fn deliver_marked(&mut self, header: TcpHeader, payload: &[u8], ecn: Ecn) {
        let (local, remote) = (address(1, true), address(2, true));
        self.endpoint.receive(self.now, &Incoming { local, remote, ecn, header, payload });
    }

    /// Sends a segment, and counts what it occupies.
    pub(crate) fn send(&mut self, flags: Flags, payload: &[u8]) {
        self.deliver(self.header(flags), payload);
        self.seq += payload.len() as u32 + u32::from(flags.has(SYN)) + u32::from(flags.has(Flags::FIN));
    }

    /// Sends a segment `offset` bytes from the next sequence number, without counting it.
    pub(crate) fn send_at(&mut self, offset: i32, flags: Flags, payload: &[u8]) {
        let mut header = self.header(flags);
        header.segment.seq += offset as u32;
        self.deliver(header, payload);
    }

    /// Takes what the endpoint has sent.
    pub(crate) fn sent(&mut self) -> Vec<Outgoing> {
        let sent: Vec<Outgoing> = std::iter::from_fn(|| self.endpoint.poll()).collect();
        for packet in &sent {
            if let Some(stamps) = packet.header.segment.timestamps {
                self.last_timestamp = stamps.value;
            }
        }
        sent
    }

    /// Takes what the endpoint has sent as one segment.
    pub(crate) fn only(&mut self) -> Outgoing {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    /// Takes SYN or SYN-ACK and learns the initial sequence number.
    pub(crate) fn expect_syn(&mut self, flags: Flags) -> TcpHeader {
        let header = self.only().header;
        assert_eq!(header.segment.flags & SYN_ACK, flags);
        (self.iss, self.ack) = (header.segment.seq, 1);
        header
    }

    /// The segments that the endpoint has sent, as text: flags, sequence and acknowledgement number relative to the initial
    /// ones, and length.
    pub(crate) fn transcript(&mut self) -> String {
        let iss = self.iss;
        let sent = self.sent();
        let words = sent.iter().map(|packet| {
            let segment = packet.header.segment;
            let names = [(SYN, 'S'), (Flags::FIN, 'F'), (RST, 'R'), (ACK, 'A')];
            let flags: String =
                names.iter().filter(|(flag, _)| segment.flags.has(*flag)).map(|(_, name)| name).collect();
            let ack = if segment.flags.has(ACK) { segment.ack - IRS.0 } else { SeqNum(0) };
            format!("{flags} {} {} {}", (segment.seq - iss.0).0, ack.0, packet.payload.len())
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// Lets time pass, with the timers that expire.
    pub(crate) fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        while self.endpoint.next_wakeup() <= end {
            self.now = self.now.max(self.endpoint.next_wakeup());
            self.endpoint.wake(self.now);
        }
        self.now = end;
    }

    pub(crate) fn read(&mut self) -> Vec<u8> {
        let mut buffer = vec![0; 1 << 16];
        let len = self.endpoint.read(self.now, &mut buffer);
        buffer.truncate(len);
        buffer
    }
}
