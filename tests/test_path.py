"""Families of problems along a parameter: the same answers as one by one, with what they share computed once."""

import builtins
import math

import numpy as np
import pytest

import saddlepoint as sp

M, N = 4, 3
RNG = np.random.default_rng(0)
A, D, T = RNG.standard_normal((M, N)), RNG.standard_normal((8, M)), RNG.standard_normal(8)
B = RNG.standard_normal(M)
H = sp.Smooth(lambda y: np.tanh(y) + 0.5 * y, mu=0.5, L=1.5)
VALUES = np.geomspace(2.0, 0.5, 6)


def ridge(parameter):
    return sp.Saddle(sp.LeastSquares(D, T, parameter), H, A)


def check(family, make, tol):
    assert family.solved
    for parameter, result in zip(family.parameters, family, strict=True):
        fresh = sp.solve(make(parameter), tol=tol)
        apart = np.linalg.norm(result.x - fresh.x) + np.linalg.norm(result.y - fresh.y)
        assert apart <= result.certificate.distance + fresh.certificate.distance
        assert result.certificate.distance <= tol


def test_a_family_is_solved_as_one_by_one():
    family = sp.path(ridge, VALUES, tol=1e-8)
    check(family, ridge, 1e-8)
    assert len(family) == 6
    assert family.x.shape == (6, M)
    assert family.y.shape == (6, N)
    np.testing.assert_array_equal(family.x[2], family[2].x)
    np.testing.assert_array_equal(family.parameters, VALUES)
    assert family.calls[0] == sum(family[0].calls.values())
    assert "6 parameters from 2 to 0.5; 6 solved" in repr(family)


def test_a_family_may_change_the_linear_terms_alone():
    f = sp.Saddle(sp.Quadratic(np.eye(M) + 0.1, np.ones(M)), sp.Quadratic(1.0), A)
    family = sp.path(f, [0.0, 1.0, 2.0], update=lambda t: {"b": t * B}, tol=1e-9)
    check(family, lambda t: sp.Saddle(sp.Quadratic(np.eye(M) + 0.1, t * B), sp.Quadratic(1.0), A), 1e-9)
    assert family.distances[0] == 0.0  # the solution is zero
    np.testing.assert_allclose(family.x[2], 2.0 * family.x[1], atol=1e-8)


def test_what_the_problems_share_is_examined_and_estimated_once(monkeypatch):
    estimates, before = [], sp.Coupling.estimated_norm
    monkeypatch.setattr(
        sp.Coupling, "estimated_norm", lambda self, **how: (estimates.append(self), before(self, **how))[1]
    )
    family = sp.path(ridge, np.linspace(1.0, 1.01, 5), tol=1e-8)
    matrices = [coupling for coupling in estimates if getattr(coupling, "A", None) is A]
    assert len(matrices) == 1
    examined = [result.setup_calls["grad_h"] > 10 for result in family]
    assert examined == [True, False, False, False, False]


def test_a_matrix_that_is_written_into_is_another_matrix():
    matrix = A.copy()
    g = sp.Quadratic(np.eye(M), B)

    def make(parameter):
        matrix[:] = parameter * A
        return sp.Saddle(g, sp.Quadratic(1.0), matrix)

    for method in ("auto", "lpd-gs"):
        family = sp.path(make, [1.0, 3.0], tol=1e-8, method=method)
        expected = sp.solve(sp.Saddle(g, sp.Quadratic(1.0), 3.0 * A), tol=1e-8)
        np.testing.assert_allclose(family[1].x, expected.x, atol=2e-8)
        assert family[1].certificate.distance <= 1e-8


def test_a_claim_that_is_wrong_for_one_parameter_is_found_there():
    def make(parameter):
        return sp.Saddle(sp.Smooth(lambda x: parameter * x + B, mu=0.5, L=4.0), H, A)

    with pytest.raises(sp.AssumptionError, match="mu") as caught:
        sp.path(make, [1.0, 0.6, 0.1], tol=1e-8)
    assert any("at the parameter 0.1 of a path" in note for note in caught.value.__notes__)


def test_ctrl_c_returns_what_there_is():
    def make(parameter):
        if parameter < 1.0:
            raise KeyboardInterrupt
        return ridge(parameter)

    family = sp.path(make, VALUES)
    assert 0 < len(family) < 6
    assert family.solved
    np.testing.assert_array_equal(family.parameters, VALUES[: len(family)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((ridge, []), "parameters is empty"),
        ((ridge, [[1.0]]), "parameters has shape"),
        ((ridge(1.0), [1.0]), "f is one Saddle and update is None"),
        ((3.0, [1.0]), r"f is 3\.0; expected a function parameter -> Saddle"),
        ((lambda t: t, [1.0]), r"f returned a float; expected a Saddle\(g, h, A\)"),
        ((lambda t: sp.Saddle(sp.Quadratic(1.0), H, np.ones((int(t), N))), [2.0, 3.0]), "f is 3 x 3; expected"),
    ],
)
def test_wrong_families_are_refused_in_a_sentence(given, words):
    with pytest.raises(sp.ProblemError, match=words):
        sp.path(*given)


def test_wrong_updates_are_refused_in_a_sentence():
    with pytest.raises(sp.ProblemError, match=r"update returned 1\.0; expected a dict"):
        sp.path(ridge(1.0), [1.0], update=lambda t: t)
    with pytest.raises(sp.ProblemError, match="update was given"):
        sp.path(ridge, [1.0], update=lambda t: {})


@pytest.mark.parametrize("name", ["progress", "history"])
def test_a_flag_that_is_neither_true_nor_false_is_refused(name):
    with pytest.raises(sp.ProblemError, match=f"{name} is 'no'; expected True or False"):
        sp.path(ridge, [1.0], **{name: "no"})


@pytest.mark.parametrize("rich", [True, False])
def test_progress_is_shown_with_and_without_rich(rich, capsys, monkeypatch):
    if not rich:
        before = builtins.__import__

        def without(name, *rest):
            if name.startswith("rich"):
                raise ImportError(name)
            return before(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
    sp.path(ridge, VALUES, progress=True)
    said = capsys.readouterr().err
    assert ("6/6" if rich else "6 of 6") in said
    assert "0.5, certified" in said


@pytest.mark.slow
def test_a_path_is_drawn(tmp_path):
    figure = sp.path(ridge, np.geomspace(10.0, 0.1, 4)).plot(tmp_path / "family.png")
    assert (tmp_path / "family.png").exists()
    wide, distances, calls = figure.axes
    assert wide.get_xscale() == "log"
    assert len(wide.lines) == M
    assert distances.get_yscale() == "log"
    assert calls.get_ylim()[0] == 0.0
    unsolved = sp.path(ridge, [1.0, 2.0], tol=1e-6, max_calls=1)
    assert not unsolved.solved
    assert math.isfinite(unsolved.plot().axes[1].get_ylim()[1])


# -- a whole problem as an update --------------------------------------------------------------------------------------


def test_a_whole_problem_replaces_the_linear_terms_too():
    g, h = sp.Quadratic(np.eye(M), B), sp.Quadratic(1.0, np.ones(N))
    f = sp.Saddle(g, h, A)
    expected = sp.solve(f, tol=1e-9)
    prepared = sp.prepare(f, tol=1e-9)
    other = prepared.update(b=-B).solve()
    np.testing.assert_allclose(prepared.update(f).solve().x, expected.x, atol=2e-9)
    assert np.linalg.norm(other.x - expected.x) > 0.1
    np.testing.assert_allclose(prepared.update(f, b=-B).solve().x, other.x, atol=2e-9)
    with pytest.raises(sp.ProblemError, match="f and A were given"):
        prepared.update(f, A=A)
    with pytest.raises(sp.ProblemError, match="f is a float"):
        prepared.update(3.0)


def test_an_estimated_L_may_be_corrected_later_too():
    g = sp.Smooth(lambda x: x + 2.0 * np.tanh(3.0 * (x - 2.0)), mu=1.0, L=None)
    prepared = sp.prepare(sp.Saddle(g, sp.Quadratic(1.0), 0.1 * np.eye(2)), tol=1e-8)
    for b in (-1.0, -4.0):
        assert prepared.update(A=0.1 * np.eye(2), b=[b, b]).solve().solved
    assert prepared.problem.estimated.keys() == {"g"}
