"""The needs of methods: a class declares them, wrappers take them over, and an error says what is missing."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from cases import BLACK_BOX, case

import saddlepoint as sp
from saddlepoint.methods import Needs
from saddlepoint.methods.needs import check_needs, missing
from saddlepoint.methods.registry import method_names
from saddlepoint.parts.sharded import LocalEngine, ShardedCoupling


@dataclass(frozen=True)
class Curved(sp.Method):
    """A method of a user that reads Hessians and checks nothing itself."""

    needs: ClassVar[Needs] = Needs(hessians=True)

    def init(self, f, x, y):
        return sp.State(x, y)

    def step(self, f, s):
        Fx, Fy = f.field(s.x, s.y)
        return sp.State(s.x - np.linalg.solve(f.g.hessian(s.x), Fx), s.y - np.linalg.solve(f.h.hessian(s.y), Fy))


def no_mu():
    return sp.Saddle(sp.Smooth(lambda x: x, mu=1.0, L=1.0), sp.Smooth(lambda y: y, mu=None, L=1.0), np.eye(3))


REFUSED = [
    (Curved(), BLACK_BOX, "curved needs the Hessians of g and h, but g (Smooth) has none; give hessian= to Smooth"),
    ("newton", BLACK_BOX, "newton needs the Hessians of g and h, but g (Smooth) has none; give hessian= to Smooth"),
    (
        "direct",
        BLACK_BOX,
        "direct needs quadratic g and h, but g (Smooth) is not known to be quadratic",
    ),
    (
        "rhss",
        BLACK_BOX,
        "rhss needs quadratic g and h, but g (Smooth) is not known to be quadratic",
    ),
    (
        "dppa",
        BLACK_BOX,
        "dppa needs the prox of g, but g (Smooth) has none; give prox= to Smooth, or",
    ),
    (sp.CondatVu("y"), BLACK_BOX, "condat-vu needs the prox of h, but h (Smooth) has none; give prox= to Smooth, or"),
    ("lpd-gs", no_mu, "lpd-gs needs mu of h, which is unknown; give mu to Smooth (without it no distance can be"),
    (sp.Catalyst(sp.Newton()), BLACK_BOX, "catalyst-newton needs the Hessians of g and h, but g (Smooth) has none"),
    (sp.Anderson(sp.DPPA()), BLACK_BOX, "anderson-dppa needs the prox of g, but g (Smooth) has none"),
    (sp.Restarted(sp.Krylov()), BLACK_BOX, "restarted-krylov needs quadratic g and h, but g (Smooth) is not known"),
    (sp.Catalyst(sp.AGRAAL()), no_mu, "catalyst-agraal needs mu of h, which is unknown"),
]


@pytest.mark.parametrize(("method", "problem", "sentence"), REFUSED)
def test_what_is_missing_is_said_in_a_sentence(method, problem, sentence):
    with pytest.raises(sp.ProblemError) as caught:
        sp.solve(problem(), method=method)
    assert str(caught.value).startswith(sentence)
    assert "use a method that does without: auto, " in str(caught.value)


def named(method, f):
    """The methods that the refusal of a method names."""
    with pytest.raises(sp.ProblemError) as caught:
        check_needs(method, f)
    return str(caught.value).split("does without: ")[1].replace(" or ", ", ").split(", ")


def test_a_refusal_names_all_methods_that_can_run():
    games = ["halpern-pdhg", "pdhg", "preconditioned-halpern-pdhg"]
    assert named(sp.LPDGS(), no_mu()) == ["auto", "agraal", *games, "rapd"]
    with_term = sp.Saddle(sp.Quadratic(2.0) + sp.L1(0.1), sp.Quadratic(1.0), np.eye(2))
    for method, f in ((sp.Newton(), BLACK_BOX()), (sp.Krylov(), with_term)):
        names = named(method, f)
        assert names[:3] == ["auto", "dippa", "lpd-gs"]
        assert sorted(names[1:]) == [name for name in method_names() if not missing(sp.make_method(name), f)]


def test_the_methods_that_a_refusal_names_solve_a_problem_with_a_simple_term():
    g, h = sp.Quadratic(2.0, [1.0, -0.2]) + sp.L1(0.3), sp.Quadratic(1.0, [0.5, 0.5])
    f = sp.Saddle(g, h, [[1.0, 2.0], [0.0, 1.0]])
    names = named(sp.Krylov(), f)
    assert len(names) > 15
    for name in names:
        assert sp.solve(f, method=name, tol=1e-4, max_calls=20_000).solved, name


def test_shards_have_no_matrix_to_factorise():
    f, _, _ = case("kappa = 1")
    spread = sp.Saddle(f.g, f.h, ShardedCoupling(LocalEngine(f.A.A, 2)))
    for method in ("newton", "direct", sp.Catalyst(sp.Newton())):
        with pytest.raises(sp.ProblemError, match=r"needs A as one NumPy or SciPy matrix, .* but A is in 2 shards"):
            sp.solve(spread, method=method)


@pytest.mark.parametrize("name", method_names())
def test_missing_is_empty_where_everything_is_there(name):
    f, _, _ = case("balanced")
    assert missing(sp.make_method(name), f) == ()


def test_the_column_of_the_table_is_made_from_needs():
    words = {info.name: info.oracle for info in sp.methods()}
    assert words["newton"] == "Hessians"
    assert words["direct"] == "matrices"
    assert words["krylov"] == words["rhss"] == "quadratic"
    assert words["dppa"] == words["apfb"] == "prox"
    assert words["lpd-gs"] == words["catalyst-dippa"] == words["rapd"] == "gradients"
    assert sp.CondatVu("y").needs.oracle == "prox of h"
