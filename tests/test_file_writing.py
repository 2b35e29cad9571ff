"""Files are written as a whole or not at all, and nothing else in their folder is touched."""

import os
import stat

import numpy as np
import pytest

import saddlepoint as sp
from saddlepoint.ground.file_writing import replacing, write_text
from saddlepoint.ground.plot_style import save


@pytest.fixture
def result():
    return sp.solve(sp.Saddle(sp.Quadratic(1.0, [1.0]), sp.Quadratic(1.0), np.eye(1)))


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_result_that_cannot_be_saved_leaves_the_old_one(call, result, tmp_path, monkeypatch):
    file = tmp_path / "r.npz"
    result.save(file)
    before = file.read_bytes()

    def fails(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fails)
    with pytest.raises(OSError, match="No space left"):
        result.save(file)
    monkeypatch.undo()
    assert file.read_bytes() == before
    assert listed(tmp_path) == ["r.npz"]


def test_an_exception_while_writing_leaves_the_old_file(tmp_path):
    write_text(tmp_path / "page", "old")

    def interrupted():
        with replacing(tmp_path / "page") as file:
            file.write(b"half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "page").read_text() == "old"
    assert listed(tmp_path) == ["page"]


def test_files_of_others_are_left_alone(result, tmp_path):
    for name in ("r.npz.new", "r.npz.old", "r.npz.tmp"):
        (tmp_path / name).write_text("mine")
    result.save(tmp_path / "r.npz")
    assert listed(tmp_path) == ["r.npz", "r.npz.new", "r.npz.old", "r.npz.tmp"]
    assert {(tmp_path / name).read_text() for name in listed(tmp_path)[1:]} == {"mine"}


def test_links_are_followed_and_permissions_are_kept(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o604)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o604


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    write_text(tmp_path / "new", "")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_what_cannot_be_replaced_is_written_to(result):
    before = os.stat("/dev/null").st_rdev
    result.save("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert os.stat("/dev/null").st_rdev == before


def test_a_folder_is_no_file(result, tmp_path):
    with pytest.raises(IsADirectoryError):
        result.save(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "written"), [("p.svg", "p.svg"), ("p.PNG", "p.PNG"), ("p", "p.png")])
def test_a_plot_is_written_as_a_whole(name, written, tmp_path, monkeypatch):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    save(figure, tmp_path / name)
    before = (tmp_path / written).read_bytes()
    assert listed(tmp_path) == [written]

    def fails(file, **options):
        file.write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(figure, "savefig", fails)
    with pytest.raises(OSError, match="the disk is full"):
        save(figure, tmp_path / name)
    assert (tmp_path / written).read_bytes() == before
    assert listed(tmp_path) == [written]
