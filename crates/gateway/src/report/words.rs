//! Reports for people.

use super::{Gain, Group, Report};

/// The smallest ratio that counts as a gain, as in `lasthop advise`.
const WORTHWHILE: f64 = 1.05;

/// What a comparison has come to, in a sentence.
pub(super) fn verdict(report: &Report) -> String {
    let scheme = &report.scheme;
    let Some(Gain { ratio, low, high }) = report.groups.first().and_then(|all| all.gain) else {
        return match report.stopped_s {
            Some(_) => format!("{scheme} does harm: it was stopped."),
            None => String::from("There are too few flows to compare yet."),
        };
    };
    if !report.is_helping {
        return match low <= 1.0 && high >= 1.0 {
            true => String::from("No flow is helped, and the two arms do not differ, as they must not."),
            false => String::from(
                "No flow is helped, and yet the two arms differ: this happens once in 20 comparisons.",
            ),
        };
    }
    let little = |ratio: f64| if ratio >= WORTHWHILE * WORTHWHILE { "" } else { " a little" };
    match () {
        () if report.stopped_s.is_some() => format!("{scheme} does harm: it was stopped."),
        () if low > 1.0 => format!("{scheme} helps{}.", little(ratio)),
        () if high < 1.0 => format!("{scheme} does harm{}.", little(1.0 / ratio)),
        () if high < WORTHWHILE && low > 1.0 / WORTHWHILE => format!("{scheme} makes no difference."),
        () if ratio >= WORTHWHILE => format!("{scheme} may help{}.", little(ratio)),
        () if ratio <= 1.0 / WORTHWHILE => format!("{scheme} may do harm{}.", little(1.0 / ratio)),
        () => String::from("The flows do not decide this yet."),
    }
}

/// A report as text of several lines.
pub fn summary(report: &Report) -> String {
    let Report { scheme, hosts, same, .. } = report;
    let [all, groups @ ..] = report.groups.as_slice() else { return format!("{}\n", report.verdict) };
    let hours = (report.until_s - report.since_s) / 3600.0;
    let time = if hours < 2.0 { format!("{:.0} min", hours * 60.0) } else { format!("{hours:.0} h") };
    let mut text = format!("{}\n\n", report.verdict);
    text += &format!(
        "{} flows of {hosts} {} in {time}, of which {} were left alone by lot\n",
        all.flows,
        if *hosts == 1 { "host" } else { "hosts" },
        all.unhelped
    );
    let wide = scheme.chars().count().max(10) + 2;
    text += &format!(
        "\n{:<30}{:<22}{:>12}{scheme:>wide$}{:>10}\n",
        "flows", "times as fast", "unhelped", "number"
    );
    for group in std::iter::once(all).chain(groups) {
        let name = match (&group.class, &group.size) {
            (None, None) => String::from("all"),
            (Some(class), None) => class.clone(),
            (None, Some(size)) => size.clone(),
            (Some(class), Some(size)) => format!("{class}, {size}"),
        };
        let [unhelped, helped] = [group.unhelped_bps, group.helped_bps].map(rate);
        text +=
            &format!("{name:<30}{:<22}{unhelped:>12}{helped:>wide$}{:>10}\n", interval(group), group.flows);
    }
    let share =
        |share: Option<f64>| share.map_or(String::from("-"), |share| format!("{:.2} %", share * 100.0));
    text += &format!(
        "\nnot got through: {} of unhelped flows, {} of helped ones\n",
        share(report.unhelped_failed),
        share(report.helped_failed)
    );
    if same.gain.is_some() {
        text += &format!("unhelped flows among themselves, by lot: {} times as fast\n", interval(same));
    }
    text + "each interval holds at all times at once with 95 %; a speed is the geometric mean of flows, in acknowledged bits \
            per second of activity\n"
}

fn interval(group: &Group) -> String {
    group.gain.map_or(String::from("too few yet"), |Gain { ratio, low, high }| {
        format!("{} ({} to {})", digits(ratio), digits(low), digits(high))
    })
}

/// Three digits.
fn digits(number: f64) -> String {
    let decimals = (2 - number.max(1e-9).log10().floor() as i32).clamp(0, 3) as usize;
    format!("{number:.decimals$}")
}

fn rate(bps: Option<f64>) -> String {
    match bps {
        None => String::from("-"),
        Some(bps) if bps >= 1e6 => format!("{} Mbps", digits(bps / 1e6)),
        Some(bps) => format!("{} kbps", digits(bps / 1e3)),
    }
}
