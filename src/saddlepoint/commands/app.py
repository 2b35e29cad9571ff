"""The commands: each reads its arguments, calls the library and shows the result."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from saddlepoint import __version__
from saddlepoint.commands import pages, show
from saddlepoint.commands.targets import check_answer, check_picture, check_target
from saddlepoint.commands.words import for_files
from saddlepoint.ground.errors import AssumptionError, ProblemError
from saddlepoint.ground.plain_json import json_text
from saddlepoint.methods.registry import make_method, method_options, methods
from saddlepoint.parts.coupling.streamed import as_bytes
from saddlepoint.parts.sharded.engines import open_engine
from saddlepoint.problems.certify import certify_point
from saddlepoint.problems.check import check as check_problem
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.arrays import read_array
from saddlepoint.solving.checkpoint import older
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

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]
Methods = Annotated[
    list[str] | None, typer.Option("--method", "--methods", help="Only these methods (may be repeated), or all.")
]
Tol = Annotated[float | None, typer.Option(help="Certified |x-x*| + |y-y*| to reach.")]

TARGETS = ("tol", "rtol", "gap")  # options that say what is to be proven
LINE = 2000  # most characters of an error message


def run() -> int:
    """Run the command line and return the exit code. An error is printed in one line, never as a traceback."""
    _open_streams()
    try:
        code = int(app(standalone_mode=False) or 0)
        sys.stdout.flush()
        return code
    except (ProblemError, AssumptionError) as error:
        return _print_error(for_files(str(error)), 2)
    except (typer.Abort, KeyboardInterrupt):
        return _print_error("interrupted", 130)
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed it
        _discard_output()
        return 1
    except OSError as error:
        _discard_output()
        return _print_error(f"{error.filename or 'the output'}: {error.strerror or error}", 2)
    except MemoryError:
        return _print_error("there is not enough memory for this; give a smaller problem, or sparse arrays", 2)
    except Exception as error:
        if hasattr(error, "format_message"):  # typer raises such errors for bad options
            return _print_error(_describe_usage(error), 2)
        return _print_error(_describe_bug(error), 3)


def _open_streams() -> None:
    """Replace standard streams that are closed, and escape letters that a stream cannot write."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send the rest of the output to the null device; Python would otherwise try again at exit and print an error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe_usage(error: Any) -> str:
    """The message about a bad option, with the value that was given."""
    opts = getattr(getattr(error, "param", None), "opts", ())
    given = [value for option, value in pairwise(sys.argv) if option in opts]
    return f"{error.format_message()}" + (f"; {given[-1]!r} was given" if given else "")


def _describe_bug(error: Exception) -> str:
    """The message about a mistake of this program: what it is, where it is, and that it should be reported."""
    *_, frame = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frame.filename).name}, line {frame.lineno}"
    return f"a mistake in saddlepoint {__version__}, {type(error).__name__} in {where}: {error}; please report it"


def _print_error(message: str, code: int) -> int:
    line = " ".join(message.split())
    line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line[:LINE])
    with suppress(OSError):
        print(f"error: {line}", file=sys.stderr, flush=True)
    return code


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
    plot_convergence(results, plot, title="logistic g, log-cosh h, no prox: certified distance to the saddle point")
    if as_json:
        typer.echo(json_text({name: result.to_dict() for name, result in results.items()} | {"plot": str(plot)}))
    else:
        show.comparison(results)
        typer.echo(f"picture: {plot}")
    raise typer.Exit(0 if all(result.solved for result in results.values()) else 1)


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
    max_seconds: Annotated[float | None, typer.Option(help="Time limit in seconds.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the answer to this file, by its ending .npz, .json or .csv; - prints x and y as CSV."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the run to this .png or .svg file.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Write the state of the run to this file, to continue from it.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between two checkpoints.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint if it exists.")] = False,
    on_violation: Annotated[
        str,
        typer.Option(help="What to do when the run refutes a constant: raise (an error), or adapt (it and continue)."),
    ] = "raise",
    memory_limit: Annotated[
        str, typer.Option(help="Limit on the memory for FILE and its arrays, such as 8GB.")
    ] = "4GiB",
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
    progress: Annotated[bool | None, typer.Option(help="Show a progress bar (default: on a terminal).")] = None,
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
            _check_checkpoint(checkpoint, resume)
            check_picture(plot)
            f, settings = load_problem(
                file, as_bytes(memory_limit, "--memory-limit"), ready.split if ready.build else None
            )
        if ready.dashboard:
            print(f"Dask's dashboard: {ready.dashboard}", file=sys.stderr)
        targets = {name: value for name, value in (("tol", tol), ("rtol", rtol), ("gap", gap)) if value is not None}
        if targets:  # they take the place of what the file asks for
            settings = {name: value for name, value in settings.items() if name not in TARGETS} | targets
        given = {"method": method, "max_calls": max_calls, "max_seconds": max_seconds}
        settings |= {name: value for name, value in given.items() if value is not None}
        if isinstance(settings.get("max_calls"), int):
            settings["max_calls"] = {"total": settings["max_calls"]}
        options = settings.pop("options", {})
        if options or option:
            if settings.get("method", "auto") == "auto":
                raise ProblemError("options need a method to belong to; add --method, or method to [solve]")
            options |= dict(_option(settings["method"], text) for text in option or [])
            settings["method"] = make_method(settings["method"], **options)
        bar = progress if progress is not None else sys.stderr.isatty() and not as_json
        settings |= {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "on_violation": on_violation}
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
            result = solve_problem(f, progress=bar and ready.leader, **settings)
        if out is not None and not printed and ready.leader:
            result.save(out)
        if plot is not None and ready.leader:
            result.plot(plot)
    if printed:
        typer.echo(result.csv_text(), nl=False)
    typer.echo(json_text(result.to_dict(arrays=True)) if as_json else for_files(repr(result)), err=printed)
    if checkpoint is not None and not result.solved:
        print(f"the run is in {checkpoint}; the same command with --resume goes on from there", file=sys.stderr)
    raise typer.Exit(_code(result))


def _code(result: Result) -> int:
    """The exit code: 0 if solved, 128 plus the number of the signal that ended the run, else 1."""
    if result.status is Status.INTERRUPTED:
        return 128 + (signal.SIGTERM if result.provenance.get("signal") == "SIGTERM" else signal.SIGINT)
    return 0 if result.solved else 1


def _check_checkpoint(checkpoint: Path | None, resume: bool) -> None:
    """Raise an error if an earlier run would be overwritten, or if --resume has no file to continue from."""
    if checkpoint is None:
        if resume:
            raise ProblemError("--resume needs a file to go on from; add --checkpoint FILE")
        return
    check_target(checkpoint)
    there = [path for path in (checkpoint, older(checkpoint)) if path.exists()]
    if there and not resume:
        raise ProblemError(f"{there[0]} exists already; add --resume to go on from it, or delete it to begin anew")


@app.command()
def game(
    name: Annotated[str, typer.Argument(help="kuhn, leduc, or a game file (.json, or Gambit's .efg).", metavar="GAME")],
    tol: Annotated[float, typer.Option(help="Exploitability to reach, in units of the payoff.")] = 1e-6,
    method: Annotated[
        str | None,
        typer.Option(help="interior-point, cfr, or a method for the subproblems of an augmented Lagrangian."),
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Limit on the steps of the method.")] = None,
    max_calls: Annotated[
        int | None, typer.Option(help="Limit on the products with A, and on those with A', that the method makes.")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Time limit in seconds.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Write the state of the run to this file, to continue from it.")
    ] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds between two checkpoints.")] = 60.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint if it exists.")] = False,
    strategies: Annotated[bool, typer.Option("--strategies", help="Print both players' strategies.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of the run to this .png or .svg file.")] = None,
    progress: Annotated[bool | None, typer.Option(help="Show a progress bar (default: on a terminal).")] = None,
    as_json: Json = False,
) -> None:
    """Solve a two-player zero-sum game in extensive form.

    The exit code is 0 only if its exploitability is within TOL, 130 after Ctrl-C and, with a checkpoint, 143 after
    SIGTERM.
    """
    from saddlepoint.apps import ExtensiveGame

    check_picture(plot)
    _check_checkpoint(checkpoint, resume)
    played = ExtensiveGame.load(name)
    bar = progress if progress is not None else sys.stderr.isatty() and not as_json
    found = played.solve(
        tol=tol,
        method=method,
        max_steps=max_steps,
        max_calls=max_calls,
        max_seconds=max_seconds,
        progress=bar,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    if plot is not None:
        from saddlepoint.uses.plots.games import plot_exploitability

        plot_exploitability({name: found}, plot)
    first, second = played.behaviour("y", found.y), played.behaviour("x", found.x)
    if as_json:
        summary = found.to_dict() | {"game": played.title, "shape": list(played.shape)}
        typer.echo(json_text(summary | ({"first": first, "second": second} if strategies else {})))
    else:
        typer.echo(f"{played.title}: {played.shape[0]} x {played.shape[1]} sequences\n{found!r}")
        if strategies:
            show.strategies({"first player": first, "second player": second})
    if checkpoint is not None and not found.solved:
        print(f"the run is in {checkpoint}; the same command with --resume goes on from there", file=sys.stderr)
    raise typer.Exit(128 + signal.Signals[found.interrupted] if found.interrupted else 0 if found.solved else 1)


@app.command()
def program(
    file: Annotated[Path, typer.Argument(help='A file with kind = "program" (docs/problem-file.md).', metavar="FILE")],
    gap: Annotated[float | None, typer.Option(help="Length of the interval to prove.")] = None,
    rtol: Annotated[float | None, typer.Option(help="The same, relative to the size of the objective.")] = None,
    method: Annotated[str | None, typer.Option(help="interior, first-order or auto.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Time limit in seconds.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write x, y and the interval to this .npz file.")] = None,
    memory_limit: Annotated[
        str, typer.Option(help="Limit on the memory for FILE and its arrays, such as 8GB.")
    ] = "4GiB",
    as_json: Json = False,
) -> None:
    """Solve a linear or quadratic program, with a proven interval for its optimal value.

    The exit code is 0 only if it is proven to be optimal, infeasible or unbounded.
    """
    from saddlepoint.apps import QuadraticProgram
    from saddlepoint.problems.files.program_file import load_program

    if out is not None and out.suffix.lower() != ".npz":
        raise ProblemError(f"{out} has an unknown ending; expected .npz")
    check_target(out)
    data, settings = load_program(file, as_bytes(memory_limit, "--memory-limit"))
    targets = {name: value for name, value in (("gap", gap), ("rtol", rtol)) if value is not None}
    if targets:  # they take the place of what the file asks for
        settings = {name: value for name, value in settings.items() if name not in ("gap", "rtol")} | targets
    settings |= {name: value for name, value in (("method", method), ("max_seconds", max_seconds)) if value is not None}
    try:
        found = QuadraticProgram(**data).solve(**settings)
    except ProblemError as error:
        raise ProblemError(f"{file}: {error}") from None
    if out is not None:
        found.save(out)
    typer.echo(json_text(found.to_dict()) if as_json else repr(found))
    raise typer.Exit(0 if found.solved else 1)


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


@app.command()
def table(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller problems.")] = False,
    method: Methods = None,
    tol: Annotated[float, typer.Option(help="Relative accuracy.")] = 1e-6,
    max_seconds: Annotated[
        float | None, typer.Option(help="Time limit of one run in seconds (10, or 1 if quick).", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the paper's Table 1 for every method: exponents of the calls in kappa and |A|, beside those of theory.

    It takes about ten minutes, and half a minute with --quick.
    """
    from saddlepoint.uses.bench.table import measured_table

    names = _known(method)
    make_prediction(kx=1.0, ky=1.0, coupling=1.0, tol=tol)  # raises an error if tol is not valid
    with show.running("Table 1", as_json) as tell:
        measured = measured_table(names, tol, quick, max_seconds, tell)
    if as_json:
        typer.echo(json_text(measured.to_dict()))
    else:
        show.table(measured)


@app.command()
def figure(
    out: Annotated[list[Path] | None, typer.Option(help="Files to write (.png, .svg); may be repeated.")] = None,
    kx: Annotated[float, typer.Option(help="L_x/mu_x.")] = 1000.0,
    ky: Annotated[float, typer.Option(help="L_y/mu_y.")] = 30.0,
    tol: Annotated[float, typer.Option(help="Relative accuracy.")] = 1e-6,
    points: Annotated[
        int, typer.Option(min=0, help="Couplings at which the methods are run; 0 for the bounds alone.")
    ] = 8,
    method: Methods = None,
    max_seconds: Annotated[float, typer.Option(help="Time limit of one run in seconds.")] = 10.0,
    as_json: Json = False,
) -> None:
    """Draw the paper's Figure 1: bounds against |A|, with the measured calls."""
    from saddlepoint.uses.bench.figure import figure_data
    from saddlepoint.uses.plots.figure1 import plot_figure1

    names = _known(method)
    targets = out or [Path("figure1.png"), Path("figure1.svg")]
    for target in targets:
        check_picture(target)
    make_prediction(kx=kx, ky=ky, coupling=1.0, tol=tol)  # raises an error if a number is not valid
    with show.running("Figure 1", as_json) as tell:
        data = figure_data(kx, ky, tol, names, points, max_seconds, tell)
    plot_figure1(data, targets)
    typer.echo(json_text(data.to_dict()) if as_json else "written: " + ", ".join(map(str, targets)))


def _known(names: list[str] | None) -> list[str] | None:
    """The names, after a check that every one is registered; for "all", those that run on the chain."""
    from saddlepoint.uses.bench.measure import chain_methods

    if names == ["all"]:
        return chain_methods()
    for name in names or []:
        make_method(name)
    return names


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


pages.add_to(app)
