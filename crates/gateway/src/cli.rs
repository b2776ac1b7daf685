//! The command line: `lasthop-gateway`, and `lasthop gateway`.

use std::io;
use std::path::{Path, PathBuf};

use crate::arms;
use crate::config::Config;
#[cfg(target_os = "linux")]
use crate::kernel::tunnel_routes::TunnelRoutes;
use crate::report::{self, Evidence, Report};
#[cfg(target_os = "linux")]
use crate::{agents, control, process, setup, shaper, tunnel};

/// A command, as its help says.
struct Command {
    name: &'static str,
    operands: &'static str,
    summary: &'static str,
    /// Each option with its meaning.
    options: &'static [(&'static str, &'static str)],
    /// Whether it needs a file; `None` if it takes none.
    needs_file: Option<bool>,
}

const JSON: (&str, &str) = ("--json", "Print JSON.");

const COMMANDS: [Command; 9] = [
    Command {
        name: "run",
        operands: "FILE [--observe] [--replace]",
        summary: "Help flows across the radio as the file says, until SIGTERM; SIGHUP reads it again.",
        options: &[
            ("--observe", "Help no flow, and count those that would be helped."),
            ("--replace", "Take over from the one that runs, which carries its connections to their end."),
        ],
        needs_file: Some(true),
    },
    Command {
        name: "check",
        operands: "FILE",
        summary: "Check a file and its key, and print it with every default.",
        options: &[],
        needs_file: Some(true),
    },
    Command {
        name: "rules",
        operands: "FILE",
        summary: "Print the rules of nft and the routes that `run` installs.",
        options: &[],
        needs_file: Some(true),
    },
    Command {
        name: "status",
        operands: "[FILE] [--json]",
        summary: "Print what the running gateway counts.",
        options: &[JSON],
        needs_file: Some(false),
    },
    Command {
        name: "report",
        operands: "[FILE] [--json]",
        summary: "Print what help gains, compared with the share of flows that is left alone.",
        options: &[JSON],
        needs_file: Some(false),
    },
    Command {
        name: "reload",
        operands: "[FILE]",
        summary: "Let the running gateway read its file again.",
        options: &[],
        needs_file: Some(false),
    },
    Command {
        name: "remove",
        operands: "FILE",
        summary: "Remove the routes, interfaces and queues of a gateway that was killed.",
        options: &[],
        needs_file: Some(true),
    },
    Command {
        name: "key",
        operands: "",
        summary: "Print a new key for a tunnel.",
        options: &[],
        needs_file: None,
    },
    Command {
        name: "schema",
        operands: "",
        summary: "Print the JSON Schema of files.",
        options: &[],
        needs_file: None,
    },
];

const WITHOUT_FILE: &str = "Without FILE, the running gateway is asked at /run/lasthop/control.\n";

/// The help of all commands.
fn help() -> String {
    let mut text = String::from(
        "Usage: lasthop-gateway COMMAND\n\n\
         Remedies on the connections and packets of a real link. Linux only.\n\nCommands:\n",
    );
    for Command { name, operands, summary, options, .. } in &COMMANDS {
        text.push_str(&format!("  {:<32}  {summary}\n", format!("{name} {operands}")));
        for (option, meaning) in *options {
            text.push_str(&format!("{:36}{option}  {meaning}\n", ""));
        }
    }
    text + "\n" + WITHOUT_FILE
}

impl Command {
    fn help(&self) -> String {
        let Command { name, operands, summary, options, needs_file } = self;
        let usage = format!("lasthop-gateway {name} {operands}");
        let mut text = format!("Usage: {}\n\n{summary}\n", usage.trim_end());
        if !options.is_empty() {
            text.push_str("\nOptions:\n");
        }
        for (option, meaning) in *options {
            text.push_str(&format!("  {option:<9}  {meaning}\n"));
        }
        if *needs_file == Some(false) {
            text = text + "\n" + WITHOUT_FILE;
        }
        text
    }
}

/// What is wrong.
#[derive(Debug)]
struct Failure(String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure(error.to_string())
    }
}

/// Runs the command that `arguments` state, without the program's name; returns what it prints.
///
/// # Errors
/// What is wrong, with the remedy.
pub fn run(arguments: &[String]) -> Result<String, String> {
    command(arguments).map_err(|Failure(message)| message)
}

fn wrong(message: impl Into<String>) -> Failure {
    Failure(message.into())
}

fn load(file: &Path) -> Result<Config, Failure> {
    Config::load(file).map_err(|error| wrong(error.to_string()))
}

fn command(arguments: &[String]) -> Result<String, Failure> {
    let (options, words): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(String::as_str).partition(|word| word.starts_with('-'));
    let find = |name: &str| COMMANDS.iter().find(|command| command.name == name);
    if options.iter().any(|option| ["--help", "-h"].contains(option)) {
        return Ok(words.first().and_then(|name| find(name)).map_or_else(help, Command::help));
    }
    if matches!(*options, ["--version" | "-V"]) && words.is_empty() {
        return Ok(format!("lasthop-gateway {}\n", env!("CARGO_PKG_VERSION")));
    }
    let Some((name, files)) = words.split_first() else {
        return Err(wrong(format!("no command\n\n{}", help())));
    };
    let Some(command) = find(name) else {
        let expected = lasthop_scenario::alternatives(name, COMMANDS.iter().map(|command| command.name));
        return Err(wrong(format!("found the command \"{name}\", {expected}")));
    };
    if *name == "report" && options.contains(&"--predict") {
        let remedy = "install the Python package, and run `lasthop gateway report FILE --predict`";
        return Err(wrong(format!(
            "report: --predict needs the simulator, which this program has not; {remedy}"
        )));
    }
    let known = || command.options.iter().map(|(option, _)| *option);
    if let Some(option) = options.iter().find(|option| !known().any(|known| known == **option)) {
        let expected = lasthop_scenario::alternatives(option, known());
        return Err(wrong(format!("{name}: found the option \"{option}\", {expected}")));
    }
    let file = match (files, command.needs_file) {
        ([file], Some(_)) => Some(PathBuf::from(file)),
        ([], Some(false) | None) => None,
        ([], _) => return Err(wrong(format!("{name}: expected a file"))),
        ([.., last], _) => {
            return Err(wrong(format!("{name}: found \"{last}\", which is one word too many")));
        }
    };
    let config = match &file {
        Some(file) => Some(load(file)?),
        None => None,
    };
    match (*name, file, config) {
        ("check", Some(file), Some(config)) => {
            let key = arms::check_key(&config)?;
            let caveats = config.caveats().into_iter().chain(config.directory_caveats(&file)).chain(key);
            #[cfg(target_os = "linux")]
            let caveats = caveats.chain(setup::bridge_caveats(&config)).chain(setup::bypass_fault(&config));
            let caveats = caveats.map(|caveat| format!("# Caveat: {caveat}\n"));
            Ok(caveats.collect::<String>() + &config.to_toml())
        }
        ("report", _, config) => {
            let report = reported(config.as_ref())?;
            match options.contains(&"--json") {
                true => Ok(serde_json::json!(report).to_string() + "\n"),
                false => Ok(report::summary(&report)),
            }
        }
        ("schema", ..) => Ok(Config::json_schema() + "\n"),
        #[cfg(target_os = "linux")]
        (name, file, config) => on_linux(name, &options, file, config),
        #[cfg(not(target_os = "linux"))]
        _ => Err(wrong("the gateway needs Linux")),
    }
}

/// The report of the running gateway; without one, that of the flows in its file.
fn reported(config: Option<&Config>) -> Result<Report, Failure> {
    #[cfg(target_os = "linux")]
    let asked = control::ask(&control_of(config), "report")
        .and_then(|answer| serde_json::from_value(answer).map_err(io::Error::from));
    #[cfg(not(target_os = "linux"))]
    let asked = Err(io::Error::other("the gateway needs Linux; `gateway.flows` states a file of its flows"));
    let file = config.and_then(|config| config.gateway.flows.as_ref()).filter(|path| path.exists());
    match (asked, file) {
        (Ok(report), _) => Ok(report),
        (Err(_), Some(path)) => Ok(Evidence::read(path)?.report()),
        (Err(error), None) => Err(error.into()),
    }
}

/// The control socket of a file.
#[cfg(target_os = "linux")]
fn control_of(config: Option<&Config>) -> PathBuf {
    let default = || PathBuf::from(crate::config::CONTROL);
    config.map_or_else(default, |config| config.gateway.control.clone())
}

#[cfg(target_os = "linux")]
fn on_linux(
    name: &str,
    options: &[&str],
    file: Option<PathBuf>,
    config: Option<Config>,
) -> Result<String, Failure> {
    let control = control_of(config.as_ref());
    match (name, file, config) {
        ("run", Some(file), Some(config)) => {
            let has = |option| options.contains(&option);
            process::run(&file, config, has("--observe"), has("--replace"))?;
            Ok(String::new())
        }
        ("rules", _, Some(config)) => {
            let rules = setup::rules_of(&config, 0, true, false).text();
            let note = "# The running gateway has a secret seed in place of 0.\n";
            let diversions = setup::diversions_of(&config);
            let tunnel = TunnelRoutes::of(&config).map_or_else(String::new, |routes| routes.text());
            Ok(format!("{note}{rules}{diversions}\n# Routes:\n{}{tunnel}", setup::routes_of(&config).text()))
        }
        ("remove", _, Some(_)) if control::ask(&control, "status").is_ok() => {
            let remedy = "stop it, which removes all by itself";
            Err(wrong(format!("a gateway runs with the control socket {}; {remedy}", control.display())))
        }
        ("remove", _, Some(config)) => {
            setup::check_unowned(&config)?;
            setup::routes_of(&config).remove()?;
            tunnel::remove_rules(&config)?;
            agents::remove_interfaces(&config)?;
            shaper::remove_queues(&config)?;
            Ok(String::new())
        }
        ("key", ..) => Ok(tunnel::new_key()?.to_hex() + "\n"),
        ("reload", ..) => control::ask(&control, "reload").map(|_| String::new()).map_err(Failure::from),
        _ => {
            let status = control::ask(&control, "status")?;
            match options.contains(&"--json") {
                true => Ok(format!("{status:#}\n")),
                false => Ok(summary(&status)),
            }
        }
    }
}

/// A status for people.
#[cfg(target_os = "linux")]
fn summary(status: &serde_json::Value) -> String {
    let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
    let radio: Vec<String> = status["radio"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str())
        .map(|name| match nix::net::if_::if_nametoindex(name) {
            Ok(_) => name.to_owned(),
            Err(_) => format!("{name} (there is none now)"),
        })
        .collect();
    let observing = if status["is_observing"] == true { ", observing" } else { "" };
    let running = status["running_s"].as_f64().unwrap_or_default();
    let mut lines =
        format!("{}: radio {}, running for {running:.0} s{observing}\n", text("file"), radio.join(", "));
    if status["stopped_s"].is_number() {
        lines.push_str("harm was found: no flow is helped until the file is read again\n");
    }
    let confined = |part: &str| status["sandbox"][part].as_str().unwrap_or_default().to_owned();
    lines.push_str(&format!("system calls {}; files {}\n", confined("system_calls"), confined("files")));
    for (radio, state) in status["shaper"].as_object().into_iter().flatten() {
        lines.push_str(&format!("{radio}: {}\n", state.as_str().unwrap_or_default()));
    }
    let share = status["unhelped_share"].as_f64().unwrap_or_default();
    if let Some(flows) = status["unhelped_flows"].as_u64().filter(|_| share > 0.0) {
        lines.push_str(&format!("{flows:>20}  unhelped, a share of {share} to compare with\n"));
    }
    // Without a tunnel the kernel counts those left alone.
    let counters = status["counters"].as_object().into_iter().flatten();
    for (name, value) in counters.filter(|(name, _)| *name != "unhelped" || status["tunnel"].is_object()) {
        lines.push_str(&format!("{:>20}  {}\n", value.to_string(), name.replace('_', " ")));
    }
    if let Some(tunnel) = status["tunnel"].as_object() {
        let state = match (tunnel["is_up"] == true, tunnel["peer"].as_str()) {
            (true, Some(peer)) => format!("reaches the gateway at {peer}"),
            (false, Some(peer)) => format!("the gateway at {peer} is silent: packets take other routes"),
            _ => String::from("has not found the other gateway: packets take other routes"),
        };
        let is_forged = tunnel["is_up"] == false && tunnel["counters"]["forged"] != 0;
        let doubt = if is_forged {
            "; what comes fails authentication: is the key the same at both ends?"
        } else {
            ""
        };
        lines.push_str(&format!(
            "tunnel {}: {state}{doubt}\n",
            tunnel["interface"].as_str().unwrap_or_default()
        ));
        if let (Some(rtt), Some(loss)) = (tunnel["rtt_s"].as_f64(), tunnel["loss"].as_f64()) {
            lines.push_str(&format!("{:>17.1} ms  round trip\n{:>18.1} %  lost\n", rtt * 1e3, loss * 1e2));
        }
        for (name, value) in tunnel["counters"].as_object().into_iter().flatten() {
            lines.push_str(&format!("{:>20}  {}\n", value.to_string(), name.replace('_', " ")));
        }
    }
    for (name, value) in status["agents"].as_object().into_iter().flatten() {
        lines.push_str(&format!("{:>20}  {}\n", value.to_string(), name.replace('_', " ")));
    }
    lines
}
