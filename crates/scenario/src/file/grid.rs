//! Expansion of the `[sweep]` table of a document into scenarios.

use std::collections::HashMap;
use std::sync::Arc;

use toml::Value;

use super::range::{self, Range};
use crate::document::{Document, Draft, Origin, Source, Written};
use crate::error::ScenarioError;
use crate::schema::{Axis, FIXED, Point, Scenario, Sweep, SweptPreset, text};
use crate::tree::{self, Kind, Node, Table};

/// Maximum number of points; more are probably a mistake.
const MAX_POINTS: usize = 100_000;

/// The points of a sweep: documents derived from a common one.
struct Grid<'a> {
    base: &'a Arc<Document>,
    drafts: &'a Arc<[Draft]>,
}

/// Expands the sweep in `table`, which was removed from the document `base`.
pub(crate) fn expand(base: &Arc<Document>, table: &Node) -> Result<Sweep, ScenarioError> {
    let drafts = drafts(base, table)?.into();
    let grid = Grid { base, drafts: &drafts };
    grid.check_size()?;
    let points = grid.points()?;
    let axes = grid.axes(&points)?;
    let by_profile = drafts.iter().any(|draft| draft.path == "tcp.profile");
    let settings = || base.keys_of("tcp").filter(|key| *key != "profile").map(str::to_owned);
    let presets = drafts.iter().filter_map(|draft| stated_beside_preset(base, &draft.path)).collect();
    let stated = by_profile.then(|| settings().collect());
    Ok(Sweep { axes, stated, presets, points: points.into() })
}

/// The keys stated beside a link's preset, if `path` is that of the preset.
fn stated_beside_preset(base: &Document, path: &str) -> Option<SweptPreset> {
    let table: Vec<&str> = path.strip_suffix(".preset")?.split('.').collect();
    base.preset_of(&table)?;
    let uplink = base.keys_at(&[&table[..], &["uplink"]].concat());
    let stated = base.keys_at(&table);
    Some(SweptPreset { table: table.into_iter().map(str::to_owned).collect(), stated, uplink })
}

/// The axes in the order in which they are written, followed by those from overrides.
fn drafts(base: &Document, table: &Node) -> Result<Vec<Draft>, ScenarioError> {
    let Kind::Table(table_of_paths) = &table.kind else {
        let problem = "found a value, expected a table";
        return Err(base.error("sweep", problem, &base.origin(&table.mark)));
    };
    let mut found = Vec::new();
    collect(base, table_of_paths, &[], &mut found)?;
    found.sort_by_key(|(place, _)| *place);
    let mut drafts: Vec<Draft> = Vec::new();
    for (_, draft) in found {
        let rival = drafts.iter().position(|other| related(&other.path, &draft.path));
        if let Some(index) = rival {
            let rival = &drafts[index].path;
            if *rival != draft.path {
                let problem = format!("found {} beside {rival}, expected only one of them", draft.path);
                return Err(base.error("sweep", &problem, draft.at()));
            }
            if !matches!(draft.at(), Origin::Change(_)) {
                let problem = format!("found {rival} a second time, expected it once");
                return Err(base.error("sweep", &problem, draft.at()));
            }
            drafts.remove(index);
        }
        drafts.push(draft);
    }
    drafts.retain(|draft| !is_fixed_by_override(base, draft));
    Ok(drafts)
}

/// Whether one path is a prefix of the other.
pub(super) fn related(one: &str, other: &str) -> bool {
    let leads =
        |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    leads(one, other) || leads(other, one)
}

/// Whether a later change sets this parameter, which removes it from the sweep.
fn is_fixed_by_override(base: &Document, draft: &Draft) -> bool {
    base.changed().enumerate().any(|(index, path)| {
        let later = matches!(draft.at(), Origin::Change(own) if *own > index);
        related(path, &draft.path) && !later
    })
}

/// Adds the axes in `table` under the key path `above`.
fn collect(
    base: &Document,
    table: &Table,
    above: &[(String, Origin)],
    found: &mut Vec<(usize, Draft)>,
) -> Result<(), ScenarioError> {
    for (key, (mark, value)) in table {
        let at = base.origin(mark);
        let names = key.split('.').map(|name| (name.trim().to_owned(), at.clone()));
        let keys: Vec<(String, Origin)> = above.iter().cloned().chain(names).collect();
        if keys.iter().any(|(name, _)| name.is_empty()) {
            let problem = format!("found \"{key}\", expected a key such as radio.rate");
            return Err(base.error("sweep", &problem, &at));
        }
        if FIXED.contains(&keys[0].0.as_str()) {
            let remedy = match keys[0].0.as_str() {
                "schemes" => "all schemes in the key schemes are compared at every point",
                _ => "expected a parameter such as tcp.packet_size",
            };
            let problem = format!("found {}, which is not a parameter; {remedy}", keys[0].0);
            return Err(base.error("sweep", &problem, &at));
        }
        match &value.kind {
            Kind::Table(inner) if !is_range(inner) => collect(base, inner, &keys, found)?,
            _ => {
                let path = keys.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(".");
                let values = written(base, &format!("sweep.{path}"), value)?;
                found.push((value.mark.start, Draft { path, keys, values }));
            }
        }
    }
    Ok(())
}

/// Whether a table is a range, not part of a path. A list at one of its keys is an axis: `scheme.vs-tcp.step`.
fn is_range(table: &Table) -> bool {
    let plain = |key: &&str| {
        table.get(*key).is_some_and(|(_, value)| !matches!(value.kind, Kind::Table(_) | Kind::List(_)))
    };
    range::KEYS.iter().any(plain)
}

/// The values of the list or range at `path`.
fn written(base: &Document, path: &str, value: &Node) -> Result<Vec<Written>, ScenarioError> {
    let at = base.origin(&value.mark);
    let refuse = |problem: &str| Err(base.error(path, problem, &at));
    match &value.kind {
        Kind::List(items) if items.is_empty() => refuse("found an empty list, expected at least one value"),
        Kind::List(items) => {
            let written = |item: &Node| Written { value: item.clone(), at: base.origin(&item.mark) };
            Ok(items.iter().map(written).collect())
        }
        Kind::Table(_) => {
            let part = base.part(path, value);
            let ranges: HashMap<String, Range> = part.read()?;
            let values = ranges[path].values().map_err(|mut fault| {
                fault.path.insert(0, path.to_owned());
                part.fault(&fault)
            })?;
            let written = |kind| Written { value: Node { mark: 0..0, kind }, at: at.clone() };
            Ok(values.into_iter().map(written).collect())
        }
        _ => refuse(
            "found one value, expected a list, or a range such as \
             { from = \"1 s\", to = \"4 s\", step = \"1 s\" }",
        ),
    }
}

impl Grid<'_> {
    fn check_size(&self) -> Result<(), ScenarioError> {
        let mut points = 1usize;
        for draft in self.drafts.iter() {
            points = points.saturating_mul(draft.values.len());
            if points > MAX_POINTS {
                let problem =
                    format!("found {points} points up to {}, expected at most {MAX_POINTS}", draft.path);
                return Err(self.base.error("sweep", &problem, draft.at()));
            }
        }
        Ok(())
    }

    /// The points; the last axis varies fastest.
    fn points(&self) -> Result<Vec<Point>, ScenarioError> {
        let count = self.drafts.iter().map(|draft| draft.values.len()).product();
        (0..count).map(|index| self.point(&self.picks(index))).collect()
    }

    /// The index of each axis' value at point number `index`.
    fn picks(&self, mut index: usize) -> Vec<usize> {
        let mut picks = vec![0; self.drafts.len()];
        for (pick, draft) in picks.iter_mut().zip(self.drafts.iter()).rev() {
            *pick = index % draft.values.len();
            index /= draft.values.len();
        }
        picks
    }

    fn point(&self, picks: &[usize]) -> Result<Point, ScenarioError> {
        let all: Vec<(usize, usize)> = picks.iter().copied().enumerate().collect();
        let scenario = self.scenario(&all).map_err(|error| self.blame(error, &all))?;
        let table = tree::to_toml(&scenario);
        let parameter = |&(axis, _): &(usize, usize)| {
            let draft = &self.drafts[axis];
            match at_path(&table, &draft.path) {
                Some(value) => Ok((draft.path.clone(), text(value))),
                None => {
                    let problem = format!("{} has no effect with the other parameters", draft.path);
                    Err(self.base.error("sweep", &problem, draft.at()))
                }
            }
        };
        let parameters = all.iter().map(parameter).collect::<Result<_, _>>()?;
        Ok(Point { parameters, scenario: Arc::new(scenario) })
    }

    /// The scenario with the given values, as pairs of axis index and value index.
    fn scenario(&self, picks: &[(usize, usize)]) -> Result<Scenario, ScenarioError> {
        let source = Source::point(self.base.clone(), self.drafts.clone(), picks);
        let mut scenario = Scenario::read(&source.document()?)?;
        scenario.source = source;
        Ok(scenario)
    }

    /// The error of a point, with the name of the point unless a value is invalid by itself.
    fn blame(&self, error: ScenarioError, picks: &[(usize, usize)]) -> ScenarioError {
        let by_itself = picks.iter().any(|&(axis, pick)| {
            let draft = &self.drafts[axis];
            let mut places = draft.keys.iter().map(|(_, at)| at).chain([&draft.values[pick].at]);
            let here = places.any(|at| error.same_location(&self.base.error("", "", at)));
            here && self.scenario(&[(axis, pick)]).err().as_ref() == Some(&error)
        });
        if by_itself {
            return error;
        }
        let parameters = picks.iter().map(|&(axis, pick)| {
            let draft = &self.drafts[axis];
            (draft.path.clone(), draft.values[pick].value.kind.to_toml().to_string())
        });
        error.at_point(&parameters.collect::<Vec<_>>())
    }

    /// The axes with their values in canonical form.
    fn axes(&self, points: &[Point]) -> Result<Vec<Axis>, ScenarioError> {
        let mut axes = Vec::new();
        let mut stride = points.len();
        for (index, draft) in self.drafts.iter().enumerate() {
            stride /= draft.values.len();
            let mut seen = HashMap::new();
            let mut values = Vec::new();
            for (pick, written) in draft.values.iter().enumerate() {
                let point = &points[pick * stride];
                let table = tree::to_toml(&*point.scenario);
                let value = at_path(&table, &draft.path).expect("a point contains every axis");
                if seen.insert(point.parameters[index].1.clone(), pick).is_some() {
                    let text = &point.parameters[index].1;
                    let problem = format!("found \"{text}\" a second time, expected it once");
                    return Err(self.base.error(&format!("sweep.{}", draft.path), &problem, &written.at));
                }
                values.push(value.clone());
            }
            axes.push(Axis { path: draft.path.clone(), values });
        }
        Ok(axes)
    }
}

/// The value at a dotted path of keys.
pub(super) fn at_path<'t>(table: &'t toml::Table, path: &str) -> Option<&'t Value> {
    let mut keys = path.split('.');
    let first = table.get(keys.next()?)?;
    keys.try_fold(first, |value, key| value.get(key))
}
