"""Many small problems of equal shape, solved as one and certified one by one."""

from saddlepoint.uses.batch.batch import Batch
from saddlepoint.uses.batch.solve_many import solve_many

__all__ = ["Batch", "solve_many"]
