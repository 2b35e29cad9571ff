"""The same input gives the same bits; a result records its origin, and can be cited, saved and loaded."""

import hashlib
import io
import json
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy
from cases import case, gradient_methods, prox_methods, quadratic_methods

import saddlepoint as sp
from saddlepoint.methods import classes
from saddlepoint.methods.references import all_works, read_bibtex, reference
from saddlepoint.solving.citations import citations
from saddlepoint.solving.provenance import described

METHODS = {"auto": "auto", "newton": "newton"} | gradient_methods() | prox_methods() | quadratic_methods()


def fingerprint(result):
    """A hash of everything in a result but its times."""
    clock = sp.Record._fields.index("seconds")
    parts = [
        result.x.tobytes(),
        result.y.tobytes(),
        np.delete(result.history.array, clock, axis=1).tobytes(),
        repr((result.status, result.message, result.certificate, result.calls, result.passes, result.iterations)),
        repr((result.method, result.parameters, result.monitor_calls, result.setup_calls)),
    ]
    return hashlib.sha256(b"".join(part if isinstance(part, bytes) else part.encode() for part in parts)).hexdigest()


def all_fingerprints():
    found = {}
    for name, method in METHODS.items():
        f = case("mu_x < mu_y")[0] if name in ("auto", "newton") or name in quadratic_methods() else case("balanced")[0]
        found[name] = fingerprint(sp.solve(f, method=method, tol=1e-4))
    return found


@pytest.mark.slow
def test_the_same_input_gives_the_same_bits_here_and_in_another_process():
    first = all_fingerprints()
    assert all_fingerprints() == first
    script = "import json; from test_provenance import all_fingerprints; print(json.dumps(all_fingerprints()))"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=__file__.rpartition("/")[0], capture_output=True, text=True, check=True
    )
    assert json.loads(run.stdout) == first


def test_provenance_holds_what_one_needs_to_run_again():
    f = case("logistic")[0]
    result = sp.solve(f, method=sp.Catalyst(sp.DIPPA("certified")), tol=1e-7)
    found = result.provenance
    assert found["versions"] == {
        "saddlepoint": sp.__version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "platform": found["versions"]["platform"],
    }
    assert found["method"] == {
        "name": "catalyst",
        "inner": {"name": "dippa", "inner": "certified", "coupling": "auto"},
        "beta": None,
    }
    assert found["parameters"] == result.parameters
    assert (found["tol"], found["dtype"], found["shape"], found["seed"]) == (1e-7, "float64", [14, 10], 0)
    assert found["constants"]["mu_x"] == f.mu_x
    assert found["constants"]["norm"]["upper"] == f.norm
    assert found["constants"]["estimated"] == []
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", found["started"])
    assert (found["corrections"], found["resumed"], found["storage"], found["signal"]) == ([], 0, None, "")
    assert json.loads(json.dumps(found)) == found


def test_an_estimated_constant_is_named():
    f = sp.Saddle(sp.Smooth(lambda x: x + np.tanh(x), mu=1.0, L=None), sp.Quadratic(1.0), np.eye(3))
    assert sp.solve(f, np.ones(3)).provenance["constants"]["estimated"] == ["L of g"]


def test_the_method_that_ended_the_run_is_the_one_that_is_recorded():
    result = sp.solve(case("balanced")[0])
    assert result.provenance["method"]["name"] == result.method


def test_other_libraries_are_named():
    torch = pytest.importorskip("torch")
    f = sp.Saddle(sp.Quadratic(1.0), sp.Quadratic(1.0), torch.eye(2, dtype=torch.float64))
    assert sp.solve(f, torch.ones(2, dtype=torch.float64)).provenance["versions"]["torch"] == torch.__version__


# -- citations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"auto"}))
def test_every_method_cites_what_its_reference_names(name):
    method = sp.make_method(name) if isinstance(METHODS[name], str) else METHODS[name]
    entries = citations(method)
    assert next(iter(entries)) == "saddlepoint"
    assert len(entries) > 1
    for key, short in zip(list(entries)[1:], reference(method.works).split("; "), strict=True):
        author, year = re.match(r"[A-Z][A-Za-z']+", short)[0], short[-4:]
        assert author in entries[key]
        assert (f"year = {{{year}}}" if key in all_works() else f"note = {{{short}}}") in entries[key]


def used_keys():
    """The works behind all classes of methods, wrappers included, but for those that are written in words."""
    found = set()
    for name in classes.__all__:
        kind = getattr(classes, name)
        found.update(kind.own_works if hasattr(kind, "own_works") else kind.works)
    return {work for work in found if " " not in work}


def test_every_key_is_in_the_file_and_every_entry_is_used():
    assert used_keys() == set(all_works())
    assert all(sp.make_method(info.name).works for info in sp.methods())


@pytest.mark.parametrize("key", all_works())
def test_the_bibtex_is_well_formed(key):
    work = all_works()[key]
    entry = work.bibtex
    assert re.match(rf"@(article|inproceedings|misc|techreport)\{{{key},\n", entry)
    assert entry.count("{") == entry.count("}")
    assert work.fields["year"] == key[-4:]
    assert work.short.split()[0].strip(",").lower().replace("'", "") == key[:-4]
    for name in ("author", "title", "year"):
        assert re.search(rf"^  {name} = \{{.+\}},$", entry, re.MULTILINE)
    where = {"article": "journal", "inproceedings": "booktitle", "misc": "eprint", "techreport": "institution"}
    assert where[work.kind] in work.fields
    assert entry.isascii()


def test_the_file_of_references_is_sorted_and_read_whole():
    assert list(all_works()) == sorted(all_works())
    text = "\n\n".join(work.bibtex for work in all_works().values())
    assert read_bibtex(text) == all_works()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("@article{a2000, author = {A}", "a brace is not closed"),
        ("@article{a2000, author = A}", "expected name = {text}"),
        ("@article(a2000, author = {A})", "expected @kind{key"),
        ("@misc{a2000, year = {2000}}\n@misc{a2000, year = {2000}}", "the key a2000 occurs twice"),
    ],
)
def test_a_malformed_file_of_references_is_refused(text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        read_bibtex(text)


def test_cite_is_what_a_bib_file_needs():
    text = sp.solve(case("balanced")[0], method="anderson-condat-vu").cite()
    assert text.startswith("@software{saddlepoint,")
    for key in ("anderson1965", "walker2011", "zhang2020", "condat2013", "vu2013", "chambolle2016"):
        assert text.count(f"{{{key},") == 1
    stored = sp.solve(case("balanced")[0], method="lpd-gs", storage="float32", tol=1e-3)
    assert "{higham2022," in stored.cite()


class Own(sp.Extragradient):
    name = "own"
    works = ("Somebody 2030",)


def test_a_method_of_ones_own_is_cited_by_its_reference():
    assert "note = {Somebody 2030}" in sp.solve(case("balanced")[0], method=Own()).cite()
    assert described(Own())["name"] == "own"


# -- saving and loading -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_saved_result_comes_back(tmp_path):
    result = sp.solve(case("logistic")[0], method="dippa", tol=1e-7)
    result.save(tmp_path / "answer")
    again = sp.load_result(tmp_path / "answer")
    assert again.x.tobytes() == result.x.tobytes()
    assert again.y.tobytes() == result.y.tobytes()
    assert again.to_dict() == result.to_dict()
    assert again.history[:] == result.history[:]
    assert again.certificate == result.certificate
    assert again.status is result.status
    assert again.cite() == result.cite()
    assert repr(again) == repr(result)
    again.plot(tmp_path / "run.png")


def test_a_result_without_proof_comes_back(tmp_path):
    f = sp.Saddle(sp.Smooth(lambda x: 2.0 * x, mu=None, L=2.0), sp.Quadratic(1.0, np.ones(3)), np.eye(3))
    result = sp.solve(f, np.ones(3), history=False)
    result.save(tmp_path / "answer")
    again = sp.load_result(tmp_path / "answer")
    assert again.certificate.distance == np.inf
    assert len(again.history) == 0
    assert repr(again) == repr(result)


@pytest.fixture
def saved(tmp_path):
    sp.solve(case("balanced")[0]).save(tmp_path / "answer.npz")
    return tmp_path / "answer.npz"


def rewritten(path, **arrays):
    with np.load(path) as file:
        parts = dict(file) | arrays
    np.savez(path, **{name: part for name, part in parts.items() if part is not None})


def with_summary(path, **changes):
    with np.load(path) as file:
        summary = json.loads(str(file["summary"]))
    rewritten(path, summary=np.array(json.dumps(summary | changes)))


CHANGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "flipped": lambda path: path.write_bytes(path.read_bytes().replace(b"NUMPY", b"NUMPI", 1)),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("hello"),
    "no x": lambda path: rewritten(path, x=None),
    "x is a matrix": lambda path: rewritten(path, x=np.ones((3, 3))),
    "x is text": lambda path: rewritten(path, x=np.array(["a"])),
    "history is narrow": lambda path: rewritten(path, history=np.ones((4, 2))),
    "history is not finite": lambda path: rewritten(path, history=np.full((1, 9), np.nan)),
    "summary is no JSON": lambda path: rewritten(path, summary=np.array("{")),
    "summary is a list": lambda path: rewritten(path, summary=np.array("[1]")),
    "summary is deep": lambda path: rewritten(path, summary=np.array("[" * 100_000)),
    "unknown status": lambda path: with_summary(path, status="perfect"),
    "no certificate": lambda path: with_summary(path, certificate={}),
    "calls are a number": lambda path: with_summary(path, calls=3),
    "seconds are text": lambda path: with_summary(path, seconds="many"),
    "passes are infinite": lambda path: with_summary(path, passes=float("inf")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_damaged_result_is_refused_in_a_sentence(change, saved):
    CHANGES[change](saved)
    with pytest.raises(sp.ProblemError, match=r"answer\.npz is not a result that was saved: ."):
        sp.load_result(saved)


def test_pickles_are_not_loaded(saved):
    class Bomb:
        def __reduce__(self):
            return print, ("bang",)

    rewritten(saved, x=np.array([Bomb()], dtype=object))
    with pytest.raises(sp.ProblemError, match="is not a result that was saved"):
        sp.load_result(saved)


def test_a_header_that_declares_too_much_and_a_packed_file_are_refused(saved, tmp_path):
    x = io.BytesIO()
    np.lib.format.write_array_header_1_0(x, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(tmp_path / "bomb.npz", "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, x.getvalue() if info.filename == "x.npy" else old.read(info))
    with pytest.raises(sp.ProblemError, match="x has dtype float64 and shape"):
        sp.load_result(tmp_path / "bomb.npz")
    with np.load(saved) as file:
        np.savez_compressed(tmp_path / "packed.npz", **file)
    with pytest.raises(sp.ProblemError, match="packed in another way"):
        sp.load_result(tmp_path / "packed.npz")
    with pytest.raises(sp.ProblemError, match="above the memory limit of 100"):
        sp.load_result(saved, memory_limit=100)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [("nowhere", "is not a file"), (".", "is not a file"), (3, "expected a file name"), ("\0", "is not a file")],
)
def test_a_path_that_is_none_is_refused(path, sentence):
    with pytest.raises(sp.ProblemError, match=sentence):
        sp.load_result(path)
