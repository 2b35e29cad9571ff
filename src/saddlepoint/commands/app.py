"""The commands: each reads its arguments, calls the library and shows the result."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from saddlepoint import __version__
from saddlepoint.commands import applications, pages, paper, show
from saddlepoint.commands.messages import for_files
from saddlepoint.commands.options import (
    TARGETS,
    Checkpoint,
    CheckpointEvery,
    Json,
    MaxSeconds,
    MemoryLimit,
    Plot,
    Progress,
    Resume,
    Tol,
    shows_progress,
    with_options,
)
from saddlepoint.commands.output_files import check_answer, check_checkpoint, check_picture
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.plain_json import json_text
from saddlepoint.methods.registry import make_method, method_options, methods
from saddlepoint.parts.coupling.streamed import as_bytes
from saddlepoint.parts.sharded.engines import open_engine
from saddlepoint.problems.certify import certify_point
from saddlepoint.problems.check import check as check_problem
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.arrays import read_array
from saddlepoint.solving.result import Result, Status
from saddlepoint.solving.solve import solve as solve_problem
from saddlepoint.solving.target import Target
from saddlepoint.uses.prediction import predict as make_prediction

app = typer.Typer(
    help="Certified first-order solvers for min_x max_y g(x) + <x, A y> - h(y).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"saddlepoint {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# The methods that `saddlepoint demo` compares.
DEMO = ("auto", "dippa", "catalyst-dippa", "aipfb", "catalyst-aipfb", "lpd-gs", "apdg")


@app.command()
def demo(
    tol: Annotated[float, typer.Option(help="Certified |x-x*| + |y-y*| to reach.")] = 1e-6,
    plot: Annotated[Path, typer.Option(help="File to write the picture to.")] = Path("demo.png"),
    as_json: Json = False,
) -> None:
    """Solve an example with auto, the paper's methods and two others, and compare them."""
    from saddlepoint.problems.generators import demo as demo_problem
    from saddlepoint.solving.convergence_plot import plot_convergence

    check_picture(plot)
    f = demo_problem()
    if not as_json:
        show.problem(f)
    results = {}
    for name in DEMO:
        results[name] = solve_problem(f, method=name, tol=tol, progress=not as_json, max_seconds=60.0)
        if results[name].status is Status.INTERRUPTED:
            break
    plot_convergence(results, plot, title="logistic g, log-cosh h, no prox: certified distance to the saddle point")
    if as_json:
        typer.echo(json_text({name: result.to_dict() for name, result in results.items()} | {"plot": str(plot)}))
    else:
        show.comparison(results)
        typer.echo(f"picture: {plot}")
    raise typer.Exit(max(map(_code, results.values())))


@app.command()
def solve(
    file: Annotated[Path, typer.Argument(help="A problem file (TOML); - reads the standard input.", metavar="FILE")],
    method: Annotated[str | None, typer.Option(help="A name from `saddlepoint methods`, or auto.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="An option of the method, as name=value.")] = None,
    tol: Tol = None,
    rtol: Annotated[float | None, typer.Option(help="Certified distance to reach, relative to |x*| + |y*|.")] = None,
    gap: Annotated[
        float | None, typer.Option(help="Certified duality gap to reach; needs no strong convexity.")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(help="Limit on all calls of each oracle, certificates and set-up included.")
    ] = None,
    max_seconds: MaxSeconds = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the answer to this file, by its ending .npz, .json or .csv; - prints x and y as CSV."),
    ] = None,
    plot: Plot = None,
    checkpoint: Checkpoint = None,
    checkpoint_every: CheckpointEvery = 60.0,
    resume: Resume = False,
    on_violation: Annotated[
        str,
        typer.Option(help="What to do when the run refutes a constant: raise (an error), or adapt (it and continue)."),
    ] = "raise",
    memory_limit: MemoryLimit = "4GiB",
    engine: Annotated[
        str, typer.Option(help="Where the rows of A are: local, dask, or mpi (started by mpiexec).")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(help="Number of threads (local) or processes (dask) of the engine.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786 (default: start one).")
    ] = None,
    tls_ca: Annotated[Path | None, typer.Option(help="For tls://: the authority's certificate.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="For tls://: your certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="For tls://: the key of your certificate.")] = None,
    progress: Progress = None,
    as_json: Json = False,
) -> None:
    """Solve the problem in FILE and print the certificate.

    The exit code is 0 only if it is solved, 130 after Ctrl-C and, with a checkpoint, 143 after SIGTERM.
    """
    files = tuple(pem for pem in (tls_ca, tls_cert, tls_key) if pem is not None)
    printed = out is not None and str(out) == "-"
    if printed and as_json:
        raise ProblemError("--json and --out - both print the answer; expected one of them (--json has x and y, too)")
    with open_engine(engine, workers, scheduler, files) as ready:
        with ready.errors_shared():
            check_answer(None if printed else out)
            if method is not None:
                make_method(method)
            check_checkpoint(checkpoint, resume)
            check_picture(plot)
            f, settings = load_problem(
                file, as_bytes(memory_limit, "--memory-limit"), ready.split if ready.build else None
            )
        if ready.dashboard:
            print(f"Dask's dashboard: {ready.dashboard}", file=sys.stderr)
        settings = with_options(settings, {"tol": tol, "rtol": rtol, "gap": gap}, TARGETS)
        settings = with_options(settings, {"method": method, "max_calls": max_calls, "max_seconds": max_seconds})
        if isinstance(settings.get("max_calls"), int):
            settings["max_calls"] = {"total": settings["max_calls"]}
        _make_method_of(settings, option or [])
        settings |= {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "on_violation": on_violation}
        settings["progress"] = ready.leader and shows_progress(progress, as_json)
        with show.warnings_in_one_line():
            result = solve_problem(f, **settings)
        if out is not None and not printed and ready.leader:
            result.save(out)
        if plot is not None and ready.leader:
            result.plot(plot)
    if printed:
        typer.echo(result.csv_text(), nl=False)
    typer.echo(json_text(result.to_dict(arrays=True)) if as_json else for_files(repr(result)), err=printed)
    show.checkpoint_left(checkpoint, result.solved)
    raise typer.Exit(_code(result))


def _make_method_of(settings: dict[str, Any], option: list[str]) -> None:
    """Replace the method's name in the settings by the method with its options, if there are options."""
    options = settings.pop("options", {})
    if options or option:
        if settings.get("method", "auto") == "auto":
            raise ProblemError("options need a method to belong to; add --method, or method to [solve]")
        options |= dict(_option(settings["method"], text) for text in option)
        settings["method"] = make_method(settings["method"], **options)


def _option(method: str, text: str) -> tuple[str, Any]:
    """The name and the value of an option that is given as ``name=value``; the value has the type of the option."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ProblemError(f"option {text!r}; expected name=value")
    known = method_options(method)
    if name in known and "choices" in known[name].metadata:
        return name, value
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def _code(result: Result) -> int:
    """The exit code: 0 if solved, 128 plus the number of the signal that ended the run, else 1."""
    if result.status is Status.INTERRUPTED:
        return 128 + (signal.SIGTERM if result.provenance.get("signal") == "SIGTERM" else signal.SIGINT)
    return 0 if result.solved else 1


@app.command()
def predict(
    file: Annotated[
        Path | None, typer.Argument(help="A problem file; or give the three numbers.", metavar="[FILE]")
    ] = None,
    kx: Annotated[float | None, typer.Option(help="L_x/mu_x.")] = None,
    ky: Annotated[float | None, typer.Option(help="L_y/mu_y.")] = None,
    coupling: Annotated[float | None, typer.Option(help="|A|/sqrt(mu_x mu_y).")] = None,
    tol: Annotated[float, typer.Option(help="Factor by which the distance is to shrink.")] = 1e-6,
    as_json: Json = False,
) -> None:
    """Print the calls that theory promises for every method, and those that the hardest problem forces on all."""
    numbers = {"--kx": kx, "--ky": ky, "--coupling": coupling}
    given = [name for name, value in numbers.items() if value is not None]
    if file is not None and given:
        raise ProblemError(f"{file} and {', '.join(given)} were given; expected a file, or --kx, --ky and --coupling")
    f = None if file is None else load_problem(file).problem
    prediction = make_prediction(f, tol, kx=kx, ky=ky, coupling=coupling)
    if as_json:
        typer.echo(json_text(prediction.to_dict()))
    else:
        show.prediction(prediction)


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A problem file (TOML).", metavar="FILE")],
    points: Annotated[int, typer.Option(help="Number of points to examine.", min=1)] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Examine the problem in FILE: gradients, constants, products. Exit code 0 only if nothing is wrong."""
    report = check_problem(load_problem(file).problem, points=points, seed=seed)
    if as_json:
        typer.echo(json_text(report.to_dict()))
    else:
        show.report(report)
    raise typer.Exit(0 if report.ok else 1)


@app.command()
def certify(
    file: Annotated[Path, typer.Argument(help="A problem file (TOML).", metavar="FILE")],
    answer: Annotated[
        Path, typer.Argument(help="A .npz file with the arrays x and y, as solve --out writes it.", metavar="ANSWER")
    ],
    tol: Tol = None,
    gap: Annotated[float | None, typer.Option(help="Certified duality gap to reach instead.")] = None,
    as_json: Json = False,
) -> None:
    """Print what is proven about the point in ANSWER, whoever has computed it.

    The exit code is 0 only if the certified distance is within TOL, or the certified duality gap within GAP; without
    both, if it is within what FILE asks for, and 1e-6 if that asks for nothing.
    """
    if answer.suffix != ".npz":
        raise ProblemError(
            f"{answer} is not a .npz file; expected one with x and y, as solve --out ANSWER.npz writes it"
        )
    f, settings = load_problem(file)
    x, y = (read_array(f"{answer.name}:{name}", answer.parent) for name in "xy")
    if tol is not None or gap is not None:
        settings = {"tol": tol, "gap": gap}
    target = Target.checked(**{name: settings.get(name) for name in TARGETS})
    found = certify_point(f, x, y)
    reached = target.reached(found.certificate, found.x, found.y) <= target.most
    if as_json:
        numbers = {name: getattr(found, name) for name in ("distance", "distance_x", "distance_y", "gap")}
        facts = {"outside_x": found.outside_x, "outside_y": found.outside_y, "stepped": found.stepped}
        assumes = {"assumes": list(found.certificate.assumes), "target": target.argument, target.argument: target.most}
        typer.echo(json_text({"reached": reached, **numbers, **facts, **assumes}))
    else:
        typer.echo(repr(found))
        for sentence in found.certificate.assumes:
            typer.echo(f"assumed: {sentence}")
        typer.echo(f"the certified {target.what} is {'' if reached else 'not '}at most {target.most:g}")
    raise typer.Exit(0 if reached else 1)


@app.command(name="methods")
def list_methods(as_json: Json = False) -> None:
    """List every method with its name, the oracle it needs, its complexity and its reference."""
    if as_json:
        typer.echo(json_text([info._asdict() for info in methods()]))
    else:
        show.methods(methods())


applications.add_to(app)
paper.add_to(app)
pages.add_to(app)
