"""`auto` and its peers on problems drawn afresh, in one run, with whole calls timed.

Peers that have to know what a function is (its Hessian, its conjugate, its formula in JAX) get ready functions.
"""

from __future__ import annotations

import numpy as np

import saddlepoint as sp
from saddlepoint.ground.arrays import Array
from saddlepoint.ground.linalg import norm

from .clock import now
from .contestants import PEERS
from .fresh_problems import LIMIT, Drawn
from .recorder import Outcome, costs
from .reference import solution
from .runner import Store, run_peer, shown, timed

OWN, READY = "auto, functions by hand", "auto, ready functions"
ACCURACIES = (1e-4, 1e-6)
ALLOWED = 2.0, 20.0  # seconds that a peer may take at least, and times those of `auto`


def run_auto(instance: Drawn, name: str, z: Array) -> Outcome:
    """Whole calls of `solve`, one for each accuracy; the calls of set-up and of certificates count."""
    outcome, scale = Outcome(instance.name, name, {}), norm(z)
    for accuracy in ACCURACIES:
        f = instance.new(ready=name == READY)
        began = now()
        result = sp.solve(f, tol=accuracy * scale, max_seconds=LIMIT)
        outcome.seconds = now() - began
        outcome.status, outcome.setting = str(result.status), {"method": result.method}
        outcome.certified, outcome.calls = result.certificate.distance / scale, dict(result.all_calls)
        outcome.true = norm(np.concatenate([result.x, result.y]) - z) / scale
        if result.solved:
            outcome.reached[f"{accuracy:g}"] = costs(outcome.calls, outcome.seconds)
    return outcome


def measure(store: Store, instance: Drawn) -> None:
    """`auto` with both kinds of functions, and every peer that can run on the problem, in one process."""
    z, slowest = solution(instance), 0.0
    for name in (OWN, READY):
        outcome = timed(lambda name=name: run_auto(instance, name, z))
        slowest = max(slowest, outcome.seconds)
        keep(store, [outcome])
    limit = min(LIMIT, ALLOWED[0] + ALLOWED[1] * slowest)
    for peer in PEERS:
        if peer.fits(instance):
            keep(store, run_peer(peer, instance, ACCURACIES, limit, len(peer.settings)))


def keep(store: Store, outcomes: list[Outcome]) -> None:
    """Write the outcomes of one contestant to the file, and print them."""
    store.put(outcomes)
    for outcome in outcomes:
        print(shown(outcome), flush=True)
