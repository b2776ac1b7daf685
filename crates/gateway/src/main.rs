//! The program `lasthop-gateway`.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use lasthop_gateway::cli;

/// The exit code for what is wrong, as of `lasthop`.
const WRONG: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match cli::run(&arguments) {
        Ok(text) => {
            // Whoever reads may have seen enough.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(message) => {
            let _ = writeln!(io::stderr(), "error: {message}");
            ExitCode::from(WRONG)
        }
    }
}
