"""One pass over A on a GPU: the answers of slow references, the same bits every time, and no copies of the vectors."""

import os
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import saddlepoint as sp
from saddlepoint.parts.coupling import jax_kernels, triton_products
from saddlepoint.parts.coupling.triton_launch import as_torch, available, like, torch
from saddlepoint.parts.coupling.triton_plans import REGISTERS, TILE, tile_plan


def gpu(test):
    """Mark a test that runs the kernels, and skip it where they cannot run."""
    reason = "needs PyTorch, Triton and a CUDA GPU"
    return pytest.mark.gpu(pytest.mark.skipif(not available(), reason=reason)(test))


NAN = float("nan")

TYPES = {  # A, and the vectors
    "float64": ("float64", "float64"),
    "float32": ("float32", "float32"),
    "bfloat16": ("bfloat16", "float32"),
    "float16": ("float16", "float32"),
    "float32 with float64": ("float32", "float64"),
}
PLACES = {
    "rows": lambda A: A,
    "columns": lambda A: A.T.contiguous().T,
    "padded rows": lambda A: torch.nn.functional.pad(A, (0, 13))[:, : A.shape[1]],
    "padded columns": lambda A: torch.nn.functional.pad(A.T, (0, 5))[:, : A.shape[0]].T,
}


def shifted(v):
    """The same numbers at an address from which no vector instruction can load them at once."""
    flat = torch.empty(v.numel() + 1, dtype=v.dtype, device=v.device)
    flat[1:] = v.flatten()
    return flat[1:].view(v.shape)


SMALL = [(13, 17), (257, 4099), (33, 40001)]
SHAPES = [*SMALL, (1, 1), (1, 5000), (5000, 1), (997, 1009), (2048, 512), (70, 16400)]
CASES = [(shape, kind, place) for shape in SHAPES for kind in ("float64", "float32") for place in ("rows", "columns")]
CASES += [(shape, kind, place) for shape in SMALL for kind in list(TYPES)[2:] for place in ("rows", "columns")]
CASES += [(SMALL[1], "float32", "padded rows"), (SMALL[1], "float64", "padded columns")]


def operands(shape, kind="float64", place="rows", seed=0):
    m, n = shape
    A_type, type_ = (getattr(torch, name) for name in TYPES[kind])
    g = torch.Generator("cuda").manual_seed(seed + m + 7 * n)
    A = PLACES[place](torch.randn(m, n, device="cuda", generator=g, dtype=torch.float64).to(A_type))
    x, y, e = (torch.randn(k, device="cuda", generator=g, dtype=torch.float64).to(type_) for k in (m, n, m))
    return A, x, y, e


def poisoned(*vectors):
    return tuple(torch.full_like(v, NAN) for v in vectors)


def twin(A, u):
    """A u and |A| |u| in float64 on the CPU: the product, and the size of what it sums up."""
    A, u = A.detach().cpu().double().numpy(), u if isinstance(u, np.ndarray) else u.cpu().double().numpy()
    return A @ u, np.abs(A) @ np.abs(u)


def check(found, exact, scale):
    """The error is a few roundings of the terms, because the error of a blocked sum grows slowly with its length."""
    error = np.abs(found.cpu().double().numpy() - exact)
    assert np.all(error <= 40 * torch.finfo(found.dtype).eps * scale), np.max(error / scale)


def check_both(A, x, y, found):
    check(found[0], *twin(A, y))
    check(found[1], *twin(A.T, x))


def check_through(A, y, s, e, found):
    t, t_scale = twin(A, y)
    shift = np.zeros(A.shape[0]) if e is None else e.cpu().double().numpy()
    check(found[0], t, t_scale)
    check(found[1], twin(A.T, s * t + shift)[0], twin(A.T, abs(s) * t_scale + np.abs(shift))[1])


@gpu
@pytest.mark.parametrize(("shape", "kind", "place"), CASES)
def test_products_are_those_of_plain_code(shape, kind, place):
    A, x, y, e = operands(shape, kind, place)
    for fuse in (True, False):
        out = poisoned(x, y)
        found = triton_products.both(A, x, y, out=out, fuse=fuse)
        assert found[0] is out[0]
        assert found[1] is out[1]
        check_both(A, x, y, found)
        for s, shift in ((1.0, None), (-0.3, e)):
            check_through(A, y, s, shift, triton_products.through(A, y, s, shift, out=poisoned(x, y), fuse=fuse))
    check(triton_products.mul(A, y, out=poisoned(x)[0]), *twin(A, y))
    check(triton_products.tmul(A, x, out=poisoned(y)[0]), *twin(A.T, x))


@gpu
@pytest.mark.parametrize("shape", [(64, 300), (16, 40000)])
def test_every_factor_and_shift_gives_the_products_of_plain_code(shape):
    A, _, y, e = operands(shape)
    for s in (1.0, 0.0, 1 / 3, -2, np.float32(0.1), torch.tensor(0.7), torch.tensor(-0.7, device="cuda")):
        for shift in (None, e):
            for fuse in (True, False):
                found = triton_products.through(A, y, s, shift, fuse=fuse)
                assert found[1].dtype == torch.float64
                check_through(A, y, float(s), shift, found)


@gpu
@pytest.mark.parametrize("place", ["rows", "columns"])
@pytest.mark.parametrize("shape", [(3000, 700), (500, 40000)])
@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16"])
def test_the_same_inputs_give_the_same_bits(kind, shape, place):
    A, x, y, e = operands(shape, kind, place)
    calls = (lambda: triton_products.both(A, x, y, fuse=True), lambda: triton_products.through(A, y, 0.3, e, fuse=True))
    for call in calls:
        first = call()
        for _ in range(20):
            assert all(torch.equal(a, b) for a, b in zip(first, call(), strict=True))


@gpu
@pytest.mark.parametrize("shape", [(40, 300), (40, 40000)])
@pytest.mark.parametrize("value", [NAN, float("inf")])
def test_what_is_not_finite_stays_so(shape, value):
    A, x, y, e = operands(shape, "float32")
    A[3, 5] = value
    t, u = triton_products.both(A, x, y, fuse=True)
    assert [int(k) for k in (~t.isfinite()).nonzero()] == [3]
    assert [int(k) for k in (~u.isfinite()).nonzero()] == [5]
    t, u = triton_products.through(A, y, 0.5, e, fuse=True)
    assert [int(k) for k in (~t.isfinite()).nonzero()] == [3]
    assert not u.isfinite().any()
    t, u = triton_products.through(A, y * value, 0.5, None, fuse=True)
    assert not t.isfinite().any()
    assert not u.isfinite().any()


@gpu
@pytest.mark.parametrize("shape", [(512, 600), (100, 40000)])
def test_a_graph_replays_with_new_numbers(shape):
    A, x, y, e = operands(shape)
    s = torch.tensor(0.5, device="cuda", dtype=torch.float64)

    def step():
        return *triton_products.both(A, x, y, fuse=True), *triton_products.through(A, y, s, e, fuse=True)

    step()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    y.normal_()
    s.fill_(-1.5)
    for v in captured:
        v.fill_(NAN)
    graph.replay()
    for v, w in zip(captured, step(), strict=True):
        assert torch.equal(v, w)
    check_through(A, y, -1.5, e, captured[2:])


@gpu
def test_fused_products_on_two_streams_do_not_block_each_other():
    problems = [operands((2000, 20000), seed=k) for k in range(2)]
    streams = [torch.cuda.Stream() for _ in problems]
    torch.cuda.synchronize()
    found = []
    for _ in range(5):
        for (A, _, y, e), stream in zip(problems, streams, strict=True):
            with torch.cuda.stream(stream):
                found.append(triton_products.through(A, y, 0.5, e, fuse=True))
    torch.cuda.synchronize()
    for k, (A, _, y, e) in enumerate(problems):
        check_through(A, y, 0.5, e, found[k])
        assert all(torch.equal(found[k][1], other[1]) for other in found[k::2])


@gpu
@pytest.mark.parametrize("shape", [(512, 600), (100, 40000)])
def test_products_do_not_make_the_host_wait(shape):
    A, x, y, e = operands(shape)
    s = torch.tensor(0.5, device="cuda")
    with warnings.catch_warnings(action="ignore"):  # the mode is said to be a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        for fuse in (True, False):
            triton_products.both(A, x, y, fuse=fuse)
            triton_products.through(A, y, s, e, fuse=fuse)
            triton_products.through(A, y, 0.5, e, fuse=fuse)
        with pytest.raises(RuntimeError, match="synchronizing"):
            float(s)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@gpu
def test_small_matrices_are_left_to_the_library():
    A, x, y, _ = operands((300, 200))
    assert not triton_products.fuses(A, "both")
    assert not triton_products.fuses(A, "through")
    assert triton_products.fuses(A.to(torch.bfloat16), "both")  # the library has no product of mixed types
    assert triton_products.fuses(A.float(), "through", torch.float64)
    assert all(
        torch.equal(a, b)
        for a, b in zip(triton_products.both(A, x, y), (torch.mv(A, y), torch.mv(A.T, x)), strict=True)
    )
    large = torch.ones(16384, 8192, device="cuda")
    assert triton_products.fuses(large, "both")
    assert triton_products.fuses(large.T, "both")
    assert triton_products.fuses(large, "through")
    assert triton_products.fuses(large.T, "through")
    assert not triton_products.fuses(large.T.double(), "through")
    assert not triton_products.fuses(large[:, ::2], "both")
    t, u = triton_products.through(large, large[0])
    assert torch.equal(t, torch.full_like(t, 8192))
    assert torch.equal(u, torch.full_like(u, 8192 * 16384))


@gpu
def test_strided_and_mixed_vectors_are_taken():
    A, x, y, _ = operands((60, 50))
    strided = y.repeat_interleave(2)[::2]
    assert strided.stride() == (2,)
    check_both(A, x, y, triton_products.both(A, x, strided, fuse=True))
    t, u = triton_products.both(A[::2, ::2], x[::2], y[::2])  # neither by rows nor by columns
    check_both(A[::2, ::2], x[::2], y[::2], (t, u))
    assert triton_products.both(A.float(), x.float(), y)[0].dtype == torch.float64


@gpu
@pytest.mark.parametrize("shape", [(64, 320), (32, 40000)])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_products_do_not_depend_on_alignment(shape, kind):
    A, x, y, e = operands(shape, kind)
    for _ in range(2):
        for A_, x_, y_, e_ in ((A, x, y, e), (shifted(A), x, y, e), (A, shifted(x), shifted(y), shifted(e))):
            check_both(A, x, y, triton_products.both(A_, x_, y_, fuse=True))
            check_through(A, y, 0.5, e, triton_products.through(A_, y_, 0.5, e_, fuse=True))


@gpu
def test_what_does_not_fit_is_refused():
    A, x, y, _ = operands((6, 5))
    for call, said in (
        (lambda: triton_products.both(A.cpu(), x, y), "CUDA"),
        (lambda: triton_products.both(A.long(), x, y), "type"),
        (lambda: triton_products.both(A[0], x, y), "2-D"),
        (lambda: triton_products.mul(A[:, :0], y), "at least one"),
        (lambda: triton_products.both(A, y, x), "x is"),
        (lambda: triton_products.through(A, x), "y is"),
        (lambda: triton_products.through(A, y.cpu()), "y is"),
        (lambda: triton_products.through(A, y, 1.0, y), "e is"),
        (lambda: triton_products.both(A, x, y, out=(x.clone(), y.float())), r"out\[1\]"),
        (lambda: triton_products.mul(A, y, out=y), "out is"),
        (lambda: triton_products.both(A[::2, ::2], x[::2], y[::2], fuse=True), "fuse=True"),
    ):
        with pytest.raises(sp.ProblemError, match=said):
            call()


@gpu
def test_cupy_arrays_are_not_copied():
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Stream(non_blocking=True):
        rng = cupy.random.default_rng(0)
        A = rng.standard_normal((2000, 3000))
        for _ in range(20):  # keeps CuPy's stream busy: torch's has to wait
            A = A * 1.0
        y, e = rng.standard_normal(3000), rng.standard_normal(2000)
        tensors = [as_torch(v) for v in (A, y, e)]
        assert [v.data_ptr() for v in tensors] == [v.data.ptr for v in (A, y, e)]
        found = triton_products.through(tensors[0], tensors[1], 0.5, tensors[2], fuse=True)
        t, u = (like(v, y) for v in found)
        assert [v.data.ptr for v in (t, u)] == [v.data_ptr() for v in found]
        error = cupy.linalg.norm(A.T @ (0.5 * (A @ y) + e) - u)
        assert isinstance(u, cupy.ndarray)
        assert float(error) <= 1e-12 * float(cupy.linalg.norm(u))


@gpu
def test_jax_arrays_are_not_copied():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    keys = jax.random.split(jax.random.key(0), 3)
    A, y, e = (jax.random.normal(k, shape) for k, shape in zip(keys, ((2000, 3000), (3000,), (2000,)), strict=True))
    tensors = [as_torch(v) for v in (A, y, e)]
    assert [v.data_ptr() for v in tensors] == [v.unsafe_buffer_pointer() for v in (A, y, e)]
    found = triton_products.through(tensors[0], tensors[1], 0.5, tensors[2], fuse=True)
    t, u = (like(v, y) for v in found)
    assert [v.unsafe_buffer_pointer() for v in (t, u)] == [v.data_ptr() for v in found]
    assert isinstance(u, jax.Array)
    check_through(tensors[0], tensors[1], 0.5, tensors[2], (torch.from_dlpack(t), torch.from_dlpack(u)))


@gpu
def test_tensors_of_pytorch_are_taken_as_they_are():
    v = torch.ones(3, device="cuda")
    assert as_torch(v) is v
    assert like(v, v) is v


sizes = st.one_of(st.integers(1, 300), st.integers(1, 1 << 21))


@given(
    st.sampled_from(["both", "through"]),
    sizes,
    sizes,
    st.sampled_from([(2, 4), (4, 4), (8, 8), (4, 8), (2, 8)]),
    st.booleans(),
    st.sampled_from([(132, 232448), (108, 166912), (16, 101376)]),
)
def test_plans_cover_a_and_fit_the_processor(kind, m, n, bytes_, by_rows, device):
    processors, shared = device
    plan = tile_plan(kind, m, n, *bytes_, by_rows or kind == "both", processors, shared)
    if plan is None:  # teams of more members than run at the same time
        assert kind == "through"
        assert n > 500 * processors
        return
    assert plan.members * plan.width >= n
    assert plan.width <= plan.span
    assert plan.members == 1 or plan.width % 16 == 0
    # All teams run at once, so that none waits for one that has not started.
    assert not plan.waits or plan.members * plan.teams <= processors
    assert plan.teams <= -(-m // plan.rows)  # every team has a tile
    tile = plan.rows * plan.span * bytes_[0]
    assert tile <= TILE
    assert plan.stages == 1 or (plan.stages - 1) * tile <= shared
    assert (plan.rows + 2) * plan.span * bytes_[1] <= REGISTERS
    assert not plan.waits or kind == "through"
    assert plan.waits == (plan.members > 1) or kind == "both"


@gpu
@pytest.mark.parametrize("shape", [(9000, 5001), (20000, 4000), (3000, 16000)])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_program_that_jax_compiles_reads_the_matrix_once(shape, kind):
    jax = pytest.importorskip("jax", reason="needs JAX")
    if not jax_kernels.available():
        pytest.skip("needs jax-triton")
    jax.config.update("jax_enable_x64", True)
    A, x, y, e = operands(shape, kind)
    C = sp.as_coupling(jax.numpy.from_dlpack(A))
    assert C.fused_compiled == (
        triton_products.plan(A, "through") is not None and not triton_products.plan(A, "through").waits
    )
    x, y, e = map(jax.numpy.from_dlpack, (x, y, e))
    with C.space.exact_products():
        both = jax.jit(C.both)(x, y)
        through = jax.jit(lambda y, e: C.through(y, 0.7, e))(y, e)
        bare = jax.jit(lambda y: C.through(y, 0.7, None))(y)
    vectors = [torch.from_dlpack(v) for v in (x, y, e)]
    check_both(A, *vectors[:2], [torch.from_dlpack(v) for v in both])
    check_through(A, vectors[1], 0.7, vectors[2], [torch.from_dlpack(v) for v in through])
    check_through(A, vectors[1], 0.7, None, [torch.from_dlpack(v) for v in bare])
