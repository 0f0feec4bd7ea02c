"""The kernels are a few extension modules, and every one of them is found."""

from importlib import import_module
from pathlib import Path

import pytest

import recollect.kernels
from recollect.kernels.libraries import LIBRARIES

KERNELS = [(kernel, library) for library, kernels in LIBRARIES.items() for kernel in kernels]


def test_there_are_four_to_six_extension_modules() -> None:
    assert 4 <= len(LIBRARIES) + 1 <= 6  # and what they share


def test_every_source_is_in_one_of_them() -> None:
    folder = Path(recollect.kernels.__file__).parent
    sources = {source.stem for source in folder.glob("*.pyx")}
    assert sources in (set(), {kernel for kernel, _ in KERNELS})  # an installed package has no sources
    assert {stub.stem for stub in folder.glob("*.pyi")} == {kernel for kernel, _ in KERNELS}


@pytest.mark.parametrize(("kernel", "library"), KERNELS)
def test_a_kernel_is_imported_out_of_its_extension(kernel: str, library: str) -> None:
    module = import_module(f"recollect.kernels.{kernel}")
    assert Path(str(module.__file__)).name.split(".")[0] == library
