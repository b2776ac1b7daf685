//! Construction of PPDUs: which station, which MPDUs, how long.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_link::wifi::{Category, ControlRate, MPDU_OVERHEAD, PpduFormat, Rate, SIFS, Scheduler};
use lasthop_proto::Out;

use super::{CATEGORIES, FOREIGN, WifiBss};

/// The air time by which a station's deficit grows in each turn, in nanoseconds: 256 µs, as in Linux.
const QUANTUM_NS: i64 = 256_000;

/// A PPDU, with what precedes and follows it.
pub(super) struct Ppdu {
    /// The function that sends it.
    pub(super) function: usize,
    /// The agreement whose MPDUs it has; [`FOREIGN`] for an exchange of the neighbouring BSS.
    pub(super) agreement: usize,
    pub(super) rate: Rate,
    /// Whether it is a BlockAckReq.
    pub(super) is_request: bool,
    /// Its MPDUs; none in a request.
    pub(super) frames: Vec<Frame>,
    /// Bytes of the MPDUs with their delimiters.
    pub(super) psdu: Bytes,
    /// Air time.
    pub(super) duration: Duration,
    /// Air time of RTS and CTS before it.
    pub(super) protection: Option<[Duration; 2]>,
    /// Air time of the response.
    pub(super) response: Duration,
}

/// An MPDU of a PPDU.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    /// Its index in the window of the agreement.
    pub(super) index: usize,
    /// Bytes of the PSDU up to its end.
    pub(super) end: Bytes,
    pub(super) size: Bytes,
    /// When its last bit arrives.
    pub(super) at: Time,
    pub(super) arrives: bool,
    /// Whether another PPDU is on the air meanwhile.
    pub(super) collides: bool,
}

impl Default for Ppdu {
    fn default() -> Ppdu {
        Ppdu {
            function: 0,
            agreement: FOREIGN,
            rate: Rate { mcs: 0, streams: 1 },
            is_request: false,
            frames: Vec::new(),
            psdu: Bytes::ZERO,
            duration: Duration::ZERO,
            protection: None,
            response: Duration::ZERO,
        }
    }
}

impl Ppdu {
    /// The time from its start, or that of its RTS, to the end of the response.
    pub(super) fn exchange(&self) -> Duration {
        self.lead() + self.duration + SIFS + self.response
    }

    /// The time of RTS and CTS.
    pub(super) fn lead(&self) -> Duration {
        self.protection.map_or(Duration::ZERO, |[rts, cts]| rts + SIFS + cts + SIFS)
    }
}

/// Whether a PPDU was built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    Yes,
    /// The queue had nothing left to send.
    Empty,
    /// The first MPDU takes longer than what remains of the TXOP.
    TooLong,
}

impl WifiBss {
    /// Builds the next PPDU of a function; false if there is none. `remaining` is what is left of the TXOP after its first PPDU.
    pub(super) fn build(
        &mut self,
        function: usize,
        now: Time,
        remaining: Option<Duration>,
        out: &mut Out,
    ) -> bool {
        while let Some(agreement) = self.choose(function) {
            match self.fill(function, agreement, now, remaining, out) {
                Filled::Yes => return true,
                Filled::TooLong => return false,
                Filled::Empty => self.serve_next(function, agreement),
            }
        }
        false
    }

    /// The agreement that a function serves next.
    fn choose(&mut self, function: usize) -> Option<usize> {
        let ready = &mut self.functions[function].ready;
        if function >= CATEGORIES {
            return ready.front().copied();
        }
        match self.config.scheduler {
            Scheduler::RoundRobin => ready.front().copied(),
            Scheduler::Fifo => {
                ready.iter().copied().min_by_key(|&agreement| self.agreements[agreement].oldest())
            }
            Scheduler::Airtime => loop {
                let agreement = *ready.front()?;
                let deficit = &mut self.agreements[agreement].deficit;
                if *deficit > 0 {
                    return Some(agreement);
                }
                *deficit += QUANTUM_NS;
                ready.rotate_left(1);
            },
        }
    }

    /// After its turn, an agreement without frames leaves the list of its function; with frames, it goes to the end in a
    /// round robin.
    pub(super) fn serve_next(&mut self, function: usize, agreement: usize) {
        let state = &mut self.agreements[agreement];
        let ready = &mut self.functions[function].ready;
        let place = ready.iter().position(|&other| other == agreement).expect("it was served");
        if !state.has_frames() {
            state.is_ready = false;
            ready.remove(place);
        } else if self.config.scheduler == Scheduler::RoundRobin {
            ready.rotate_left(1);
        }
    }

    fn fill(
        &mut self,
        function: usize,
        index: usize,
        now: Time,
        remaining: Option<Duration>,
        out: &mut Out,
    ) -> Filled {
        if index == FOREIGN {
            return self.fill_foreign(function);
        }
        let (station, up) = self.peer_of(index);
        let category = Category::ALL[function % CATEGORIES];
        let agreement = &mut self.agreements[index];
        let ppdu = &mut self.ppdus[function / CATEGORIES];
        self.peers[station].fade(now);
        let selection = self.peers[station].rates[usize::from(up)].select(now);
        let (format, control) = (self.config.format, ControlRate::of(selection.rate));
        let is_protected = self.functions[function].protected.contains(&index);
        let needs_protection = (self.config.rts || selection.rts) && !is_protected;
        *ppdu = Ppdu {
            function,
            agreement: index,
            rate: selection.rate,
            is_request: agreement.requests,
            frames: std::mem::take(&mut ppdu.frames),
            psdu: Bytes::ZERO,
            duration: control.block_ack_request(),
            protection: needs_protection.then(|| [control.rts(), control.cts()]),
            response: control.block_ack(self.config.window),
        };
        ppdu.frames.clear();
        if agreement.requests {
            return Filled::Yes;
        }
        let txop = self.functions[function].txop;
        let mut longest = self.config.longest_ppdu.min(selection.longest);
        if !txop.is_zero() {
            let rest = remaining.unwrap_or(txop);
            longest = longest.min(rest.saturating_sub(ppdu.lead() + SIFS + ppdu.response));
        }
        let ampdu = self.config.longest_ampdu(category);
        let most = format.capacity(selection.rate, longest).min(ampdu);
        let mut next = 0;
        loop {
            while agreement.window().get(next).is_some_and(|mpdu| mpdu.is_done) {
                next += 1;
            }
            let size = match agreement.window().get(next) {
                Some(mpdu) => Some(mpdu.packet.size + MPDU_OVERHEAD),
                None => agreement.peek(self.config.window, now, out),
            };
            let Some(size) = size else { break };
            let length = PpduFormat::aggregate(ppdu.psdu, size);
            if !ppdu.frames.is_empty() && length > most {
                break;
            }
            if next == agreement.window().len() {
                agreement.extend();
            }
            ppdu.psdu = length;
            ppdu.frames.push(Frame {
                index: next,
                end: length,
                size,
                at: now,
                arrives: false,
                collides: false,
            });
            next += 1;
        }
        match ppdu.frames[..] {
            [] => return Filled::Empty,
            [Frame { size, .. }] => {
                ppdu.psdu = format.single(size);
                ppdu.frames[0].end = ppdu.psdu;
                ppdu.response = control.ack();
            }
            _ => {}
        }
        ppdu.duration = format.air_time(selection.rate, ppdu.psdu);
        match remaining {
            Some(rest) if ppdu.exchange() > rest => Filled::TooLong,
            _ => Filled::Yes,
        }
    }

    fn fill_foreign(&mut self, function: usize) -> Filled {
        let foreign = self.neighbour.as_ref().expect("a foreign exchange has a BSS");
        let ppdu = &mut self.ppdus[function / CATEGORIES];
        *ppdu = Ppdu {
            function,
            duration: foreign.exchange,
            frames: std::mem::take(&mut ppdu.frames),
            ..Ppdu::default()
        };
        ppdu.frames.clear();
        Filled::Yes
    }
}
