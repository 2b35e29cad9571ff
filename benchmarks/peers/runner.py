"""Runs contestants on instances; a JSON file keeps all measurements, so that an interrupted run can be continued."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import saddlepoint as sp
from saddlepoint.ground.linalg import norm

from .clock import use_for_ours
from .contestants import FAST, Peer
from .problems import Instance
from .recorder import ORACLES, Finished, Outcome, Recorder, costs
from .reference import solution

SLOW = {"extragradient", "ogda", "condat-vu", "agraal", "minimax-appa", "pbr", "rhss"}  # O(kappa), or deeply nested
SLOW_CALLS = 100_000  # most calls of each oracle for the slow methods
SHORT = 0.5  # runs of fewer seconds are timed three times, and the fastest counts


class Store:
    """All outcomes, by instance and contestant, in a JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        """The outcomes in the file, to which another process may have added."""
        return json.loads(self.path.read_text()) if self.path.exists() else []

    def has(self, instance: str, contestant: str) -> bool:
        """Whether this was measured before."""
        return any(o["instance"] == instance and o["contestant"] == contestant for o in self.outcomes)

    def put(self, new: list[Outcome]) -> None:
        """Replace the outcomes of this contestant, and write the file."""
        keys = {(o.instance, o.contestant) for o in new}
        kept = [o for o in self.outcomes if (o["instance"], o["contestant"]) not in keys]
        points = 80 if self.path.stem == "sparse" else 10  # only the sparse family's curves are drawn
        lines = ",\n".join(json.dumps(o) for o in kept + [o.to_dict(points) for o in new])
        self.path.write_text(f"[\n{lines}\n]\n")


def our_names(instance: Instance) -> list[str]:
    """The names ``auto`` and all registered methods that can run on the instance, except prox methods."""
    oracles = ("gradients", "quadratic") if isinstance(instance.f.g, sp.Quadratic) else ("gradients",)
    return ["auto", *(info.name for info in sp.methods() if info.oracle in oracles)]


def run_peer(peer: Peer, instance: Instance, accuracies: tuple[float, ...], limit: float, most: int) -> list[Outcome]:
    """One outcome for each setting, which may take twice the time of the best one before it, at most ``limit``."""
    z = solution(instance)
    outcomes: list[Outcome] = []
    cut = limit
    for setting in peer.settings[:most]:
        outcome = timed(lambda s=setting, c=cut: _peer_run(peer, instance, s, z, accuracies, c))
        outcomes.append(outcome)
        if len(outcome.reached) == len(accuracies):
            cut = min(cut, 2.0 * outcome.seconds + 0.1)
    return outcomes


def _peer_run(
    peer: Peer, instance: Instance, setting: dict[str, Any], z: np.ndarray, accuracies: tuple[float, ...], limit: float
) -> Outcome:
    outcome = Outcome(instance.name, peer.name, setting)
    recorder = Recorder(instance.f, norm(z), accuracies, limit, outcome)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            peer.run(instance, recorder, **setting)
        status = "gave up"
    except Finished as end:
        status = str(end)
    except Exception as error:
        status = f"{type(error).__name__}: {str(error)[:80]}"
    recorder.close(status, z)
    return outcome


def run_ours(name: str, instance: Instance, accuracies: tuple[float, ...], limit: float) -> list[Outcome]:
    """The one outcome of a method of ours, run to the tightest accuracy; other accuracies follow from its history."""
    z = solution(instance)
    return [timed(lambda: _our_run(name, instance, z, accuracies, limit))]


def _our_run(name: str, instance: Instance, z: np.ndarray, accuracies: tuple[float, ...], limit: float) -> Outcome:
    outcome, scale = Outcome(instance.name, name, {}), norm(z)
    calls = SLOW_CALLS if name in SLOW else None
    try:
        result = sp.solve(instance.f, method=name, tol=min(accuracies) * scale, max_seconds=limit, max_calls=calls)
    except Exception as error:
        outcome.status = f"{type(error).__name__}: {str(error)[:80]}"
        return outcome
    best = math.inf
    for record in result.history:
        counts = {oracle: getattr(record, oracle) for oracle in ORACLES}
        certified = record.distance / scale
        if certified < 0.97 * best or record is result.history[-1]:
            best = min(best, certified)
            outcome.curve.append((record.seconds, max(counts.values()), certified))
        for accuracy in accuracies:
            if certified <= accuracy and f"{accuracy:g}" not in outcome.reached:
                outcome.reached[f"{accuracy:g}"] = costs(counts, record.seconds)
    outcome.status, outcome.seconds, outcome.calls = str(result.status), result.seconds, dict(result.calls)
    outcome.setting = {"method": result.method}
    outcome.certified = result.certificate.distance / scale
    outcome.true = norm(np.concatenate([result.x, result.y]) - z) / scale
    return outcome


def timed(run: Any) -> Outcome:
    """The run with the shortest time, of three if it is short."""
    outcome: Outcome = run()
    if outcome.seconds < SHORT:
        outcome = min([outcome, run(), run()], key=lambda o: o.seconds)
    return outcome


def shown(outcome: Outcome) -> str:
    """An outcome as a line for the terminal."""
    met = {accuracy: f"{cost['rounds']:.0f} / {cost['seconds']:.3g} s" for accuracy, cost in outcome.reached.items()}
    names = f"{outcome.instance} | {outcome.contestant} {outcome.setting}"
    return f"{names} | {met} | {outcome.certified:.2g} {outcome.status}"


def run_all(
    store: Store,
    instances: Iterable[Instance],
    peers: Iterable[Peer],
    wanted: list[str],
    accuracies: tuple[float, ...],
    limit: float | None,
    settings: int,
    again: bool,
) -> None:
    """All ``wanted`` contestants (none named: all there are) that are not in the store yet, unless ``again``."""
    use_for_ours()
    by_name = {peer.name: peer for peer in peers}
    for instance in instances:
        seconds = limit or instance.limit
        here = [*our_names(instance), *(name for name, peer in by_name.items() if peer.fits(instance))]
        for name in here:
            skip = (wanted and name not in wanted) or (instance.n == 2000 and name not in FAST)
            if skip or (store.has(instance.name, name) and not again):
                continue
            if name in by_name:
                outcomes = run_peer(by_name[name], instance, accuracies, seconds, settings)
            else:
                outcomes = run_ours(name, instance, accuracies, seconds)
            store.put(outcomes)
            for outcome in outcomes:
                print(shown(outcome), flush=True)
