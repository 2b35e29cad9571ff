"""Many small problems of equal shape, solved as one and certified one by one."""

from saddlepoint.batch.many import solve_many
from saddlepoint.batch.together import Batch

__all__ = ["Batch", "solve_many"]
