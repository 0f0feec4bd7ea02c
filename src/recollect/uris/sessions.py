"""Session ids that archives' indexes leave out of keys: five kinds in queries, two in ASP.NET paths.

Every function takes lower-case text and runs in time linear in its length: the patterns of hostile URLs (a megabyte
of `cfid=`) must not stop an index.
"""

from __future__ import annotations

import re

_PATH_IDS = (
    re.compile(r"(?<=/)\((?:[a-z]\([0-9a-z]{24}\))+\)/"),
    re.compile(r"(?<=/)\([0-9a-z]{24}\)/"),
)
_QUERY_IDS = tuple(
    re.compile(pattern + r"(?=&|\Z)")
    for pattern in (
        r"jsessionid=[0-9a-z]{32}",
        r"phpsessid=[0-9a-z]{32}",
        r"sid=[0-9a-z]{32}",
        r"aspsessionid[a-z]{8}=[a-z]{24}",
    )
)
_CFID, _CFTOKEN = "cfid=", "cftoken="


def without_path_session(path: str) -> str:
    """`/(s(0123456789abcdefghijklmn))/page.aspx` without its parenthesis."""
    if "/(" not in path or ".aspx" not in path:
        return path
    for pattern in _PATH_IDS:
        path = _cut_last(path, pattern)
    return path


def _cut_last(path: str, pattern: re.Pattern[str]) -> str:
    """Cut the last id that is followed by `something.aspx` with no `?` between."""
    page, question, seen = -1, -1, len(path)
    for match in reversed(list(pattern.finditer(path))):
        start = match.end()
        # The nearest `.aspx` and `?` after `start`: in the part not seen yet, or else as found before.
        nearest = path.find(".aspx", start + 1, seen + 5)
        page = nearest if nearest >= 0 else page
        nearest = path.find("?", start, seen)
        question = nearest if nearest >= 0 else question
        seen = start
        if page >= 0 and not start <= question < page:
            return path[: match.start()] + path[start:]
    return path


def without_query_session(query: str) -> str:
    """A query without its session id (the last one of each kind), the other parameters as they were."""
    if "sid=" in query or "sessionid" in query:
        for pattern in _QUERY_IDS:
            last = None
            for last in pattern.finditer(query):  # noqa: B007 - only the last one counts
                pass
            if last is not None:
                query = query[: last.start()] + query[last.end() + 1 :]
    if "&cftoken=" in query:
        query = _without_coldfusion(query)
    return query


def _without_coldfusion(query: str) -> str:
    """Cut the last `cfid=...&cftoken=...`."""
    parameters = query.split("&")
    for index in range(len(parameters) - 1, 0, -1):
        if not parameters[index].startswith(_CFTOKEN) or len(parameters[index]) == len(_CFTOKEN):
            continue
        before = parameters[index - 1]
        start = before.rfind(_CFID, 0, len(before) - 1)  # a value must follow
        if start >= 0:
            return "&".join([*parameters[: index - 1], before[:start] + "&".join(parameters[index + 1 :])])
    return query
