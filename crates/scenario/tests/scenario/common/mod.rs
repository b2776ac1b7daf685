//! What messages have in common.

use std::iter;

use lasthop_channel::Model;
use lasthop_link::queue::Management;
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Congestion, Settings};

/// A message or canonical form without the lists that grow: those of registered parts, and the settings of TCP.
pub(crate) fn without_lists(text: &str) -> String {
    let schemes = Schemes::default();
    let disciplines: Vec<String> = Management::all().map(|(name, _)| name).collect();
    let models = Model::examples().map(|(name, _)| name);
    let settings = settings();
    let lists = [
        ("<a scheme>", alternatives(schemes.all().map(|scheme| scheme.name()))),
        ("<a channel model>", alternatives(iter::once(String::from("perfect")).chain(models))),
        ("<a congestion control>", alternatives(Congestion::ALL.iter().map(|each| each.control().name))),
        ("<a setting of TCP>", alternatives(&settings)),
        ("<a setting of TCP>", alternatives(settings.iter().filter(|key| *key != "profile"))),
        ("<a discipline>", alternatives(&disciplines)),
        ("<disciplines>", disciplines.join(", ")),
    ];
    let text = lists.iter().fold(text.to_owned(), |text, (what, list)| text.replace(list, what));
    let text = text.split("\n[scheme.").next().unwrap_or_default();
    match text.split_once("\n[tcp]\n") {
        Some((before, rest)) => {
            let after = rest.find("\n[").map_or("", |at| &rest[at..]);
            format!("{before}\n[tcp]\n<settings of TCP>\n{after}")
        }
        None => text.to_owned(),
    }
}

/// The keys of `[tcp]`.
pub(crate) fn settings() -> Vec<String> {
    let error = toml::from_str::<Settings>("nonsense = 0").expect_err("there is no such setting");
    let listed = error.message().split_once("expected ").expect("the keys are listed").1;
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The text for one of several names: `"a", "b" or "c"`.
fn alternatives(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("\"{}\"", name.as_ref())).collect();
    let (last, others) = names.split_last().expect("there are names");
    format!("{} or {last}", others.join(", "))
}
