//! The directories that a confined gateway may use: those of its files, with all that is beneath them.

use std::path::{Component, Path, absolute};

use super::Config;

/// The directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().unwrap_or(path);
    if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
}

/// Whether a directory is one that programs share, by its place: the root, its directories such as /run, and those of /home, /usr
/// and /var.
fn is_shared(directory: &Path) -> bool {
    let names = directory.components().filter_map(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    matches!(names.collect::<Vec<_>>()[..], [] | [_] | ["home" | "usr" | "var", _])
}

impl Config {
    /// The directories of its files, and of `file`, that the sandbox opens although programs share them.
    pub(crate) fn directory_caveats(&self, file: &Path) -> Vec<String> {
        let key = self.tunnel.as_ref().map(|tunnel| &*tunnel.key);
        let gateway = &self.gateway;
        let uses = [
            ("the file", Some(file), "read all files"),
            ("tunnel.key", key, "read all files"),
            ("gateway.flows", gateway.flows.as_deref(), "read, change and remove all files"),
            ("gateway.control", Some(&*gateway.control), "make sockets, and remove all files,"),
        ];
        let caveat = |(name, path, what): (&str, Option<&Path>, &str)| {
            let path = absolute(path?).ok()?;
            let directory = directory_of(&path);
            is_shared(directory).then(|| {
                format!(
                    "{name}: found {}, so that the sandbox lets the process {what} beneath {}, which programs share; expected a \
                     directory of its own, such as {}",
                    path.display(),
                    directory.display(),
                    directory.join("lasthop").display()
                )
            })
        };
        if gateway.sandbox { uses.into_iter().filter_map(caveat).collect() } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_programs_share_are_told() {
        let caveats = |file: &str, keys: &str| {
            let text = format!("[gateway]\nradio = [\"wlan0\"]\n{keys}\n");
            let config = Config::parse(&text, "gateway.toml").unwrap_or_else(|error| panic!("{error}"));
            config.directory_caveats(Path::new(file))
        };
        assert_eq!(caveats("/etc/lasthop/gateway.toml", ""), <[&str; 0]>::default());
        assert_eq!(caveats("/root/gateway.toml", "sandbox = false"), <[&str; 0]>::default());
        for file in ["/gateway.toml", "/root/gateway.toml", "/home/user/gateway.toml"] {
            assert!(caveats(file, "")[0].starts_with(&format!("the file: found {file}, so that")), "{file}");
        }
        let found = caveats("/etc/lasthop/a", "control = \"/run/a.sock\"\nflows = \"/var/lib/flows.jsonl\"");
        let [flows, control] = &found[..] else { panic!("{found:?}") };
        assert!(flows.contains("remove all files beneath /var/lib,"), "{flows}");
        assert!(control.ends_with("such as /run/lasthop"), "{control}");
    }
}
