"""`make bench`: every number the docs report, measured and written to benchmarks/RESULTS.md (about an hour)."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy

HERE = Path(__file__).parent
# One BLAS thread where time is measured; all there are where calls are counted.
SECTIONS = {
    "overhead.py": ("Meter and driver", "1"),
    "table1.py": ("Table 1, measured", "1"),
    "inner_rules.py": ("DIPPA's inner rules", str(os.cpu_count())),
}


def main() -> None:
    """Run all, write the page."""
    quick = ["--quick"] if "--quick" in sys.argv else []
    began = time.perf_counter()
    page = []
    for script, (title, threads) in SECTIONS.items():
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads}
        command = [sys.executable, str(HERE / script), *quick]
        text = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        about = ast.get_docstring(ast.parse((HERE / script).read_text())) or ""
        page += [f"## {title}", "", about, "", text]
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    head = f"By `make bench` in {time.perf_counter() - began:.0f} s on {os.cpu_count()} cores: {versions}."
    text = "\n".join(["# Measured", "", head, "", *page])
    if quick:
        print(text)
    else:
        (HERE / "RESULTS.md").write_text(text)
        print(f"written: {HERE / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
