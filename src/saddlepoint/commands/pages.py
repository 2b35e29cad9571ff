"""The commands that write pages for a browser."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from saddlepoint.commands import show
from saddlepoint.commands.messages import for_files
from saddlepoint.commands.options import TARGETS, Json, MemoryLimit, Progress, Tol, shows_progress, with_options
from saddlepoint.commands.output_files import check_output_file
from saddlepoint.ground.errors import ProblemError
from saddlepoint.ground.file_writing import write_text
from saddlepoint.ground.plain_json import json_text
from saddlepoint.methods.base import Method
from saddlepoint.methods.registry import make_method, method_names
from saddlepoint.parts.coupling.streamed import as_bytes
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.saddle import Saddle
from saddlepoint.solving.result import Result, Status
from saddlepoint.solving.result_file import load_result
from saddlepoint.solving.solve import solve

# The methods that `saddlepoint bench` runs by default: auto, two of the paper's, three others that need gradients only,
# one that needs a prox and one that needs quadratic functions.
BENCH = ("auto", "dippa", "catalyst-dippa", "lpd-gs", "anderson-condat-vu", "extragradient", "apfb", "krylov")


def add_to(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command()(bench)
    app.command()(explorer)
    app.command()(report)


def explorer(
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the page to.")] = Path("explorer.html"),
) -> None:
    """Write the explorer: a page with the bounds of every method for condition numbers that you choose."""
    from saddlepoint.uses.pages.explorer import explorer_page

    check_output_file(out)
    write_text(out, explorer_page())
    typer.echo(f"written: {out}")


def report(
    results: Annotated[
        list[Path], typer.Argument(help="Files that `solve --out` wrote, or folders of them.", metavar="RESULT...")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the page to.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "",
) -> None:
    """Write a report of one or more results: convergence, tables, certificates, provenance, in one page."""
    from saddlepoint.uses.pages.report import report_page
    from saddlepoint.uses.pages.report_data import unique

    check_output_file(out)
    paths = [path for given in results for path in _files(given)]
    read = [load_result(path) for path in paths]
    names = unique(path.stem for path in paths)
    write_text(out, report_page(dict(zip(names, read, strict=True)), title))
    typer.echo(f"written: {out}")


def _files(path: Path) -> list[Path]:
    """The file itself, or the result files in a folder."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.npz"))
    if not found:
        raise ProblemError(f"the folder {path} holds no .npz file; expected what `solve --out` writes")
    return found


def bench(
    file: Annotated[Path, typer.Argument(help="A problem file (TOML).", metavar="FILE")],
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "--methods", help="Only these methods (may be repeated), or all.", metavar="NAME"),
    ] = None,
    tol: Tol = None,
    max_calls: Annotated[int | None, typer.Option(help="Limit on the calls of each oracle, per method.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Time limit of a method in seconds (60).")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the page to.")] = Path("report.html"),
    memory_limit: MemoryLimit = "4GiB",
    progress: Progress = None,
    as_json: Json = False,
) -> None:
    """Solve the problem in FILE with several methods, compare them, and write a report.

    Without --method these are auto and a few others; --method all takes every one. Methods that need more than the
    problem has, such as a prox, are left out, and a line on stderr says why. The exit code is 0 only if every method
    that is named solves the problem (auto, if none is named); 1 if not, and 130 after Ctrl-C.
    """
    from saddlepoint.uses.pages.report import report_page

    check_output_file(out)
    f, settings = load_problem(file, as_bytes(memory_limit, "--memory-limit"))
    settings = with_options({"max_seconds": 60.0} | settings, {"tol": tol}, TARGETS)
    settings = with_options(settings, {"max_calls": max_calls, "max_seconds": max_seconds})
    chosen = _methods_to_run(method, settings.pop("method", None), settings.pop("options", {}))
    settings["progress"] = shows_progress(progress, as_json)
    results, left_out = _solved_by_each(f, chosen, settings)
    for reason in left_out.values():
        print(f"left out: {reason}", file=sys.stderr)
    title = f"{file.name}, {len(results)} method{'s' if len(results) > 1 else ''}"
    note = f"Left out: {'; '.join(left_out.values())}." if left_out else ""
    write_text(out, report_page(results, title, note))
    if as_json:
        runs = {name: result.to_dict() for name, result in results.items()}
        typer.echo(json_text({"runs": runs, "left_out": left_out, "report": str(out)}))
    else:
        show.problem(f)
        show.comparison(results)
        typer.echo(f"report: {out}")
    if any(result.status is Status.INTERRUPTED for result in results.values()):
        raise typer.Exit(128 + signal.SIGINT)
    asked = [name for name in chosen if name == "auto"] if method in (None, ["all"]) else list(chosen)
    raise typer.Exit(0 if all(name in results and results[name].solved for name in asked) else 1)


def _methods_to_run(asked: list[str] | None, own: str | None, options: Mapping[str, Any]) -> dict[str, str | Method]:
    """The methods to run, by name: those asked for; or auto, a few others, and the method that the file names."""
    if options and own in (None, "auto"):
        raise ProblemError("options need a method to belong to; add method to [solve]")
    names: list[str] = asked or [*BENCH]
    if asked == ["all"]:
        names = ["auto", *method_names()]
    elif asked is None and own is not None:
        names = [*dict.fromkeys(["auto", own, *names])]
    return {name: "auto" if name == "auto" else make_method(name, **(options if name == own else {})) for name in names}


def _solved_by_each(
    f: Saddle, chosen: Mapping[str, str | Method], settings: Mapping[str, Any]
) -> tuple[dict[str, Result], dict[str, str]]:
    """The results, and the reasons why methods were left out; Ctrl-C ends the loop and keeps the results so far."""
    results: dict[str, Result] = {}
    left_out: dict[str, str] = {}
    with show.warnings_in_one_line():
        for name, method in chosen.items():
            try:
                results[name] = solve(f, method=method, **settings)
            except ProblemError as error:
                if name == "auto":  # auto takes any problem, so the problem itself is not valid
                    raise
                left_out[name] = for_files(str(error))
                continue
            if results[name].status is Status.INTERRUPTED:
                break
    if not results:
        raise ProblemError(next(iter(left_out.values())))
    return results, left_out
