"""The reference of the command line, from the commands themselves: it takes the place of ``<!-- commands -->``."""

import re

import typer
from sphinx.application import Sphinx

from saddlepoint.commands.app import app as cli
from saddlepoint.uses.pages.formulas import latex, segments

PLACE = "<!-- commands -->"
EXTRA = re.compile(r"\s*\[([^\]]+)\]$")  # such as [default: 3; x>=1] or [required]


def escaped(text: str) -> str:
    """Markdown that shows the text as it is; text in backticks becomes code, and formulas become mathematics."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if i % 2 else "".join(map(marked, segments(part))) for i, part in enumerate(parts))


def marked(segment: tuple[bool, str]) -> str:
    """A formula or plain words, in Markdown."""
    formula, text = segment
    return f"${latex(text)}$" if formula else re.sub(r"([\\*_<>|\[\]$#])", r"\\\1", text)


def cell(text: str) -> str:
    """The text as code in the cell of a table."""
    return "`" + text.replace("|", r"\|") + "`" if text else ""


def reference() -> str:
    """A section for each command: what it does, how it is called, what it takes."""
    group = typer.main.get_command(cli)
    pages = []
    for name, command in sorted(group.commands.items()):
        context = command.context_class(command, info_name=f"saddlepoint {name}")
        usage = " ".join(command.get_usage(context).removeprefix("Usage:").split())
        text = "\n\n".join(escaped(" ".join(part.split())) for part in (command.help or "").split("\n\n"))
        pages += [f"## saddlepoint {name}", text, f"```text\n{usage}\n```", table(command, context)]
    return "\n\n".join(pages)


def table(command: object, context: object) -> str:
    """Arguments and options: how they are written, their default, what they mean."""
    rows = ["| argument or option | default | meaning |", "|---|---|---|"]
    for param in command.params:
        record = param.get_help_record(context)
        if record is None:
            continue
        written, text = record
        extra = EXTRA.search(text)
        notes = [note.strip() for note in extra[1].split(";")] if extra else []
        default = next((note.removeprefix("default: ") for note in notes if note.startswith("default: ")), "")
        least = "".join(f" At least {note.removeprefix('x>=')}." for note in notes if note.startswith("x>="))
        rows.append(f"| {cell(written)} | {cell(default)} | {escaped(EXTRA.sub('', text))}{least} |")
    return "\n".join(rows)


def fill(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the reference in the place of the comment on the page of the commands."""
    if PLACE in source[0]:
        source[0] = source[0].replace(PLACE, reference())


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", fill, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
