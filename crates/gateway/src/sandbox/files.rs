//! The files that the process may use.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::CONFINED;
use crate::config::Config;

/// Names of hosts.
const HOSTS: &str = "/etc/hosts";

/// The file by which interfaces of tunnels are made.
const TUN: &str = "/dev/net/tun";

/// The version of Landlock that knows all that is restricted here, of Linux 6.12. Earlier ones restrict less.
const COMPLETE: ABI = ABI::V6;

/// The files that are read again at a reload.
pub(super) fn read(file: &Path, config: &Config) -> Vec<PathBuf> {
    let key = config.tunnel.iter().map(|tunnel| tunnel.key.clone());
    [file.to_owned(), HOSTS.into()].into_iter().chain(key).filter(|path| path.exists()).collect()
}

/// The directory of a file, in which another may take its place.
fn directory(path: &Path) -> &Path {
    let parent = path.parent().unwrap_or(path);
    if parent.as_os_str().is_empty() { Path::new(".") } else { parent }
}

/// Confines this thread to what the settings need; returns the state.
pub(super) fn confine(read: &[PathBuf], config: &Config) -> io::Result<String> {
    let gateway = &config.gateway;
    let hosts = |path: &&PathBuf| path.as_os_str() == HOSTS;
    let read = read.iter().map(|path| if hosts(&path) { path } else { directory(path) });
    let write = gateway.flows.iter().map(|path| directory(path));
    let rights: [(Vec<&Path>, BitFlags<AccessFs>); 4] = [
        (read.collect(), AccessFs::ReadFile.into()),
        (
            write.collect(),
            AccessFs::ReadFile
                | AccessFs::WriteFile
                | AccessFs::MakeReg
                | AccessFs::RemoveFile
                | AccessFs::Truncate,
        ),
        (vec![directory(&gateway.control)], AccessFs::MakeSock | AccessFs::RemoveFile),
        (vec![Path::new(TUN)], AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev),
    ];
    let restrict = || {
        let rules = Ruleset::default().handle_access(AccessFs::from_all(COMPLETE))?;
        let mut rules = rules.scope(Scope::from_all(COMPLETE))?.create()?;
        for (paths, rights) in rights {
            rules = rules.add_rules(path_beneath_rules(paths, rights))?;
        }
        rules.restrict_self()
    };
    let RestrictionStatus { ruleset, .. } =
        restrict().map_err(|error| io::Error::other(format!("Landlock: {error}")))?;
    Ok(match ruleset {
        RulesetStatus::FullyEnforced => CONFINED.to_owned(),
        RulesetStatus::PartiallyEnforced => {
            String::from("confined as far as this kernel can; Linux 6.12 can completely")
        }
        RulesetStatus::NotEnforced => String::from("not confined: this kernel has no Landlock"),
    })
}
