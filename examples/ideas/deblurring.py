"""
A blurred picture made sharp
============================

A camera that is out of focus replaces every pixel by a mean of its neighbours. Which sharp picture explains the
measurement with few edges, and how accurate is the computed one?
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse.linalg import LinearOperator

import saddlepoint as sp
from saddlepoint.ground.plot_style import RC

plt.rcParams.update(RC)

# %%
# The measurement
# ---------------
# The blur is a product of Fourier transforms. Nothing but this function is needed: no matrix is formed.

n = 48
row, column = np.mgrid[:n, :n]
picture = 0.2 + 0.6 * ((row // 12 + column // 12) % 2) + 0.2 * ((row - 24) ** 2 + (column - 24) ** 2 < 150)
distance = np.minimum(row, n - row) ** 2 + np.minimum(column, n - column) ** 2
kernel = np.exp(-distance / (2 * 1.2**2))
spectrum = np.fft.rfft2(kernel / kernel.sum())


def blur(x):
    """A Gaussian blur with periodic edges, which is its own transpose."""
    return np.fft.irfft2(spectrum * np.fft.rfft2(x.reshape(n, n)), s=(n, n)).ravel()


B = LinearOperator((n * n, n * n), matvec=blur, rmatvec=blur, dtype=float)
measured = blur(picture.ravel()).reshape(n, n) + 0.01 * np.random.default_rng(0).standard_normal((n, n))

# %%
# Deblurring
# ----------
# A blur destroys fine detail, so the pixels are not determined by the measurement alone. A small ridge makes the
# problem strongly convex, which the proof of the error needs.

sharp = sp.apps.TotalVariation(measured, weight=0.002, operator=B, ridge=0.002).solve(rms=2e-2)
print(sharp)
print(sharp.result.certificate)
assert sharp.rms <= 2e-2


def error(image):
    """The root mean square distance to the true picture."""
    return np.sqrt(np.mean((image - picture) ** 2))


print(f"distance to the truth: {error(measured):.3f} before, {error(sharp.image):.3f} after")
assert error(sharp.image) < 0.6 * error(measured)

# %%
# The answer
# ----------
# The bound above the last picture is proven: the exact minimiser of the objective is no further away than that. How far
# the minimiser is from the truth is another question, which depends on the noise.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), constrained_layout=True)
shown = {"the truth": picture, "measured": measured, f"sharp again, proven rms {sharp.rms:.0e}": sharp.image}
for axis, (title, image) in zip(axes, shown.items(), strict=True):
    axis.imshow(image, cmap="gray", vmin=0.0, vmax=1.1, interpolation="nearest")
    axis.set(title=title, xticks=[], yticks=[])
plt.show()
