"""Refusal of pipes, sockets and devices among the files that Zarr and HDF5 open by themselves.

Opening a named pipe waits until another process writes to it, which may never happen. The chunks of a Zarr array and
the files behind an HDF5 dataset are opened by Zarr and HDF5, which do not check what they open.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saddlepoint.ground.errors import ProblemError

PREFIXES = ("HDF5_EXTFILE_PREFIX", "HDF5_VDS_PREFIX")  # variables of the environment that name a folder
MOST_FILES = 10_000  # behind one HDF5 dataset


def check_folder(folder: Path) -> None:
    """Raise a ProblemError if a folder, or one within it, has anything but folders and regular files."""
    seen: set[tuple[int, int]] = set()
    waiting = [str(folder)]
    while waiting:
        here = waiting.pop()
        status = os.stat(here)
        if (status.st_dev, status.st_ino) in seen:  # a link leads back to a folder further up
            continue
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir():
                    waiting.append(entry.path)
                elif not entry.is_file():
                    check_file(Path(entry.path), str(folder))


def check_file(path: Path, owner: str) -> None:
    """Raise a ProblemError if a file that belongs to ``owner`` is a pipe, a socket or a device."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # the library will say that it is missing, or take its fill value
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise ProblemError(
            f"{owner} has its numbers in {path}, which is not a regular file but a pipe, a socket or a device; "
            "expected a regular file"
        )


def check_sources(path: Path, dataset: Any, seen: set[tuple[str, str]] | None = None) -> None:
    """Raise a ProblemError if an HDF5 dataset has numbers in a pipe, a socket or a device.

    Numbers of a dataset may be in other files: as plain bytes (external storage), or as datasets of other HDF5 files
    (virtual datasets), whose numbers may be in other files again. Nothing is read, and ``dataset.shape`` is not asked
    for, because it opens the other files.
    """
    import h5py

    seen = set() if seen is None else seen
    owner = f"{path}:{dataset.name}"
    for name, _, _ in dataset.external or ():
        for file in _candidates(os.fsdecode(name), path):
            check_file(file, owner)
    if not dataset.is_virtual:
        return
    for source in dataset.virtual_sources():
        for file in [path] if source.file_name == "." else _candidates(source.file_name, path):
            check_file(file, owner)
            key = os.path.realpath(file), source.dset_name
            if key in seen or not file.is_file():
                continue
            seen.add(key)
            if len(seen) > MOST_FILES:
                raise ProblemError(f"{owner} has its numbers in more than {MOST_FILES} places; expected fewer")
            try:
                with h5py.File(file, "r") as opened:
                    inner = opened.get(source.dset_name)
                    if isinstance(inner, h5py.Dataset):
                        check_sources(file, inner, seen)
            except (OSError, RuntimeError, KeyError):  # the library will say that it cannot be read
                continue


def _candidates(name: str, path: Path) -> Iterator[Path]:
    """The files that HDF5 may mean by a name in the file ``path``; %b in a name stands for a number."""
    folders = [path.parent, Path()]
    for variable in PREFIXES:
        for prefix in os.environ.get(variable, "").split(":"):
            folders += [Path(prefix.replace("${ORIGIN}", str(path.parent)))] if prefix else []
    for folder in folders:
        for tail in {name, os.path.basename(name)}:
            whole = folder / tail
            if "%b" not in tail:
                yield whole
            else:
                yield from map(Path, sorted(glob.glob(glob.escape(str(whole)).replace("%b", "*"))))
