"""The installation stays small: the package and everything that it needs without extras."""

import pytest

pytest.importorskip("packaging")

from scripts.size import LIMIT, installed_sizes


def test_the_package_and_what_it_needs_stay_under_the_limit() -> None:
    sizes = installed_sizes()
    assert {"recollect", "numpy", "duckdb", "multidict"} <= set(sizes)
    assert not {"uvloop", "pyarrow", "numba"} & set(sizes)
    assert sum(sizes.values()) <= LIMIT, sizes
