"""The bytes of .npy and .npz files, right and wrong ones, for tests of what reads them."""

import io
import struct
import zipfile

import numpy as np


def npy(shape, dtype="<f8", data=b""):
    """A .npy file with any header."""
    return npy_of(repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode(), data)


def npy_of(header, data=b"", version=1):
    """A .npy file with any bytes as its header."""
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def npz(*members, method=zipfile.ZIP_DEFLATED):
    """An archive of pairs (name, content)."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


class Bomb:
    """An object that makes a file when it is unpickled."""

    def __reduce__(self):
        return (open, ("the-pickle-ran", "w"))


def pickled_npy():
    """A .npy file that holds a Bomb."""
    file = io.BytesIO()
    np.save(file, np.array([Bomb()], dtype=object), allow_pickle=True)
    return file.getvalue()
