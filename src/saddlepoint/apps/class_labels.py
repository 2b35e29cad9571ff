"""The labels of the classes in the targets of a classifier, checked."""

from __future__ import annotations

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from saddlepoint.ground.arrays import Array
from saddlepoint.ground.errors import ProblemError


def classes_of(y: Array) -> Array:
    """The labels of two classes or more."""
    if y.dtype.kind == "b" and y.any() and not y.all():  # what the next two lines would find, in a tenth of the time
        return np.array([False, True])
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ProblemError(f"y holds one class only, {classes.tolist()[0]!r}; expected samples of two classes or more")
    return classes


def two_classes_of(y: Array) -> Array:
    """The labels of two classes; the second one counts as positive."""
    classes = classes_of(y)
    if len(classes) > 2:
        # The first sentence is the one that scikit-learn expects of classifiers for two classes.
        raise ProblemError(
            f"Only binary classification is supported. The type of the target is multiclass: y holds {len(classes)} "
            "labels; expected two (for more classes use sklearn.multiclass.OneVsRestClassifier)"
        )
    return classes
