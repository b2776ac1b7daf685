//! The files that the process may use.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::CONFINED;
use crate::config::{Config, directory_of};

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

/// The directories of a file, in which another may take its place: that of its name, and that of the file to which links lead.
fn directories(path: &Path) -> Vec<PathBuf> {
    let target = path.canonicalize().ok();
    [Some(path), target.as_deref()].into_iter().flatten().map(|path| directory_of(path).to_owned()).collect()
}

/// Confines this thread to what the settings need; returns the state.
pub(super) fn confine(read: &[PathBuf], config: &Config) -> String {
    let gateway = &config.gateway;
    let of = |path: &PathBuf| if path.as_os_str() == HOSTS { vec![path.clone()] } else { directories(path) };
    let read = read.iter().flat_map(of);
    let write = gateway.flows.iter().flat_map(|path| directories(path));
    let rights: [(Vec<PathBuf>, BitFlags<AccessFs>); 4] = [
        (read.collect(), AccessFs::ReadFile.into()),
        (
            write.collect(),
            AccessFs::ReadFile
                | AccessFs::WriteFile
                | AccessFs::MakeReg
                | AccessFs::RemoveFile
                | AccessFs::Truncate,
        ),
        (vec![directory_of(&gateway.control).to_owned()], AccessFs::MakeSock | AccessFs::RemoveFile),
        (vec![TUN.into()], AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev),
    ];
    let restrict = || {
        let rules = Ruleset::default().handle_access(AccessFs::from_all(COMPLETE))?;
        let mut rules = rules.scope(Scope::from_all(COMPLETE))?.create()?;
        for (paths, rights) in rights {
            rules = rules.add_rules(path_beneath_rules(paths, rights))?;
        }
        rules.restrict_self()
    };
    match restrict().map(|RestrictionStatus { ruleset, .. }| ruleset) {
        Ok(RulesetStatus::FullyEnforced) => CONFINED.to_owned(),
        Ok(RulesetStatus::PartiallyEnforced) => {
            String::from("confined as far as this kernel can; Linux 6.12 can completely")
        }
        Ok(RulesetStatus::NotEnforced) => {
            String::from("not confined: this kernel has no Landlock, or was booted without it (lsm=landlock)")
        }
        Err(error) => {
            format!("not confined: Landlock is refused, as by the sandbox of a container ({error})")
        }
    }
}
