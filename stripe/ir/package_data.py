"""Finds the data files that ship with the package: grammars, hardware models and pass lists.

An installed wheel carries them in ``stripe/data/KIND/``; in a checkout (an editable install) they lie in ``KIND/`` at
the root of the repository. This module stands in the lowest layer because every layer above reads such files.
"""

from __future__ import annotations

from pathlib import Path

DATA_KINDS: tuple[str, ...] = ("grammar", "hwmodels", "optconfigs", "tilelib")

# Not importlib.resources: it costs 20 ms to import, and paths are promised, which excludes zipped installs anyway.
_PACKAGE = Path(__file__).resolve().parents[1]


def data_dir(kind: str) -> Path:
    """The folder that holds the data files of `kind`, one of `DATA_KINDS`.

    Raises FileNotFoundError when the installation carries none, which means that it is broken.
    """
    if kind not in DATA_KINDS:
        raise ValueError(f"unknown kind of data {kind!r}; known are {', '.join(DATA_KINDS)}")
    for folder in (_PACKAGE / "data" / kind, _PACKAGE.parent / kind):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the installation of stripe-opt lacks its folder {kind!r}")


def data_path(kind: str, name: str) -> Path:
    """The path of the data file `name` of `kind`, for example ``data_path("grammar", "stripe.lark")``.

    `name` is one file name, never a path, so that it cannot lead out of the folder. Raises FileNotFoundError, with the
    names of all files, when no such file ships.
    """
    path = data_dir(kind) / name
    if path.name != name or not path.is_file():
        raise FileNotFoundError(f"no {name!r} among the {kind} ({', '.join(list_data(kind)) or 'none'})")
    return path


def list_data(kind: str) -> tuple[str, ...]:
    """The names of the data files of `kind`, sorted."""
    return tuple(sorted(path.name for path in data_dir(kind).iterdir() if path.is_file()))
