"""The runs from which a profile-guided build learns: ``make release RELEASE=--pgo``.

The compiler then favours what these runs use, so there should be some of every kind: the benchmark cases that
scenarios describe, the worked scenarios with their schemes, and all schemes with senders of today.
"""

from pathlib import Path

import lasthop

HERE = Path(__file__).resolve().parent

# Scenario, scheme, and the simulated time.
CASES = (
    ("bulk", "basic", "1200 s"),
    ("path", "basic", "600 s"),
    ("cell", "basic", "20 s"),
)


def main() -> None:
    """Run everything."""
    for name, scheme, limit in CASES:
        lasthop.load(HERE / f"{name}.toml", [f"limit={limit}"]).run(scheme)
    for name, scheme, runs in (("ten", "basic", 1000), ("selective-fec", "selective-fec", 100)):
        scenario = lasthop.load(HERE / f"{name}.toml")
        for run in range(runs):
            scenario.run(scheme, run=run)
    for name in lasthop.scenarios():
        scenario = lasthop.load(name)
        for scheme in scenario.schemes:
            scenario.run(scheme)
    for sender in ("rfc", "linux", "linux-bbr"):
        scenario = lasthop.load("last-mile", [f"sender={sender}"])
        for scheme in lasthop.schemes():
            try:
                scenario.run(scheme.name)
            except lasthop.ScenarioError:
                # Some schemes need an ARQ, or a host that moves.
                continue


if __name__ == "__main__":
    main()
