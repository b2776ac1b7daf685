//! The queues before the radios, which go and come with their interfaces.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;

use crate::config::Config;
use crate::kernel::qdisc::Qdisc;
use crate::log;

/// How often it is looked for interfaces.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of each interface, for those who ask; empty without a shaper.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shaped(Arc<Mutex<BTreeMap<String, String>>>);

impl Shaped {
    pub(crate) fn read(&self) -> BTreeMap<String, String> {
        lock(&self.0).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running shaper.
#[derive(Debug)]
pub(crate) struct Shaper {
    must_end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    qdisc: Qdisc,
    radios: Vec<String>,
    shaped: Shaped,
}

impl Shaper {
    /// Shapes the radios, if the file says so.
    ///
    /// # Errors
    /// If one cannot be shaped; none is then. One that is not there is waited for.
    pub(crate) fn start(config: &Config, shaped: &Shaped) -> io::Result<Option<Shaper>> {
        let Some(settings) = &config.shaper else { return Ok(None) };
        let qdisc = Qdisc::new(settings, config.gateway.number);
        let must_end = Arc::default();
        let radios = config.gateway.radio.clone();
        let mut shaper =
            Shaper { must_end, thread: None, qdisc: qdisc.clone(), radios, shaped: shaped.clone() };
        let what = format!("shaped to {} by {}", settings.rate, settings.queue.name());
        let mut interfaces = Vec::new();
        for name in &shaper.radios {
            let mut interface = Interface { name: name.clone(), index: 0, has_failed: false };
            interface
                .follow(&qdisc)
                .map_err(|error| io::Error::new(error.kind(), format!("shaper: {name}: {error}")))?;
            interface.tell(&shaped.0, &what);
            interfaces.push(interface);
        }
        let (must_end, shaped) = (Arc::clone(&shaper.must_end), shaped.clone());
        shaper.thread = Some(thread::Builder::new().name(String::from("shaper")).spawn(move || {
            let (must_end, changed) = &*must_end;
            loop {
                let waited = changed.wait_timeout_while(lock(must_end), LOOK, |must_end| !*must_end);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                for interface in &mut interfaces {
                    interface.follow_or_log(&qdisc);
                    interface.tell(&shaped.0, &what);
                }
            }
        })?);
        Ok(Some(shaper))
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        let (must_end, changed) = &*self.must_end;
        *lock(must_end) = true;
        changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has logged what was wrong.
            let _ = thread.join();
        }
        let _ = remove(&self.qdisc, &self.radios);
        lock(&self.shaped.0).clear();
    }
}

/// A radio's interface.
struct Interface {
    name: String,
    /// Its number while it is shaped, and 0 while it is not.
    index: u32,
    has_failed: bool,
}

impl Interface {
    /// Shapes the interface, if it has come.
    fn follow(&mut self, qdisc: &Qdisc) -> io::Result<()> {
        let index = nix::net::if_::if_nametoindex(self.name.as_str()).unwrap_or(0);
        if index != 0 && index != self.index {
            qdisc.install(index)?;
        }
        self.index = index;
        Ok(())
    }

    fn follow_or_log(&mut self, qdisc: &Qdisc) {
        match self.follow(qdisc) {
            Ok(()) => self.has_failed = false,
            Err(error) => {
                self.index = 0;
                if !std::mem::replace(&mut self.has_failed, true) {
                    let meaning = "packets are not shaped until this works; it is tried every second";
                    let facts = json!({"radio": self.name, "error": error.to_string(), "meaning": meaning});
                    log::event("shaper has failed", facts);
                }
            }
        }
    }

    fn tell(&self, shaped: &Mutex<BTreeMap<String, String>>, what: &str) {
        let state = if self.index != 0 { what } else { "not shaped" };
        lock(shaped).insert(self.name.clone(), state.to_owned());
    }
}

/// Removes the queues of a file that a killed gateway has left.
pub(crate) fn remove_queues(config: &Config) -> io::Result<()> {
    let Some(settings) = &config.shaper else { return Ok(()) };
    remove(&Qdisc::new(settings, config.gateway.number), &config.gateway.radio)
}

fn remove(qdisc: &Qdisc, radios: &[String]) -> io::Result<()> {
    let indices = radios.iter().filter_map(|name| nix::net::if_::if_nametoindex(name.as_str()).ok());
    indices.into_iter().try_for_each(|index| qdisc.remove(index))
}
