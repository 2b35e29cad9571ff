"""`make bench`: every number the docs report, measured and written to benchmarks/RESULTS.md (10 to 20 minutes)."""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path

import inner_rules
import numpy as np
import overhead
import scipy
import table1

HERE = Path(__file__).parent


def main() -> None:
    """Run all, write the page."""
    quick = "--quick" in sys.argv
    began = time.perf_counter()
    sections = [
        ("Meter and driver", overhead, overhead.main(3 if quick else 15)),
        ("DIPPA's inner rules", inner_rules, inner_rules.main(quick)),
        ("Table 1, measured", table1, table1.main(quick)),
    ]
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, one BLAS thread"
    page = ["# Measured", "", f"By `make bench` in {time.perf_counter() - began:.0f} s: {versions}.", ""]
    for title, module, text in sections:
        page += [f"## {title}", "", (module.__doc__ or "").strip(), "", text, ""]
    if quick:
        print("\n".join(page))
    else:
        (HERE / "RESULTS.md").write_text("\n".join(page))
        print(f"written: {HERE / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
