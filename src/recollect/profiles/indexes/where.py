"""A small, safe language over the fields of a capture: `status == 200 and media_type like 'image/*'`.

Hides the parser. Fields: surt, url, timestamp, year, month, status, media_type, digest, length, filename, language,
revisit (yes or no).
Operators: `==` (or `=`), `!=` (or `<>`), `<`, `<=`, `>`, `>=`, `in`, `not in`, `and`, `or`, `not`, `like` (a pattern
with `*` and `?`, any case), `matches` (a regular expression found anywhere), parentheses, and chains such as `2010 <=
year < 2015`. Values: numbers, quoted text, lists, None.

A missing field equals only None, and is in no order with anything. A number beside a text field (or the reverse) is
compared in the field's own terms, so `status == '200'` and `timestamp >= 2014` mean what they say.

A revisit's media type, and its status where the index has none, are those of another capture and not known here. A
comparison with one is neither true nor false, `and`, `or` and `not` carry that on (as in SQL), and a capture of which
the whole expression says neither is kept, as by the other filters. Only the comparison that names what the index has
(`status == None`, `media_type == 'warc/revisit'`) is decided.

Nothing of Python can be reached from it: the text is parsed by `ast`, and only the nodes listed here are accepted.
"""

from __future__ import annotations

import ast
import fnmatch
import io
import operator
import re
import tokenize
from collections.abc import Callable
from typing import Any

from recollect.errors import UsageError
from recollect.formats.cdx import REVISIT, Capture

Value = Callable[[Capture], Any]

FIELDS: dict[str, Value] = {
    "surt": lambda c: c.surt.decode("utf-8", "surrogateescape"),
    "url": lambda c: c.url,
    "timestamp": lambda c: c.timestamp or None,
    "year": lambda c: int(c.timestamp[:4]) if c.timestamp else None,
    "month": lambda c: int(c.timestamp[4:6]) if c.timestamp else None,
    "status": lambda c: c.status,
    "media_type": lambda c: c.media_type,
    "digest": lambda c: c.digest,
    "length": lambda c: c.length,
    "filename": lambda c: c.filename,
    "language": lambda c: c.language,
    "revisit": lambda c: c.media_type == REVISIT,
}
# What a comparison is that cannot be decided.
_UNKNOWN = object()
_NUMBERS = frozenset({"year", "month", "status", "length", "revisit"})
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
# Words that Python lacks are read as operators it has, which are then given another meaning.
_WORDS = {"like": "@", "matches": "%", "AND": "and", "OR": "or", "NOT": "not", "IN": "in", "LIKE": "@", "NULL": "None"}
_WORDS |= {"null": "None", "none": "None", "true": "True", "false": "False"}
_SIGNS = {"=": "==", "<>": "!="}
_HINT = "for example: --where \"status == 200 and media_type like 'image/*' and year >= 2010\""


def compile_where(text: str) -> Callable[[Capture], bool]:
    """The test that an expression stands for; raises UsageError with what is wrong and where."""
    try:
        tree = ast.parse(_translated(text), mode="eval")
    except (SyntaxError, tokenize.TokenError, IndentationError) as error:
        why = "it breaks off" if isinstance(error, tokenize.TokenError) else str(error.args[0])
        raise UsageError("cannot read the expression", where=text, why=why, hint=_HINT) from error
    test = _build(tree.body, text)
    return lambda capture: bool(test(capture))  # what is unknown is kept


def _translated(text: str) -> str:
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline):
        word = token.string
        if token.type == tokenize.NAME:
            word = _WORDS.get(word, word)
        elif token.type == tokenize.OP:
            word = _SIGNS.get(word, word)
        elif token.type == tokenize.ERRORTOKEN and word.strip():
            raise SyntaxError(f"{word!r} does not belong here")
        tokens.append(word)
    return " ".join(word for word in tokens if word.strip()).replace("< >", "!=")


def _build(node: ast.expr, text: str) -> Value:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [_build(value, text) for value in values]
            return lambda c: _combined(parts, c, decisive=False)
        case ast.BoolOp(op=ast.Or(), values=values):
            parts = [_build(value, text) for value in values]
            return lambda c: _combined(parts, c, decisive=True)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _build(operand, text)
            return lambda c: _UNKNOWN if (found := inner(c)) is _UNKNOWN else not found
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return lambda _c: -number
        case ast.Compare(left=left, ops=ops, comparators=right):
            return _comparison([left, *right], ops, text)
        case ast.BinOp(left=ast.Name(id=name), op=ast.MatMult() | ast.Mod(), right=ast.Constant(value=str(pattern))):
            return _pattern(name, pattern, isinstance(node.op, ast.MatMult), text)
        case ast.Name(id=name):
            return _field(name, text)
        case ast.Constant(value=str() | int() | float() | None as constant):
            return lambda _c: constant
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            members = [_build(item, text) for item in items]
            return lambda c: [member(c) for member in members]
    raise UsageError("cannot read the expression", where=text, why=f"{ast.unparse(node)!r} is not allowed", hint=_HINT)


def _combined(parts: list[Value], capture: Capture, *, decisive: bool) -> Any:
    """`and` (where one False decides) and `or` (where one True does)."""
    result: Any = not decisive
    for part in parts:
        found = part(capture)
        if found is _UNKNOWN:
            result = _UNKNOWN
        elif bool(found) is decisive:
            return decisive
    return result


def _is_unknown(name: str, capture: Capture) -> bool:
    if capture.media_type != REVISIT:
        return False
    return name == "media_type" or (name == "status" and capture.status is None)


def _field(name: str, text: str) -> Value:
    if name not in FIELDS:
        raise UsageError("no such field", where=text, why=f"{name!r} is none of {', '.join(FIELDS)}", hint=_HINT)
    return FIELDS[name]


def _comparison(operands: list[ast.expr], ops: list[ast.cmpop], text: str) -> Value:
    names = {operand.id for operand in operands if isinstance(operand, ast.Name)}
    convert = _as_number if names and names <= _NUMBERS else _as_text if names and not names & _NUMBERS else _as_is
    values = [_build(operand, text) for operand in operands]
    written = [node.value for operand in operands for node in ast.walk(operand) if isinstance(node, ast.Constant)]
    undecided = {name for name, said in (("status", None), ("media_type", REVISIT)) if said not in written} & names

    def test(capture: Capture) -> Any:
        if any(_is_unknown(name, capture) for name in undecided):
            return _UNKNOWN
        found = [convert(value(capture)) for value in values]
        return all(_holds(op, a, b) for op, a, b in zip(ops, found, found[1:], strict=False))

    return test


def _holds(op: ast.cmpop, a: Any, b: Any) -> bool:
    if isinstance(op, ast.Eq | ast.Is):
        return bool(a == b)
    if isinstance(op, ast.NotEq | ast.IsNot):
        return bool(a != b)
    if isinstance(op, ast.In | ast.NotIn):
        inside = a in b if isinstance(b, list) or (isinstance(b, str) and isinstance(a, str)) else False
        return inside is isinstance(op, ast.In)
    if a is None or b is None or isinstance(a, str) is not isinstance(b, str):
        return False
    return _ORDER[type(op)](a, b)


def _as_is(value: Any) -> Any:
    return value


def _as_number(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_number(item) for item in value]
    return int(value) if isinstance(value, str) and value.isdigit() else value


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return str(value) if isinstance(value, int) else value


def _pattern(name: str, pattern: str, glob: bool, text: str) -> Value:
    field = _field(name, text)
    try:
        expression = re.compile(fnmatch.translate(pattern) if glob else pattern, re.IGNORECASE if glob else 0)
    except re.error as error:
        raise UsageError("bad regular expression", where=text, why=str(error)) from error
    test = expression.match if glob else expression.search

    def found(capture: Capture) -> Any:
        value = field(capture)
        if value is not None and test(str(value)) is not None:
            return True
        return _UNKNOWN if _is_unknown(name, capture) else False

    return found
