"""Solve many small problems of equal shape as one problem, and certify each of them."""

from saddlepoint.uses.batch.batch import Batch
from saddlepoint.uses.batch.solve_many import solve_many

__all__ = ["Batch", "solve_many"]
