//! The gateway as a process: set-up, privileges, signals, its end.

use std::io;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Instant;

use nix::sys::signal::{SigSet, Signal};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use serde_json::json;

use crate::agents;
use crate::arms;
use crate::config::Config;
use crate::control::{self, Commands, Control};
use crate::counters::Counters;
use crate::gateway::{Command, End, Gateway, Room};
use crate::log;
use crate::notify::Manager;
use crate::observe::{self, Shared};
use crate::sandbox::Sandbox;
use crate::setup;
use crate::shaper::Shaped;
use crate::tunnel::Board;

/// Runs the gateway of `config`, which was read from `file`, until a signal ends it or a successor takes over.
///
/// While observing, it helps no flow. With `replaces`, it takes over from the one that runs.
///
/// # Errors
/// If it cannot be set up; the message says what is missing.
pub(crate) fn run(file: &Path, config: Config, is_observing: bool, replaces: bool) -> io::Result<()> {
    // Before there are other threads, which inherit signals and privileges.
    let mut signals = SigSet::empty();
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().for_each(|signal| signals.add(signal));
    signals.thread_block()?;
    let room = Room {
        connections: raise_limits(config.gateway.connections)?,
        threads: config.gateway.threads.map_or_else(processors, usize::from),
    };
    log_other_threads();
    keep_network_privileges()?;
    // The control socket is root's alone.
    umask(Mode::RWXG | Mode::RWXO);
    observe::check_file(&config)?;

    let (sender, commands) = mpsc::channel();
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let told = Commands::new(sender, bell.try_clone()?);
    let counters = Arc::new(Counters::default());
    if replaces && !is_observing {
        agents::check(&config)?;
    }
    if !is_observing {
        setup::check_reverse_paths(&config)?;
    }
    let path = config.gateway.control.clone();
    let predecessor = if replaces { Some(control::connect(&path)?) } else { None };
    if predecessor.is_none() && control::ask(&path, "status").is_ok() {
        let remedy = "state --replace to take over from it";
        return Err(io::Error::other(format!(
            "a gateway runs with the control socket {}; {remedy}",
            path.display()
        )));
    }
    let facts =
        json!({"file": file, "radio": config.radios(), "is_observing": is_observing, "replaces": replaces});
    let caveats = config.caveats().into_iter().filter(|_| !is_observing);
    for caveat in caveats.chain(config.directory_caveats(file)).chain(setup::bridge_caveats(&config)) {
        log::event("caveat", json!({"caveat": caveat}));
    }
    // A confined process can make no socket that reaches services of this host.
    let (socket, manager) = (control::prepare(&path)?, Manager::of_environment()?);
    // Before a running gateway gives up what it has, as is all else that may fail.
    let metrics = config.gateway.metrics.map(control::listen_for_metrics).transpose()?;
    let sandbox = Sandbox::enter(file, &config)?;
    arms::key_of(&config)?;
    let inheritance = predecessor.as_ref().map(control::take_over).transpose()?;
    let (evidence, board, shaped) = (Shared::default(), Board::default(), Shaped::default());
    let mut gateway = Gateway::start(
        config.clone(),
        inheritance,
        is_observing,
        room,
        (Arc::clone(&counters), evidence.clone(), board.clone(), shaped.clone()),
        (commands, bell),
    )?;
    predecessor.as_ref().map(control::taken).transpose()?;
    let control = Arc::new(Control {
        file: file.to_owned(),
        config: Mutex::new(config),
        counters,
        evidence,
        board,
        shaped,
        sandbox,
        commands: told,
        is_observing,
        began: Instant::now(),
        metrics,
    });
    control.serve(socket)?;
    obey_signals(signals, &control)?;
    log::event("started", facts);
    manager.ready();
    match gateway.run(&manager)? {
        End::Stopped => {
            let removed = gateway.remove();
            // The next one makes it anew; what it holds is of no use.
            let _ = std::fs::remove_file(&path);
            log::event("stopped", json!({}));
            removed
        }
        End::HandedOver => {
            manager.succeeded();
            gateway.drain()?;
            log::event("drained", json!({}));
            Ok(())
        }
    }
}

/// The processors that this process may use.
fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// The descriptors of a split connection: two sockets, and a pipe while data wait in one direction.
const DESCRIPTORS: u64 = 4;

/// Lets the process have the descriptors of so many connections, as far as it may. Returns how many it has them for.
fn raise_limits(connections: u32) -> io::Result<u32> {
    const OTHERS: u64 = 256;
    let needed = OTHERS + DESCRIPTORS * u64::from(connections);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(connections);
    }
    let raised = maximum.map(|maximum| maximum.max(needed));
    if setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: raised }).is_ok() {
        return Ok(connections);
    }
    // Above the hard limit only with CAP_SYS_RESOURCE.
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let fitting = maximum.unwrap_or(needed).saturating_sub(OTHERS) / DESCRIPTORS;
    let remedy = "raise the hard limit of open files, such as by LimitNOFILE of systemd";
    log::event("fewer connections", json!({"stated": connections, "possible": fitting, "remedy": remedy}));
    Ok(fitting as u32)
}

/// Gives up all privileges but those for addresses of other hosts, packet filters, and low ports of clients, for this thread
/// and those that it starts.
fn keep_network_privileges() -> io::Result<()> {
    nix::sys::prctl::set_no_new_privs()?;
    let kept = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable }).map_err(
        |error| {
            io::Error::new(
                io::Error::from(error).kind(),
                format!("CAP_NET_ADMIN and CAP_NET_RAW are needed ({error})"),
            )
        },
    )
}

/// Says so if the process, such as an interpreter, has threads that keep their privileges and take signals.
fn log_other_threads() {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        let remedy = "run lasthop-gateway, which has no others";
        log::event("caveat", json!({"caveat": "other threads keep their privileges", "remedy": remedy}));
    }
}

/// Reloads at SIGHUP, and stops at SIGTERM and SIGINT.
fn obey_signals(signals: SigSet, control: &Arc<Control>) -> io::Result<()> {
    let control = Arc::clone(control);
    thread::Builder::new().name(String::from("signals")).spawn(move || {
        while let Ok(signal) = signals.wait() {
            match signal {
                Signal::SIGHUP => {
                    // The log says how it went.
                    let _ = control.reload();
                }
                _ => control.commands.tell(Command::Stop),
            }
        }
    })?;
    Ok(())
}
