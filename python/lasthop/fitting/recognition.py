"""The fit of a link: losses, rate and delay first, then the kind of last hop that its waits show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lasthop.fitting.link import FittedLink, fit_link
from lasthop.fitting.losses import REPLICATES
from lasthop.fitting.waits import waits
from lasthop.fitting.wifi import fitted_wifi
from lasthop.measurement import Measurement, read


def fit(
    measurements: Sequence[Measurement | str | Path] | Measurement | str | Path,
    *,
    rate_bps: float | None = None,
    up_rate_bps: float | None = None,
    rtt_s: float | None = None,
    last_hop_rtt_s: float | None = None,
    seed: int = 1,
    replicates: int = REPLICATES,
    jobs: int | None = None,
) -> FittedLink:
    """Fit a link to one or several measurements of it.

    Parameters
    ----------
    measurements : Measurement, str or Path, or a sequence of them
        Measurements, or files for `lasthop.measurement.read`.
    rate_bps, up_rate_bps : float, optional
        The rates of the link, which take precedence over measured ones. The uplink rate defaults to the
        downlink rate. Of Wi-Fi, the rate of a download in idle air.
    rtt_s, last_hop_rtt_s : float, optional
        The round-trip time without queueing, and the share of the last hop, in place of measured ones.
    seed, replicates, jobs
        As in `fit_losses`.

    Returns
    -------
    FittedLink
        The link: a `WifiLink` if its round-trip times are those of a crowded Wi-Fi, or of a dozing station.

    Raises
    ------
    MeasurementError
        If a file cannot be read.
    ValueError
        If an interval has too many packets.
    """
    several = [measurements] if isinstance(measurements, Measurement | str | Path) else list(measurements)
    known = tuple(each if isinstance(each, Measurement) else read(each) for each in several)
    link = fit_link(
        known,
        rate_bps=rate_bps,
        up_rate_bps=up_rate_bps,
        rtt_s=rtt_s,
        last_hop_rtt_s=last_hop_rtt_s,
        seed=seed,
        replicates=replicates,
        jobs=jobs,
    )
    found = waits(known)
    if found is not None and found.is_wifi:
        is_measured = rate_bps is None and link.rate_bps is not None
        return fitted_wifi(link, found, rate_bps=link.rate_bps, rtt_s=rtt_s, is_measured=is_measured)
    return link if found is None else replace(link, notes=(*found.signs, *link.notes))
