"""`lasthop gateway`: remedies on the connections of a real link."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from lasthop import _lasthop
from lasthop.cli import complete
from lasthop.cli.failure import RefusedError
from lasthop.cli.options import Rate
from lasthop.cli.progress import Activity
from lasthop.cli.streams import emit, emit_document
from lasthop.core.names import unknown


def gateway(
    command: Annotated[
        Literal["run", "check", "rules", "status", "report", "reload", "remove", "key"],
        typer.Argument(
            show_default=False,
            help="run: help flows across the radio until SIGTERM; check: check the file; rules: print the "
            "rules of nft and the routes that run installs; status, reload: of the running gateway; report: "
            "what help gains over the flows that are left alone; remove: remove the routes of a gateway that "
            "was killed; key: print a new key for a tunnel.",
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="The gateway's file (TOML). Without it, status, report and reload ask at "
            "/run/lasthop/control.",
        ),
    ] = None,
    observe: Annotated[
        bool, typer.Option("--observe", help="With run: help no flow, and count those that would be helped.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="With run: take over from the running gateway, which carries its connections to their end.",
        ),
    ] = False,
    predict: Annotated[
        bool,
        typer.Option(
            "--predict",
            help="With report: fit the link to the same flows, simulate them, and print the gain beside it.",
        ),
    ] = False,
    rate: Rate = None,
    sender: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.server,
            help="With --predict: the servers' TCP, such as linux, which is CUBIC, or linux-bbr.",
        ),
    ] = "linux",
    as_json: Annotated[bool, typer.Option("--json", help="With status and report: print JSON.")] = False,
) -> None:
    """Help the connections of a real link by the schemes of scenarios. Linux only.

    This is the program `lasthop-gateway`, for hosts that have Python: the same code, compiled into the
    package.
    """
    if predict:
        if command != "report" or file is None:
            raise RefusedError(remedy="expected report with the gateway's file", option="--predict")
        _predict(file, rate, sender, as_json)
        return
    options = {"--observe": observe, "--replace": replace, "--json": as_json}
    line = [command, *([str(file)] if file is not None else [])]
    text = _lasthop.gateway([*line, *(name for name, wanted in options.items() if wanted)])
    if text:
        emit_document(text)


def _predict(file: Path, rate: str | None, sender: str, as_json: bool) -> None:
    """Print the report, and beside it what the laboratory predicts from the same flows."""
    # What the gateway itself does not need, which may run for months. The threads of numpy would keep
    # root's privileges.
    from lasthop import fitting
    from lasthop.advice import SENDERS, prediction
    from lasthop.cli.option_values import link_properties
    from lasthop.measurement import MeasurementError, gateway_flows
    from lasthop.measurement.format import Options

    if sender not in SENDERS:
        raise RefusedError(unknown("sender", sender, list(SENDERS)), option="--sender")
    known = link_properties(rate=rate, up_rate=None, rtt=None, last_hop_rtt=None)
    settings = tomllib.loads(_lasthop.gateway_settings(file) or "")
    path = settings.get("gateway", {}).get("flows")
    if path is None:
        raise RefusedError(f"{file}: --predict needs the flows; ", remedy="state a file in gateway.flows")
    # One answer for all that is printed: a running gateway goes on.
    answer = _lasthop.gateway(["report", str(file), "--json"])
    report = json.loads(answer)
    with Activity("reading") as activity:
        try:
            source = gateway_flows.since(Path(path), report["since_s"])
            measurement = gateway_flows.READER.read(source, Options())
            activity.doing("fitting models of the losses")
            link = fitting.fit(measurement, rate_bps=known["rate_bps"], replicates=prediction.REPLICATES)
            activity.doing("simulating the flows")
            found = prediction.predict(link, report, source.documents, settings, sender=sender)
        except (MeasurementError, OSError, ValueError) as error:
            raise RefusedError.of(error) from None
    is_rate_stated = known["rate_bps"] is not None
    if as_json:
        report["prediction"] = {
            "rate_bps": link.rate_bps,
            "is_rate_stated": is_rate_stated,
            "rtt_s": link.rtt_s,
            "last_hop_rtt_s": link.last_hop_rtt_s,
            "sizes": [{**asdict(each), "agrees": each.agrees} for each in found],
        }
        emit_document(json.dumps(report, indent=2))
    else:
        emit(_lasthop.gateway_report(answer))
        emit(prediction.words(link, found, is_rate_stated=is_rate_stated))
