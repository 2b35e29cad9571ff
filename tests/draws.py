"""The seed of tests that draw problems: always the same, unless the environment variable SEED gives another one."""

import os

SEED = int(os.environ.get("SEED", "2026"))
