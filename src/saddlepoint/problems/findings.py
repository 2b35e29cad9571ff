"""What ``sp.check`` reports: one finding for each thing that was examined, printed as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Finding(NamedTuple):
    """One line of a report.

    Attributes:
        what: what was examined, such as "mu of g".
        given: what the caller claimed.
        found: what was found.
        ok: whether they agree.
        advice: what to do if they do not.
    """

    what: str
    given: str
    found: str
    ok: bool
    advice: str = ""


@dataclass(frozen=True, repr=False)
class Report:
    """The findings of ``sp.check``, which are printed as a table.

    Attributes:
        findings: one line each.
        seconds: the time of one call of each oracle.
    """

    findings: tuple[Finding, ...]
    seconds: dict[str, float]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings that are wrong."""
        return tuple(finding for finding in self.findings if not finding.ok)

    def to_dict(self) -> dict[str, Any]:
        """The report in plain Python values, as ``--json`` prints it."""
        return {"ok": self.ok, "findings": [f._asdict() for f in self.findings], "seconds": self.seconds}

    def __repr__(self) -> str:
        rows = [("what", "given", "found", ""), *((f.what, f.given, f.found, _verdict(f)) for f in self.findings)]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = ["  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) for row in rows]
        lines += [f"{finding.what}: {finding.advice}" for finding in self.problems]
        times = ", ".join(f"{name} {1e6 * seconds:.3g} us" for name, seconds in self.seconds.items())
        return "\n".join([*map(str.rstrip, lines), f"one call takes: {times}"])


def _verdict(finding: Finding) -> str:
    return "ok" if finding.ok else "WRONG"
