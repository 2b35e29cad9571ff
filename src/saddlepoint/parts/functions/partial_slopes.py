"""How fast the single partial derivatives of a function change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddlepoint.parts.coupling import Coupling, DenseCoupling, SparseCoupling
from saddlepoint.parts.functions.quadratic import Quadratic
from saddlepoint.parts.functions.risk import Risk
from saddlepoint.parts.functions.second_order import UP, steepness
from saddlepoint.parts.functions.smooth import Smooth


def partial_slopes(f: Smooth) -> Any:
    """Numbers H_i with |d_i f(x) - d_i f(z)| <= H_i |x - z| for all x and z; one number if it is that of all of them.

    Of 1/2 x'Px they are the lengths of the rows of P. Of a mean of losses with curvatures up to c, they are
    c |D e_i||D|/N, because |D (x - z)| <= |D||x - z|. Elsewhere it is the smoothness (``steepness``).

    Example:
        >>> import numpy as np, saddlepoint as sp
        >>> from saddlepoint.parts.functions.partial_slopes import partial_slopes
        >>> partial_slopes(sp.Quadratic(np.array([[2.0, 1.0], [1.0, 5.0]]))).round(3)
        array([2.236, 5.099])
    """
    plain, whole = f.without_term, steepness(f)
    if isinstance(plain, Quadratic):
        return np.minimum(whole, _rows(plain.P)) if isinstance(plain.P, Coupling) else whole
    if isinstance(plain, Risk) and isinstance(plain.D, DenseCoupling | SparseCoupling):
        D, length = plain.D, math.sqrt(plain.largest_gram)
        return np.minimum(whole, UP * (plain.l2 + plain.curvature[1] / D.shape[0] * length * D.T.row_lengths()))
    return whole


def _rows(P: Coupling) -> Any:
    """Upper bounds of the lengths of the rows of (P + P')/2; infinite if the entries of P are not known."""
    return UP * 0.5 * (P.row_lengths() + P.T.row_lengths()) if P.has_entries else math.inf
