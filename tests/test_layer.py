"""Layers: gradients through saddle points with PyTorch and JAX, against finite differences."""

import numpy as np
import pytest
from differentiation import check_gradients_of_jax, tensors

import saddlepoint as sp
from saddlepoint.ground.recording import is_live, is_recording, recording

M, N = 4, 3


def numbers(seed=0):
    rng = np.random.default_rng(seed)
    A, D, t = 0.5 * rng.standard_normal((M, N)), rng.standard_normal((6, M)), rng.standard_normal(6)
    return A, D, t, np.array(0.3), rng.standard_normal(N), 0.3 * rng.standard_normal((N, N))


def with_own_loss(xp):
    """A, data, a weight l2, a linear term, and weights inside a gradient of one's own."""

    def build(A, D, t, l2, c, W):
        h = sp.Smooth(lambda y: W.T @ xp.tanh(W @ y) + 0.5 * y + c, mu=0.5, L=3.0)
        return sp.Saddle(sp.LogCosh(D, t, l2), h, A)

    return build


def with_terms(xp=None):
    """Multiples and sums with simple terms; the scale is a factor of one function and the P of another."""

    def build(A, b, s):
        g, ones = 2.0 * sp.Quadratic(s, b) + sp.L1(0.1), 0.0 * A[0] + 1.0
        return sp.Saddle(g, s * sp.Quadratic(ones, ones) + sp.Simplex(), A)

    return build


def with_value(xp, log_sum_exp):
    """A function by its value, and a matrix P."""

    def build(a, P):
        g = sp.Smooth.from_value(lambda x: log_sum_exp(a * x) + 0.5 * xp.sum(x * x), mu=1.0, L=5.0)
        return sp.Saddle(g, sp.LogSumExp(l2=1.0) + sp.Quadratic(P @ P.T), xp.eye(N))

    return build


def test_recording_is_a_context():
    assert not is_recording()
    with recording():
        assert is_recording()
    assert not is_recording()
    assert not is_live(np.ones(2))


def test_a_layer_refuses_wrong_arguments():
    with pytest.raises(sp.ProblemError, match="build of layer is not a function"):
        sp.layer(3)
    with pytest.raises(sp.ProblemError, match="no tensor of PyTorch or JAX"):
        sp.layer(lambda A: sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), A))(np.eye(2))
    assert sp.layer(with_terms).dims(2) is None
    assert sp.layer(with_terms, in_dims=0).dims(2) == (0, 0)
    assert sp.layer(with_terms, in_dims=(0, None)).dims(2) == (0, None)
    for wrong in ((0,), (None, None), (1, 0)):
        with pytest.raises(sp.ProblemError, match="in_dims of layer"):
            sp.layer(with_terms, in_dims=wrong).dims(2)
    assert repr(sp.layer(with_value)) == "Layer(with_value)"


# -- PyTorch -----------------------------------------------------------------------------------------------------------


def batch():
    rng = np.random.default_rng(1)
    return rng.standard_normal((2, M, N)), rng.standard_normal((2, M)), np.array(1.5)


def gradients_are_right(torch, layer, given):
    assert torch.autograd.gradcheck(layer, given, eps=1e-5, atol=1e-5, rtol=1e-4, nondet_tol=1e-8, fast_mode=True)


@pytest.mark.slow
def test_gradients_of_every_tensor_pass_gradcheck(torch):
    layer = sp.layer(with_own_loss(torch), tol=1e-11)
    gradients_are_right(torch, layer, tensors(torch, numbers()))
    assert layer.result.solved
    assert not layer.result.x.requires_grad
    assert layer.derivative.bound == np.inf  # nothing is known of the Hessian of h
    assert "hessian_lipschitz" in layer.derivative.why


@pytest.mark.slow
def test_gradients_of_a_batch_with_simple_terms_pass_gradcheck(torch):
    layer = sp.layer(with_terms(torch), tol=1e-11, in_dims=(0, 0, None))
    given = tensors(torch, batch())
    x, y = layer(*given)
    assert x.shape == (2, M)
    assert y.shape == (2, N)
    gradients_are_right(torch, layer, given)
    assert layer.derivative.bound < 1e-6
    with pytest.raises(sp.ProblemError, match="leading dimensions"):
        layer(given[0], given[1][:1], given[2])


@pytest.mark.slow
def test_gradients_of_a_function_made_from_a_value_pass_gradcheck(torch):
    rng = np.random.default_rng(2)
    build = with_value(torch, lambda a: torch.logsumexp(a, 0))
    given = tensors(torch, (rng.uniform(size=N), rng.standard_normal((N, N))))
    gradients_are_right(torch, sp.layer(build, tol=1e-11), given)


def test_only_needed_gradients_are_computed(torch):
    A, b, s = tensors(torch, (np.eye(M, N), np.ones(M), 1.5))
    layer = sp.layer(with_terms(torch), tol=1e-9)
    x, _ = layer(A.detach(), b, s.detach())
    x.sum().backward()
    assert A.grad is None
    assert b.grad.shape == (M,)
    with torch.no_grad():
        assert not layer(A, b, s)[0].requires_grad


def test_runs_on_small_problems_start_near_the_solution(torch):
    A, b, s = tensors(torch, (np.eye(M, N), np.ones(M), 1.5))
    layer, named = (sp.layer(with_terms(torch), tol=1e-9, **options) for options in ({}, {"method": "lpd-gs"}))
    x, y = layer(A, b, s)
    assert layer.result.iterations == 0
    assert named(A, b, s)[0].tolist() == pytest.approx(x.tolist(), abs=1e-8)
    assert named.result.iterations > 0  # the method that was asked for has run
    assert layer.result.certificate.distance < 1e-9
    assert not y.isnan().any()


def test_a_layer_of_pytorch_refuses_in_sentences(torch):
    weight = torch.tensor(0.1, requires_grad=True)
    unsolved = sp.layer(with_own_loss(torch), max_calls=1)
    with pytest.raises(sp.ProblemError, match="was not solved"):
        unsolved(*tensors(torch, numbers()))
    assert not unsolved.result.solved
    with pytest.raises(sp.ProblemError, match="returned a int; expected a Saddle"):
        sp.layer(lambda w: 3)(weight)
    with pytest.raises(sp.ProblemError, match="on the device meta, which has no numbers"):
        unsolved(torch.ones(3, device="meta"))
    with pytest.raises(sp.ProblemError, match="expected dense tensors"):
        unsolved(torch.eye(3).to_sparse())


def test_tensors_that_are_no_arguments_are_refused(torch):
    eye, (W, b) = torch.eye(3), tensors(torch, (np.ones(3), np.ones(3)))
    layer = sp.layer(lambda b: sp.Saddle(sp.Quadratic(1.0, b + W), sp.Quadratic(1.0), eye))
    with pytest.raises(sp.ProblemError, match=r"shape \(3,\) that requires gradients and is no argument"):
        layer(b)[0].sum().backward()
    with pytest.raises(sp.ProblemError, match="is no argument"):
        layer(b.detach())
    with pytest.raises(sp.ProblemError, match="is no argument"):
        sp.layer(layer.build, in_dims=0)(b.detach()[None])
    with torch.no_grad():
        assert not layer(b)[0].requires_grad
    value = sp.layer(
        lambda b: sp.Saddle(sp.Smooth.from_value(lambda x: x @ x + b @ x, mu=2.0, L=2.0), sp.Quadratic(1.0), eye)
    )
    value(b)[0].sum().backward()
    assert b.grad.tolist() == pytest.approx([-1.0 / 3.0] * 3)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by PyTorch itself, for forward_ad
def test_second_derivatives_and_functorch_are_refused(torch):
    eye, (b,) = torch.eye(3), tensors(torch, (np.ones(3),))
    layer = sp.layer(lambda b: sp.Saddle(sp.Quadratic(1.0, b), sp.Quadratic(1.0), eye))
    with pytest.raises(sp.ProblemError, match="second derivatives"):
        torch.autograd.grad(layer(b)[0].sum(), b, create_graph=True)
    with pytest.raises(sp.ProblemError, match=r"within torch\.func"):
        torch.func.vmap(lambda b: layer(b)[0])(torch.ones(2, 3))
    with pytest.raises(sp.ProblemError, match="batch of a layer is empty"):
        sp.layer(layer.build, in_dims=0)(torch.ones(0, 3))
    with pytest.raises(sp.ProblemError, match="many vectors at once"):
        torch.autograd.functional.jacobian(lambda b: layer(b)[0], b, vectorize=True)
    forward = torch.autograd.forward_ad
    with forward.dual_level(), pytest.raises(sp.ProblemError, match="differentiate backwards only"):
        layer(forward.make_dual(b.detach(), torch.ones(3)))
    assert torch.autograd.functional.jacobian(lambda b: layer(b)[0], b) == pytest.approx(-0.5 * np.eye(3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # by PyTorch itself, while it compiles
def test_a_model_with_a_layer_can_be_compiled(torch):
    layer = sp.layer(lambda A, b: sp.Saddle(sp.Quadratic(1.0, b), sp.LogCosh(l2=1.0), A), tol=1e-9)
    A, b = tensors(torch, (np.eye(4, 3), np.ones(4)))

    def loss(A, b):
        x, y = layer(A, 2.0 * b)
        return (x * x).sum() + y.sin().sum()

    expected = torch.autograd.grad(loss(A, b), (A, b))
    found = torch.autograd.grad(torch.compile(loss, backend="eager")(A, b), (A, b))
    for one, other in zip(found, expected, strict=True):
        assert one.numpy() == pytest.approx(other.numpy(), abs=1e-12)


BATCHES = {
    "box": lambda torch: (
        lambda P, b: sp.Saddle(sp.Quadratic(P, b) + sp.Box(-0.1, 0.1), sp.Quadratic(1.0), torch.eye(3))
    ),
    "numbers": lambda torch: lambda P, b: sp.Saddle(sp.Quadratic(1.0 + P[0, 0], b), sp.Quadratic(torch.diag(P), b), P),
    "smooth": lambda torch: lambda P, b: sp.Saddle(sp.LogCosh(P, b, 0.3), sp.LogSumExp(P, l2=0.5) + sp.Simplex(), P),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_is_solved_together(torch, name):
    rng = np.random.default_rng(5)
    P = np.stack([np.eye(3) + 0.1 * (M + M.T) for M in rng.uniform(size=(5, 3, 3))])
    given = tensors(torch, (P, rng.standard_normal((5, 3))))
    build = BATCHES[name](torch)
    together, single = sp.layer(build, in_dims=0, tol=1e-10), sp.layer(build, tol=1e-10)
    x, y = together(*given)
    assert together.result.x.shape == (15,)  # one run for all of them
    (x.sin().sum() + (y * y).sum()).backward()
    found = [tensor.grad.clone() for tensor in given]
    assert together.derivative.bound < 1e-6
    for k in range(5):
        own = tensors(torch, [tensor[k].detach() for tensor in given])
        xk, yk = single(*own)
        assert x[k].tolist() == pytest.approx(xk.tolist(), abs=1e-9)
        (xk.sin().sum() + (yk * yk).sum()).backward()
        for whole, part in zip(found, own, strict=True):
            assert whole[k].numpy() == pytest.approx(part.grad.numpy(), abs=1e-7)


def test_a_batch_of_problems_that_differ_is_solved_one_by_one(torch):
    s, b = tensors(torch, (np.array([1.0, 1e4]), np.ones((2, 3))))
    layer = sp.layer(lambda s, b: sp.Saddle(sp.Quadratic(s, b), sp.Quadratic(1.0), torch.eye(3)), in_dims=0, tol=1e-9)
    x, _ = layer(s, b)
    assert layer.result.x.shape == (3,)
    x.sum().backward()
    assert s.grad.tolist() == pytest.approx([3.0 / 4.0, 3.0 / 10001.0**2])


def test_solve_itself_still_returns_detached_results(torch):
    (A,) = tensors(torch, (np.eye(3),))
    assert not sp.solve(sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), A)).x.requires_grad


@pytest.mark.gpu
def test_gradients_on_a_gpu_pass_gradcheck(torch):
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    layer = sp.layer(with_own_loss(torch), tol=1e-10)
    gradients_are_right(torch, layer, tensors(torch, numbers(), "cuda"))
    build = with_terms(torch)
    gradients_are_right(torch, sp.layer(build, tol=1e-10, in_dims=(0, 0, None)), tensors(torch, batch(), "cuda"))
    assert layer.result.x.device.type == "cuda"


# -- JAX ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_gradients_of_every_array_are_right_inside_jit(jax):
    check_gradients_of_jax(jax, sp.layer(with_own_loss(jax.numpy), tol=1e-10), numbers())


@pytest.mark.slow
def test_gradients_of_a_batch_with_simple_terms_are_right_by_vmap(jax):
    check_gradients_of_jax(jax, sp.layer(with_terms(jax.numpy), tol=1e-10, in_dims=(0, 0, None)), batch())


@pytest.mark.slow
def test_a_layer_of_jax_solves_what_solve_solves(jax):
    A, b, s = (np.asarray(a)[0] if np.ndim(a) else a for a in batch())
    x, y = sp.layer(with_terms(jax.numpy), tol=1e-9)(*map(jax.numpy.asarray, (A, b, s)))
    f = sp.Saddle(
        sp.Quadratic(2.0 * float(s), 2.0 * b) + sp.L1(0.1),
        sp.Quadratic(float(s), float(s) * np.ones(N)) + sp.Simplex(),
        A,
    )
    proof = sp.certify(f, np.asarray(x), np.asarray(y)).certificate
    assert proof.distance < 1e-8
    x, _ = sp.layer(with_terms(jax.numpy), tol=1e-9, max_steps=10)(*map(jax.numpy.asarray, (A, b, s)))
    assert np.isnan(np.asarray(x)).all()  # not solved


@pytest.mark.slow
def test_a_layer_of_jax_refuses_in_sentences(jax):
    xp = jax.numpy
    eye, one = xp.eye(2), xp.asarray(1.0)
    with pytest.raises(sp.ProblemError, match="is no argument of the layer; make it an argument"):
        jax.grad(lambda w: sp.layer(lambda b: sp.Saddle(sp.Quadratic(w), sp.Quadratic(b), eye))(one)[0][0])(one)
    with pytest.raises(sp.ProblemError, match="whose options are tol and max_steps"):
        sp.layer(lambda w: 3, method="ogda")(one)
    with pytest.raises(sp.ProblemError, match="mu of g is not given"):
        sp.layer(lambda w: sp.Saddle(sp.Smooth(lambda x: w * x, mu=None, L=1.0), sp.Quadratic(1.0), eye))(one)
    term = sp.Simple(prox=lambda v, t: xp.maximum(v, 0.0), value=lambda x: xp.where(x >= 0.0, 0.0, xp.inf).sum())
    own = sp.layer(lambda w: sp.Saddle(sp.Quadratic(w) + term, sp.Quadratic(1.0), eye))
    with pytest.raises(sp.ProblemError, match="are not implemented"):
        jax.grad(lambda w: own(w)[0][0])(one)


CURVED = {
    "balls": (sp.Ball(0.3, center=0.1), sp.Norm2(0.2)),
    "groups": (sp.Groups([0, 0, 1, 1], 0.3), sp.GroupBalls([0, 0, 1], [0.2, np.inf])),
    "sparse groups": (sp.Groups([0, 0, 1, 1], 0.1) + sp.L1(0.05), sp.Ball(0.3, 1)),
    "blocks": (sp.Blocks({range(1, 3): sp.Ball(0.1)}), sp.Groups([[0, 1], [2]], [0.1, 0.0])),
    "nuclear norm": (sp.Nuclear((2, 2), 0.3), sp.Nuclear((1, 3), 0.2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CURVED)
@pytest.mark.parametrize("dense", [1500, 0])
def test_the_adjoint_of_jax_is_that_of_solve(jax, name, dense, monkeypatch):
    monkeypatch.setattr("saddlepoint.uses.layer.with_jax.NEWTON", dense)  # 0: by a loop instead of a factorisation
    from saddlepoint.uses.layer.jax_faces import tangent
    from saddlepoint.uses.layer.with_jax import linear_solution

    rng = np.random.default_rng(4)
    A, D, b, vx, vy = (rng.standard_normal(shape) for shape in ((M, N), (6, M), M, M, N))
    p, q = CURVED[name]

    def problem(given):
        g = sp.Quadratic(given(D.T @ D + np.eye(M)), given(b)) + p
        return sp.Saddle(g, sp.Quadratic(given(np.ones(N)), given(b[:N])) + q, given(A))

    result = sp.solve(problem(np.asarray), tol=1e-10)
    u, xp = result.vjp(vx, vy), jax.numpy
    assert u.undecided == 0
    x, y, vx, vy = (xp.asarray(v) for v in (result.x, result.y, vx, vy))
    with recording():
        f = problem(xp.asarray)
        w = f.field(x, y)
        at = [tangent(f.g.simple, x, w[0]), tangent(f.h.simple, y, w[1])]

        def solution(b):
            return linear_solution(f, (x, y), at, (at[0].project(b[0]), at[1].project(b[1])), 10_000)

        (found,) = jax.linear_transpose(solution, (x, y))((vx, vy))
    assert np.asarray(found[0]) == pytest.approx(u.ux, abs=1e-7)
    assert np.asarray(found[1]) == pytest.approx(u.uy, abs=1e-7)
