"""
A robust model as a layer that learns
=====================================

A regression is fitted against an opponent who shifts the targets. It is a saddle problem, and here it is one layer of a
larger model: the weights of the features before it are learned by JAX or PyTorch, through the solution. Does such a
model train, and are its gradients right?
"""

import jax
import matplotlib.pyplot as plt
import numpy as np
from jax import numpy as jnp

import saddlepoint as sp
from saddlepoint.ground.plot_style import COLOURS, RC

plt.rcParams.update(RC)
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)

# %%
# The layer
# ---------
# With features :math:`Z = X \operatorname{diag}(s)`, the inner problem is
# :math:`\min_w \max_y \frac{\lambda}{2}\|w\|^2 + \langle w, Z^\top y\rangle/\sqrt{N} - h(y)`, where :math:`h` is the
# conjugate of the squared loss of the targets, plus a cost of what the opponent does. ``build`` makes a problem from
# tensors, and ``sp.layer`` makes a function from tensors to the solution of that problem.

N, D = 24, 6
X = rng.standard_normal((2 * N, D))
true = np.array([2.0, -1.0, 0.0, 0.0, 0.0, 0.0])
t = X @ true + 0.5 * rng.standard_normal(2 * N)
train, held = jnp.asarray(X[:N]), jnp.asarray(X[N:])
targets, held_targets = jnp.asarray(t[:N]), jnp.asarray(t[N:])


def build(Z):
    return sp.Saddle(sp.Quadratic(0.3), sp.Quadratic(1.0, targets / np.sqrt(N)), Z.T / np.sqrt(N))


robust = sp.layer(build, tol=1e-8)

# %%
# Training
# --------
# The loss on held-out data is a function of the scales :math:`s`. One call of ``jax.value_and_grad`` differentiates it
# through the layer, and ``jit`` compiles solution and gradient into one program.


@jax.jit
@jax.value_and_grad
def loss(s):
    w, _ = robust(train * s)
    return jnp.mean((held @ (s * w) - held_targets) ** 2)


s, losses = jnp.ones(D), []
for _ in range(200):
    value, slope = loss(s)
    losses.append(float(value))
    s = s - 0.2 * slope

# %%
# The proof
# ---------
# The compiled loop stops at a certified distance. ``f.certificate`` proves it again with bounds on all rounding errors,
# and a difference quotient confirms the gradient.

w, y = robust(train * s)
Z = np.asarray(train * s)
f = sp.Saddle(sp.Quadratic(0.3), sp.Quadratic(1.0, np.asarray(targets) / np.sqrt(N)), Z.T / np.sqrt(N))
proof = f.certificate(np.asarray(w), np.asarray(y))
print(proof)
step = jnp.zeros(D).at[0].set(1e-5)
start = jnp.ones(D)
quotient = float(loss(start + step)[0] - loss(start - step)[0]) / 2e-5
print(f"slope {float(loss(start)[1][0]):.8f}, by differences {quotient:.8f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), constrained_layout=True)
left.plot(losses, color=COLOURS[0])
left.set(xlabel="step", ylabel="held-out loss", title=f"last solution: proven distance {proof.distance:.0e}")
right.bar(range(D), np.abs(np.asarray(s)), color=COLOURS[1])
right.set(xlabel="feature", ylabel="learned scale (absolute value)", title="features 0 and 1 matter")

# %%
# The same layer in PyTorch
# -------------------------
# ``build`` is the same function with tensors of PyTorch. There ``solve`` itself runs, ``layer.result`` has its
# certificate, and ``layer.derivative.bound`` is a proven bound on the error of the adjoint vector of the last gradient.

try:
    import torch
except ImportError:
    print("PyTorch is not installed; with it, this section repeats a gradient with tensors.")
else:
    torch_targets = torch.tensor(np.array(targets))

    def torch_build(Z):
        return sp.Saddle(sp.Quadratic(0.3), sp.Quadratic(1.0, torch_targets / N**0.5), Z.T / N**0.5)

    torch_layer = sp.layer(torch_build, tol=1e-8)
    scales = torch.ones(D, dtype=torch.float64, requires_grad=True)
    w, _ = torch_layer(torch.tensor(np.array(train)) * scales)
    held_X, held_t = torch.tensor(np.array(held)), torch.tensor(np.array(held_targets))
    torch.mean((held_X @ (scales * w) - held_t) ** 2).backward()
    print(torch_layer.result.certificate)
    print(f"proven error of the adjoint vector: {torch_layer.derivative.bound:.1e}")
    assert np.allclose(scales.grad.numpy(), np.asarray(loss(start)[1]), atol=1e-6)

# %%
# The answer
# ----------
# It trains: the scales of the two features that matter grow, the held-out loss falls, and every gradient comes from
# one linear system at the certified solution.

print(f"held-out loss {losses[0]:.4f} before and {losses[-1]:.4f} after")
assert losses[-1] < losses[0]
assert abs(float(loss(start)[1][0]) - quotient) < 1e-6
