"""Writes docs/others.md: problems of other libraries, which of them fit, and the answers."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from saddlepoint.uses.pages.formulas import as_markdown

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
saddle_programs, quadratic_programs, worst_cases = (
    import_module(f"reference_problems.{name}") for name in ("saddle_programs", "quadratic_programs", "worst_cases")
)

HEAD = """# Problems of other libraries

This page lists problems from the examples and tests of other projects, and the answers of this library: saddle
problems of DSP ([dsp-cvxpy](https://github.com/cvxgrp/dsp) 0.4.2), quadratic programs of Maros and Meszaros, OSQP,
SCS and Clarabel, and worst-case functions of [PEPit](https://github.com/PerformanceEstimation/PEPit) 0.5.1. This
command writes the page:

```console
$ python benchmarks/others.py
```

`tests/test_reference_problems.py` compares each answer with a tolerance. The column *through* says what solves a
problem:

- `solve`: the problem is smooth and strongly convex. The answer has a certificate.
- `ConstrainedGame`: the problem has linear constraints, and costs that need not be strongly convex. Variables are
  shifted to be nonnegative, and inequalities get slack variables. A minimisation is a game whose other player has
  one strategy. The bounds on the gain of a player are finite on bounded sets only; where a set is not bounded,
  bounds that are not active are added. The objective of a minimisation is divided by its largest slope first,
  because otherwise CVXQP3_S is not solved within the 1000 outer steps allowed.
- `proximal_point` (of `saddlepoint.apps.proximal`): the problem is a convex function with linear equations. Their
  multipliers are y, h is linear, and each step is a `solve` with h plus a proximal term around y_k; g gets one as
  well if its Hessian is singular.

The column *changed* lists other changes of the problem. They change the answer only where they name another size,
other data or a truncated cone; then *their answer* is that of the changed problem.
"""


def cell(text: str) -> str:
    """The text without characters that would end a cell of the table."""
    return text.replace("|", "\\|")


def case_rows(cases: list[Any]) -> list[str]:
    """The rows of the table."""
    lines = [
        "| source | problem | through | changed | our answer | their answer | difference | theirs is |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        found, value = case.ours(), case.theirs()
        ours = f"{found.value + 0.0:.9g}" + ("" if found.solved else " (not solved)")
        words = (case.source, as_markdown(case.problem), case.through, as_markdown(case.change), ours, f"{value:.9g}",
                 f"{abs(found.value - value):.1e}", as_markdown(case.origin))  # fmt: skip
        lines.append("| " + " | ".join(map(cell, words)) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return lines


def rate_rows() -> list[str]:
    """The rows of the table."""
    lines = ["| source | method | instance | our run | PEPit quotes |", "|---|---|---|---|---|"]
    for rate in worst_cases.RATES:
        relation = "" if rate.attained else "at most "
        words = (
            rate.source,
            rate.method,
            as_markdown(rate.instance),
            f"{rate.ours():.6g}",
            f"{relation}{rate.quoted:.6g}",
        )
        lines.append("| " + " | ".join(map(cell, words)) + " |")
    return lines


def outside_rows(entries: tuple[Any, ...]) -> list[str]:
    """The rows of the table."""
    lines = ["| source | problem | why not |", "|---|---|---|"]
    return lines + [
        f"| {cell(source)} | {' | '.join(map(cell, map(as_markdown, rest)))} |" for source, *rest in entries
    ]


def main() -> str:
    """The page."""
    warnings.simplefilter("ignore")  # warnings of CVXPY and its solvers
    parts = [
        HEAD,
        "## Saddle problems of DSP\n",
        *case_rows(list(saddle_programs.cases())),
        "\nWhere dsp-cvxpy is installed (with CVXPY 1.7 or older), `tests/test_reference_problems.py` compares "
        "with DSP itself.",
        "\nThese do not fit:\n",
        *outside_rows(saddle_programs.OUTSIDE),
        "\n## Quadratic programs\n",
        *case_rows(list(quadratic_programs.cases())),
        "\nThe infeasible programs of Clarabel's tests (test_qp_primal_infeasible, test_lp_primal_infeasible,",
        "test_eq_constrained_primal_infeasible) are refused with an `InfeasibleError`, which contains a proof.",
        "\nThese do not fit, or were not tried:\n",
        *outside_rows(quadratic_programs.OUTSIDE),
        "\n## Worst functions of PEPit's examples\n",
        "An example of PEPit is about a class of functions and a method. PEPit computes the worst case, and the worst",
        "function is reconstructed from the points of its solution. `solve` minimises it from the example's start.\n",
        *case_rows(list(worst_cases.cases())),
        "\nIf the library has the method of the example, a run is compared with the number that the example states:\n",
        *rate_rows(),
        "\nThese do not fit, or were not tried:\n",
        *outside_rows(worst_cases.OUTSIDE),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "others.md").write_text(main())
