"""The claims of the papers' figures, table and text, each with its section."""

from __future__ import annotations

from functools import partial

from lasthop.papers.claims import Contradiction, CustomClaim
from lasthop.papers.paper import Claim
from lasthop.papers.snoop.findings import (
    as_without,
    completes,
    degradation,
    frequent,
    lost_to_errors,
    near_peak,
    no_loss,
    no_progress,
    not_idle,
    one_run,
    peak,
    point,
    ratios,
    reduced,
    row,
)
from lasthop.papers.snoop.network import (
    FIGURE_4,
    INTERVALS,
    LABELS,
    NEVER,
    NO_ERRORS,
    PEAK,
    PEAK_WITH_BEACONS,
    RATES,
    SENDERS,
    TABLE_1,
    at_rate,
    moving,
    others,
)
from lasthop.papers.verdicts import about, clearly_above, same

_HIGH = ("64K", "128K", "256K", "512K", "1M")
_LOW = ("4M", "8M", NO_ERRORS)
_EACH_ERROR = (
    "an error costs the printed Snoop 0.09 s (64K) to 0.3 s (8M), ours 0.006 to 0.016 s, of "
    "which the copy takes 0.007 s on the air; in table 2 of ToN 5(6), 1997, it costs the "
    "authors' own 0.035 s"
)
_WHY = {
    "tcp-64K": "with the reading ack=1 it is 0.032 Mb/s",
    "tcp-512K": "with the reading growth=standard it is 0.68 Mb/s",
    "tcp-1M": "with the reading growth=standard it is 1.23 Mb/s",
    "snoop-64K": f"{_EACH_ERROR}; with the reading first-timeout=1s ours is 0.99 Mb/s",
    **{f"snoop-{rate}": _EACH_ERROR for rate in ("128K", "256K", "512K", "1M", "2M")},
}

CLAIMS: tuple[Claim, ...] = (
    CustomClaim(
        id="peak",
        section="5",
        statement="the peak throughput without errors",
        printed="1.6 Mb/s",
        experiment=at_rate(NO_ERRORS),
        fails_if="it is not 1.6 Mb/s when rounded",
        # A definition: the rate of the wireless link is chosen accordingly.
        definition=True,
        evaluate=partial(peak, PEAK, 0.05e6, "the rounding of its digits", at_rate(NO_ERRORS)),
    ),
    CustomClaim(
        id="peak-beacons",
        section="WINET 7",
        statement="the same with the beacons of the base stations",
        printed="1.45 Mb/s",
        experiment=others(NEVER),
        fails_if="it is more than twice the printed standard deviation from it",
        # A definition: the rate of the wireless link is chosen accordingly.
        definition=True,
        evaluate=partial(
            peak, PEAK_WITH_BEACONS, 0.022e6, "twice the printed standard deviation", others(NEVER)
        ),
    ),
    *(
        CustomClaim(
            id=f"{name}-{rate.lower()}",
            section="5, figure 4",
            statement=f"{LABELS[scheme]}, one error in {rate} bits: throughput",
            printed=f"{FIGURE_4[scheme][rate]:g} Mb/s",
            experiment=at_rate(rate),
            fails_if="the mean is more than a tenth from the printed value",
            why=_WHY.get(f"{name}-{rate}", ""),
            evaluate=partial(point, scheme, rate),
        )
        for name, scheme in SENDERS.items()
        for rate in RATES
    ),
    CustomClaim(
        id="significantly-better",
        section="5",
        statement="at error rates of over 5e-7 Snoop is significantly better than TCP",
        printed="-",
        experiment=at_rate("64K"),
        further=tuple(map(at_rate, _HIGH)),
        fails_if="at 64K, 128K, 256K, 512K or 1M it is not more than 5 % better",
        evaluate=partial(
            ratios,
            _HIGH,
            clearly_above(),
            "every",
            2,
            note="at 2M, about 5e-7, the printed ones are 1.36 and 1.385 Mb/s",
        ),
    ),
    CustomClaim(
        id="twenty-times",
        section="1, 5, 8",
        statement="at error rates of over 5e-7 the improvement is up to 20 times",
        printed="20 times",
        experiment=at_rate("64K"),
        further=tuple(map(at_rate, _HIGH)),
        fails_if="the largest of the five is not 16 to 24 times",
        why="our Snoop is faster at 64K than the printed one (snoop-64k)",
        evaluate=partial(
            ratios,
            _HIGH,
            about(20.0),
            "largest",
            1,
            note="the largest of figure 4 is 13, from 0.47 and 0.035 Mb/s at 64K",
        ),
    ),
    CustomClaim(
        id="little-difference",
        section="5",
        statement="at error rates below 5e-7 there is little difference between Snoop and TCP",
        printed="-",
        experiment=at_rate("4M"),
        further=tuple(map(at_rate, _LOW)),
        fails_if="at 4M, at 8M or without errors it is more than a tenth",
        evaluate=partial(ratios, _LOW, same(), "every", 3),
    ),
    CustomClaim(
        id="one-run",
        section="5, figure 5",
        statement="one run at one error in 256 Kbits: about 1 Mb/s with Snoop, 0.25 Mb/s with TCP",
        printed="1 and 0.25 Mb/s",
        experiment=at_rate("256K"),
        fails_if="either is not within a fifth of it in 5 % of the runs",
        why="our Snoop is faster than the printed one (snoop-256k); TCP's mean in figure 4 is 0.30 Mb/s",
        evaluate=partial(one_run, {"snoop": 1.0, "basic": 0.25}),
    ),
    CustomClaim(
        id="every-other",
        section="5",
        statement="Snoop completes the transfer even if every other packet is lost",
        printed="-",
        experiment="every-other",
        fails_if="more than 1 % of the runs do not complete",
        evaluate=completes,
    ),
    CustomClaim(
        id="no-progress",
        section="5",
        statement="TCP then makes no progress",
        printed="-",
        experiment="every-other",
        fails_if="it delivers more than a hundredth of what Snoop does",
        evaluate=no_progress,
    ),
    *(
        CustomClaim(
            id=f"every-{interval.replace(' ', '')}",
            section="WINET 7, table 1",
            statement=f"a hand-off every {interval}: throughput",
            printed=f"{TABLE_1[interval][0]:.2f} Mb/s",
            experiment=moving(interval),
            fails_if="the mean is more than twice the printed standard deviation from the printed value",
            evaluate=partial(row, interval),
        )
        for interval in INTERVALS
    ),
    CustomClaim(
        id="frequent",
        section="WINET 7",
        statement="even frequent hand-offs have very little impact on the throughput",
        printed="-",
        experiment=moving("1 s"),
        further=tuple(map(moving, (*INTERVALS, NEVER))),
        fails_if="with 1 to 10 s between hand-offs there is one that costs 5 % or more",
        evaluate=frequent,
    ),
    Contradiction(
        id="one-percent",
        section="WINET 7, table 1",
        statement="hand-offs degrade the throughput by less than 1 %",
        printed="< 1 %",
        experiment=moving("1 s"),
        further=(moving(NEVER),),
        fails_if="the rounded numbers of the table permit it",
        evaluate=degradation,
    ),
    CustomClaim(
        id="no-loss",
        section="WINET 1, 10",
        statement="hand-offs lose no data",
        printed="0",
        experiment=moving("1 s"),
        further=tuple(map(moving, INTERVALS)),
        fails_if="without errors the source retransmits in more than 1 % of the runs",
        evaluate=no_loss,
    ),
    CustomClaim(
        id="near-peak",
        section="WINET 7, figure 11",
        statement="a hand-off every 5 s, error rates below 1e-6: close to the peak of 1.45 Mb/s",
        printed="1.45 Mb/s",
        experiment=moving("5 s", "2M"),
        further=tuple(moving("5 s", rate) for rate in ("2M", "4M", "8M")),
        fails_if="at 2M, 4M or 8M it is below 90 % of the peak",
        evaluate=partial(near_peak, ("2M", "4M", "8M")),
    ),
    CustomClaim(
        id="as-without",
        section="WINET 7, figure 11",
        statement="a hand-off every 5 s, higher error rates: comparable to Snoop without hand-offs",
        printed="-",
        experiment=moving("5 s", "64K"),
        further=tuple(moving(interval, rate) for interval in ("5 s", NEVER) for rate in _HIGH),
        fails_if="at 64K, 128K, 256K, 512K or 1M it is more than a tenth from it",
        evaluate=partial(as_without, _HIGH),
    ),
    CustomClaim(
        id="not-idle",
        section="6, WINET 8",
        statement="after a hand-off the connection is not idle for long, unlike with fast retransmissions",
        printed="-",
        experiment="trace-hand-offs-5s",
        fails_if="its longest pause after a hand-off is no shorter than with fast retransmissions",
        evaluate=not_idle,
    ),
    CustomClaim(
        id="fast-retransmissions",
        section="6, WINET 8",
        statement="fast retransmissions are quite successful in reducing delays after a hand-off",
        printed="-",
        experiment="trace-hand-offs-5s",
        fails_if="the longest pause after a hand-off is not less by a fifth than with plain TCP",
        why=(
            "they repair only the first lost packet, and the others wait for Reno's timer; a Tahoe "
            "sender retransmits all (figure table-1)"
        ),
        evaluate=reduced,
    ),
    CustomClaim(
        id="errors-handled",
        section="6, WINET 8",
        statement="fast retransmissions after hand-offs do not handle errors well",
        printed="-",
        experiment=moving("5 s", "64K"),
        further=(others("5 s"), *(moving("5 s", rate) for rate in _HIGH)),
        fails_if="at 64K, 128K, 256K, 512K or 1M errors cost them less than a fifth",
        why="not explained",
        evaluate=partial(lost_to_errors, _HIGH),
    ),
)
