//! Reading and writing of scenarios.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::hash::Hasher;
use std::io::Read as _;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use fnv::FnvHasher;
use indexmap::IndexMap;
use lasthop_proto::scheme::{ExternalSchemes, Scheme, Schemes};
use lasthop_proto::tcp;
use toml::{Table, Value};

use super::grid;
use crate::document::{Document, Source};
use crate::error::{ErrorKind, Fault, Location, ScenarioError};
use crate::network::{LINK_TABLES, Stated};
use crate::schema::{Point, Scenario, Sweep, settings_table, text};
use crate::tree::{self, Change};

/// Largest scenario file, in bytes; larger ones, such as devices without an end, are refused at once.
const MAX_SIZE: u64 = 16 << 20;

/// The tables with settings of TCP that have no effect where no connection uses it.
const TCP_TABLES: [&str; 2] = ["tcp", "host"];

/// The name of the file at `path` in messages, and its text. `expected` is what a smaller file would be.
///
/// # Errors
/// If the file cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_text(path: &Path, expected: &str) -> Result<(String, String), ScenarioError> {
    let name = path.display().to_string();
    let location = || Location::File { name: &name, text: "", span: None };
    let whole = |message| ScenarioError::new(ErrorKind::Unreadable, message, location());
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_SIZE + 1).read_to_end(&mut bytes))
        .map_err(|error| whole(format!("cannot read the file: {error}")))?;
    if bytes.len() as u64 > MAX_SIZE {
        let most = MAX_SIZE >> 20;
        return Err(whole(format!("found more than {most} MiB, expected {expected}")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|&byte| byte == b'\n').count();
        whole(format!("not TOML: line {line} has a byte that is not UTF-8"))
    })?;
    Ok((name, text))
}

/// Where to report `fault`: a setting of the sender that an override or the sweep states is one of `[tcp]` there.
fn place(fault: &Fault, document: &Document) -> Vec<String> {
    match fault.path.as_slice() {
        [table, _, key] if table == "senders" && document.keys_set_in("tcp").any(|set| set == key) => {
            vec![String::from("tcp"), key.clone()]
        }
        path => path.to_vec(),
    }
}

/// Whether the setting at `path` has an effect at one of `points`, given the settings without effect at each. If the
/// sweep varies it, two of its values must have one beside the same values of the others.
fn has_effect(path: &[String], points: &[Point], unused: &[Vec<Fault>]) -> bool {
    let axis = path.join(".");
    let values: HashSet<&str> = points
        .iter()
        .flat_map(|point| &point.parameters)
        .filter(|(key, _)| *key == axis)
        .map(|(_, value)| value.as_str())
        .collect();
    let mut seen = HashSet::new();
    points.iter().zip(unused).filter(|(_, unused)| unused.iter().all(|fault| fault.path != path)).any(
        |(point, _)| {
            let others: Vec<_> = point.parameters.iter().filter(|(key, _)| *key != axis).collect();
            values.len() < 2 || !seen.insert(others)
        },
    )
}

/// Those of `paths` that lead to one of the top-level `tables`, or into one.
fn within<'a>(paths: impl Iterator<Item = &'a str>, tables: &[&str]) -> Vec<String> {
    let is_within = |path: &&str| path.split('.').next().is_some_and(|table| tables.contains(&table));
    paths.filter(is_within).map(str::to_owned).collect()
}

impl Stated {
    /// What `document` states. If it states all keys of `[tcp]`, as the canonical form does, only those that differ from the
    /// profile count. A key that an override resets to its profile's value does not count. Where no connection uses TCP, only
    /// changes from number `since` on count.
    fn of(document: &Document, scenario: &Scenario, since: usize) -> Stated {
        let all: BTreeSet<String> = document.keys_of("tcp").map(str::to_owned).collect();
        let mut set: BTreeSet<String> = document.keys_set_in("tcp").map(str::to_owned).collect();
        let every = settings_table(&scenario.tcp);
        let own: BTreeSet<String> = scenario.tcp.own_keys().map(str::to_owned).collect();
        let is_canonical = every.keys().all(|key| all.contains(key));
        let mut all = match is_canonical {
            true => own.union(&set).cloned().collect(),
            false => all,
        };
        if set.iter().any(|key| !own.contains(key)) {
            let old: tcp::Override = document.read_unchanged("tcp").unwrap_or_default();
            let old = settings_table(&old);
            let is_changed = |key: &String| old.get(key).is_some_and(|old| every.get(key) != Some(old));
            all.retain(|key| !set.contains(key) || own.contains(key) || !is_changed(key));
        }
        if document.is_unchanged("sender") {
            set.extend(all.iter().cloned());
        }
        let changed = |tables: &[&str]| within(document.changed(), tables);
        // A change of the topology leaves tables of the file unused, which the canonical form keeps. Those of wired and of wireless
        // links may be there for other topologies, as may be all that programs change.
        let count = !is_canonical && changed(&["topology"]).is_empty();
        let of_file =
            ["cell", "wifi", "shared"].into_iter().filter(|table| count && document.is_unchanged(table));
        // The file's sender may be there for connections that changes have replaced.
        let is_kept = is_canonical || !changed(&["topology", "connection", "application"]).is_empty();
        let is_of_file = document.read_unchanged("sender") == scenario.sender;
        let sender = scenario.sender.is_some() && !(is_kept && is_of_file);
        let assigned = within(document.assigned(), &LINK_TABLES);
        let tables = of_file.map(str::to_owned).chain(assigned).collect();
        let overrides = within(document.changed().skip(since), &TCP_TABLES);
        Stated { all, set, overrides, sender, tables }
    }

    /// Adds what `sweep` varies in `document`, as [`Stated::of`] does.
    fn sweep(&mut self, sweep: &Sweep, document: &Document, since: usize) {
        let paths = || sweep.axes.iter().map(|axis| axis.path.as_str());
        for key in paths().filter_map(|path| path.strip_prefix("tcp.")) {
            self.set.insert(key.to_owned());
            self.all.insert(key.to_owned());
        }
        let swept = |tables: &[&str]| within(paths(), tables);
        self.sender |= !swept(&["sender"]).is_empty();
        if !swept(&["topology"]).is_empty() {
            self.tables.clear();
        }
        let is_new = |path: &String| {
            let path = format!("sweep.{path}");
            since == 0 || document.changed().skip(since).any(|change| grid::related(change, &path))
        };
        self.overrides.extend(swept(&TCP_TABLES).into_iter().filter(is_new));
        self.tables.extend(swept(&LINK_TABLES));
    }
}

/// The keys of `[tcp]` in `document` that apply to senders, too: those of overrides and of the sweep, which prevail over a sender's own
/// table, and those of the file. But with a `profile` the file's `[tcp]` is a TCP of its own, which a sender from elsewhere replaces, as it
/// does a `congestion`.
fn keys_for_senders(document: &Document) -> impl Iterator<Item = (&str, bool)> {
    let set: BTreeSet<&str> = document.keys_set_in("tcp").collect();
    let names_sender = document.is_unchanged("sender");
    let is_replaced =
        !names_sender && document.keys_of("tcp").any(|key| key == "profile" && !set.contains(key));
    document.keys_of("tcp").filter_map(move |key| {
        let applies = !is_replaced && (names_sender || key != "congestion");
        (set.contains(key) || applies).then_some((key, set.contains(key)))
    })
}

impl Scenario {
    /// Reads the file at `path` and applies `overrides` in order, each in the form `"radio.rate=2 Mbps"`.
    ///
    /// # Errors
    /// If the file cannot be read, or the scenario is invalid.
    pub fn load<S: AsRef<str>>(path: &Path, overrides: &[S]) -> Result<Scenario, ScenarioError> {
        Scenario::load_with(path, overrides, &ExternalSchemes::default())
    }

    /// As [`load`](Scenario::load); the scenario may name `external` schemes, too.
    ///
    /// # Errors
    /// As [`load`](Scenario::load).
    pub fn load_with<S: AsRef<str>>(
        path: &Path,
        overrides: &[S],
        external: &ExternalSchemes,
    ) -> Result<Scenario, ScenarioError> {
        let (name, text) = read_text(path, "a scenario; data belong into files of their own")?;
        Scenario::parse_with(&text, &name, overrides, external)
    }

    /// Parses the scenario in `text` and applies `overrides` in order; messages call the text `name`.
    ///
    /// # Errors
    /// If the scenario is invalid.
    pub fn parse<S: AsRef<str>>(text: &str, name: &str, overrides: &[S]) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(text, name, overrides, &ExternalSchemes::default())
    }

    /// As [`parse`](Scenario::parse); the scenario may name `external` schemes, too.
    ///
    /// # Errors
    /// As [`parse`](Scenario::parse).
    pub fn parse_with<S: AsRef<str>>(
        text: &str,
        name: &str,
        overrides: &[S],
        external: &ExternalSchemes,
    ) -> Result<Scenario, ScenarioError> {
        let document = Document::parse(text, name)?.with_schemes(external);
        let overrides = overrides.iter().map(|assignment| Change::Assignment(assignment.as_ref().to_owned()));
        Scenario::changed(document, overrides.collect())
    }

    /// The scenario of tables that code states, with the structure of a file; messages call it `name`. It may name
    /// `external` schemes, too.
    ///
    /// # Errors
    /// If the scenario is invalid.
    pub fn from_table(
        table: tree::Value,
        name: &str,
        external: &ExternalSchemes,
    ) -> Result<Scenario, ScenarioError> {
        let document = Document::of(table, name).with_schemes(external);
        Scenario::changed(document, Vec::new())
    }

    /// The scenario with `changes`, applied in order: what its file would be read as with them. A sender of QUIC may leave
    /// settings of TCP that the scenario has already without effect.
    ///
    /// # Errors
    /// If the changed scenario is invalid.
    pub fn with(&self, changes: impl IntoIterator<Item = Change>) -> Result<Scenario, ScenarioError> {
        Scenario::changed(self.source.document()?, changes.into_iter().collect())
    }

    /// Takes no type parameter: each crate that calls it would compile all that reads scenarios.
    fn changed(mut document: Document, changes: Vec<Change>) -> Result<Scenario, ScenarioError> {
        let since = document.changed().count();
        for change in changes {
            document.change::<Scenario>(change)?;
        }
        let document = Arc::new(document);
        let scenario = Scenario::expand(&document, since)?;
        Ok(Scenario { source: Source::new(document), ..scenario })
    }

    /// The scenario in the document `whole`, with the points of its sweep. Changes from number `since` on are new.
    fn expand(whole: &Document, since: usize) -> Result<Scenario, ScenarioError> {
        let mut scenario = Scenario::read(whole)?;
        let mut stated = Stated::of(whole, &scenario, since);
        let Some((table, document)) = whole.without("sweep") else {
            if let Some(fault) = scenario.unused(&stated).first() {
                return Err(whole.fault(fault));
            }
            return Ok(scenario);
        };
        let document = Arc::new(document);
        let mut sweep = grid::expand(&document, &table)?;
        scenario.keep_for_swept_senders(&mut sweep, &keys_for_senders(whole).collect::<Vec<_>>());
        stated.sweep(&sweep, whole, since);
        scenario.sweep = sweep;
        let points = &scenario.sweep.points;
        let unused: Vec<Vec<Fault>> = points.iter().map(|point| point.scenario.unused(&stated)).collect();
        let mut seen = HashSet::new();
        let mut each = unused.iter().flatten().filter(|fault| seen.insert(&fault.path));
        match each.find(|fault| !has_effect(&fault.path, points, &unused)) {
            Some(fault) if scenario.sweep.axes().any(|(axis, _)| axis == fault.path.join(".")) => {
                Err(whole.fault(&fault.below("sweep")))
            }
            Some(fault) => Err(document.fault(fault)),
            None => Ok(scenario),
        }
    }

    /// Keeps the settings of `keys` for each of the senders that `sweep` has, so that the canonical form has them, and
    /// each point has those of all senders.
    fn keep_for_swept_senders(&mut self, sweep: &mut Sweep, keys: &[(&str, bool)]) {
        let names = sweep.axes.iter().filter(|axis| axis.path == "sender").flat_map(|axis| &axis.values);
        for name in names.filter_map(Value::as_str) {
            let mut one = Scenario { sender: Some(name.to_owned()), ..self.clone() };
            if one.settle_sender(keys.iter().copied()).is_ok() {
                self.senders = one.senders;
            }
        }
        for point in Arc::make_mut(&mut sweep.points) {
            let point = Arc::make_mut(&mut point.scenario);
            let mut own = mem::replace(&mut point.senders, self.senders.clone());
            if let Some((name, settings)) =
                point.sender.as_deref().and_then(|name| own.swap_remove_entry(name))
            {
                point.senders.insert(name, settings);
            }
        }
    }

    /// The scenario in `document`, without its sweep.
    pub(crate) fn read(document: &Document) -> Result<Scenario, ScenarioError> {
        if let Some(error) = document.unprintable() {
            return Err(error);
        }
        let document = &*document.with_presets()?;
        let mut scenario: Scenario = document.read()?;
        scenario.settle_profile(document);
        if let Err((path, problem)) = scenario.settle_sender(keys_for_senders(document)) {
            return Err(document.fault(&Fault::new(&path, problem)));
        }
        if scenario.stack_senders().next().is_some() {
            scenario.quic.get_or_insert_default();
        }
        if scenario.topology.has_cell() && scenario.wifi.is_none() {
            scenario.cell.get_or_insert_default();
        }
        if scenario.topology.has_shared_radio() {
            scenario.shared.get_or_insert_default();
        }
        document.name().clone_into(&mut scenario.file);
        scenario.scheme.external = document.external().clone();
        scenario.read_files(document)?;
        match scenario.faults().first() {
            Some(fault) => Err(document.fault(&Fault { path: place(fault, document), ..fault.clone() })),
            None => Ok(scenario),
        }
    }

    /// The points of the [sweep](Sweep): one scenario per combination of values, in the order of the file;
    /// the last parameter varies fastest. Without a sweep, this scenario alone.
    ///
    /// They were made, and found valid, when the file was read: a field that is changed in code afterwards changes no point.
    pub fn points(&self) -> Vec<Point> {
        match self.sweep.is_empty() {
            true => vec![Point { parameters: Vec::new(), scenario: Arc::new(self.clone()) }],
            false => self.sweep.points.to_vec(),
        }
    }

    /// The same scenario with `schemes` to compare, which may be combinations and name `external` schemes. Those that it
    /// knew already remain known.
    ///
    /// # Errors
    /// If a registered scheme has the name of an external one, or the scenario cannot be run with one of `schemes`.
    pub fn with_schemes(
        &self,
        schemes: Vec<String>,
        external: impl IntoIterator<Item = Arc<dyn Scheme + Send + Sync>>,
    ) -> Result<Scenario, ScenarioError> {
        let mut changed = Scenario { schemes, ..self.clone() };
        for scheme in external {
            changed.scheme.add(scheme).map_err(|scheme| {
                let name = scheme.name();
                self.error(
                    ErrorKind::Scheme,
                    format!(
                        "schemes: found \"{name}\" as an external scheme, but there is a scheme of this name"
                    ),
                )
            })?;
        }
        changed.network()?;
        let of = |source: &Source| source.with_schemes(&changed.schemes, &changed.scheme.external);
        changed.source = of(&self.source)?;
        // The points share a document.
        let of_points = self.sweep.points.first().map(|point| of(&point.scenario.source)).transpose()?;
        changed.sweep = self.sweep.try_map(|Point { parameters, scenario }| {
            let scheme = Schemes { external: changed.scheme.external.clone(), ..scenario.scheme.clone() };
            let own = &scenario.source;
            let source = of_points.as_ref().map_or_else(|| own.clone(), |other| own.with_document_of(other));
            let schemes = changed.schemes.clone();
            let point = Scenario { schemes, scheme, source, ..Scenario::clone(scenario) };
            point.network().map(|_| point).map_err(|error| error.at_point(parameters))
        })?;
        Ok(changed)
    }

    /// All keys in numbers, as in the [canonical form](Scenario::to_toml) without the sweep.
    pub fn values(&self) -> tree::Value {
        tree::Value::of(self)
    }

    /// The value at a dotted path of keys, in the syntax of `--set`.
    pub fn text(&self, path: &str) -> Option<String> {
        let table = tree::to_toml(self);
        grid::at_path(&table, path).map(text)
    }

    /// Sets all TCP settings that the document does not state to those of its profile.
    fn settle_profile(&mut self, document: &Document) {
        // The default profile of files may differ from that of settings made in code.
        let profile = if document.keys_of("tcp").any(|key| key == "profile") {
            self.tcp.profile
        } else {
            tcp::Profile::default()
        };
        let stated = mem::replace(&mut self.tcp, profile.settings());
        document.keys_of("tcp").for_each(|key| self.tcp.take(key, &stated));
    }

    /// The canonical form: the same scenario with all defaults and units written out, in the order of the
    /// schema. Parsing it yields an equal scenario. If the sweep varies the TCP profile or the preset of a
    /// link, settings given by it are omitted.
    pub fn to_toml(&self) -> String {
        self.tables_without_sweep().to_string() + &self.sweep.to_toml()
    }

    /// The [canonical form](Scenario::to_toml) as tables, in which quantities are texts.
    pub fn tables(&self) -> Table {
        let mut table = self.tables_without_sweep();
        table.extend(self.sweep.to_table().map(|sweep| (String::from("sweep"), Value::Table(sweep))));
        table
    }

    fn tables_without_sweep(&self) -> Table {
        let mut table = tree::to_toml(self);
        self.sweep.leave_to_profiles(&mut table);
        self.sweep.leave_to_presets(&mut table);
        table
    }

    /// Identifies everything that determines the result of a run except scheme, seed and run number: the
    /// FNV-1a hash (64 bits), in 16 hexadecimal digits, of the [canonical form](Scenario::to_toml) without
    /// title, schemes, TCP senders, the names of presets and sweep, and with scheme parameters only where they differ from the
    /// defaults, of external schemes, of the versions of other stacks than TCP, and of the contents of its data files. Hence a point has the same hash in every study and as a scenario by itself, and adding a
    /// scheme changes no hash.
    pub fn hash(&self) -> String {
        let mut plain = Scenario {
            title: String::new(),
            schemes: Vec::new(),
            sender: None,
            senders: IndexMap::new(),
            sweep: Sweep::default(),
            ..self.clone()
        };
        let stacks: Vec<_> = self.stack_senders().collect();
        // The settings of TCP senders are in `tcp`.
        plain.sender = self.sender.clone().filter(|sender| self.stack_of_sender(sender).is_some());
        plain.quic = plain.quic.filter(|_| !stacks.is_empty());
        // The keys that they gave count.
        plain.forget_presets();
        let digests = plain.digests();
        let mut table = tree::to_toml(&plain);
        let usual = tree::to_toml(&Schemes::default());
        if let Some(Value::Table(schemes)) = table.get_mut("scheme") {
            schemes.retain(|name, parameters| usual.get(name) != Some(parameters));
        }
        let mut hasher = FnvHasher::default();
        hasher.write(table.to_string().as_bytes());
        for scheme in self.scheme.external.all() {
            hasher.write(scheme.name().as_bytes());
            hasher.write(scheme.fingerprint().as_bytes());
        }
        stacks.iter().for_each(|sender| hasher.write(sender.stack.version().as_bytes()));
        digests.iter().for_each(|digest| hasher.write_u64(*digest));
        format!("{:016x}", hasher.finish())
    }
}
