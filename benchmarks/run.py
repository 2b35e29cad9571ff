"""`make bench`: every number the docs report, measured and written to benchmarks/results (about two hours).

`python benchmarks/run.py overhead table1` measures these sections only; `--quick` prints a small version of them.
"""

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
# One BLAS thread where time is measured; all threads where calls are counted.
SECTIONS = {
    "overhead": ("A call of solve beside its steps", "1"),
    "certificate_cost": ("What a certificate costs", "1"),
    "table1": ("Table 1, measured", "1"),
    "applications": ("Applications", "1"),
    "fused_cpu": ("One pass over A on a CPU", str(os.cpu_count())),
    "streamed": ("A matrix larger than memory", "1"),
    "batch": ("Many problems in one call", str(os.cpu_count())),
    "inner_rules": ("DIPPA's inner rules", str(os.cpu_count())),
    "dask_rounds": ("A round on Dask", "1"),
    "scaling": ("The matrix on many machines: predicted times", "1"),
}


def measure(name: str, quick: bool) -> None:
    """Run one section, and write its page."""
    title, threads = SECTIONS[name]
    script = HERE / f"{name}.py"
    began = time.perf_counter()
    command = [sys.executable, str(script), *(["--quick"] if quick else [])]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": threads}
    text = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    about = ast.get_docstring(ast.parse(script.read_text())) or ""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"
    seconds = time.perf_counter() - began
    foot = f"By `python benchmarks/run.py {name}` in {seconds:.0f} s on {os.cpu_count()} cores: {versions}."
    page = "\n".join([f"# {title}", "", about, "", text, foot, ""])
    if quick:
        print(page)
    else:
        target = HERE / "results" / f"{name}.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text(page)
        print(f"written: benchmarks/results/{name}.md", flush=True)


def main() -> None:
    """Measure what is asked for, or everything."""
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    for name in names or SECTIONS:
        measure(name, "--quick" in sys.argv)


if __name__ == "__main__":
    main()
