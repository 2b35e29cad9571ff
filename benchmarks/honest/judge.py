"""What an answer of the library is worth: true, false, an accusation, a refusal."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import NamedTuple

import saddlepoint as sp

from .draws import Case
from .ways_in import Answer, FindingsError

# Words of errors that say that the caller's problem is not what the caller says.
ACCUSING = (
    "not the transpose",
    "not convex",
    "not the gradient",
    "not symmetric",
    "positive definite",
    "positive semidefinite",
    "mixes the blocks",
    "same array twice",
    "changes its argument",
    "changed the array it was given",
    "is too large",
    "is too small",
    "noisy",
    "not finite",
)
SHARED = "An error that gradients at all points have in common"
CHECK_YOURS = ("check mu, L and the gradients", "cannot both hold")


class Verdict(NamedTuple):
    """What became of one run.

    Attributes:
        outcome: "true", "false" (a bound is below the truth), "unexamined" (the same of a false claim, where the run is
            unsolved and its certificate says that the claims were not examined), "assumed" (the same where the gradient
            is a quotient of differences and the certificate says that errors which all gradients share are taken to be
            zero), "accused", "refused", "crashed", "own" (an exception of the caller's function, or its NaN) or
            "uncertified" (nothing was proven).
        solved: whether the run was reported as solved.
        ratio: certified over true distance; NaN if there is none.
        words: what is wrong, or the message of the error.
        suspected: whether the message of a run says that gradients seem noisy, or a prox inexact.
    """

    outcome: str
    solved: bool = False
    ratio: float = math.nan
    words: str = ""
    suspected: bool = False


def judge(case: Case, answer: Answer, with_gap: bool) -> Verdict:
    """Compare an answer with the truth."""
    error = answer.error
    if error is not None:
        words = f"{type(error).__name__}: {error}"
        if case.own_errors and isinstance(error, case.own_errors):
            return Verdict("own", words=words)
        if isinstance(error, FindingsError) and error.only_noise:
            return Verdict("uncertified", words=words, suspected=True)
        if isinstance(error, sp.AssumptionError | FindingsError):
            return Verdict("accused", words=words)
        if isinstance(error, sp.ProblemError | MemoryError):
            return Verdict("accused" if any(w in words for w in ACCUSING) else "refused", words=words)
        return Verdict("crashed", words=words)
    certificate, exact = answer.certificate, answer.exact
    bounds = certificate.distance, certificate.distance_x, certificate.distance_y, certificate.gap
    if any(math.isnan(bound) for bound in bounds):
        return Verdict("crashed", answer.solved, words=f"a bound is NaN: {certificate}")
    suspected = "noisy" in answer.message or "seems inexact" in answer.message
    if any(words in answer.message for words in CHECK_YOURS):
        return Verdict("own" if case.own_errors else "accused", answer.solved, words=answer.message)
    proven = certificate.gap if answer.target == "gap" else certificate.distance
    if math.isinf(proven) and (answer.solved or math.isinf(certificate.gap)):
        outcome = "false" if answer.solved else "uncertified"
        return Verdict(outcome, answer.solved, words=answer.message, suspected=suspected)
    if answer.wrong:
        return Verdict("false", answer.solved, words=answer.wrong, suspected=suspected)
    dx, dy = exact.errors(answer.x, answer.y)
    total = dx + dy
    below = [
        f"{name} {bound:.6g} < {float(truth):.6g}"
        for name, bound, truth in zip(("distance", "distance_x", "distance_y"), bounds, (total, dx, dy), strict=False)
        if Decimal(bound) < truth
    ]
    if (with_gap or answer.target == "gap") and not below:
        gap = exact.gap(answer.x, answer.y)
        if gap is not None and Decimal(certificate.gap) < gap:
            below.append(f"gap {certificate.gap:.6g} < {float(gap):.6g}")
    ratio = float(Decimal(certificate.distance) / total) if total > 0 and certificate.distance < math.inf else math.nan
    if below:
        open_to_doubt = case.claim and not answer.solved and not certificate.is_examined
        taken_as_zero = case.claim == "differences" and any(SHARED in sentence for sentence in certificate.assumes)
        outcome = "assumed" if taken_as_zero else "unexamined" if open_to_doubt else "false"
        return Verdict(outcome, answer.solved, ratio, f"{'; '.join(below)}; {answer.message}", suspected)
    return Verdict("true", answer.solved, ratio, suspected=suspected)
