"""Forks a solve, kills it at random moments, and continues it to its end; tests/test_kill.py runs this script.

Usage: python killed.py FOLDER METHOD SEED
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import saddlepoint as sp
from saddlepoint.problems.generators import random_logistic
from saddlepoint.solving.checkpoint.file import older, read

TOL = 1e-7
SHORTEST, LONGEST = 0.01, 0.3  # seconds that a process lives


def problem():
    """A run of one or two seconds, most of which its gradients sleep."""
    f = random_logistic(30, 20, 1000, 300, 30, seed=5)

    def slow(x):
        time.sleep(PAUSE)
        return f.g.grad(x)

    return sp.Saddle(sp.Smooth(slow, mu=f.mu_x, L=f.L_x), f.h, f.A)


PAUSE = 0.0


def answer(result):
    """Everything that two runs must have in common, to the last bit."""
    return {
        "solved": bool(result.solved),
        "points": [result.x.tobytes().hex(), result.y.tobytes().hex()],
        "certificate": [number.hex() for number in result.certificate[:-1]],
        "counts": [result.calls, result.passes, result.iterations, result.monitor_calls],
        "history": np.delete(result.history.array, sp.Record._fields.index("seconds"), axis=1).tolist(),
        "message": result.message,
    }


def lifetime(file, method, seconds):
    """Fork a solve, kill it after so many seconds, and return whether it had ended by then."""
    process = os.fork()
    if process == 0:
        result = sp.solve(problem(), method=method, tol=TOL, checkpoint=file, checkpoint_every=0.002)
        text = json.dumps(answer(result) | {"resumed": result.provenance["resumed"]})
        Path(f"{file}.answer").write_text(text)
        os._exit(0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(process, os.WNOHANG)[0]:
            return True
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    return os.waitpid(process, 0)[1] == 0


def whole(path):
    """Whether a file is there and intact."""
    try:
        return bool(read(path, 1 << 30))
    except sp.ProblemError:
        return False


def main(folder, method, seed):
    global PAUSE
    expected = answer(sp.solve(problem(), method=method, tol=TOL))
    PAUSE = 1.5 / (expected["counts"][0]["grad_g"] + 400)
    file, rng = Path(folder) / "run", np.random.default_rng(seed)
    kills, begun, broken = 0, False, 0
    while not lifetime(file, method, rng.uniform(SHORTEST, LONGEST)):
        kills += 1
        begun = begun or file.exists()
        broken += begun and not (whole(file) or whole(older(file)))
    found = json.loads(Path(f"{file}.answer").read_text())
    resumed = found.pop("resumed")
    print(json.dumps({
        "kills": kills, "resumed": resumed, "broken": broken, "solved": found["solved"], "same": found == expected
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
