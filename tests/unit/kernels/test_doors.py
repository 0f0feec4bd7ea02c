"""What the `.pyi` files promise to mypy is what the compiled modules have: names, parameters, members of classes."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import recollect.kernels

FOLDER = Path(recollect.kernels.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.pyx"))


def stub(name: str) -> list[ast.stmt]:
    return ast.parse((FOLDER / f"{name}.pyi").read_text()).body


def constants(body: list[ast.stmt]) -> set[str]:
    return {node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}


def functions(body: list[ast.stmt]) -> dict[str, list[str]]:
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            found[node.name] = [argument.arg for argument in arguments if argument.arg != "self"]
    return found


def classes(body: list[ast.stmt]) -> dict[str, set[str]]:
    return {
        node.name: constants(node.body) | {name for name in functions(node.body) if not name.startswith("__")}
        for node in body
        if isinstance(node, ast.ClassDef)
    }


def doors(module: ModuleType) -> dict[str, object]:
    """The public functions and classes of a compiled module; an enumeration's names are constants of the module."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
    }


def parameters(function: object) -> list[str]:
    """By the signature that Cython puts first into the docstring, in which C types stand before the names."""
    signature = (inspect.getdoc(function) or "").partition("\n")[0]
    inner = re.sub(r"\[[^]]*\]", "", signature.partition("(")[2].rpartition(")")[0])
    return [one.partition("=")[0].split()[-1].strip("*") for one in inner.split(",") if one.strip()]


def test_every_module_has_its_types() -> None:
    assert MODULES
    assert sorted(path.stem for path in FOLDER.glob("*.pyi")) == MODULES


@pytest.mark.parametrize("name", MODULES)
def test_types_and_module_have_the_same_doors(name: str) -> None:
    module, body = importlib.import_module(f"recollect.kernels.{name}"), stub(name)
    compiled = doors(module)
    enumerations = {one for one, value in compiled.items() if isinstance(value, type) and hasattr(value, "__members__")}
    assert functions(body).keys() | classes(body).keys() == compiled.keys() - enumerations
    missing = {one for one in constants(body) if not hasattr(module, one)}
    assert not missing


@pytest.mark.parametrize("name", MODULES)
def test_parameters_and_members_agree(name: str) -> None:
    module, body = importlib.import_module(f"recollect.kernels.{name}"), stub(name)
    for function, names in functions(body).items():
        assert parameters(getattr(module, function)) == names, function
    for one, members in classes(body).items():
        assert {member for member in dir(getattr(module, one)) if not member.startswith("_")} == members, one
