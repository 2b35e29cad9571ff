"""Pipes, sockets and devices in the place of files are refused before anything waits for them."""

import os
import socket

import numpy as np
import pytest
from time_limit import time_limit

import saddlepoint as sp
from saddlepoint.problems.files import load_problem
from saddlepoint.problems.files.arrays import read_array

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
REFUSAL = r"not a (regular )?file"


def refused(action, match=REFUSAL):
    with time_limit(20), pytest.raises(sp.ProblemError, match=match) as caught:
        action()
    assert "\n" not in str(caught.value)


def read_all(source):
    """A product, which reads every row."""
    A = sp.stream(source)
    return A.mul(np.ones(A.shape[1]))


def special(path, kind):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.chdir(path.parent)  # the name of a socket may have about a hundred characters
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    else:
        path.symlink_to("/dev/zero")


@pytest.fixture
def back(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("back")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
@pytest.mark.parametrize("name", ["A.npy", "A.npz", "A.mtx", "A.libsvm:features", "p.toml", "A.h5", "A.parquet"])
def test_a_special_file_in_the_place_of_a_file_is_refused(name, kind, tmp_path):
    special(tmp_path / name.partition(":")[0], kind)
    refused(lambda: load_problem(tmp_path / name) if name == "p.toml" else read_any(name, tmp_path))


def read_any(name, folder):
    return read_all(folder / name) if name in ("A.h5", "A.parquet") else read_array(name, folder)


@pytest.mark.slow
@pytest.mark.usefixtures("back")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_a_special_file_in_the_place_of_a_result_a_checkpoint_or_a_part_is_refused(kind, tmp_path):
    special(tmp_path / "r.npz", kind)
    refused(lambda: sp.load_result(tmp_path / "r.npz"))
    f = sp.Saddle(sp.Quadratic(1.0, [1.0]), sp.Quadratic(1.0), np.eye(1))
    special(tmp_path / "run", kind)
    refused(lambda: sp.solve(f, checkpoint=tmp_path / "run"))
    parts = tmp_path / "parts"
    parts.mkdir()
    np.save(parts / "A-0.npy", np.ones((4, 3)))
    special(parts / "A-1.npy", kind)
    refused(lambda: read_all(parts))


@pytest.mark.usefixtures("back")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
@pytest.mark.parametrize("version", [2, 3])
def test_a_special_file_in_the_place_of_a_chunk_is_refused(kind, version, tmp_path):
    zarr = pytest.importorskip("zarr")
    folder = tmp_path / "A.zarr"
    array = zarr.create_array(folder, shape=(8, 4), chunks=(2, 4), dtype="f8", zarr_format=version)
    array[:] = np.arange(32.0).reshape(8, 4)
    np.testing.assert_array_equal(read_all(folder), array[:].sum(axis=1))
    chunk = next(path for path in sorted(folder.rglob("*")) if path.is_file() and path.name[0].isdigit())
    chunk.unlink()
    special(chunk, kind)
    refused(lambda: read_all(folder), "A.zarr has its numbers in .* not a regular file")
    refused(lambda: read_all(zarr.open(str(folder), mode="r")), "A.zarr has its numbers in .* not a regular file")


def test_a_pipe_in_the_place_of_the_description_of_a_zarr_array_is_refused(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "A.zarr", shape=(8, 4), chunks=(2, 4), dtype="f8")[:] = 1.0
    (tmp_path / "A.zarr/zarr.json").unlink()
    os.mkfifo(tmp_path / "A.zarr/zarr.json")
    refused(lambda: read_all(tmp_path / "A.zarr"))


def test_a_zarr_folder_with_a_link_to_itself_is_read(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "A.zarr", shape=(8, 4), chunks=(2, 4), dtype="f8")[:] = 1.0
    (tmp_path / "A.zarr/again").symlink_to(tmp_path / "A.zarr")
    np.testing.assert_array_equal(read_all(tmp_path / "A.zarr"), np.full(8, 4.0))


@pytest.mark.usefixtures("back")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
@pytest.mark.parametrize("relative", [True, False])
def test_special_files_as_external_storage_of_an_hdf5_dataset_are_refused(kind, relative, tmp_path):
    h5py = pytest.importorskip("h5py")
    raw = tmp_path / "raw.bin"
    np.arange(12.0).reshape(4, 3).tofile(raw)
    with h5py.File(tmp_path / "A.h5", "w") as file:
        file.create_dataset("A", (4, 3), "f8", external=[("raw.bin" if relative else str(raw), 0, 96)])
    np.testing.assert_array_equal(read_all(tmp_path / "A.h5"), [3.0, 12.0, 21.0, 30.0])
    raw.unlink()
    special(raw, kind)
    refused(lambda: read_all(tmp_path / "A.h5"), "A.h5:/A has its numbers in .*raw.bin, which is not a regular file")


@pytest.mark.usefixtures("back")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_special_files_as_sources_of_a_virtual_hdf5_dataset_are_refused(kind, tmp_path):
    """The source is virtual too, and its own source has its numbers in a file of plain bytes."""
    h5py = pytest.importorskip("h5py")
    np.arange(12.0).reshape(4, 3).tofile(tmp_path / "raw.bin")
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file.create_dataset("C", (4, 3), "f8", external=[("raw.bin", 0, 96)])
    for name, source, inner in (("b.h5", "c.h5", "C"), ("a.h5", "b.h5", "V")):
        layout = h5py.VirtualLayout((4, 3), "f8")
        layout[:] = h5py.VirtualSource(source, inner, (4, 3))
        with h5py.File(tmp_path / name, "w") as file:
            file.create_virtual_dataset("V", layout)
    np.testing.assert_array_equal(read_all(tmp_path / "a.h5"), [3.0, 12.0, 21.0, 30.0])
    for name in ("raw.bin", "c.h5", "b.h5"):
        (tmp_path / name).rename(tmp_path / "kept")
        special(tmp_path / name, kind)
        refused(lambda: read_all(tmp_path / "a.h5"), "is not a regular file")
        (tmp_path / name).unlink()
        (tmp_path / "kept").rename(tmp_path / name)
    np.testing.assert_array_equal(read_all(tmp_path / "a.h5"), [3.0, 12.0, 21.0, 30.0])


def test_a_pipe_in_the_place_of_a_file_that_was_opened_before_is_refused(tmp_path):
    np.save(tmp_path / "A.npy", np.ones((4, 3)))
    A = sp.stream(tmp_path / "A.npy", memory_limit=1 << 22)
    (tmp_path / "A.npy").unlink()
    os.mkfifo(tmp_path / "A.npy")
    refused(lambda: A.mul(np.ones(3)))
