"""The server does what its OpenAPI description says, for requests it allows and for others (schemathesis)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    positive_data_acceptance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from recollect.aggregator.http.openapi import description
from small_archives import serving, small_archives

PAGE = "http://example.com/"
CONFORMS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
TOKEN = {"Authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with small_archives() as archives:
        archives.add("one", {PAGE: ["20100101000000", "20120101000000"], "http://0/": ["20110101000000"]})
        archives.add("two", {PAGE: ["20150101000000"]})
        registry = archives.write(tmp_path_factory.mktemp("openapi"))
        with serving(registry, "--no-learn", "--no-cache", "--admin-token", "secret") as base:
            yield base


@pytest.fixture(scope="module")
def described(base: str) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{base}/openapi.json")


OPERATIONS = [(path, method) for path, methods in description("")["paths"].items() for method in methods]
ENDING = [one for one in OPERATIONS if one[0] != "/monitor"]


def try_out(operation: APIOperation, mode: GenerationMode, checks: list[CheckFunction]) -> None:
    @EXAMPLES
    @given(operation.as_strategy(generation_mode=mode))
    def run(case: schemathesis.Case) -> None:
        query = case.query or {}
        since, until = query.get("from"), query.get("to")
        assume(not (since and until) or str(since)[:4] < str(until)[:4])  # no schema can say this
        case.validate_response(case.call(headers=TOKEN), checks=checks)

    try:
        run()
    finally:
        awake = operation.schema["/wake/{archive}"]["POST"]
        for archive in ("one", "two"):
            awake.Case(path_parameters={"archive": archive}).call(headers=TOKEN)


@pytest.mark.parametrize(("path", "method"), ENDING)
def test_what_the_description_allows_is_answered_as_it_says(
    described: schemathesis.BaseSchema, path: str, method: str
) -> None:
    checks = [*CONFORMS, positive_data_acceptance, unsupported_method]
    try_out(described[path][method.upper()], GenerationMode.POSITIVE, checks)


@pytest.mark.parametrize(("path", "method"), [one for one in ENDING if "{" in one[0]])
def test_what_it_does_not_allow_is_refused_in_one_shape(
    described: schemathesis.BaseSchema, path: str, method: str
) -> None:
    try_out(described[path][method.upper()], GenerationMode.NEGATIVE, CONFORMS)
