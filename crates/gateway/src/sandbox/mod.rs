//! The confinement of the process to the system calls and files that it needs (seccomp(2), landlock(7)).
//!
//! Packets of strangers are read by this process. Somebody who took it over could not start a program, make memory executable,
//! change modes of files or connect to services by local stream sockets, and with Landlock not use files outside the directories
//! of its own. The process remains root's: without Landlock, files of root stay within reach.

mod calls;
mod files;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use crate::config::Config;
use crate::log;

/// How far the process is confined: in each part `"confined"`, or what is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Sandbox {
    system_calls: String,
    files: String,
    /// Files that reloading reads.
    #[serde(skip)]
    read: Vec<PathBuf>,
}

/// The state of a part that is confined.
const CONFINED: &str = "confined";

impl Sandbox {
    /// Confines this thread, and those that it starts, as far as the kernel can. The log says what it cannot.
    ///
    /// # Errors
    /// If there is no list of system calls.
    pub(crate) fn enter(file: &Path, config: &Config) -> io::Result<Sandbox> {
        let read = files::read(file, config);
        if !config.gateway.sandbox {
            let off = || String::from("not confined: gateway.sandbox is false");
            return Ok(Sandbox { system_calls: off(), files: off(), read });
        }
        // The system calls that confine files are not on the list.
        let files = files::confine(&read, config);
        let sandbox = Sandbox { system_calls: calls::confine()?, files, read };
        for (part, state) in [("system calls", &sandbox.system_calls), ("files", &sandbox.files)] {
            if state != CONFINED {
                log::event("caveat", json!({"caveat": format!("{part}: {state}")}));
            }
        }
        Ok(sandbox)
    }

    /// Why reloading has failed with `error`, if it names a file that may not be read, of those at the start or the new `key`.
    pub(crate) fn obstacle(&self, error: &io::Error, key: Option<&Path>) -> Option<String> {
        let error = error.to_string();
        let is_refused = |path: &&Path| {
            error.contains(&*path.to_string_lossy())
                && File::open(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        let path = self.read.iter().map(PathBuf::as_path).chain(key).find(is_refused)?;
        let remedy = "a file that was not there at its start needs a new one, as of `run --replace`";
        Some(format!("the running gateway may not read {}; {remedy}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixStream;
    use std::process::Command;
    use std::thread;

    use rustix::net::{AddressFamily, SocketType, socket};

    use super::*;

    /// What a thread that is confined may do, and what it may not.
    #[test]
    fn what_is_not_needed_is_refused() {
        let directory = std::env::temp_dir().join(format!("lasthop-sandbox-{}", std::process::id()));
        for name in ["", "settings", "targets", "flows", "other"] {
            fs::create_dir_all(directory.join(name)).expect("a directory");
        }
        let [file, target, secret, flows] =
            ["settings/gateway.toml", "targets/gateway.toml", "other/secret", "flows/flows.jsonl"]
                .map(|name| directory.join(name));
        symlink(&target, &file).expect("a link");
        let text = format!(
            "[gateway]\nradio = [\"radio0\"]\nflows = {flows:?}\ncontrol = {:?}\n",
            directory.join("flows/control")
        );
        [&target, &secret].into_iter().for_each(|path| fs::write(path, &text).expect("a file"));
        let config = Config::load(&file).expect("a valid file");
        let confined = thread::spawn(move || {
            let sandbox = Sandbox::enter(&file, &config).expect("the kernel has both, or one, or none");
            let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            if sandbox.system_calls == CONFINED {
                assert!(Command::new("/bin/true").spawn().is_err_and(denied), "a program");
                let family = AddressFamily::VSOCK;
                assert_eq!(socket(family, SocketType::STREAM, None).err(), Some(rustix::io::Errno::PERM));
                assert!(std::env::set_current_dir("/").is_err_and(denied), "a call that is not on the list");
                let everybody = fs::Permissions::from_mode(0o666);
                assert!(fs::set_permissions(&secret, everybody).is_err_and(denied), "the mode of a file");
                assert!(UnixStream::connect("/none").is_err_and(denied), "a service of this host");
                assert!(nix::net::if_::if_nametoindex("lo").is_ok());
            }
            if sandbox.files == CONFINED {
                assert!(fs::read(&secret).is_err_and(denied) && fs::read("/etc/passwd").is_err_and(denied));
                assert!(fs::write(&file, "").is_err_and(denied), "its settings");
                assert!(fs::remove_file(&secret).is_err_and(denied));
            }
            // What it needs.
            assert_eq!(fs::read_to_string(&file).expect("its settings"), text);
            fs::write(&flows, "{}").expect("the file of flows");
            fs::rename(&flows, flows.with_extension("1")).expect("a full one");
            assert!(fs::read("/etc/hosts").is_ok() || !Path::new("/etc/hosts").exists());
            thread::spawn(|| ()).join().expect("a thread");
            let error = io::Error::other(format!("{}: it is wrong", secret.display()));
            assert_eq!(sandbox.obstacle(&error, None), None, "an error of another kind");
            let is_named = sandbox.obstacle(&error, Some(&secret)).is_some();
            assert_eq!(is_named, sandbox.files == CONFINED, "a key that was not there at the start");
            sandbox
        });
        let sandbox = confined.join().expect("what it needs");
        println!("{sandbox:?}");
        fs::remove_dir_all(directory).expect("a directory");
    }
}
