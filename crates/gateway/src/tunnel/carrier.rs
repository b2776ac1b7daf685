//! The loop of a tunnel.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lasthop_base::{Duration, Time};
use lasthop_proto::Dscp;
use lasthop_tun::Tun;
use lasthop_tunnel::{Counters, Ends, Event, Help, Key, Settings, Tos, Tunnel};
use lasthop_wire::offload::Segments;
use lasthop_wire::virtio::Offload;
use lasthop_wire::{IpPacket, checksum, offload};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::classes::{self, Classes, Entry};
use super::doubt::{Cause, Doubt};
use super::keeper::{Keeper, Wanted};
use super::ports::{Handed, Ports};
use super::{Board, Status, random};
use crate::arms::Arms;
use crate::config::{Config, SchemeName, TunnelScheme};
use crate::kernel::datagrams::{Datagrams, Received};
use crate::kernel::heartbeat::{BY_TUNNEL, Heartbeat};
use crate::kernel::tunnel_routes::TunnelRoutes;
use crate::kernel::{Marks, links};
use crate::log;
use crate::observe;

/// How often the status is written, and after what time something is tried again.
const TICK: Duration = Duration::from_millis(200);
const AGAIN: Duration = Duration::from_secs(1);

/// Packets, or datagrams, that are handled before the other descriptor is polled.
const BATCH: usize = 256;

/// The longest packet of IP, which has a header of IPv6 beyond its length.
const LONGEST: usize = (1 << 16) + 40;

const OTHER_KEY: &str = "datagrams that fail authentication: is the key the same at both ends?";

/// The monotonic clock.
fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

/// The tunnel, and what it needs to be made anew.
pub(super) struct Carrier {
    config: Config,
    key: Key,
    routes: TunnelRoutes,
    evidence: observe::Shared,
    board: Board,
    keeper: Keeper,
    classes: Classes,
    /// Whether the other end finds this one, which then answers from the address that it has asked.
    answers: bool,
    tunnel: Tunnel,
    ports: Ports,
    /// The number of the interface.
    index: u32,
    buffer: Vec<u8>,
    /// A packet of a super-packet.
    segment: Vec<u8>,
    written: Time,
    doubt: Doubt,
    heartbeat: Heartbeat<UdpSocket>,
    /// What ends before this one have counted.
    former: Counters,
}

impl Carrier {
    pub(super) fn open(
        config: &Config,
        key: Key,
        routes: TunnelRoutes,
        evidence: observe::Shared,
        board: Board,
    ) -> io::Result<Carrier> {
        let settings = config.tunnel.clone().ok_or_else(|| io::Error::other("the file has no tunnel"))?;
        let tun = Tun::open(&settings.interface)?;
        let marks = Marks::new(config.gateway.mark_bit);
        let datagrams = Datagrams::open(settings.port, marks.of_tunnel()).map_err(|error| {
            io::Error::new(error.kind(), format!("tunnel.port {}: {error}", settings.port))
        })?;
        let tunnel = new_tunnel(config, &key)?;
        let mtu = tunnel.mtu() as u16;
        let index = links::set_up_tunnel(&settings.interface, mtu)?;
        routes.install()?;
        Ok(Carrier {
            classes: Classes::new(config, Arms::new(&key)),
            answers: settings.peer.is_none(),
            tunnel,
            keeper: Keeper::start(&settings.interface, routes.clone())?,
            ports: Ports::new(tun, datagrams, mtu, settings.rate),
            config: config.clone(),
            key,
            routes,
            evidence,
            board,
            index,
            buffer: vec![0; LONGEST],
            segment: Vec::new(),
            written: Time::ZERO,
            heartbeat: Heartbeat::new(marks, BY_TUNNEL, Instant::now())?,
            doubt: Doubt::new(now(), settings.patience, settings.peer.is_some()),
            former: Counters::default(),
        })
    }

    /// Works until it is told to end. If something fails, packets take other routes until it works again.
    pub(super) fn run(&mut self, bell: &OwnedFd, must_end: &AtomicBool) {
        let mut has_failed = false;
        while !must_end.load(Ordering::Relaxed) {
            let outcome = if has_failed { self.mend() } else { self.turn(bell) };
            match outcome {
                Ok(()) => has_failed = false,
                Err(error) => {
                    if !std::mem::replace(&mut has_failed, true) {
                        let meaning = "packets take other routes until this works; it is tried every second";
                        log::event(
                            "tunnel has failed",
                            json!({"error": error.to_string(), "meaning": meaning}),
                        );
                    }
                    self.ports.flush(now());
                    // Some may lead into it, and nobody takes packets out of it.
                    self.keeper.pause();
                    let _ = self.routes.lead(self.index, false);
                    let _ = poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&timespec(AGAIN)));
                }
            }
        }
        self.tunnel.close(now(), &mut self.ports);
        self.ports.flush(now());
        self.keeper.pause();
        let _ = self.routes.lead(self.index, false);
        let _ = self.routes.remove();
    }

    /// Makes the interface anew, which has gone.
    fn mend(&mut self) -> io::Result<()> {
        let name = self.config.tunnel.iter().map(|tunnel| &*tunnel.interface).next().unwrap_or_default();
        if nix::net::if_::if_nametoindex(name).is_err() {
            self.ports.replace(Tun::open(name)?);
        }
        self.index = links::set_up_tunnel(name, self.ports.mtu)?;
        self.routes.install()
    }

    fn turn(&mut self, bell: &OwnedFd) -> io::Result<()> {
        let at = now();
        let until = self.tunnel.next_wakeup().min(self.written + TICK).max(at);
        let wait = timespec(until.since(at));
        let [tun, datagrams] = self.ports.descriptors();
        let mut ready = [tun, datagrams, bell.as_fd()]
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        match poll(&mut ready, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [has_packets, has_datagrams] = [&ready[0], &ready[1]].map(|each| !each.revents().is_empty());
        if has_datagrams {
            self.receive()?;
        }
        if has_packets {
            self.send()?;
        }
        let at = now();
        if self.tunnel.next_wakeup() <= at {
            self.tunnel.wake(at, &mut self.ports);
        }
        self.ports.flush(at);
        if let Some(size) = self.ports.oversized.take() {
            self.tunnel.refuse_size(at, size);
        }
        self.tell_events();
        self.follow();
        if at >= self.written + TICK {
            self.tick(at)?;
        }
        Ok(())
    }

    /// Takes the datagrams that have arrived.
    fn receive(&mut self) -> io::Result<()> {
        let mut count = 0;
        while count < BATCH {
            match self.ports.receive_datagrams(&mut self.buffer) {
                Ok(Some(Received { len, size, ends, tos })) => {
                    // Routes choose the address of an end that knows the other one: it may move.
                    let local = ends.local.filter(|_| self.answers);
                    let (at, outer) = (now(), (Ends { local, ..ends }, tos.ecn));
                    let empty = (len == 0).then(<&mut [u8]>::default);
                    for datagram in self.buffer[..len].chunks_mut(size).chain(empty) {
                        self.tunnel.receive(at, datagram, outer, &mut self.ports);
                    }
                    count += len.div_ceil(size).max(1);
                }
                Ok(None) => break,
                Err(error) => match error.kind() {
                    // A router, or the other host, had an error for what was sent.
                    ErrorKind::ConnectionRefused
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable => count += 1,
                    ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Takes the packets that enter.
    fn send(&mut self) -> io::Result<()> {
        let mut count = 0;
        while count < BATCH {
            let Some((len, offload)) = self.ports.receive_packet(&mut self.buffer)? else { break };
            let mut buffer = std::mem::take(&mut self.buffer);
            count += self.enter_all(&mut buffer[..len], offload);
            self.buffer = buffer;
        }
        Ok(())
    }

    /// Lets a packet enter, or the segments of a super-packet; returns how many.
    fn enter_all(&mut self, packet: &mut [u8], offload: Offload) -> usize {
        let at = now();
        if self.tunnel.peer().is_some_and(|peer| classes::is_for(packet, peer)) {
            let count = cut(packet, offload).map_or(1, Iterator::count);
            self.ports.handed.looped += count as u64;
            return count;
        }
        if offload.segments.is_some() {
            let Some(mut segments) = cut(packet, offload) else {
                self.ports.handed.malformed += 1;
                return 1;
            };
            self.ports.handed.cut += 1;
            let (mut segment, mut count) = (std::mem::take(&mut self.segment), 0);
            let mut known = None;
            while segments.write_next(&mut segment) {
                // All are of one flow.
                let entry = match known {
                    Some((len, entry)) if len == segment.len() => entry,
                    _ => self.classes.of(&segment, self.tunnel.unhelped()),
                };
                known = Some((segment.len(), entry));
                self.enter(at, &segment, entry);
                count += 1;
            }
            self.segment = segment;
            return count;
        }
        if let Some((start, field)) = offload.checksum {
            // The kernel has checked the places that it describes.
            let _ = checksum::complete(packet, start, field);
        }
        self.ports.clamp(packet);
        let entry = self.classes.of(packet, self.tunnel.unhelped());
        self.enter(at, packet, entry);
        1
    }

    fn enter(&mut self, at: Time, packet: &[u8], Entry { class, copies_dscp }: Entry) {
        let tos = Tos::of(packet);
        let dscp = if copies_dscp { tos.dscp } else { Dscp::DEFAULT };
        self.tunnel.send(at, class, Tos { dscp, ..tos }, packet, &mut self.ports);
    }

    fn tell_events(&mut self) {
        while let Some(event) = self.tunnel.event() {
            let (name, facts) = match event {
                Event::Found(peer) => ("tunnel is up", json!({"peer": peer})),
                Event::Heard => ("tunnel is up", json!({"peer": self.tunnel.peer()})),
                Event::Moved(peer) => ("tunnel has moved", json!({"peer": peer})),
                Event::Oversized(mtu) => {
                    let remedy = "state a smaller tunnel.min_packet_size; below an MTU of 1280 B, the kernel takes IPv6 off";
                    ("tunnel loses its longest packets", json!({"mtu": mtu, "remedy": remedy}))
                }
                Event::Silent => {
                    let meaning = "packets take other routes until the other gateway answers";
                    ("tunnel is silent", json!({"peer": self.tunnel.peer(), "meaning": meaning}))
                }
            };
            log::event(name, facts);
        }
    }

    /// Says why the tunnel may not be up.
    fn tell_doubt(&mut self, at: Time) {
        let forged = self.former.forged + self.tunnel.counters().forged;
        let (name, facts) = match self.doubt.look(at, self.tunnel.is_up(), forged) {
            None => return,
            Some(Cause::Key(count)) => (
                "tunnel hears another key",
                json!({"datagrams": count, "meaning": OTHER_KEY, "remedy": "copy tunnel.key from one gateway to the other"}),
            ),
            Some(Cause::NoAnswer) => {
                let remedy = "see whether it runs, its UDP port is open, and tunnel.key is the same: it answers no other";
                ("tunnel has no answer", json!({"peer": self.tunnel.peer(), "remedy": remedy}))
            }
        };
        log::event(name, facts);
    }

    fn tick(&mut self, at: Time) -> io::Result<()> {
        self.written = at;
        self.heartbeat.beat(Instant::now());
        let is_stopped = self.evidence.lock().stopped_s().is_some();
        let unhelped = if is_stopped { 1000 } else { self.config.gateway.unhelped_permille() as u16 };
        self.tunnel.set_unhelped(unhelped);
        if self.tunnel.is_worn() {
            self.tunnel.close(at, &mut self.ports);
            self.ports.flush(at);
            self.former = add(self.former, self.tunnel.counters());
            self.tunnel = new_tunnel(&self.config, &self.key)?;
        }
        self.tell_doubt(at);
        self.board.write(Some(self.status()));
        self.keeper.failure().map_or(Ok(()), Err)
    }

    /// Lets the interface follow the tunnel.
    fn follow(&mut self) {
        let mtu = self.tunnel.mtu() as u16;
        if std::mem::replace(&mut self.ports.mtu, mtu) != mtu {
            let meaning = "the largest packet that the path carries through the tunnel";
            log::event("tunnel has another MTU", json!({"mtu": mtu, "meaning": meaning}));
        }
        self.keeper.want(Wanted { is_up: self.tunnel.is_up(), mtu });
    }

    fn status(&self) -> Status {
        let tunnel = &self.tunnel;
        let Counters { entered, left, dropped, forged, replayed, malformed, fec, arq } =
            add(self.former, tunnel.counters());
        let handed = self.ports.handed;
        let Handed { unsent, oversized, refused, marked, unmarkable, looped, .. } = handed;
        let (sent, lost) = tunnel.losses();
        let schemes = self.config.tunnel_classes().into_iter().filter_map(|class| {
            let scheme = match class.help {
                Help::None => return None,
                Help::Fec(_) => TunnelScheme::PacketFec,
                Help::Arq { .. } => TunnelScheme::Arq,
            };
            Some((class.name, SchemeName::Tunnel(scheme).name()))
        });
        Status {
            interface: self.config.tunnel.as_ref().map(|tunnel| tunnel.interface.clone()).unwrap_or_default(),
            mtu: self.ports.mtu,
            is_mtu_confirmed: tunnel.is_mtu_confirmed(),
            peer: tunnel.peer(),
            is_up: tunnel.is_up(),
            rtt_s: tunnel.rtt().map(Duration::as_secs_f64),
            loss: (sent > 0).then(|| lost as f64 / sent as f64),
            unhelped_share: f64::from(tunnel.unhelped()) / 1000.0,
            classes: schemes.collect(),
            counters: BTreeMap::from([
                ("entered", entered),
                ("left", left),
                ("dropped", dropped),
                ("forged", forged),
                ("replayed", replayed),
                ("malformed", malformed + handed.malformed),
                ("recovered", fec.recovered),
                ("unrecovered", fec.unrecovered),
                ("retransmitted", arq.retransmitted),
                ("given_up", arq.given_up),
                ("unsent", unsent),
                ("oversized", oversized),
                ("refused", refused),
                ("marked", marked),
                ("unmarkable", unmarkable),
                ("looped", looped),
                ("super_packets_in", handed.cut),
                ("super_packets_out", handed.merged),
                ("batches", handed.batches),
            ]),
        }
    }
}

/// The segments of a super-packet; `None` if it is none, or its description does not fit: it may be of a packet within it.
fn cut(packet: &[u8], offload: Offload) -> Option<Segments<'_>> {
    let (size, is_tcp) = offload.segments?;
    let whole = IpPacket::parse(packet).ok()?;
    let fits = is_tcp == whole.tcp().is_some()
        && offload.checksum.is_none_or(|(start, _)| start == whole.header_len);
    fits.then(|| offload::segments(&whole, size, offload.cwr()).ok()).flatten()
}

fn add(mut former: Counters, now: Counters) -> Counters {
    former.entered += now.entered;
    former.left += now.left;
    former.dropped += now.dropped;
    former.forged += now.forged;
    former.replayed += now.replayed;
    former.malformed += now.malformed;
    former.fec.recovered += now.fec.recovered;
    former.fec.unrecovered += now.fec.unrecovered;
    former.arq.retransmitted += now.arq.retransmitted;
    former.arq.given_up += now.arq.given_up;
    former
}

/// A start of this end.
fn new_tunnel(config: &Config, key: &Key) -> io::Result<Tunnel> {
    let tunnel = config.tunnel.as_ref().ok_or_else(|| io::Error::other("the file has no tunnel"))?;
    let settings = Settings {
        classes: config.tunnel_classes().into_iter().map(|class| class.help).collect(),
        unhelped: config.gateway.unhelped_permille() as u16,
        peer: tunnel.peer,
        rate: tunnel.rate,
        sizes: tunnel.sizes(),
        adapts: tunnel.adapt,
        patience: tunnel.patience,
    };
    Ok(Tunnel::new(settings, key.clone(), random()?))
}

fn timespec(duration: Duration) -> Timespec {
    let nanos = duration.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}

#[cfg(test)]
mod tests {
    use lasthop_proto::Ecn;
    use lasthop_wire::{Ip, write};

    use super::*;

    #[test]
    fn what_cannot_be_cut_is_no_super_packet() {
        let [src, dst] = [1, 2].map(|host| [10, 0, 0, host].into());
        let (dscp, ecn, hop_limit, identification) = (Dscp::DEFAULT, Ecn::NotEct, 64, 7);
        let ip = Ip { src, dst, dscp, ecn, hop_limit, identification, dont_fragment: true };
        let packet = write::udp(&ip, (80, 4000), &[7; 2500]).expect("short enough");
        let count = |packet: &[u8], segments, checksum| {
            let mut offload = Offload::default();
            (offload.segments, offload.checksum) = (segments, checksum);
            cut(packet, offload).map(Iterator::count)
        };
        assert_eq!(count(&packet, Some((1000, false)), Some((20, 26))), Some(3));
        assert_eq!(count(&packet, Some((1000, false)), None), Some(3));
        for (packet, segments, checksum) in [
            (&packet[..], None, None),
            (&packet[..], Some((1000, true)), Some((20, 26))),
            (&packet[..], Some((1000, false)), Some((48, 54))),
            (&packet[..], Some((0, false)), Some((20, 26))),
            (&packet[..2000], Some((1000, false)), Some((20, 26))),
            (&packet[..10], Some((1000, false)), Some((20, 26))),
        ] {
            assert_eq!(count(packet, segments, checksum), None, "{segments:?} {checksum:?} {}", packet.len());
        }
    }
}
