"""The checks of scikit-learn for estimators."""

from sklearn.utils.estimator_checks import check_estimator


def assert_estimator(model):
    """Assert that scikit-learn's own checks pass for an estimator."""
    checks = check_estimator(model, on_skip=None)
    assert {check["status"] for check in checks} <= {"passed", "skipped"}
    assert len(checks) > 30
