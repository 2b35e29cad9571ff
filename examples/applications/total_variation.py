"""
A picture without its noise
===========================

A picture has flat regions and sharp edges, but it was measured with noise, and some pixels are
missing. Which picture with few edges fits the measurement best, and how accurate is the computed one?
"""

import matplotlib.pyplot as plt
import numpy as np

import saddlepoint as sp
from saddlepoint.ground.plot_style import RC

plt.rcParams.update(RC)

# %%
# The measurement
# ---------------
# Three regions of constant brightness, a disc with a soft shade, and noise with a standard deviation of 0.15.

n = 96
row, column = np.mgrid[:n, :n] / n
picture = np.where(row + 0.5 * column > 0.8, 0.9, 0.2) + 0.3 * (abs(column - 0.75) < 0.08)
disc = (row - 0.35) ** 2 + (column - 0.4) ** 2 < 0.05
picture = np.where(disc, 0.5 + 0.5 * column, picture)
random = np.random.default_rng(0)
noisy = picture + 0.15 * random.standard_normal((n, n))

# %%
# Denoising
# ---------
# Total variation is the sum of the lengths of all differences to the neighbours. Its weight decides how many edges are
# left. Half the squared distance to the measurement makes the problem strongly convex, so that the duality gap proves
# how far the computed picture is from the exact solution, in root mean square over all pixels.

clean = sp.apps.TotalVariation(noisy, weight=0.15).solve(rms=1e-3)
print(clean)
print(clean.result.certificate)
assert clean.rms <= 1e-3


def error(image):
    """The root mean square distance to the true picture."""
    return np.sqrt(np.mean((image - picture) ** 2))


print(f"distance to the truth: {error(noisy):.3f} before, {error(clean.image):.3f} after")
assert error(clean.image) < 0.4 * error(noisy)

# %%
# Missing pixels
# --------------
# Half of the pixels are lost. The pixels without a measurement are strongly convex by a small ridge only, which has
# its price: the proof of the error takes more steps.

known = random.random((n, n)) < 0.5
filled = sp.apps.TotalVariation(noisy, weight=0.1, mask=known, ridge=0.01).solve(rms=2e-2)
print(filled)
assert filled.rms <= 2e-2
assert error(filled.image) < 0.6 * error(noisy)

# %%
# The answer
# ----------
# The regions are flat again and their edges sharp, with one noisy picture and with half of it. The bounds below the
# pictures are proven: they are about the computed minimiser, not about the truth, from which the minimiser itself
# differs by what the noise has destroyed.

figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), constrained_layout=True)
shown = {
    "measured": noisy,
    f"denoised, proven rms {clean.rms:.0e}": clean.image,
    "half of it": np.where(known, noisy, np.nan),
    f"filled in, proven rms {filled.rms:.0e}": filled.image,
}
for axis, (title, image) in zip(axes, shown.items(), strict=True):
    axis.imshow(image, cmap="gray", vmin=-0.1, vmax=1.3, interpolation="nearest")
    axis.set(title=title, xticks=[], yticks=[])
plt.show()
