"""Growth exponents of the busiest oracle's calls, to relative accuracy 1e-6, on the chain of the lower bound.

A cell is `measured (theory)`, where the exponent of the theory is fitted to its formula at the same points; a dash
means that the runs did not end in time (10 s each). `saddlepoint table` prints the same table, and `saddlepoint
figure` draws Figure 1.
"""

from __future__ import annotations

import sys

from saddlepoint.uses.bench.table import measured_table


def main(quick: bool = False) -> str:
    """The table, as Markdown."""
    table = measured_table(quick=quick, tell=lambda run: print(run, file=sys.stderr, flush=True))
    lines = [
        "| method | " + " | ".join(table.sweeps).replace("|A|", "A") + " |",
        "|---" * (1 + len(table.sweeps)) + "|",
    ]
    for row in table.rows:
        cells = [
            f"{'–' if found is None else f'{found:.2f}'} ({theory:.2f})"
            for found, theory in zip(row.measured, row.theory, strict=True)
        ]
        lines.append(f"| {row.method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(main("--quick" in sys.argv))
