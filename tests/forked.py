"""Runs a Python script in a process of its own that has the large libraries imported already.

Such a process is forked from a server that imports them once, which saves one to three seconds for each script.
"""

import multiprocessing
import os
import runpy
import sys
import warnings
from multiprocessing import forkserver
from unittest import mock

CONTEXT = multiprocessing.get_context("forkserver")
LIBRARIES = [
    "matplotlib.backends.backend_agg",
    "matplotlib.pyplot",
    "saddlepoint.apps",
    "scipy.optimize",
    "scipy.sparse.linalg",
    "sklearn.datasets",
    "sklearn.kernel_approximation",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "sklearn.pipeline",
    "sklearn.preprocessing",
]


def run_script(script, *arguments, folder, output, timeout):
    """Run a script in ``folder``, with warnings as errors.

    Args:
        script: path of the script.
        arguments: what ``sys.argv`` holds after it.
        folder: the folder in which it runs.
        output: an empty folder, for what the script prints.
        timeout: seconds after which it is ended, with a TimeoutError.

    Returns:
        The exit code, the standard output and the standard error.
    """
    CONTEXT.set_forkserver_preload(LIBRARIES)
    with mock.patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"):  # small products are slower on two threads than on one
        forkserver.ensure_running()
    words = [str(script), *map(str, arguments)]
    process = CONTEXT.Process(target=_run, args=(words, str(folder), str(output)))
    process.start()
    process.join(timeout)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError(f"{script} had not ended after {timeout} seconds")
    return process.exitcode, (output / "out").read_text(), (output / "err").read_text()


def _run(words, folder, output):
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(os.path.join(output, name), os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
    os.chdir(folder)
    sys.argv = words
    warnings.simplefilter("error")
    runpy.run_path(words[0], run_name="__main__")
