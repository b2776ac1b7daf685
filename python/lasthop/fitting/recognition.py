"""The fit of a link: losses, rate and delay first, then the kind of last hop that its waits show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lasthop.core import formats
from lasthop.fitting.estimate import fit_link
from lasthop.fitting.link import FittedLink
from lasthop.fitting.losses import REPLICATES
from lasthop.fitting.waits import FEWEST, LONGEST_WAIT_S, MOST_LOST, Waits, waits
from lasthop.fitting.wifi import fitted_wifi
from lasthop.measurement import Measurement, read


def fit(
    measurements: Sequence[Measurement | str | Path] | Measurement | str | Path,
    *,
    rate_bps: float | None = None,
    up_rate_bps: float | None = None,
    rtt_s: float | None = None,
    last_hop_rtt_s: float | None = None,
    wifi: bool = False,
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
        downlink rate.
    rtt_s, last_hop_rtt_s : float, optional
        The round-trip time without queueing, and the share of the last hop, in place of measured ones.
    wifi : bool, default False
        Whether the last hop is known to be Wi-Fi. Then `rate_bps` is what a download over it gets in idle
        air. A Wi-Fi that the round-trip times alone show has `rate_bps` on the wired link in front of it.
    seed, replicates, jobs
        As in `fit_losses`.

    Returns
    -------
    FittedLink
        The link: a `WifiLink` if it is stated or shown to be Wi-Fi. Replies that keep the beat of beacons
        show it, and waits for the air on the way to a private address less than 3 ms away.

    Raises
    ------
    MeasurementError
        If a file cannot be read.
    ValueError
        If an interval has too many packets; if the link is stated to be Wi-Fi and the measurements do not
        determine one; or if one of several files shows Wi-Fi.
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
    stated = {"an uplink rate": up_rate_bps, "a round-trip time of the last hop": last_hop_rtt_s}
    others = [each.file for each in known if not any(rates.saturated for rates in each.rates)]
    if len(others) > 1 and (wifi or (found is not None and found.is_wifi)):
        raise ValueError(
            f"found pings over Wi-Fi among {', '.join(Path(file).name for file in others)}, which may be of "
            "different paths; fit each alone, and beside it only transfers that fill the link"
        )
    hindrance = _hindrance(link, found, [name for name, value in stated.items() if value is not None])
    if wifi and hindrance:
        raise ValueError(f"no Wi-Fi can be fitted: {hindrance}")
    if found is None:
        return link
    if (wifi or found.is_wifi) and not hindrance:
        return fitted_wifi(link, found, rate_bps=rate_bps, rtt_s=rtt_s, is_stated=wifi)
    signs = found.signs
    if found.is_wifi:
        signs = (*signs, f"Not simulated as Wi-Fi: {hindrance}.")
    elif found.of_air:
        signs = (*signs, "If the last hop is Wi-Fi, state --wifi; a ping of your own router shows it alone.")
    return replace(link, signs=signs)


def _hindrance(link: FittedLink, found: Waits | None, stated: Sequence[str]) -> str:
    """Return why no Wi-Fi can be fitted to a link; empty if one can.

    `stated` names the stated properties that a Wi-Fi does not have.
    """
    if found is None:
        return f"expected at least {FEWEST} round-trip times of an idle link, as of ping"
    if found.p95_s > LONGEST_WAIT_S:
        return (
            f"one probe in twenty waits {formats.seconds(found.p95_s)} or more, which is a queue; probe "
            "while nobody downloads"
        )
    if found.lost > MOST_LOST:
        return (
            f"{formats.share(found.lost)} of the probes were lost, expected at most "
            f"{formats.share(MOST_LOST)}, since the MAC repeats what is lost on the air; leave Wi-Fi out"
        )
    if any(losses is not None and losses.parameter("bad_s") is not None for losses in (link.down, link.up)):
        return "losses come in bursts, which the MAC of Wi-Fi does not leave; leave Wi-Fi out"
    if stated:
        return f"found {' and '.join(stated)}, which Wi-Fi does not have; leave it out"
    return ""
