//! The thread that keeps the interface of a tunnel and its routes as they should be, so that no packet waits for the kernel's
//! answers.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;

use crate::kernel::links;
use crate::kernel::tunnel_routes::TunnelRoutes;
use crate::log;

/// How often it is looked for changes by others.
const LOOK: Duration = Duration::from_secs(1);

/// How the interface should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Whether routes lead into the tunnel.
    pub(super) is_up: bool,
    /// The largest packet.
    pub(super) mtu: u16,
}

#[derive(Debug, Default)]
struct State {
    /// `None`: nothing is done.
    wanted: Option<Wanted>,
    /// What was done last.
    done: Option<Wanted>,
    /// Whether something is being done.
    is_busy: bool,
    failure: Option<io::Error>,
    must_end: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread, as its owner sees it.
#[derive(Debug)]
pub(super) struct Keeper {
    shared: Arc<Shared>,
    wanted: Option<Wanted>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(interface: &str, routes: TunnelRoutes) -> io::Result<Keeper> {
        let shared = Arc::new(Shared::default());
        let keeping =
            Keeping { interface: interface.to_owned(), routes, index: 0, mtu: 0, has_no_routes: false };
        let given = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name(String::from("routes")).spawn(move || keeping.run(&given))?;
        Ok(Keeper { shared, wanted: None, thread: Some(thread) })
    }

    /// States how the interface should be. It soon is, or there is a [failure](Keeper::failure).
    pub(super) fn want(&mut self, wanted: Wanted) {
        if self.wanted.replace(wanted) != Some(wanted) {
            self.shared.lock().wanted = Some(wanted);
            self.shared.changed.notify_all();
        }
    }

    /// Why the interface is not as it should be, if so. It is told once.
    pub(super) fn failure(&self) -> Option<io::Error> {
        self.shared.lock().failure.take()
    }

    /// Does nothing from now on, until it is wanted. What is being done is awaited.
    pub(super) fn pause(&mut self) {
        self.wanted = None;
        let mut state = self.shared.lock();
        (state.wanted, state.done) = (None, None);
        while state.is_busy {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.failure = None;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.lock().must_end = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has logged what was wrong.
            let _ = thread.join();
        }
    }
}

/// Something is being done, until this is dropped, also by a panic.
struct Busy<'a>(&'a Shared);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.lock().is_busy = false;
        self.0.changed.notify_all();
    }
}

/// The thread itself.
struct Keeping {
    interface: String,
    routes: TunnelRoutes,
    index: u32,
    mtu: u16,
    has_no_routes: bool,
}

impl Keeping {
    fn run(mut self, shared: &Shared) {
        let mut state = shared.lock();
        while !state.must_end {
            if state.wanted == state.done {
                let waited = shared
                    .changed
                    .wait_timeout_while(state, LOOK, |state| !state.must_end && state.wanted == state.done);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            let Some(wanted) = state.wanted.filter(|_| !state.must_end) else { continue };
            state.is_busy = true;
            drop(state);
            let busy = Busy(shared);
            let outcome = self.keep(wanted);
            drop(busy);
            state = shared.lock();
            // It was told to pause meanwhile, or has something new to do.
            if state.wanted.is_some() {
                (state.done, state.failure) = (Some(wanted), outcome.err());
            }
        }
    }

    /// Makes the interface as it should be.
    fn keep(&mut self, wanted: Wanted) -> io::Result<()> {
        let name = &self.interface;
        let is_up = links::is_up(name)?
            .ok_or_else(|| io::Error::new(ErrorKind::NotFound, format!("the interface {name} is gone")))?;
        let index = nix::net::if_::if_nametoindex(name.as_str())?;
        if !is_up || (self.index, self.mtu) != (index, wanted.mtu) {
            (self.index, self.mtu) = (links::set_up_tunnel(name, wanted.mtu)?, wanted.mtu);
        }
        self.routes.install()?;
        self.lead(wanted.is_up);
        Ok(())
    }

    /// Lets the routes lead into the tunnel while it is up: all, or if one cannot be made, none.
    fn lead(&mut self, is_up: bool) {
        let Err(error) = self.routes.lead(self.index, is_up) else {
            self.has_no_routes = false;
            return;
        };
        let _ = self.routes.lead(self.index, false);
        if !std::mem::replace(&mut self.has_no_routes, true) {
            let meaning = "packets take other routes until this works; it is tried every second";
            log::event("tunnel has no routes", json!({"error": error.to_string(), "meaning": meaning}));
        }
    }
}
