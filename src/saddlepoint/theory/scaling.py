r"""What a round costs when A is split by rows over many workers, and how long a solve takes.

Model:      time per round = read + send + overhead.
            read = (bytes of A on the busiest worker)/(bytes a second from memory, or from disk where they do not fit),
                   times 1 + s sqrt(2 log K) for K workers whose times scatter by the share s: the mean of the largest
                   of K normal variables is at most sqrt(2 log K) standard deviations above theirs.
            send = a broadcast of y and a reduction of A' x, n numbers each, over a tree of fan-in f and depth
                   ceil(log_f K). A message of b bytes takes latency + b/network, and the f children of a node share
                   its link: latency + f b/network a level. With f >= K the tree is a star.
            time to solution = rounds (read + send + overhead) + gradients * gradient + scalars * (send of one number).
Floor:      a round is never shorter than one read of A, bytes/(K bandwidth), nor than twice the latency.
Reference:  R. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, Parallel Computing 1994
            (latency and bandwidth of a message); R. Thakur, R. Rabenseifner and W. Gropp, Optimization of collective
            communication operations in MPICH, IJHPCA 2005; H. David and H. Nagaraja, Order Statistics, 2003.

Everything is in seconds, bytes, and bytes a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.validation import as_count, as_number, did_you_mean, positive
from saddlepoint.theory.aipfb import aipfb_K, aipfb_K1, aipfb_K2
from saddlepoint.theory.dippa import cg_steps, dippa_K, dippa_K1, dippa_K2_cg
from saddlepoint.theory.gradient import condat_vu_steps, field_lipschitz, ogda_eta
from saddlepoint.theory.lower import forced_rounds
from saddlepoint.theory.lpd import lpd_gs_rho, lpd_parameters, lpd_slide_rho

SLIDE_ACCURACY = 0.1  # residual of LPD-slide's inner system, relative to the length of the step


@dataclass(frozen=True)
class Cluster:
    """A number of equal workers and the network between them.

    Attributes:
        workers: the number of workers.
        memory: bytes of A, and of the data of g and h, that fit into the memory of a worker. If its part is
            larger, all of it is read from disk.
        memory_bandwidth: bytes a second that a worker reads from memory, in one pass of both products.
        disk_bandwidth: bytes a second that a worker reads from disk, if its part does not fit into memory.
        latency: seconds from the sending of a short message to its arrival.
        network: bytes a second of a worker's link.
        fan_in: children of a node of the tree; for a star, the number of workers.
        overhead: further seconds of a round, spent by the engine itself.
        scatter: standard deviation of the workers' times, relative to their mean.
    """

    workers: int
    memory_bandwidth: float
    disk_bandwidth: float
    latency: float
    network: float
    memory: float = math.inf
    fan_in: int = 2
    overhead: float = 0.0
    scatter: float = 0.0

    def __post_init__(self) -> None:
        as_count(self.workers, "workers")
        as_count(self.fan_in, "fan_in", 2)
        for name in ("memory_bandwidth", "disk_bandwidth", "network"):
            positive(getattr(self, name), name)
        for name in ("memory", "latency", "overhead", "scatter"):
            if not as_number(getattr(self, name), name) >= 0.0:
                raise ProblemError(f"{name} is {getattr(self, name)}; expected a number >= 0")

    @property
    def depth(self) -> int:
        """Levels of the tree. It is 1 for a single worker, whose answers are sent too."""
        return tree_depth(self.workers, self.fan_in)


@dataclass(frozen=True)
class Job:
    """The sizes of a problem.

    Attributes:
        size: bytes of A.
        vector: bytes of a vector of y, which is sent each way.
        gradient_size: bytes that a pair of gradients reads, over all workers together: the data of g and h.
        gradient_vector: bytes that are sent and received for a pair of gradients; 0 where g and h are sums
            over what is split.
    """

    size: float
    vector: float
    gradient_size: float = 0.0
    gradient_vector: float = 0.0

    def __post_init__(self) -> None:
        positive(self.size, "size")
        positive(self.vector, "vector")
        for name in ("gradient_size", "gradient_vector"):
            if not 0.0 <= as_number(getattr(self, name), name) < math.inf:
                raise ProblemError(f"{name} is {getattr(self, name)}; expected a number >= 0")


class Round(NamedTuple):
    """Seconds of one round: one pass over A, a broadcast and a reduction."""

    read: float
    broadcast: float
    reduction: float
    overhead: float

    @property
    def total(self) -> float:
        """Seconds of the whole round."""
        return self.read + self.broadcast + self.reduction + self.overhead

    @property
    def efficiency(self) -> float:
        """The share of the round in which A is read."""
        return self.read / self.total


def tree_depth(workers: int, fan_in: int) -> int:
    """The levels of a tree with so many leaves, in which a node has at most ``fan_in`` children; at least one."""
    depth, reached = 1, fan_in
    while reached < workers:
        depth, reached = depth + 1, reached * fan_in
    return depth


def tree_seconds(vector: float, cluster: Cluster) -> float:
    """Seconds of a broadcast, or a reduction, of ``vector`` bytes: latency + min(f, K) bytes/network a level."""
    together = min(cluster.fan_in, cluster.workers)
    return cluster.depth * (cluster.latency + together * vector / cluster.network)


def fits(job: Job, cluster: Cluster) -> bool:
    """Whether a worker can keep its part of A and of the data of g and h in memory."""
    return (job.size + job.gradient_size) / cluster.workers <= cluster.memory


def read_seconds(size: float, cluster: Cluster, from_memory: bool = True) -> float:
    """Seconds in which the slowest worker reads its part of ``size`` bytes."""
    speed = cluster.memory_bandwidth if from_memory else cluster.disk_bandwidth
    return size / cluster.workers / speed * (1.0 + cluster.scatter * math.sqrt(2.0 * math.log(cluster.workers)))


def round_seconds(job: Job, cluster: Cluster) -> Round:
    """Seconds of one round: y is sent to all, every worker reads its rows once, and the parts of A' x are summed."""
    send = tree_seconds(job.vector, cluster)
    return Round(read_seconds(job.size, cluster, fits(job, cluster)), send, send, cluster.overhead)


def gradient_seconds(job: Job, cluster: Cluster) -> float:
    """Seconds of a pair of gradients, each worker on its part of the data."""
    seconds = read_seconds(job.gradient_size, cluster, fits(job, cluster))
    if job.gradient_vector:
        seconds += 2.0 * tree_seconds(job.gradient_vector, cluster) + cluster.overhead
    return seconds


def scalar_seconds(cluster: Cluster) -> float:
    """Seconds until all workers know the sum of one number each, such as a norm of x that a method needs."""
    return 2.0 * tree_seconds(8.0, cluster) + cluster.overhead


def best_workers(job: Job, cluster: Cluster) -> float:
    """The number of workers for which a round over a star is shortest, about sqrt(size network/(2 vector bandwidth)).

    With so many workers, reading takes size/(K bandwidth), as long as sending K vectors each way, 2 K vector/network.
    With a tree the time to send grows with log K only, and more workers help as long as reading takes longer than one
    level of the tree.
    """
    return math.sqrt(job.size * cluster.network / (2.0 * job.vector * cluster.memory_bandwidth))


# -- rounds ------------------------------------------------------------------------------------------------------------


class Counts(NamedTuple):
    """Oracle calls of a solve.

    Attributes:
        rounds: passes over A, with a product each way.
        gradients: pairs of gradients.
        scalars: sums over all workers, such as norms of x, that the next step has to wait for.
    """

    rounds: float
    gradients: float
    scalars: float = 0.0


METHODS = ("condat-vu", "condat-vu, prox", "ogda", "lpd", "lpd-gs", "lpd-slide", "dippa", "aipfb", "lower bound")


def promised_counts(method: str, kx: float, ky: float, c: float, tol: float) -> Counts:
    """The calls that shrink the distance by the factor ``tol``, by the rates of the theorems.

    Methods with a single loop are counted by their rate alone, without the constant before it. The inner loops of
    ``lpd-slide``, ``dippa`` and ``aipfb`` are counted as the worst case of their theorems; runs need several times
    fewer calls, because the constants are those of proofs.

    Args:
        method: a name of ``METHODS``; "condat-vu, prox" is Condat-Vu with both proxes, which must be cheap.
        kx, ky, c: the condition numbers and |A|/sqrt(mu_x mu_y).
        tol: the factor on the distance.
    """
    if method not in METHODS:
        raise ProblemError(
            f"there is no count for {method!r}{did_you_mean(method, METHODS)}; known: {', '.join(METHODS)}"
        )
    if not (min(kx, ky) >= 1.0 and c >= 0.0 and 0.0 < tol < 1.0):
        raise ProblemError(f"kx = {kx}, ky = {ky}, c = {c}, tol = {tol}; expected kx, ky >= 1, c >= 0, 0 < tol < 1")
    if method == "lower bound":
        forced = float(forced_rounds(kx, ky, c, tol))
        return Counts(forced, forced)
    squares = -2.0 * math.log(tol)  # the theorems are about squared distances
    if method == "lpd-slide":
        rho = lpd_slide_rho(kx, ky)
        outer = squares / math.log1p(rho)
        rounds = outer * (1 + cg_steps(rho / (1.0 + rho) * c, (1.0 + rho) / SLIDE_ACCURACY))
        return Counts(rounds, outer, rounds)
    if method == "dippa":
        kappa, nu = max(kx, ky), c / math.pow(kx * ky, 0.25)
        outer = dippa_K(kappa, nu, 1.0, tol)
        return Counts(outer * (1.0 + dippa_K2_cg(kappa, nu)), outer * float(dippa_K1(kappa, nu)))
    if method == "aipfb":
        outer = aipfb_K(c, 1.0, 1.0, 1.0, tol)
        return Counts(float(outer), outer * float(max(aipfb_K1(ky, c), aipfb_K2(kx, c))))
    rates = {  # a step divides the squared distance by e^rate
        "condat-vu": -math.log(condat_vu_steps(kx, ky, c).theta),
        "condat-vu, prox": -math.log(condat_vu_steps(1.0, 1.0, c).theta),
        "ogda": -math.log1p(-ogda_eta(field_lipschitz(kx, ky, c))),
        "lpd": -math.log(lpd_parameters(kx, ky, c).theta),
        "lpd-gs": math.log1p(lpd_gs_rho(kx, ky, c)),
    }
    steps = squares / rates[method]
    return Counts(steps, 0.0 if method == "condat-vu, prox" else steps)


def solution_seconds(counts: Counts, job: Job, cluster: Cluster) -> float:
    """Seconds of a solve: rounds * round + gradients * gradient + scalars * scalar."""
    return (
        counts.rounds * round_seconds(job, cluster).total
        + counts.gradients * gradient_seconds(job, cluster)
        + counts.scalars * scalar_seconds(cluster)
    )


def break_even_gradient(one: Counts, other: Counts, round_: float, scalar: float = 0.0) -> float:
    """The seconds of a gradient at which two methods take the same time; infinite or negative if one is always faster.

    If a gradient takes longer than this, the method with fewer gradients is faster.
    """
    rounds = (one.rounds - other.rounds) * round_ + (one.scalars - other.scalars) * scalar
    gradients = other.gradients - one.gradients
    return rounds / gradients if gradients else math.copysign(math.inf, rounds)
