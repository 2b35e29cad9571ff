import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "saddlepoint",
    max_examples=int(os.environ.get("EXAMPLES", "25")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("saddlepoint")
