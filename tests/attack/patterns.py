"""Every regular expression in the package, and inputs that make each of them work hard.

`package_patterns` finds them in the source: calls of `re`, their expressions evaluated in the namespace of the module.
`hard_inputs` reads the parse tree of one and returns texts that repeat each of its repetitions, and then fail.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import recollect

SOURCE = Path(recollect.__file__).parent
_CALLS = frozenset(["compile", "match", "search", "fullmatch", "sub", "subn", "findall", "finditer", "split"])
_SEARCHES = frozenset(["search", "sub", "subn", "findall", "finditer", "split"])


@dataclass(frozen=True)
class Found:
    """One expression of the package: where it is, and whether it is also looked for at every position."""

    where: str
    pattern: re.Pattern[Any]
    searched: bool


def package_patterns() -> tuple[list[Found], list[str]]:
    """All expressions, and the places of those that are made at run time."""
    found: list[Found] = []
    made: list[str] = []
    known: set[tuple[Any, int]] = set()
    for info in pkgutil.walk_packages([str(SOURCE)], "recollect."):
        path = SOURCE.parent / (info.name.replace(".", "/") + ".py")
        if info.ispkg:
            path = SOURCE.parent / info.name.replace(".", "/") / "__init__.py"
        if not path.exists() or "re." not in (text := path.read_text()):
            continue
        tree = ast.parse(text)
        module = None
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            function = call.func
            if not (
                isinstance(function, ast.Attribute)
                and isinstance(function.value, ast.Name)
                and function.value.id == "re"
                and function.attr in _CALLS
            ):
                continue
            module = module or importlib.import_module(info.name)
            where = f"{path.relative_to(SOURCE)}:{call.lineno}"
            try:
                pattern = _evaluate(call, module.__dict__)
            except (NameError, AttributeError):
                made.append(f"{path.relative_to(SOURCE)}: {ast.unparse(call.args[0])}")
                continue
            searched = function.attr in _SEARCHES or (function.attr == "compile" and _is_searched(tree, call))
            found.append(Found(where, pattern, searched))
            known.add((pattern.pattern, pattern.flags))
        if module is not None:  # those that functions make while the module is imported
            for name, pattern in _values(vars(module)):
                if (pattern.pattern, pattern.flags) not in known:
                    known.add((pattern.pattern, pattern.flags))
                    found.append(Found(f"{path.relative_to(SOURCE)}: {name}", pattern, _name_is_searched(tree, name)))
    return found, made


def _values(names: dict[str, Any]) -> Iterator[tuple[str, re.Pattern[Any]]]:
    for name, value in list(names.items()):
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        for part in parts:
            for item in part if isinstance(part, tuple) else [part]:
                if isinstance(item, re.Pattern):
                    yield name, item


def _evaluate(call: ast.Call, names: dict[str, Any]) -> re.Pattern[Any]:
    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(names))

    pattern = value(call.args[0])
    if isinstance(pattern, re.Pattern):
        return pattern
    flags = next((value(keyword.value) for keyword in call.keywords if keyword.arg == "flags"), 0)
    position = {"compile": 1, "match": 2, "search": 2, "fullmatch": 2, "findall": 2, "finditer": 2}
    attribute = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if attribute in position and len(call.args) > position[attribute]:
        flags = value(call.args[position[attribute]])
    return re.compile(pattern, flags)


def _name_is_searched(tree: ast.Module, name: str) -> bool:
    """Whether a name is used in another way than by `match` and `fullmatch`."""
    names = sum(
        isinstance(use, ast.Name) and use.id == name and isinstance(use.ctx, ast.Load) for use in ast.walk(tree)
    )
    matches = sum(
        isinstance(use, ast.Attribute)
        and isinstance(use.value, ast.Name)
        and use.value.id == name
        and use.attr in ("match", "fullmatch")
        for use in ast.walk(tree)
    )
    return names > matches


def _is_searched(tree: ast.Module, call: ast.Call) -> bool:
    """Whether a method that tries every position is used on the name that a compiled expression gets; an expression
    without a name in its module could be used in any way."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.value is call and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            uses = {
                use.attr
                for use in ast.walk(tree)
                if isinstance(use, ast.Attribute) and isinstance(use.value, ast.Name) and use.value.id == name
            }
            alone = sum(isinstance(use, ast.Name) and use.id == name for use in ast.walk(tree))
            return (
                bool(uses & _SEARCHES)
                or not uses
                or alone
                > 1
                + sum(
                    isinstance(use, ast.Attribute) and isinstance(use.value, ast.Name) and use.value.id == name
                    for use in ast.walk(tree)
                )
            )
        if isinstance(node, ast.Attribute) and node.value is call:
            return node.attr in _SEARCHES
    return True


# Inputs --------------------------------------------------------------------------------------------------------------

_SAMPLES = "a0 <\"'/.:;,=-_&#%({[\n\tzZ9!@*\\\x01\xe9"
_CATEGORY = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_WORD: " ",
}


def hard_inputs(pattern: re.Pattern[Any], size: int) -> Iterator[Any]:
    """Texts of about this size for one expression, of its own kind (bytes or str)."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~(re.UNICODE if isinstance(pattern.pattern, bytes) else 0))
    seen: set[tuple[str, str, str]] = set()  # not the texts: inputs of two sizes must be the same in number and order
    for before, pump in _pumps(list(tree), ""):
        for head, unit in _mixes(before, pump):
            text_of = head + unit * max(1, (size - len(head)) // max(1, len(unit)))
            for end in ("", "\x00", "\n!", "<"):
                text = text_of + end
                if unit and (head, unit, end) not in seen:
                    seen.add((head, unit, end))
                    yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _mixes(before: str, pump: str) -> Iterator[tuple[str, str]]:
    yield before, pump
    yield "", before + pump
    yield "", pump + before
    if before:
        yield "", before


def _pumps(nodes: list[Any], before: str) -> Iterator[tuple[str, str]]:
    """(text that leads to a repetition, one round of it) for every repetition, in several spellings."""
    for position, (code, argument) in enumerate(nodes):
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            low, high, inner = argument
            if high > 1:
                for choice in range(6):
                    round_of = _text(list(inner), choice)
                    yield before, round_of
                    # What follows may also be read by the repetition.
                    after = _text(nodes[position + 1 :][:2], choice)
                    yield before, round_of + after
                    for character in _both(list(inner), nodes[position + 1 :][:3]):
                        yield before, character
            yield from _pumps(list(inner), before)
            before += _text(list(inner), 0) * max(min(low, 100), 1 if high else 0)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from _pumps(list(branch), before)
            before += _text([(code, argument)], 0)
        elif code in (codes.SUBPATTERN, codes.ATOMIC_GROUP, codes.ASSERT, codes.ASSERT_NOT):
            inner = argument if code is codes.ATOMIC_GROUP else argument[-1]
            yield from _pumps(list(inner), before)
            if code in (codes.SUBPATTERN, codes.ATOMIC_GROUP):
                before += _text(list(inner), 0)
        else:
            before += _text([(code, argument)], 0)


def _both(first: list[Any], later: list[Any]) -> Iterator[str]:
    """Characters that a repetition and what follows it both read."""
    for character in _SAMPLES:
        if _reads(first, character) and _reads(later, character):
            yield character


def _reads(nodes: list[Any], character: str) -> bool:
    for code, argument in nodes:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            return _reads(list(argument[2]), character)
        if code is codes.SUBPATTERN:
            return _reads(list(argument[-1]), character)
        if code is codes.BRANCH:
            return any(_reads(list(branch), character) for branch in argument[1])
        if code is codes.LITERAL:
            return chr(argument) == character
        if code is codes.NOT_LITERAL:
            return chr(argument) != character
        if code is codes.ANY:
            return True
        if code is codes.IN:
            return _in(argument, character)
    return False


def _in(items: list[Any], character: str) -> bool:
    negated, number = False, ord(character)
    for code, argument in items:
        if code is codes.NEGATE:
            negated = True
        elif (
            (code is codes.LITERAL and argument == number)
            or (code is codes.RANGE and argument[0] <= number <= argument[1])
            or (code is codes.CATEGORY and _is_category(argument, character))
        ):
            return not negated
    return negated


def _is_category(category: Any, character: str) -> bool:
    tests = {
        codes.CATEGORY_DIGIT: character.isdigit(),
        codes.CATEGORY_SPACE: character.isspace(),
        codes.CATEGORY_WORD: character.isalnum() or character == "_",
        codes.CATEGORY_NOT_DIGIT: not character.isdigit(),
        codes.CATEGORY_NOT_SPACE: not character.isspace(),
        codes.CATEGORY_NOT_WORD: not (character.isalnum() or character == "_"),
    }
    return tests[category]


def _text(nodes: list[Any], choice: int) -> str:
    """A text that matches these nodes, one of several."""
    parts: list[str] = []
    for code, argument in nodes:
        if code is codes.LITERAL:
            parts.append(chr(argument))
        elif code is codes.NOT_LITERAL:
            parts.append(next(c for c in _SAMPLES[choice:] + _SAMPLES if ord(c) != argument))
        elif code is codes.ANY:
            parts.append(_SAMPLES[choice % len(_SAMPLES)])
        elif code is codes.IN:
            parts.append(_one_of(argument, choice))
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            low, high, inner = argument
            parts.append(_text(list(inner), choice) * max(min(low, 100), 1 if high and choice % 2 else 0))
        elif code is codes.BRANCH:
            branches = argument[1]
            parts.append(_text(list(branches[choice % len(branches)]), choice))
        elif code is codes.SUBPATTERN:
            parts.append(_text(list(argument[-1]), choice))
        elif code is codes.ATOMIC_GROUP:
            parts.append(_text(list(argument), choice))
    return "".join(parts)


def _one_of(items: list[Any], choice: int) -> str:
    candidates = [c for c in _SAMPLES if _in(items, c)]
    for code, argument in items:
        if code is codes.LITERAL and not any(c is codes.NEGATE for c, _ in items):
            candidates.append(chr(argument))
        elif code is codes.RANGE and not any(c is codes.NEGATE for c, _ in items):
            candidates.append(chr(argument[0]))
    return candidates[choice % len(candidates)] if candidates else ""
