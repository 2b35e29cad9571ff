"""The applications on real data, compared with other solvers, in CPU seconds.

Seconds are the fastest of a few runs on one thread. The last column says what was reached; where the accuracies differ,
so do the tasks.
"""

from __future__ import annotations

import sys
import warnings

from apps import auc, games, policy, regression, risk, total_variation


def main(quick: bool) -> str:
    """The table, as Markdown."""
    warnings.simplefilter("ignore")  # other solvers warn when they stop early; the table says what they reached
    lines = ["| application | task | solver | seconds | reached |", "|---|---|---|---|---|"]
    for module in (games, risk, auc, policy, regression, total_variation):
        for row in module.rows(quick):
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(main("--quick" in sys.argv))
