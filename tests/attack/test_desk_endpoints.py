"""Every endpoint of a desk with fields of every wrong shape (schemathesis), and who may see what by a model.

The list of endpoints is the desk's own table of routes: a new one is attacked without a change here, and fails the
model until it is written down who may use it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode

from desk_world import Job, RunningDesk, running_desk
from recollect.desk.http import admin, api, operator_api, pages, uploads, worker_api

pytestmark = pytest.mark.xdist_group("attack-desk-endpoints")
EXAMPLES = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
ROUTES = sorted(
    {
        (re.sub(r"\{(\w+)(?::(?:[^{}]|\{[^{}]*\})*)?\}", r"{\1}", route.path), route.method)
        for module in (api, uploads, operator_api, worker_api, pages, admin)
        for route in module.ROUTES
    }
)
SLOW = ("/events", "/survey", "/claim", "/permit")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDesk]:
    folder = tmp_path_factory.mktemp("endpoints")
    archives = folder / "archives.json"
    archives.write_text(json.dumps([{"id": "one", "timemap": "http://127.0.0.1:9/", "concurrency": 2}]))
    limits = {f"RECOLLECT_DESK_PER_{name}": "100000" for name in ("ADDRESS", "SITE", "NETWORK")}
    with running_desk(folder / "desk", archives, "--workers", "0", RECOLLECT_DESK_LEASE="600", **limits) as running:
        yield running


def description() -> dict[str, Any]:
    """The desk's routes as OpenAPI: parameters are texts, bodies are anything."""
    paths: dict[str, Any] = {}
    for path, method in ROUTES:
        names = re.findall(r"\{(\w+)\}", path)
        kind = "application/json" if path.startswith("/api/") else "application/x-www-form-urlencoded"
        values = {"type": ["string", "number", "boolean", "null", "array", "object"]}
        fields = (
            "uri",
            "email",
            "source",
            "fence",
            "worker",
            "archive",
            "kind",
            "permits",
            "decisions",
            "rank",
            "csrf",
        )
        schema = {"type": "object", "properties": dict.fromkeys(fields, values), "additionalProperties": values}
        operation: dict[str, Any] = {
            "parameters": [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names]
            + [{"name": n, "in": "query", "schema": {"type": "string"}} for n in ("token", "q", "limit", "offset")],
            "responses": {"default": {"description": "any"}},
        }
        if method in ("POST", "PUT"):
            operation["requestBody"] = {"content": {kind: {"schema": schema}}}
        paths.setdefault(path, {})[method.lower()] = operation
    return {"openapi": "3.1.0", "info": {"title": "desk", "version": "1"}, "paths": paths}


ATTACKS = [
    (path, method, role)
    for path, method in ROUTES
    for role in (["nobody", "worker" if path.startswith("/api/worker/") else "operator"])
    if not path.endswith(SLOW)
]


@pytest.mark.parametrize(("path", "method", "role"), ATTACKS)
def test_no_field_of_any_shape_is_a_fault(desk: RunningDesk, path: str, method: str, role: str) -> None:
    operation = schemathesis.openapi.from_dict(description())[path][method]
    token = (desk.folder / f"{role}.token").read_text().strip() if role != "nobody" else ""
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    @EXAMPLES
    @given(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def run(case: schemathesis.Case) -> None:
        response = case.call(base_url=desk.base, headers=headers, allow_redirects=False, timeout=30)
        case.validate_response(response, checks=[not_a_server_error])

    run()


# Who may see what ----------------------------------------------------------------------------------------------------

PUBLIC = {
    ("/", "GET"), ("/_/{name}", "GET"), ("/survey", "GET"), ("/jobs", "POST"), ("/sent", "GET"), ("/takedown", "GET"),
    ("/takedown", "POST"), ("/privacy", "GET"), ("/imprint", "GET"), ("/api/jobs", "POST"), ("/health", "GET"),
    ("/ready", "GET"), ("/metrics", "GET"), ("/admin/login", "GET"), ("/admin/login", "POST"),
    ("/confirm/{token}", "GET"), ("/confirm/{token}", "POST"),
}  # fmt: skip
OF_A_JOB = re.compile(r"(/api)?/jobs/\{job\}(/(events|cancel|tell|review|forget|again|sources(/\{name\})?|\{file\}))?")


def allowed(path: str, method: str) -> set[str]:
    """The model: who gets anything but a refusal. The job is that of `owner`."""
    if (path, method) in PUBLIC:
        return {"nobody", "stranger", "unconfirmed", "owner", "worker", "operator"}
    if path.startswith("/admin"):
        return set()  # needs a session
    if path.startswith("/api/worker/"):
        return {"worker"}
    if OF_A_JOB.fullmatch(path) and (path, method) != ("/api/jobs/{job}", "DELETE"):
        return {"owner", "unconfirmed", "operator"}
    return {"operator"}


@pytest.fixture(scope="module")
def people(desk: RunningDesk) -> dict[str, Job]:
    owner = desk.submit("http://model.example/", "owner@mail.example")
    desk.confirm(owner)
    unconfirmed = desk.submit("http://model.example/", "owner@mail.example")
    return {"owner": owner, "unconfirmed": unconfirmed, "stranger": desk.submit("http://other.example/")}


@pytest.mark.parametrize(("path", "method"), [one for one in ROUTES if not one[0].endswith("/survey")])
def test_nobody_gets_more_than_the_model_allows(
    desk: RunningDesk, people: dict[str, Job], path: str, method: str
) -> None:
    place = path.replace("{job}", people["owner"].id)
    place = re.sub(r"\{(\w+)\}", lambda found: {"file": "result.zip", "number": "1"}.get(found[1], "retry"), place)
    may = allowed(path, method)
    for role in ("nobody", "stranger", "unconfirmed", "owner", "worker", "operator"):
        if role in may:
            continue
        headers, query = {}, ""
        if role in people:
            query = f"?token={people[role].token}"
        elif role != "nobody":
            headers["Authorization"] = f"Bearer {(desk.folder / f'{role}.token').read_text().strip()}"
        body = {"worker": "w", "fence": 1} if path.startswith("/api/") and method != "GET" else None
        form = {"x": "y"} if method == "POST" and body is None else None
        answer = desk.ask(method, place + query, body, form=form, **headers)
        refused = answer.status in (403, 404, 405) or answer.headers.get("Location") == "/admin/login"
        assert refused, (role, answer.status, answer.text[:200])
    for role in may & {"owner", "operator"} - ({"owner"} if not OF_A_JOB.fullmatch(path) else set()):
        if method != "GET" or path.endswith(("events", "{file}")) or path.startswith("/jobs"):
            continue
        token = people[role].token if role in people else (desk.folder / f"{role}.token").read_text().strip()
        answer = desk.ask("GET", place, Authorization=f"Bearer {token}")
        assert answer.status in (200, 404), (role, answer.status)


def test_a_recipient_who_has_not_confirmed_sees_a_pending_job_whatever_they_ask(
    desk: RunningDesk, people: dict[str, Job]
) -> None:
    ghost, owner = people["unconfirmed"], people["owner"]
    assert desk.show(ghost)["state"] == "pending" and desk.show(owner)["state"] == "queued"
    for method, path, body in (
        ("GET", "/result.zip", None), ("POST", "/review", {"decisions": {}}), ("GET", "/report.html", None),
    ):  # fmt: skip
        assert desk.ask(method, f"/api/jobs/{ghost.id}{path}?token={ghost.token}", body).status in (400, 403, 404)
