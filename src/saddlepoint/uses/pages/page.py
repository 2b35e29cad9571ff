"""An HTML page in one file, with its styles, scripts and data, which loads nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from saddlepoint import __version__
from saddlepoint.ground.plain_json import finite

# The browser loads and sends nothing, even if a name in the data were taken for markup.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def asset(name: str) -> str:
    """The text of a file in `assets`."""
    return (files("saddlepoint.uses.pages") / "assets" / name).read_text("utf-8")


def page(
    title: str,
    body: str,
    scripts: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
    styles: Sequence[str] = (),
) -> str:
    """The whole page.

    Args:
        title: the title of the window.
        body: the markup of the page, in which all text from results and files is escaped.
        scripts: names of files in `assets`, run in this order after `chart.js`; or code, which has a line break.
        data: the value of `DATA` for the scripts.
        styles: names of files in `assets` that follow `style.css`.
    """
    code = [asset("chart.js"), *(script if "\n" in script else asset(script) for script in scripts)]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta name="generator" content="saddlepoint {escape(__version__)}">',
            f"<title>{escape(title)}</title>",
            "<style>",
            *map(asset, ("style.css", *styles)),
            "</style>",
            "</head>",
            "<body>",
            body,
            f'<script type="application/json" id="data">{_embedded(data or {})}</script>',
            '<script>\n"use strict";\nconst DATA = JSON.parse(document.getElementById("data").textContent);',
            *code,
            "</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _embedded(data: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element around it; infinities and NaN are null."""
    text = json.dumps(finite(data), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
