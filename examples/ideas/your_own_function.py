"""
Your own function and operator: deblurring a picture
====================================================

A photograph is blurred and noisy. The penalty for its restoration is a few lines of NumPy without a prox, and the
blur is a Fourier transform, too large for a matrix. Can such a problem be solved with a certificate, and are mistakes
detected?
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import LinearOperator
from sklearn.datasets import load_sample_image

import saddlepoint as sp
from saddlepoint.ground.plot_style import RC

plt.rcParams.update(RC)
N = 96
sharp = load_sample_image("china.jpg")[90:282:2, 180:372:2].mean(axis=2) / 255.0

# %%
# The operator
# ------------
# The camera was moved, so every point becomes a short, slanted streak. Products are computed by fast Fourier
# transforms. The transpose uses the conjugate spectrum.

streak = np.zeros((N, N))
streak[np.arange(7) // 2 - 1, np.arange(7) - 3] = 1.0 / 7.0  # around the corner (0, 0), the origin of the transform
spectrum = np.fft.rfft2(streak)


def times(spectrum):
    return lambda v: np.fft.irfft2(spectrum * np.fft.rfft2(v.reshape(N, N)), (N, N)).ravel()


A = LinearOperator((N * N, N * N), matvec=times(spectrum.conj()), rmatvec=times(spectrum))
blurred = times(spectrum)(sharp.ravel()) + 0.01 * np.random.default_rng(0).standard_normal(N * N)

# %%
# The functions
# -------------
# Of all pictures that explain the blurred one, we look for the one with the fewest edges:
#
# .. math:: \min_x\; \lambda \sum_i \left(\sqrt{|\nabla x|_i^2 + \delta^2} - \delta\right) + \frac{\mu}{2} \|x\|^2
#           + \frac{1}{2} \|Kx - b\|^2,
#
# and the last term is :math:`\max_y\, \langle Kx, y\rangle - \frac{1}{2} \|y\|^2 - \langle b, y\rangle`. So
# :math:`A = K^\top`, :math:`h` is a quadratic, and :math:`g` is a ``Smooth``: a gradient and two constants.

WEIGHT, DELTA, MU = 0.003, 0.02, 1e-3


def gradient(x):
    image = x.reshape(N, N)
    down, right = np.roll(image, -1, axis=0) - image, np.roll(image, -1, axis=1) - image
    length = np.sqrt(down**2 + right**2 + DELTA**2)
    p, q = down / length, right / length
    return WEIGHT * (np.roll(p, 1, axis=0) - p + np.roll(q, 1, axis=1) - q).ravel() + MU * x


g = sp.Smooth(gradient, mu=MU, L=8.0 * WEIGHT / DELTA + MU)  # the squared norm of the difference operator is at most 8
f = sp.Saddle(g, sp.Quadratic(1.0, blurred), A)

# %%
# Checking the problem
# --------------------
# ``sp.check`` compares gradients with each other, constants with curvatures, and products with A with products with its
# transpose.

print(sp.check(f, x0=blurred, y0=np.zeros(N * N)))

# %%
# Now we make two mistakes: a mu that is ten times too large, which would make every certificate wrong, and a transpose
# without the conjugate.

bold = sp.Saddle(sp.Smooth(gradient, mu=10 * MU, L=g.L), f.h, A)
print(*(finding.advice for finding in sp.check(bold, x0=blurred).problems), sep="\n")
try:
    sp.Saddle(g, f.h, LinearOperator(A.shape, matvec=times(spectrum), rmatvec=times(spectrum)))
except sp.ProblemError as error:
    print(error)

# %%
# The answer
# ----------
# The problem is solved with a certificate, and both mistakes are detected. The certificate bounds the distance of all
# 9216 pixels together, in the units of the picture.

result = sp.solve(f, tol=1e-3)
print(result)
figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.8), constrained_layout=True)
shown = (("blurred", blurred), ("restored", result.x), ("the original", sharp))
for axis, (name, image) in zip(axes, shown, strict=True):
    axis.imshow(np.reshape(image, (N, N)), cmap="gray", vmin=0.0, vmax=1.0)
    error = np.sqrt(np.mean((np.ravel(image) - sharp.ravel()) ** 2))
    axis.set_title(name if error == 0.0 else f"{name}, error {error:.3f}", fontsize=11)
    axis.axis("off")
plt.show()
