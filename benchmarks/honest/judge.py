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
    if answer.error is not None:
        return judged_error(case, answer.error)
    found = without_truth(case, answer)
    return beside_truth(case, answer, with_gap) if found is None else found


def judged_error(case: Case, error: BaseException) -> Verdict:
    """The verdict on a run that has ended in an error."""
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


def without_truth(case: Case, answer: Answer) -> Verdict | None:
    """The verdict on an answer that shows what it is worth by itself; None if the truth has to say."""
    certificate = answer.certificate
    if any(map(math.isnan, bounds_of(answer))):
        return Verdict("crashed", answer.solved, words=f"a bound is NaN: {certificate}")
    if any(words in answer.message for words in CHECK_YOURS):
        return Verdict("own" if case.own_errors else "accused", answer.solved, words=answer.message)
    proven = certificate.gap if answer.target == "gap" else certificate.distance
    if math.isinf(proven) and (answer.solved or math.isinf(certificate.gap)):
        outcome = "false" if answer.solved else "uncertified"
        return Verdict(outcome, answer.solved, words=answer.message, suspected=suspects(answer))
    if answer.wrong:
        return Verdict("false", answer.solved, words=answer.wrong, suspected=suspects(answer))
    return None


def beside_truth(case: Case, answer: Answer, with_gap: bool) -> Verdict:
    """The verdict on the bounds of an answer, compared with the exact errors and, if wished, with the exact gap."""
    certificate, exact = answer.certificate, answer.exact
    dx, dy = exact.errors(answer.x, answer.y)
    total = dx + dy
    truths = {"distance": total, "distance_x": dx, "distance_y": dy}
    below = [too_small(name, bound, truths[name]) for name, bound in zip(truths, bounds_of(answer), strict=False)]
    if (with_gap or answer.target == "gap") and not any(below):
        gap = exact.gap(answer.x, answer.y)
        below.append("" if gap is None else too_small("gap", certificate.gap, gap))
    ratio = float(Decimal(certificate.distance) / total) if total > 0 and certificate.distance < math.inf else math.nan
    outcome, words = "true", ""
    if any(below):
        outcome, words = falsehood(case, answer), f"{'; '.join(filter(None, below))}; {answer.message}"
    return Verdict(outcome, answer.solved, ratio, words, suspects(answer))


def bounds_of(answer: Answer) -> tuple[float, float, float, float]:
    """The four bounds of the certificate."""
    certificate = answer.certificate
    return certificate.distance, certificate.distance_x, certificate.distance_y, certificate.gap


def suspects(answer: Answer) -> bool:
    """Whether the message says that gradients seem noisy, or a prox inexact."""
    return "noisy" in answer.message or "seems inexact" in answer.message


def too_small(name: str, bound: float, truth: Decimal) -> str:
    """The bound and the truth in words, if the bound is below it; else nothing."""
    return f"{name} {bound:.6g} < {float(truth):.6g}" if Decimal(bound) < truth else ""


def falsehood(case: Case, answer: Answer) -> str:
    """The outcome of an answer with a bound below the truth: false, unless the certificate says what it left open."""
    if case.claim == "differences" and any(SHARED in sentence for sentence in answer.certificate.assumes):
        return "assumed"
    is_open = case.claim and not answer.solved and not answer.certificate.is_examined
    return "unexamined" if is_open else "false"
