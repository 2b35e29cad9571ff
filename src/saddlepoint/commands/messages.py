"""Messages of the library, with the names of problem files and of the command line in the place of Python's."""

from __future__ import annotations

import re

PHRASES = (  # patterns of messages of the library, and what the command line prints instead
    (r"\b([gh]) \+ Quadratic\((\S+)\)", r"l2 = \2 in [\1], or a larger P"),
    (r"\b([gh]) \+ Box\((\S+), (\S+)\)", r'[\1.simple] with kind = "box", lower = \2 and upper = \3'),
    (r"\bwith gap=(\S+)", r"with --gap \1"),
    (r"\braise max_calls (?:or|and) go on from x, y by passing them as x0, y0", "raise --max-calls"),
    (r"\braise max_seconds (?:or|and) go on from x, y by passing them as x0, y0", "raise --max-seconds"),
    (r"; go on from x, y by passing them as x0, y0", "; with --checkpoint FILE a run can be continued"),
    (r"\braise (max_calls|max_seconds|tol|rtol|gap)\b", lambda found: "raise --" + found[1].replace("_", "-")),
    (r"\bcall again to go on\b", "give the same command with --resume to go on"),
    (r"\bsp\.predict\b", "saddlepoint predict"),
    (r"\b(P|b|D|t|labels|mu|L|l2|delta|width|tau|weight|low|high) of (Quadratic|LeastSquares|Logistic|Huber|LogCosh|"
     r"LogSumExp|SmoothedHinge|Entropy|GroupHuber|L1|Norm2|Groups|Nuclear)\b", r"\1"),
    (r"\ba dict of such by oracle\b", "a table of such by oracle"),
    (r"\bgive it as sp\.Simple\(prox=\.\.\.\);", "give it in Python as sp.Simple(prox=...);"),
    (r"\bgive \S+ to Smooth(?: if it is)?, or use\b", "use"),
    (r"\buse \(P \+ P\.T\)/2", "make it symmetric"),
    (r"P\.T\b", "its transpose"),
)  # fmt: skip


def for_files(text: str) -> str:
    """The text with the names that problem files and the command line have.

    Example:
        >>> from saddlepoint.commands.messages import for_files
        >>> for_files("bound them, for example g + Box(-1e3, 1e3)")
        'bound them, for example [g.simple] with kind = "box", lower = -1e3 and upper = 1e3'
    """
    for pattern, words in PHRASES:
        text = re.sub(pattern, words, text)
    return text
