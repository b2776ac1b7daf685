//! Datagrams and messages on the wire.
//!
//! ```text
//! hello   1 | version 2 | salt 16 | counter 8 | sealed: challenge, echo, share, classes, zeros | tag 16
//! data    2 | counter 7                       | sealed: message                               | tag 16
//!
//! message of a class without help    class 1 | packet
//!         of a source packet         class 1 | 1 | sent 4 | history 8 | block 4 | index 1 | packet
//!         of a repair packet         class 1 | 2 | sent 4 | history 8 | block 4 | index 1 | sources 1 | symbol
//!         of a class with ARQ        class 1 | attempt 1 | number 4 | oldest 4 | packet
//!         report                     255     | share 2 | highest 8 | delay 4 | bits 64
//!         poll                       254     | zeros
//!         bye                        253
//! ```
//!
//! Numbers have the order of the network. Every hello has the same length, so that an answer is never longer than what it
//! answers. Nothing is parsed before it is authentic, but the headers.

use lasthop_base::Duration;
use lasthop_proto::Symbol;

use crate::cipher::{Salt, TAG};
use crate::window::Report;

const HELLO: u8 = 1;
const DATA: u8 = 2;
const VERSION: u8 = 2;

/// Length of the header of a hello, and of one of data.
pub(crate) const HELLO_HEADER: usize = 26;
pub(crate) const DATA_HEADER: usize = 8;

/// Length of the sealed part of a hello.
const HELLO_BODY: usize = 168;

/// The most classes of an end, and the length of one in a hello.
pub const CLASSES: usize = 16;
const CLASS: usize = 8;

/// The most blocks of a class that are open at a time.
pub const INTERLEAVE: u8 = 64;

const REPORT: u8 = 255;
const POLL: u8 = 254;
const BYE: u8 = 253;

/// Bytes that the tunnel adds to the longest packet, without the headers of IP and UDP: those of a repair symbol.
pub const OVERHEAD: usize = DATA_HEADER + 20 + crate::erasure::LENGTH + TAG;

/// Counters have 56 bits.
pub(crate) const COUNTERS: u64 = 1 << 56;

/// What the header of a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Hello { salt: Salt, counter: u64 },
    Data { counter: u64 },
}

impl Header {
    /// Reads the header of a datagram, which anyone may have sent.
    pub(crate) fn parse(datagram: &[u8]) -> Option<Header> {
        let counter = |bytes: &[u8]| Some(u64::from_be_bytes(*bytes.first_chunk()?) & (COUNTERS - 1));
        match *datagram.first()? {
            HELLO if datagram.len() == HELLO_HEADER + HELLO_BODY + TAG && datagram[1] == VERSION => {
                Some(Header::Hello {
                    salt: *datagram[2..].first_chunk()?,
                    counter: counter(&datagram[18..])?,
                })
            }
            DATA if datagram.len() > DATA_HEADER + TAG => Some(Header::Data { counter: counter(datagram)? }),
            _ => None,
        }
    }

    /// Begins a datagram.
    pub(crate) fn write(self, datagram: &mut Vec<u8>) {
        datagram.clear();
        match self {
            Header::Hello { salt, counter } => {
                datagram.extend([HELLO, VERSION]);
                datagram.extend(salt);
                datagram.extend(counter.to_be_bytes());
            }
            Header::Data { counter } => datagram.extend((counter | u64::from(DATA) << 56).to_be_bytes()),
        }
    }
}

/// How the other end is to treat the packets of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassForm {
    /// Passed on as they arrive.
    Plain,
    /// Of a code across packets.
    Fec { k: u8, interleave: u8, in_order: bool, hold: Duration },
    /// With ARQ.
    Arq { in_order: bool },
}

/// What an end says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// To be echoed by whoever answers.
    pub(crate) challenge: Salt,
    /// The challenge of the other end, as far as it is known.
    pub(crate) echo: Salt,
    /// The share of flows that is to have no help, in thousandths.
    pub(crate) unhelped: u16,
    pub(crate) classes: Vec<ClassForm>,
}

impl Hello {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let end = to.len() + HELLO_BODY;
        to.extend(self.challenge);
        to.extend(self.echo);
        to.extend(self.unhelped.to_be_bytes());
        to.push(self.classes.len() as u8);
        for class in &self.classes {
            let mut form = [0; CLASS];
            match *class {
                ClassForm::Plain => {}
                ClassForm::Fec { k, interleave, in_order, hold } => {
                    form[..4].copy_from_slice(&[1, k, interleave, in_order.into()]);
                    let hold_us = u32::try_from(hold.as_nanos() / 1000).unwrap_or(u32::MAX);
                    form[4..].copy_from_slice(&hold_us.to_be_bytes());
                }
                ClassForm::Arq { in_order } => form[..4].copy_from_slice(&[2, 0, 0, in_order.into()]),
            }
            to.extend(form);
        }
        to.resize(end, 0);
    }

    /// Reads an authentic one, which may be of a later version of this program.
    pub(crate) fn parse(body: &[u8]) -> Option<Hello> {
        let count = usize::from(*body.get(34)?);
        let forms = body.get(35..35 + count * CLASS).filter(|_| count <= CLASSES)?.chunks_exact(CLASS);
        let classes = forms.map(|form| match *form {
            [0, ..] => Some(ClassForm::Plain),
            [1, k, interleave, in_order, ..] if k > 0 && (1..=INTERLEAVE).contains(&interleave) => {
                let hold_us = u32::from_be_bytes(*form[4..].first_chunk()?);
                let hold = Duration::from_micros(hold_us.max(1).into());
                Some(ClassForm::Fec { k, interleave, in_order: in_order == 1, hold })
            }
            [2, _, _, in_order, ..] => Some(ClassForm::Arq { in_order: in_order == 1 }),
            _ => None,
        });
        Some(Hello {
            challenge: *body.first_chunk()?,
            echo: *body[16..].first_chunk()?,
            unhelped: u16::from_be_bytes(*body[32..].first_chunk()?).min(1000),
            classes: classes.collect::<Option<_>>()?,
        })
    }
}

/// The header of a packet of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodedHeader {
    /// How many source packets of the class were sent, this one included.
    pub(crate) sent: u32,
    /// Bit `i` tells whether the source packet `i` before the latest of them has begun a block.
    pub(crate) history: u64,
    pub(crate) block: u32,
    pub(crate) symbol: Symbol,
}

/// The header of a packet with ARQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArqHeader {
    /// The number of this transmission of the packet, from 1.
    pub(crate) attempt: u8,
    /// The number of the packet among those of the class.
    pub(crate) number: u32,
    /// All before it have arrived or were given up.
    pub(crate) oldest: u32,
}

/// A message; those of a class are read by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    OfClass(u8, &'a [u8]),
    /// The share of flows without help that the other end states, and what has arrived there.
    Report(u16, Report),
    Poll,
    /// The other end ends.
    Bye,
}

impl<'a> Message<'a> {
    /// Reads an authentic message.
    pub(crate) fn parse(body: &'a [u8]) -> Option<Message<'a>> {
        let (&kind, rest) = body.split_first()?;
        match kind {
            REPORT => {
                let unhelped = u16::from_be_bytes(*rest.first_chunk()?).min(1000);
                let (highest, delay_us) = (be64(&rest[2..])?, be32(rest.get(10..)?)?);
                let mut report = Report { highest, delay_us, arrived: Default::default() };
                for (number, word) in report.arrived.iter_mut().enumerate() {
                    *word = be64(rest.get(14 + 8 * number..)?)?;
                }
                Some(Message::Report(unhelped, report))
            }
            POLL => Some(Message::Poll),
            BYE => Some(Message::Bye),
            class => Some(Message::OfClass(class, rest)),
        }
    }
}

fn be32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn be64(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

pub(crate) fn write_report(unhelped: u16, report: &Report, to: &mut Vec<u8>) {
    to.push(REPORT);
    to.extend(unhelped.to_be_bytes());
    to.extend(report.highest.to_be_bytes());
    to.extend(report.delay_us.to_be_bytes());
    report.arrived.iter().for_each(|word| to.extend(word.to_be_bytes()));
}

pub(crate) fn write_poll(to: &mut Vec<u8>) {
    to.push(POLL);
}

/// Writes a poll into a datagram that has a header and, once sealed, `size` bytes.
pub(crate) fn write_probe(size: usize, to: &mut Vec<u8>) {
    write_poll(to);
    to.resize(size - TAG, 0);
}

pub(crate) fn write_bye(to: &mut Vec<u8>) {
    to.push(BYE);
}

impl CodedHeader {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let (kind, index) = match self.symbol {
            Symbol::Source { index } => (1, index),
            Symbol::Repair { index, .. } => (2, index),
        };
        to.push(kind);
        to.extend(self.sent.to_be_bytes());
        to.extend(self.history.to_be_bytes());
        to.extend(self.block.to_be_bytes());
        to.push(index);
        if let Symbol::Repair { sources, .. } = self.symbol {
            to.push(sources);
        }
    }

    /// Reads it from the message of a class; returns what follows it as well.
    pub(crate) fn parse(message: &[u8]) -> Option<(CodedHeader, &[u8])> {
        let (&kind, rest) = message.split_first()?;
        let (sent, history, block) = (be32(rest)?, be64(rest.get(4..)?)?, be32(rest.get(12..)?)?);
        let index = *rest.get(16)?;
        let (symbol, rest) = match kind {
            1 => (Symbol::Source { index }, rest.get(17..)?),
            2 => (Symbol::Repair { index, sources: *rest.get(17)? }, rest.get(18..)?),
            _ => return None,
        };
        Some((CodedHeader { sent, history, block, symbol }, rest))
    }
}

impl ArqHeader {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.push(self.attempt);
        to.extend(self.number.to_be_bytes());
        to.extend(self.oldest.to_be_bytes());
    }

    /// Reads it from the message of a class; returns the packet as well.
    pub(crate) fn parse(message: &[u8]) -> Option<(ArqHeader, &[u8])> {
        let (&attempt, rest) = message.split_first()?;
        let header = ArqHeader { attempt, number: be32(rest)?, oldest: be32(rest.get(4..)?)? };
        Some((header, rest.get(8..)?))
    }
}
