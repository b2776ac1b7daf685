//! Tests in network namespaces of their own.

use std::env;
use std::process::Command;

const INSIDE: &str = "LASTHOP_IN_NAMESPACE";

/// Whether this process is in a network namespace of its own. Otherwise runs the test with this name there, in a process
/// with nothing else, if the machine allows; if not, says that it skips.
///
/// # Panics
/// If the test fails there.
pub fn is_inside(test: &str) -> bool {
    if env::var(INSIDE).is_ok() {
        return true;
    }
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let found = ways.into_iter().find(|options| {
        let tried =
            Command::new("unshare").args(*options).args(["ip", "link", "add", "t0", "type", "veth"]).output();
        tried.is_ok_and(|output| output.status.success())
    });
    let Some(options) = found else {
        println!("skipped: no network namespaces with veth here");
        return false;
    };
    let program = env::current_exe().expect("a path");
    let mut command = Command::new("unshare");
    command.args(options).arg(program).args([test, "--exact", "--nocapture"]).env(INSIDE, "1");
    let output = command.output().expect("unshare runs");
    print!("{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    false
}
