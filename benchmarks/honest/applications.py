"""The applications: what they certify about the caller's data, beside the truth about these data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy import sparse

import saddlepoint as sp
from saddlepoint.apps import AUCClassifier, ConstrainedGame, ExtensiveGame, PolicyEvaluation
from saddlepoint.apps.constrained_huber import ConstrainedHuber
from saddlepoint.apps.risk import RiskClassifier, RiskRegressor
from saddlepoint.apps.robust_least_squares import RobustLeastSquares
from saddlepoint.apps.structure import Graph

from . import functions, losses, numbers
from .draws import between, function, matrix, sizes
from .exact import Exact
from .numbers import Array, Decimals, decimals, eliminate, length

SECONDS = 3.0  # most seconds of a fit
NEWTON = 200  # most steps of Newton's method


class Claim(NamedTuple):
    """What an application says, and the truth: ``bound`` must be at least ``truth``."""

    way: str
    name: str
    bound: float
    truth: Decimal
    solved: bool
    message: str


def samples(rng: Generator, most: int = 5) -> tuple[Array, Any, Array]:
    """Data with a mean of 0 to 1e8 and a scale of 1e-3 to 1e3, perhaps float32: as an array, as given, and targets."""
    n = int(rng.integers(1, most + 1))
    rows = int(rng.integers(n + 4, 40))
    scale = between(rng, -3, 3) if rng.random() < 0.3 else 1.0
    mean = 0.0 if rng.random() < 0.3 else between(rng, 0, 8) * scale
    X = scale * rng.standard_normal((rows, n)) + mean * rng.choice([-1.0, 0.3, 1.0], n)
    if rng.random() < 0.3:
        X = np.where(rng.random(X.shape) < 0.6, X, 0.0)
    t = scale * rng.standard_normal(rows)
    if rng.random() < 0.2:
        X, t = X.astype(np.float32), t.astype(np.float32)
    given = sparse.csr_matrix(X) if rng.random() < 0.4 else X
    return X, given, t


def columns_mean(X: Decimals) -> Decimals:
    """The means of the columns."""
    return sum(X) / Decimal(len(X))


def auc(rng: Generator) -> Iterator[Claim]:
    """AUC maximisation: the weights, and the multiplier, from the rows themselves."""
    X, given, _ = samples(rng)
    labels = np.arange(len(X)) < max(2, int(len(X) * rng.uniform(0.1, 0.6)))
    l2 = between(rng, -3, 1)
    model = AUCClassifier(l2, tol=between(rng, -10, -3), max_seconds=SECONDS).fit(given, labels)
    plus, minus = decimals(X[labels]), decimals(X[~labels])
    m_plus, m_minus = columns_mean(plus), columns_mean(minus)
    share = Decimal(len(plus)) / Decimal(len(X))
    pq = share * (1 - share)
    V = sum((part - m).T @ (part - m) / Decimal(len(part)) for part, m in ((plus, m_plus), (minus, m_minus)))
    d = m_plus - m_minus
    H = 2 * pq * (V + np.outer(d, d)) + Decimal(l2) * decimals(np.eye(len(d)))
    w = eliminate(H, 2 * pq * d)
    proof, result = model.certificate_, model.result_
    dw = length(decimals(model.coef_[0]) - w)
    da = abs(Decimal(model.alpha_) + d @ w)
    yield Claim("AUCClassifier", "|w - w*|", proof.distance_x, dw, result.solved, result.message)
    yield Claim("AUCClassifier", "|alpha - alpha*|", proof.distance_y, da, result.solved, result.message)
    yield Claim("AUCClassifier", "both", proof.distance, dw + da, result.solved, result.message)


def policy(rng: Generator) -> Iterator[Claim]:
    """Policy evaluation from transitions: theta and w."""
    X, given, rewards = samples(rng)
    after = X[rng.permutation(len(X))] * (rng.random((len(X), 1)) < 0.9)
    discount = float(rng.choice([0.0, 0.5, 0.9, 0.99]))
    ridge, ridge_w = between(rng, -3, 1), between(rng, -3, 1) if rng.random() < 0.6 else 0.0
    if rng.random() < 0.3:
        ridge = 0.0
    to = sparse.csr_matrix(after) if sparse.issparse(given) else after
    task = PolicyEvaluation(given, to, rewards, discount, ridge=ridge, ridge_w=ridge_w)
    found = task.solve(tol=between(rng, -9, -3), max_seconds=SECONDS)
    if found.certificate is None:
        return
    P, Q, r, N = decimals(X), decimals(after), decimals(rewards), Decimal(len(X))
    eye = decimals(np.eye(X.shape[1]))
    M, b, C = P.T @ (P - Decimal(discount) * Q) / N, P.T @ r / N, P.T @ P / N + Decimal(ridge_w) * eye
    n = len(b)
    K = np.block([[Decimal(ridge) * eye, -M.T], [M, C]])
    z = eliminate(K, np.concatenate([0 * b, b]))
    dx, dy = length(decimals(found.theta) - z[:n]), length(decimals(found.w) - z[n:])
    proof = found.certificate
    yield Claim("PolicyEvaluation", "|theta - theta*|", proof.distance_x, dx, found.solved, found.message)
    yield Claim("PolicyEvaluation", "|w - w*|", proof.distance_y, dy, found.solved, found.message)
    yield Claim("PolicyEvaluation", "both", proof.distance, dx + dy, found.solved, found.message)


def regressor(rng: Generator) -> Iterator[Claim]:
    """Ridge and Huber regression without a structure: the weights."""
    X, given, t = samples(rng)
    l2, intercept = between(rng, -3, 1), bool(rng.random() < 0.7)
    huber = rng.random() < 0.5
    t = t + (between(rng, 0, 6) if rng.random() < 0.5 else 0.0)
    delta = between(rng, -1, 1)
    model = RiskRegressor(
        "huber" if huber else "squared",
        l2,
        fit_intercept=intercept,
        delta=delta,
        tol=between(rng, -9, -3),
        max_seconds=SECONDS,
    ).fit(given, t)
    D, targets = decimals(X), decimals(t)
    if intercept:
        D, targets = D - columns_mean(D)[None, :], targets - sum(targets) / Decimal(len(t))
        if huber:
            D = np.concatenate([D, decimals(np.ones((len(t), 1)))], axis=1)
    w = minimiser(D, targets, Decimal(l2), Decimal(delta) if huber else None)
    if w is None:
        return
    found = model.result_
    dw = length(decimals(found.x) - w)
    yield Claim("RiskRegressor", "|w - w*|", found.certificate.distance_x, dw, found.solved, found.message)


def classifier(rng: Generator) -> Iterator[Claim]:
    """Logistic regression or a smoothed hinge, perhaps with the graph of a chain: the weights, and the dual ones."""
    X, given, _ = samples(rng, 4)
    labels = np.where(np.arange(len(X)) < 3, 1.0, np.where(rng.random(len(X)) < 0.5, 1.0, -1.0))
    labels[-1] = -1.0
    l2, intercept, hinge = between(rng, -2, 1), bool(rng.random() < 0.7), rng.random() < 0.5
    n, strength = X.shape[1], 2.0 ** int(rng.integers(-6, 7))  # 1/strength is a float
    chain = [(i, i + 1) for i in range(n - 1)] if rng.random() < 0.5 else []
    model = RiskClassifier(
        "smoothed_hinge" if hinge else "logistic",
        l2,
        structure=Graph(chain, strength) if chain else None,
        fit_intercept=intercept,
        tol=between(rng, -8, -2),
        max_seconds=SECONDS,
    ).fit(given, labels)
    D = np.column_stack([X, np.ones(len(X))]) if intercept else X
    smooth = sp.SmoothedHinge(D, labels, l2) if hinge else sp.Logistic(D, labels, l2)
    g = functions.Risk(losses.hinge(1.0) if hinge else losses.LOGISTIC, smooth, D, None, l2, labels)
    A = np.zeros((D.shape[1], max(len(chain), 1)))
    for edge, (i, j) in enumerate(chain):
        A[i, edge], A[j, edge] = 1.0, -1.0
    h = functions.Quadratic(np.full(A.shape[1], 1.0 / strength if chain else 1.0), np.zeros(A.shape[1]))
    truth, found = Exact(g, h, A), model.result_
    truth.further_starts = lambda: iter([(found.x, found.y)])
    dx, dy = truth.errors(found.x, found.y)
    proof = found.certificate
    yield Claim("RiskClassifier", "|w - w*|", proof.distance_x, dx, found.solved, found.message)
    yield Claim("RiskClassifier", "|z - z*|", proof.distance_y, dy, found.solved, found.message)


def minimiser(
    D: Decimals, t: Decimals, l2: Decimal, delta: Decimal | None, equations: tuple[Decimals, Decimals] | None = None
) -> Decimals | None:
    """The minimiser of mean loss(D w - t) + l2/2 |w|^2, perhaps with E w = e, by Newton's method; None if not found."""
    rows, n = D.shape
    N, w = Decimal(rows), decimals(np.zeros(n))
    E, e = equations if equations is not None else (decimals(np.zeros((0, n))), decimals(np.zeros(0)))
    k = len(e)
    y = decimals(np.zeros(k))

    def residual(w: Decimals, y: Decimals) -> Decimals:
        r = D @ w - t
        slope = r if delta is None else numbers.apply(lambda v: numbers.clip(v, -delta, delta), r)
        return np.concatenate([D.T @ slope / N + l2 * w + E.T @ y, E @ w - e])

    F = residual(w, y)
    for _ in range(NEWTON):
        if length(F) == 0 or length(F) <= Decimal("1e-40") * l2 * length(w):
            return w
        r = D @ w - t
        second_derivatives = (
            decimals(np.ones(rows)) if delta is None else numbers.apply(lambda v: Decimal(int(abs(v) <= delta)), r)
        )
        J = decimals(np.zeros((n + k, n + k)))
        J[:n, :n] = (D.T * second_derivatives) @ D / N + l2 * decimals(np.eye(n))
        J[:n, n:], J[n:, :n] = E.T, E
        try:
            step = eliminate(J, F)
        except ArithmeticError:
            return None
        size, share = length(F), Decimal(1)
        while True:
            new = w - share * step[:n], y - share * step[n:]
            G = residual(*new)
            if length(G) < size or share < Decimal("1e-8"):
                break
            share /= 2
        if length(G) >= size:
            return None
        (w, y), F = new, G
    return None


def constrained_huber(rng: Generator) -> Iterator[Claim]:
    """Huber regression with an equation for the weights."""
    X, given, t = samples(rng, 4)
    n = X.shape[1]
    l2, delta = between(rng, -3, 0), between(rng, -1, 1)
    E = rng.standard_normal((1, n)) if n > 1 and rng.random() < 0.7 else None
    e = rng.standard_normal(1)
    model = ConstrainedHuber(
        None if E is None else (E, e),
        delta=delta,
        l2=l2,
        fit_intercept=False,
        tol=between(rng, -9, -3),
        max_seconds=SECONDS,
    ).fit(given, t)
    equations = None if E is None else (decimals(E), decimals(e))
    w = minimiser(decimals(X), decimals(t), Decimal(l2), Decimal(delta), equations)
    if w is None:
        return
    dw = length(decimals(model.coef_) - w)
    result = model.result_
    yield Claim("ConstrainedHuber", "|w - w*|", model.certificate_.distance, dw, result.solved, result.message)


def robust(rng: Generator) -> Iterator[Claim]:
    """Robust least squares: the worst-case error is at most the upper end, and the best one at least the lower."""
    X, given, t = samples(rng, 4)
    intercept, radius = bool(rng.random() < 0.6), between(rng, -2, 1)
    model = RobustLeastSquares(radius, fit_intercept=intercept, tol=between(rng, -8, -3), max_seconds=SECONDS)
    model.fit(given, t)
    D, targets, N = decimals(X), decimals(t), Decimal(len(t))

    def worst(w: Decimals, b: Decimal) -> Decimal:
        r = D @ w + b - targets
        return Decimal(r @ r / N).sqrt() + Decimal(radius) * length(w)

    w = decimals(model.coef_)
    own = worst(w, Decimal(float(model.intercept_)))
    b = sum(targets - D @ w) / N if intercept else Decimal(0)
    better = min(own, worst(w, b))
    lower, upper = model.interval_
    message = f"interval {lower!r} {upper!r}"
    solved = upper - lower <= model.tol * upper
    yield Claim("RobustLeastSquares", "upper end", upper, own, solved, message)
    yield Claim("RobustLeastSquares", "minus lower end", -lower, -better, solved, message)


def exact_exploitability(A: Array, x: Array, y: Array, normalise: bool) -> Decimal:
    """max (A'x) - min (A y), exactly, where x minimises over the rows and y maximises over the columns."""
    A, x, y = decimals(A), decimals(x), decimals(y)
    if normalise:
        x, y = x / sum(x), y / sum(y)
    return Decimal(max(A.T @ x) - min(A @ y))


def matrix_game(rng: Generator) -> Iterator[Claim]:
    """Games in probabilities with payoffs of all sizes, and an offset."""
    m, n = sizes(rng, 6)
    scale, offset = between(rng, -12, 9), between(rng, -3, 8) if rng.random() < 0.4 else 0.0
    A = scale * (rng.standard_normal((m, n)) + offset)
    if rng.random() < 0.3:
        A = np.round(A / scale) * scale
    game = sp.apps.MatrixGame(sparse.csr_array(A) if rng.random() < 0.3 else A)
    found = game.solve(tol=scale * between(rng, -9, -3), max_seconds=SECONDS)
    truth = exact_exploitability(A.T, found.column, found.row, True)
    yield Claim("MatrixGame", "exploitability", found.exploitability, truth, found.solved, found.message)


def constrained_game(rng: Generator) -> Iterator[Claim]:
    """The same as a constrained game, with probabilities as equations for linear programs."""
    m, n = sizes(rng, 5)
    scale = between(rng, -12, 6)
    A = scale * rng.standard_normal((m, n))
    sets = [(np.ones((1, k)), np.ones(1)) for k in (m, n)]
    game = ConstrainedGame(A, sets[0], sets[1]) if rng.random() < 0.7 else ConstrainedGame.mixed(A)
    x, y = (rng.dirichlet(np.ones(k)) for k in (m, n))
    if rng.random() < 0.5:
        x, y = np.eye(m)[rng.integers(m)], np.eye(n)[rng.integers(n)]
    X, Y, B = decimals(x), decimals(y), decimals(A)
    wx, wy = -(B @ Y), B.T @ X
    truth = max(wx) - wx @ X + max(wy) - wy @ Y
    yield Claim("ConstrainedGame.exploitability", "at a point", game.exploitability(x, y), truth, False, "")
    found = game.solve(tol=scale * between(rng, -7, -3), max_seconds=1.0, max_steps=60)
    X, Y = decimals(found.x), decimals(found.y)
    wx, wy = -(B @ Y), B.T @ X
    truth = max(wx) - wx @ X + max(wy) - wy @ Y
    yield Claim("ConstrainedGame", "exploitability", found.exploitability, truth, found.solved, found.message)


def extensive_game(rng: Generator) -> Iterator[Claim]:
    """Games on a tree of one or two choices, with leaves of the same sequences whose payoffs cancel."""
    players = []
    for _ in range(2):
        sets = [("first", ["left", "right", "middle"][: int(rng.integers(2, 4))], 0)]
        if rng.random() < 0.6:
            sets.append(("second", ["left", "right"], int(rng.integers(0, len(sets[0][1]) + 1))))
        players.append((sets, 1 + sum(len(actions) for _, actions, _ in sets)))
    (first, n), (second, m) = players
    scale = between(rng, -9, 9)
    payoffs = [(i, j, scale * float(rng.standard_normal())) for i in range(m) for j in range(n)]
    for _ in range(int(rng.integers(0, 6))):
        i, j, large = int(rng.integers(m)), int(rng.integers(n)), scale * between(rng, 0, 14)
        payoffs += [(i, j, large), (i, j, scale * float(rng.standard_normal())), (i, j, -large)]
    payoffs = [payoffs[k] for k in rng.permutation(len(payoffs))]
    A = decimals(np.zeros((m, n)))
    for i, j, payoff in payoffs:
        A[i, j] += Decimal(payoff)
    found = ExtensiveGame(first, second, payoffs).solve(tol=scale * between(rng, -8, -3), max_seconds=1.0, max_steps=60)
    x, y = _played(second, found.x), _played(first, found.y)
    truth = _best(first, A.T @ x) + _best(second, -(A @ y))
    yield Claim("ExtensiveGame", "exploitability", found.exploitability, truth, found.solved, found.message)


def _played(sets: list[tuple[str, list[str], int]], v: Array) -> Decimals:
    """The exact strategy with the probabilities of v at each information set."""
    plan, start = decimals(np.maximum(v, 0.0)), 1
    plan[0] = Decimal(1)
    for _, actions, parent in sets:
        own = slice(start, start + len(actions))
        total = sum(plan[own])
        chances = plan[own] / total if total else decimals(np.ones(len(actions))) / Decimal(len(actions))
        plan[own], start = plan[parent] * chances, own.stop
    return plan


def _best(sets: list[tuple[str, list[str], int]], weights: Decimals) -> Decimal:
    """The value of a best response, from the last information set to the first."""
    values, end = weights.copy(), len(weights)
    for _, actions, parent in reversed(sets):
        values[parent] += max(values[end - len(actions) : end])
        end -= len(actions)
    return Decimal(values[0])


def coupled_costs(rng: Generator) -> Iterator[Claim]:
    """Two players with costs: the exploitability is the duality gap."""
    m, n = sizes(rng, 6)
    g, h = function(rng, m), function(rng, n)
    A = matrix(rng, m, n, between(rng, -1, 1))
    found = sp.apps.CoupledCosts(A, g.smooth, h.smooth).solve(tol=between(rng, -10, -2), max_seconds=SECONDS)
    truth = Exact(g, h, A)
    truth.further_starts = lambda: iter([(found.x, found.y)])
    gap = truth.gap(found.x, found.y)
    if gap is not None:
        yield Claim("CoupledCosts", "exploitability", found.exploitability, gap, found.solved, repr(found)[:100])


APPLICATIONS: dict[str, Callable[[Generator], Iterator[Claim]]] = {
    "application: AUC": auc,
    "application: policy": policy,
    "application: regression": regressor,
    "application: classification": classifier,
    "application: equations": constrained_huber,
    "application: robust": robust,
    "application: matrix game": matrix_game,
    "application: constrained game": constrained_game,
    "application: extensive game": extensive_game,
    "application: coupled costs": coupled_costs,
}


def ratio(claim: Claim) -> float:
    """Certified over true; NaN if that says nothing."""
    return float(Decimal(claim.bound) / claim.truth) if claim.truth > 0 and math.isfinite(claim.bound) else math.nan
