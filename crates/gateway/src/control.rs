//! The socket by which a running gateway is asked, and the address of its page and for Prometheus.
//!
//! A request is a line: `status` and `report` are answered by a document in JSON, `reload` and `hand-over` by `{}` or
//! `{"error": ...}`. With the answer to `hand-over` come the descriptors of the rules, the queue and the listeners (unix(7),
//! `SCM_RIGHTS`); a successor that works with them says [`TAKEN`], and one that leaves without a word has taken nothing.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
    shutdown, socket_with, sockopt,
};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::counters::Counters;
use crate::gateway::{Command, Inheritance};
use crate::kernel::filter;
use crate::kernel::nftables;
use crate::log;
use crate::observe::Shared;
use crate::sandbox::Sandbox;
use crate::shaper::Shaped;
use crate::tunnel::Board;

/// How long whoever asks may take to read or write.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the whole of a request to `gateway.metrics` and its answer may take: every user of this host may ask.
const HTTP_PATIENCE: Duration = Duration::from_millis(500);

/// The number of requests to `gateway.metrics` at once. Others wait.
const READERS: usize = 16;

/// How long the gateway may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// The connections to each listener that may wait.
const BACKLOG: i32 = 128;

/// The page at the address for Prometheus.
const PAGE: &str = include_str!("page.html");

/// The largest request, in bytes.
const REQUEST: u64 = 4096;

/// What a successor says once it has started.
const TAKEN: u8 = b'\n';

/// The largest number of descriptors that are handed over: rules, queue and four listeners.
const DESCRIPTORS: usize = 6;

/// Tells the gateway's thread what to do.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    sender: Sender<Command>,
    bell: Arc<OwnedFd>,
}

impl Commands {
    pub(crate) fn new(sender: Sender<Command>, bell: OwnedFd) -> Commands {
        Commands { sender, bell: Arc::new(bell) }
    }

    pub(crate) fn tell(&self, command: Command) {
        // After its end it needs nothing.
        let _ = self.sender.send(command);
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
    }
}

/// A running gateway, for those who ask.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) file: PathBuf,
    pub(crate) config: Mutex<Config>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) evidence: Shared,
    pub(crate) board: Board,
    pub(crate) shaped: Shaped,
    pub(crate) sandbox: Sandbox,
    pub(crate) commands: Commands,
    pub(crate) is_observing: bool,
    pub(crate) began: Instant,
    /// The listener at `gateway.metrics`.
    pub(crate) metrics: Option<TcpListener>,
}

impl Control {
    /// Answers requests at a [prepared](prepare) socket, and at `gateway.metrics`, in threads of their own, for good.
    pub(crate) fn serve(self: &Arc<Control>, socket: OwnedFd) -> io::Result<()> {
        let control = Arc::clone(self);
        let listener = listen(socket, &self.config().gateway.control)?;
        thread::Builder::new().name(String::from("control")).spawn(move || {
            for stream in listener.incoming().flatten() {
                // One who asks and leaves costs nothing.
                let _ = control.answer(&stream);
            }
        })?;
        for listener in self.metrics.iter().flat_map(|listener| std::iter::repeat_n(listener, READERS)) {
            let (control, listener) = (Arc::clone(self), listener.try_clone()?);
            thread::Builder::new().name(String::from("metrics")).spawn(move || {
                loop {
                    match listener.accept() {
                        Ok((stream, _)) => {
                            let end = Instant::now() + HTTP_PATIENCE;
                            let _ = control.answer_http(&mut Hurried { stream, end });
                        }
                        // A successor listens in its place.
                        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
                        Err(_) => {}
                    }
                }
            })?;
        }
        Ok(())
    }

    fn config(&self) -> Config {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn answer(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new(stream.take(REQUEST)).read_line(&mut line)?;
        let of = |result: io::Result<()>| match result {
            Ok(()) => json!({}),
            Err(error) => json!({"error": error.to_string()}),
        };
        let mut stream = stream;
        match line.trim_end() {
            "status" => writeln!(stream, "{:#}", self.status()),
            "report" => writeln!(stream, "{}", json!(self.evidence.lock().report())),
            "reload" => writeln!(stream, "{}", of(self.reload())),
            "hand-over" => {
                let (given, is_given) = mpsc::channel();
                match self.ask(|reply| Command::HandOver(reply, is_given)) {
                    Ok(inheritance) => {
                        send_inheritance(stream, &inheritance)?;
                        stream.set_read_timeout(Some(ANSWER))?;
                        let mut word = [0];
                        stream.read_exact(&mut word)?;
                        if word != [TAKEN] {
                            return Err(io::ErrorKind::InvalidData.into());
                        }
                        log::event("handed over", json!({}));
                        if let Some(metrics) = &self.metrics {
                            // The successor listens as well: without this, both answer until the connections have ended.
                            let _ = shutdown(metrics, Shutdown::Both);
                        }
                        let _ = given.send(());
                        Ok(())
                    }
                    Err(error) => writeln!(stream, "{}", of(Err(error))),
                }
            }
            other => {
                let problem =
                    format!("found the request {other:?}, expected status, report, reload or hand-over");
                writeln!(stream, "{}", json!({"error": problem}))
            }
        }
    }

    /// Gives the gateway's thread a command, and waits for its answer.
    fn ask<T>(&self, command: impl FnOnce(Sender<io::Result<T>>) -> Command) -> io::Result<T> {
        let (sender, answer) = mpsc::channel();
        self.commands.tell(command(sender));
        answer.recv_timeout(ANSWER).unwrap_or_else(|_| Err(io::Error::other("the gateway does not answer")))
    }

    /// Reads the file again. If it is invalid, the settings stay as they are.
    pub(crate) fn reload(&self) -> io::Result<()> {
        let loaded = Config::load(&self.file).map_err(io::Error::other);
        let key = loaded.iter().find_map(|config| config.tunnel.as_ref()).map(|tunnel| tunnel.key.clone());
        let result = loaded.and_then(|config| {
            self.ask(|reply| Command::Reload(Box::new(config.clone()), reply))?;
            *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
            Ok(())
        });
        let result = result.map_err(|error| match self.sandbox.obstacle(&error, key.as_deref()) {
            Some(obstacle) => io::Error::new(error.kind(), format!("{error}; {obstacle}")),
            None => error,
        });
        match &result {
            Ok(()) => log::event("reloaded", json!({"file": self.file})),
            Err(error) => log::event("not reloaded", json!({"file": self.file, "error": error.to_string()})),
        }
        result
    }

    /// The flows that were left alone to compare with. Without a tunnel the kernel has counted them since the rules were
    /// installed.
    fn unhelped(&self) -> Option<u64> {
        if self.config().tunnel.is_some() {
            return Some(self.counters.unhelped.get());
        }
        filter::counts().ok().map(|counts| counts.get(nftables::UNHELPED).copied().unwrap_or(0))
    }

    /// What `lasthop-gateway status --json` prints.
    fn status(&self) -> Value {
        let config = self.config();
        let counters =
            self.counters.all().into_iter().map(|(name, _, value, _)| (name.to_owned(), json!(value)));
        json!({
            "title": config.title,
            "file": self.file,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "running_s": self.began.elapsed().as_secs_f64(),
            "radio": config.radios(),
            "is_observing": self.is_observing,
            "stopped_s": self.evidence.lock().stopped_s(),
            "unhelped_share": config.gateway.unhelped.get(),
            "unhelped_flows": self.unhelped(),
            "counters": counters.collect::<Map<_, _>>(),
            "agents": self.counters.schemes(),
            "tunnel": self.board.read(),
            "shaper": self.shaped.read(),
            "sandbox": self.sandbox,
        })
    }

    fn answer_http(&self, stream: &mut (impl Read + Write)) -> io::Result<()> {
        let mut reader = BufReader::new(stream.take(REQUEST));
        let mut request = String::new();
        reader.read_line(&mut request)?;
        // Another site's name may have been pointed at the loopback, so that its pages could read this one.
        let mut is_own = true;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header)? == 0 || header.trim_end().is_empty() {
                break;
            }
            if let Some((name, host)) = header.split_once(':')
                && name.eq_ignore_ascii_case("host")
            {
                is_own &= is_of_loopback(host.trim());
            }
        }
        let mut words = request.split_whitespace();
        const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
        let (status, kind, body) = match (words.next(), words.next()) {
            _ if !is_own => {
                let problem =
                    "expected the header Host with an address of the loopback; a proxy must state one\n";
                ("421 Misdirected Request", TEXT, String::from(problem))
            }
            (Some("GET"), Some("/metrics")) => ("200 OK", TEXT, self.metrics()),
            (Some("GET"), Some("/")) => ("200 OK", "text/html; charset=utf-8", PAGE.to_owned()),
            (Some("GET"), Some("/status.json")) => {
                ("200 OK", "application/json", self.whole_status().to_string())
            }
            (Some("GET"), _) => {
                ("404 Not Found", TEXT, String::from("expected /, /status.json or /metrics\n"))
            }
            _ => ("405 Method Not Allowed", TEXT, String::from("expected GET\n")),
        };
        let len = body.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
             connect-src 'self'\r\nConnection: close\r\n\r\n{body}"
        )
    }

    /// The status, with what the page shows beside it.
    fn whole_status(&self) -> Value {
        let mut status = self.status();
        let evidence = self.evidence.lock();
        status["report"] = json!(evidence.report());
        status["history"] = json!(evidence.history());
        status["flows"] = json!(evidence.latest().collect::<Vec<_>>());
        status
    }

    /// The counters in the text format of Prometheus.
    fn metrics(&self) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, help: &str, value: u64, is_total: bool| {
            let (kind, ending) = if is_total { ("counter", "_total") } else { ("gauge", "") };
            let name = format!("lasthop_gateway_{name}{ending}");
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"));
        };
        for (name, help, value, is_total) in self.counters.all() {
            metric(name, help, value, is_total);
        }
        let is_stopped = self.evidence.lock().stopped_s().is_some();
        metric("stopped", "1 since harm was found, until the file is read again.", is_stopped.into(), false);
        let radios = self.config().radios();
        let missing = radios.iter().filter(|radio| nix::net::if_::if_nametoindex(radio.as_str()).is_err());
        metric("missing_radios", "Interfaces of the file that do not exist.", missing.count() as u64, false);
        if let Some(tunnel) = self.board.read() {
            metric("tunnel_up", "1 while the other gateway answers.", tunnel.is_up.into(), false);
        }
        for (name, value) in self.counters.schemes() {
            metric(&name.replace(['.', '-'], "_"), "A total of a scheme's agents.", value, true);
        }
        for (name, value) in self.board.read().into_iter().flat_map(|tunnel| tunnel.counters) {
            let help = match name {
                "forged" => "Datagrams that failed authentication: is the key the same at both ends?",
                _ => "A total of the tunnel.",
            };
            metric(&format!("tunnel_{name}"), help, value, true);
        }
        if let Some(count) = self.unhelped() {
            metric(
                "unhelped_flows",
                "Flows left alone to compare with, since the rules were installed.",
                count,
                false,
            );
        }
        text
    }
}

/// A stream that ends at a time, however often something arrives.
struct Hurried {
    stream: TcpStream,
    end: Instant,
}

impl Hurried {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Hurried {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Hurried {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Whether a header Host has an address of the loopback or its name.
fn is_of_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(name, _)| !name.contains(':') || name.ends_with(']'));
    let name = name.map_or(host, |(name, _)| name).trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Names the key of an error at `path`.
fn wrong(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("gateway.control {}: {error}", path.display()))
}

/// A socket for [`serve`](Control::serve), and the directory of `path`, for root alone if it is missing.
pub(crate) fn prepare(path: &Path) -> io::Result<OwnedFd> {
    if let Some(directory) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| wrong(path, error))?;
    }
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// A listener at `gateway.metrics`, beside that of a gateway from which this one takes over.
pub(crate) fn listen_for_metrics(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let bound = || {
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket.into())
    };
    bound().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("gateway.metrics {address}: {error}"))
    })
}

/// Listens at `path`, in place of a gateway that is gone.
fn listen(socket: OwnedFd, path: &Path) -> io::Result<UnixListener> {
    let wrong = |error: io::Error| wrong(path, error);
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(error)),
        _ => {}
    }
    let address = SocketAddrUnix::new(path)?;
    rustix::net::bind(&socket, &address).map_err(|error| wrong(error.into()))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Asks the gateway at `path`; returns its answer.
pub(crate) fn ask(path: &Path, request: &str) -> io::Result<Value> {
    let mut stream = connect(path)?;
    writeln!(stream, "{request}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    checked(&answer)
}

/// Connects to the gateway at `path`.
///
/// # Errors
/// If none runs there, with the remedy.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "no gateway runs with this control socket"
            }
            io::ErrorKind::PermissionDenied => "only root may ask it",
            _ => "it cannot be asked",
        };
        io::Error::new(error.kind(), format!("{}: {remedy} ({error})", path.display()))
    })?;
    stream.set_read_timeout(Some(ANSWER + PATIENCE))?;
    Ok(stream)
}

fn checked(answer: &str) -> io::Result<Value> {
    let answer: Value = serde_json::from_str(answer)?;
    match answer.get("error").and_then(Value::as_str) {
        Some(error) => Err(io::Error::other(error.to_owned())),
        None => Ok(answer),
    }
}

/// Takes over from the gateway at the other end of `stream`, which goes on unless it is told that this one has [started](taken).
pub(crate) fn take_over(mut stream: &UnixStream) -> io::Result<Inheritance> {
    let asked = Instant::now();
    writeln!(stream, "hand-over")?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; REQUEST as usize];
    let received =
        recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let answer = checked(&String::from_utf8_lossy(&bytes[..received.bytes]))?;
    let mut descriptors = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect::<Vec<OwnedFd>>(),
        _ => Vec::new(),
    });
    let seed = answer.get("seed").and_then(Value::as_u64).and_then(|seed| u32::try_from(seed).ok());
    match (descriptors.next(), descriptors.next(), seed) {
        (Some(rules), Some(queue), Some(seed)) => {
            Ok(Inheritance { rules, queue, listeners: descriptors.collect(), seed, asked })
        }
        _ => Err(io::Error::other("the running gateway is of another version; stop it first")),
    }
}

/// Tells the gateway at the other end of `stream` that this one works in its place.
pub(crate) fn taken(mut stream: &UnixStream) -> io::Result<()> {
    stream.write_all(&[TAKEN])
}

fn send_inheritance(stream: &UnixStream, inheritance: &Inheritance) -> io::Result<()> {
    let Inheritance { rules, queue, listeners, seed, .. } = inheritance;
    let all: Vec<BorrowedFd<'_>> = [rules, queue].into_iter().chain(listeners).map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&all));
    let answer = json!({"seed": seed}).to_string();
    sendmsg(stream, &[IoSlice::new(answer.as_bytes())], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_are_answered() {
        for host in [
            "127.0.0.1:9330",
            "127.0.0.1",
            "127.9.9.9:1",
            "localhost:9330",
            "LOCALHOST",
            "[::1]:9330",
            "[::1]",
        ] {
            assert!(is_of_loopback(host), "{host}");
        }
        for host in [
            "evil.example:9330",
            "127.0.0.1.evil.example",
            "10.0.0.1:9330",
            "localhost.evil.example",
            "",
            "[::2]",
        ] {
            assert!(!is_of_loopback(host), "{host}");
        }
    }
}
