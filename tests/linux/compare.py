"""Print the goodput of each cell of ``goodput.csv`` beside Lasthop's.

``python tests/linux/compare.py [CONGESTION]`` takes some minutes. Cells that differ by more
than 5 % are marked.
"""

import csv
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python" / "tests"))

from test_linux import RUNS, goodput  # noqa: E402


def main() -> None:
    """Print the table."""
    with (HERE / "goodput.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["congestion"] not in (sys.argv[1:] or [row["congestion"]]):
            continue
        linux = float(row["goodput_mbps"])
        ours = goodput(row, RUNS if float(row["loss"]) else 1)
        cell = " ".join(f"{row[key]:>5}" for key in list(row)[:8])
        mark = "*" if abs(ours / linux - 1) > 0.05 else ""
        print(
            f"{cell} {linux:8.3f} ± {row['error_mbps'] or '?':5} {ours:8.3f} {ours / linux - 1:+6.1%} {mark}",
            flush=True,
        )


if __name__ == "__main__":
    main()
