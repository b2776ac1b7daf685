"""Figures of the search for the best packet size."""

from __future__ import annotations

from lasthop.core.titles import shown_title
from lasthop.core.units import setting_scale
from lasthop.plots import DataFigure
from lasthop.plots.curves import sweep_curve
from lasthop.study.packet_size import SIZE, other_settings
from lasthop.study.study import Study


def figures(study: Study, metric: str = "throughput_bps", key: str = SIZE) -> dict[str, DataFigure]:
    """Draw the metric against the packet size, with the maximum of each line marked.

    Parameters
    ----------
    study : Study
        A finished study of a scenario that `load` returned.
    metric : str, default "throughput_bps"
        The metric.
    key : str, default "tcp.packet_size"
        As in `load`.

    Returns
    -------
    dict of str to DataFigure
        The figures by name: one with a line for each scheme if nothing else is swept, otherwise one for each
        scheme with a line for each error characteristic.
    """
    others = other_settings(study, key)
    summary = study.summary(metric)
    title = shown_title(study.scenario)
    if not others:
        return {"packet-size": sweep_curve(summary, key, peaks=True, title=title)}
    named = [[_named(name, str(value)) for value in summary[name]] for name in others]
    summary = summary.assign(_line=[", ".join(names) for names in zip(*named, strict=True)])
    return {
        f"packet-size-{scheme}": sweep_curve(part, key, by="_line", peaks=True, title=f"{title}: {scheme}")
        for scheme, part in summary.groupby("scheme", sort=False)
    }


def _named(setting: str, value: str) -> str:
    """Return a short label for the value of a setting."""
    return f"{setting_scale(setting, '', 1.0).name} {value}"
