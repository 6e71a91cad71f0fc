"""Data files are found by kind and name, and nothing outside their folders is."""

from __future__ import annotations

import pytest

from stripe.ir.package_data import DATA_KINDS, data_path, list_data


def test_every_kind_ships_files() -> None:
    for kind in DATA_KINDS:
        names = list_data(kind)
        assert names == tuple(sorted(names))
        assert all(data_path(kind, name).is_file() for name in names)
    assert {"stripe.lark", "tile.lark"} <= set(list_data("grammar"))


def test_an_unknown_name_is_refused_with_those_that_exist() -> None:
    with pytest.raises(FileNotFoundError, match=r"no 'nothing.lark' among the grammar \(.*stripe.lark"):
        data_path("grammar", "nothing.lark")


@pytest.mark.parametrize("name", ["../pyproject.toml", "/etc/passwd", "", ".", ".."])
def test_a_path_does_not_lead_out_of_the_folder(name: str) -> None:
    with pytest.raises(FileNotFoundError):
        data_path("grammar", name)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="known are grammar, hwmodels, optconfigs"):
        list_data("models")
