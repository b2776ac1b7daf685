"""Runs of one scenario, and their recordings as data frames."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lasthop._lasthop import Run, Scenario
from lasthop.core.display import Shown
from lasthop.core.scenarios import load

if TYPE_CHECKING:
    import pandas

    from lasthop.python_scheme import PythonScheme


class Runs(Shown, list[Run]):
    """Runs of one scenario: a list that a notebook shows as a table.

    Examples
    --------
    >>> import lasthop
    >>> lasthop.run_each("ebsn-example", ["basic", "ebsn"])
    basic   3.11 kbps   goodput 73.4 %    38.9 KB retransmitted   23 timeouts   257.3 s
    ebsn    8.54 kbps   goodput 100.0 %   0 B retransmitted       0 timeouts    93.6 s
    """


def run(
    scenario: Scenario | str | Path,
    scheme: str | PythonScheme | None = None,
    *,
    seed: int = 1,
    run: int = 0,
    trace: bool = False,
    series: bool = False,
    delays: bool = False,
    pcap: str | Path | None = None,
    qlog: bool = False,
) -> Run:
    """Run a scenario with one scheme.

    The result depends only on the scenario, the scheme, the seed and the run number. Runs of different
    schemes with the same seed and run number meet the same fades.

    Parameters
    ----------
    scenario : Scenario, str or Path
        The scenario, its file, or the name of a worked scenario.
    scheme : str or PythonScheme, optional
        The scheme's name, or one written in Python. By default the first that the scenario names.
    seed : int, default 1
        The study's seed.
    run : int, default 0
        The number of the run in the study.
    trace : bool, default False
        Whether to record the events of each packet, for `Run.events`.
    series : bool, default False
        Whether to record the source's state over time, for `Run.series`.
    delays : bool, default False
        Whether to record the delay of each packet, for `Run.delays`.
    pcap : str or Path, optional
        A pcapng file to write.
    qlog : bool, default False
        Whether to keep the logs of senders over QUIC, for `Run.qlogs`.

    Returns
    -------
    Run
        The results.

    Raises
    ------
    ScenarioError
        If the scenario is invalid, or the scheme is unknown or cannot work with it.
    OSError
        If the pcapng file cannot be written.
    PythonSchemeError
        If a callback of a scheme written in Python raised an exception, which is the cause.

    Examples
    --------
    >>> import lasthop
    >>> result = lasthop.run("ebsn-example", "ebsn", seed=1)
    >>> result.ended, result.metrics["timeouts"]
    ('finished', 0)
    """
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    return scenario.run(
        scheme, seed=seed, run=run, trace=trace, series=series, delays=delays, pcap=pcap, qlog=qlog
    )


def run_each(
    scenario: Scenario | str | Path,
    schemes: Sequence[str | PythonScheme] | None = None,
    *,
    seed: int = 1,
    run: int = 0,
    trace: bool = False,
    series: bool = False,
    delays: bool = False,
) -> Runs:
    """Run a scenario with several schemes over the same channel.

    Parameters
    ----------
    scenario : Scenario, str or Path
        The scenario, its file, or the name of a worked scenario.
    schemes : sequence of str or PythonScheme, optional
        The schemes: names, and schemes written in Python. By default all that the scenario names.
    seed, run, trace, series, delays
        As in `run`.

    Returns
    -------
    Runs
        A run for each scheme, in their order: a list that notebooks show as a table.

    Examples
    --------
    >>> import lasthop
    >>> basic, ebsn = lasthop.run_each("ebsn-example", ["basic", "ebsn"])
    >>> ebsn.metrics["throughput_bps"] > basic.metrics["throughput_bps"]
    True
    """
    if not isinstance(scenario, Scenario):
        scenario = load(scenario)
    if schemes is not None:
        scenario = scenario.with_schemes(schemes)
    return Runs(
        scenario.run(name, seed=seed, run=run, trace=trace, series=series, delays=delays)
        for name in scenario.schemes
    )


def events_frame(run: Run, connection: str | None = None, part: int = 0) -> pandas.DataFrame:
    """Return the packet events of a connection as a data frame.

    Parameters
    ----------
    run : Run
        A run made with `trace=True`.
    connection : str, optional
        The connection's name. By default the first.
    part : int, default 0
        The part of a split connection; 0 begins at the source.

    Returns
    -------
    pandas.DataFrame
        A row for each event; docs/reference/metrics.md defines the columns.

    Examples
    --------
    >>> import lasthop
    >>> events = lasthop.events_frame(lasthop.run("ebsn-example", "ebsn", trace=True))
    >>> int((events["event"] == "timeout").sum())
    0
    """
    import pandas

    return pandas.DataFrame(run.events(connection, part))


def series_frame(run: Run, connection: str | None = None, part: int = 0) -> pandas.DataFrame:
    """Return the time series of a connection's source as a data frame.

    Parameters
    ----------
    run : Run
        A run made with `series=True`.
    connection : str, optional
        The connection's name. By default the first.
    part : int, default 0
        The part of a split connection; 0 begins at the source.

    Returns
    -------
    pandas.DataFrame
        A row for each change; a value holds until the next row.

    Examples
    --------
    >>> import lasthop
    >>> series = lasthop.series_frame(lasthop.run("ebsn-example", "ebsn", series=True))
    >>> float(series["cwnd_bytes"].iloc[0])
    536.0
    """
    import pandas

    return pandas.DataFrame(run.series(connection, part))
