"""What the check against GitHub's description takes, and what it does not."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tests.github import state
from tests.github.api import ROUTES
from tests.github.closing import strict
from tests.github.conftest import REPO
from tests.github.desk import Desk
from tests.github.hub import GitHub
from tests.github.openapi import Exchange, api
from tests.github.trim_openapi import FILE, MADE, OPERATIONS, packed, silent, trimmed
from tests.github.validating import Validating, Wrong, exchange_of, hook

LABEL = {
    "id": 208045946,
    "node_id": "MDU6TGFiZWwyMDgwNDU5NDY=",
    "url": f"https://api.github.com/repos/{REPO}/labels/bug",
    "name": "bug",
    "description": None,
    "color": "f29513",
    "default": True,
}
"""A label as GitHub documents it, with a description that it may lack."""
LABELS = f"/repos/{REPO}/labels"
REFUSED = {"message": "Not Found", "documentation_url": "https://docs.github.com/rest", "status": "404"}


def told(verb: str = "GET", path: str = LABELS, **more: Any) -> list[tuple[str, str, str]]:
    """Return side, place and rule of all that is wrong."""
    problems = api().problems(Exchange(verb, path, **{"answer": [LABEL], **more}))
    return [(one.side, one.place, one.rule) for one in problems]


def label(**change: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in {**LABEL, **change}.items() if value != "gone"}]


class TestCalls:
    def test_one_that_is_as_documented(self) -> None:
        assert told(query={"per_page": "100", "page": "2"}) == []

    @pytest.mark.parametrize(
        ("path", "verb"), [("/repos/acme/bus/lables", "GET"), ("/repos/acme/bus", "POST"), ("/", "GET")]
    )
    def test_one_that_is_unknown(self, path: str, verb: str) -> None:
        assert told(verb, path) == [("the call", "$", "paths")]

    @pytest.mark.parametrize(
        ("query", "place", "rule"),
        [
            ({"pages": "1"}, "query.pages", "parameters"),
            ({"page": "one"}, "query.page", "type"),
        ],
    )
    def test_a_query_that_it_does_not_take(self, query: dict[str, str], place: str, rule: str) -> None:
        assert told(query=query) == [("the call", place, rule)]

    def test_a_value_that_is_none_of_those(self) -> None:
        found = told(path=f"/repos/{REPO}/pulls", query={"state": "merged"}, answer=[])
        assert found == [("the call", "query.state", "enum")]

    def test_a_number_in_the_path(self) -> None:
        found = told(path=f"/repos/{REPO}/issues/x/labels")
        assert found == [("the call", "path.issue_number", "type")]

    @pytest.mark.parametrize(
        ("body", "place", "rule"),
        [
            (None, "$", "requestBody"),
            ({"base": "main"}, "$", "required"),
            ({"head": "x", "base": 1}, "$.base", "type"),
            ({"head": "x", "base": "main", "titel": "x"}, "$", "additionalProperties"),
        ],
    )
    def test_a_body_that_it_does_not_take(self, body: Any, place: str, rule: str) -> None:
        found = told("POST", f"/repos/{REPO}/pulls", body=body, status=500)
        assert found == [("the call", place, rule)]

    def test_a_body_where_there_is_none(self) -> None:
        assert told(body={}) == [("the call", "$", "requestBody")]

    def test_a_body_of_alternatives(self) -> None:
        path = f"/repos/{REPO}/issues/1/labels"
        assert told("POST", path, body={"labels": ["bug"]}) == []
        assert told("POST", path, body={"labels": [7]})[0][:2] == ("the call", "$.labels[0]")

    def test_a_version(self) -> None:
        wrong = [("the call", "headers.x-github-api-version", "version")]
        assert told(sent={"x-github-api-version": "2026-03-10"}) == wrong
        assert told(sent={"user-agent": "gitbus"}) == wrong
        assert told(sent={"user-agent": "gitbus", "x-github-api-version": "2022-11-28"}) == []
        assert told(sent={"user-agent": "curl"}) == []

    def test_slashes_where_github_takes_them(self) -> None:
        found = api().find("GET", "/repos/acme/bus/git/ref/heads/gitbus/approve/a")
        assert found is not None
        assert found[1]["ref"] == "heads/gitbus/approve/a"
        found = api().find("GET", "/repos/acme/bus/commits/gitbus%2Fapprove/status")
        assert found is not None
        assert (found[0].template.rpartition("/")[2], found[1]["ref"]) == ("status", "gitbus/approve")


class TestAnswers:
    @pytest.mark.parametrize(
        ("change", "place", "rule"),
        [
            ({"id": "208045946"}, "$[0].id", "type"),
            ({"color": None}, "$[0].color", "type"),
            ({"name": "gone"}, "$[0]", "required"),
            ({"colour": "f29513"}, "$[0]", "additionalProperties"),
            ({"url": "bug"}, "$[0].url", "format"),
        ],
    )
    def test_what_does_not_fit(self, change: dict[str, Any], place: str, rule: str) -> None:
        assert told(answer=label(**change)) == [("the answer 200", place, rule)]

    def test_none_where_there_is_to_be_one(self) -> None:
        assert told(answer=None) == [("the answer 200", "$", "type")]

    def test_one_where_there_is_to_be_none(self) -> None:
        path = f"/repos/{REPO}/git/refs/heads/x"
        assert told("DELETE", path, status=204, answer=None) == []
        assert told("DELETE", path, status=204, answer={}) == [("the answer 204", "$", "content")]

    @pytest.mark.parametrize(
        ("value", "fits"),
        [
            ("2026-11-30T20:00:00Z", True),
            ("2026-11-30T20:00:00.123+02:00", True),
            ("2026-11-30", False),
            ("2026-11-30T20:00:00", False),
            ("2026-13-30T20:00:00Z", False),
            ("yesterday", False),
        ],
    )
    def test_times(self, value: str, fits: bool) -> None:
        ruleset = {"id": 1, "name": "main", "enforcement": "active", "source": REPO, "created_at": value}
        found = told(path=f"/repos/{REPO}/rulesets", answer=[ruleset])
        wrong = [] if fits else ["$[0].created_at"]
        assert [place for _, place, rule in found if rule == "format"] == wrong

    @pytest.mark.parametrize("status", [200, 404, 401, 403, 422, 429, 500, 502])
    def test_a_status_that_it_can_have(self, status: int) -> None:
        answer = [LABEL] if status == 200 else {**REFUSED, "status": str(status)}
        assert told(status=status, answer=answer) == []

    @pytest.mark.parametrize("status", [202, 204, 301, 409, 418])
    def test_a_status_that_it_cannot_have(self, status: int) -> None:
        assert told(status=status, answer=None) == [(f"the answer {status}", "status", "responses")]

    def test_a_refusal_that_does_not_fit(self) -> None:
        assert told(status=404, answer={"error": "no"}) == [("the answer 404", "$", "additionalProperties")]
        wrong = {**REFUSED, "status": 404}
        assert told(status=403, answer=wrong) == [("the answer 403", "$.status", "type")]

    def test_not_modified_only_if_asked(self) -> None:
        assert told(status=304, answer=None, sent={"if-none-match": '"x"'}) == []
        assert told(status=304, answer=None, sent={}) == [("the answer 304", "status", "condition")]

    def test_pages(self) -> None:
        good = '<https://x/?page=2>; rel="next", <https://x/?page=9>; rel="last"'
        assert told(headers={"link": good}) == []
        assert told(headers={"link": "page 2"}) == [("the answer 200", "headers.link", "rfc8288")]

    def test_something_else_than_json(self) -> None:
        found = told(headers={"content-type": "text/html; charset=utf-8"})
        assert found == [("the answer 200", "headers.content-type", "content")]

    def test_it_is_told_in_a_line(self) -> None:
        (problem,) = api().problems(Exchange("GET", LABELS, answer=label(id="7")))
        said = "the answer 200 at $[0].id: '7' is not of type 'integer' (rule type)"
        assert str(problem) == f"GET {LABELS}: {said}"

    @given(
        name=st.sampled_from(sorted(LABEL)),
        value=st.one_of(st.integers(), st.text(), st.booleans(), st.none()),
    )
    def test_a_value_of_the_wrong_kind_never_passes(self, name: str, value: Any) -> None:
        kinds = {type(LABEL[name])} | ({str} if name == "description" else set())
        fits = type(value) in kinds and name != "url"
        assert (told(answer=label(**{name: value})) == []) == fits or value == "gone"


class TestDescription:
    def test_it_says_where_it_is_from(self) -> None:
        held = json.loads(gzip.decompress(FILE.read_bytes()))
        assert held["info"]["description"] == MADE
        assert held["info"]["version"] == "2022-11-28"
        assert "merge_commit_sha" in held["components"]["schemas"]["pull-request"]["properties"]
        assert FILE.stat().st_size < 1_000_000

    def test_it_holds_what_the_script_lists_and_all_that_is_referred_to(self) -> None:
        held = json.loads(gzip.decompress(FILE.read_bytes()))
        found = {path: set(item) - {"parameters"} for path, item in held["paths"].items()}
        assert found == {path: set(verbs.split()) for path, verbs in OPERATIONS.items()}
        assert packed(trimmed({"info": held["info"], **held})) == packed(_bare(held))

    def test_our_own_github_serves_nothing_that_github_does_not(self) -> None:
        known = {(one.verb.upper(), one.template) for one in api().operations}
        assert {(one.verb, one.template) for one in ROUTES} - known == set()

    def test_names_are_no_keywords(self) -> None:
        schema = {
            "description": "a thing",
            "properties": {"description": {"type": "string", "nullable": True, "example": "x"}},
            "example": {},
            "x-github": {},
        }
        assert silent(schema) == {"properties": {"description": {"type": ["string", "null"]}}}

    def test_null_in_every_form(self) -> None:
        assert silent({"enum": ["a"], "type": "string", "nullable": True}) == {
            "enum": ["a", None],
            "type": ["string", "null"],
        }
        assert silent({"nullable": True, "oneOf": [{"type": "string"}]}) == {
            "anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}]
        }

    def test_parts_of_one_object_are_closed_together(self) -> None:
        components = {"schemas": {"a": {"properties": {"a": {}}, "required": ["a"]}}}
        schema = {"allOf": [{"$ref": "#/components/schemas/a"}, {"properties": {"b": {}}}]}
        assert strict(schema, components) == {
            "additionalProperties": False,
            "properties": {"a": {}, "b": {}},
            "required": ["a"],
        }


def _bare(held: dict[str, Any]) -> dict[str, Any]:
    """Return a description with what trimming it again would say of it."""
    info = {name: held["info"][name] for name in ("title", "version", "license")}
    return {**held, "info": {**info, "description": MADE}}


class TestHook:
    def test_all_calls_pass_it(self, github: GitHub, ada: Desk, validated: Validating) -> None:
        before = validated.checked
        ada.api.get_labels().totalCount  # noqa: B018
        assert validated.checked == before + 1

    def test_a_wrong_call_fails_at_once(self, github: GitHub, ada: Desk, validated: Validating) -> None:
        with validated.off(), pytest.MonkeyPatch.context() as patch:
            hook(patch, Validating())
            with pytest.raises(Wrong, match=r"the call at query\.colour"):
                requests.get(f"{github.api}/repos/{REPO}/labels?colour=red", timeout=10)

    def test_a_wrong_answer_fails_at_once(self, github: GitHub, ada: Desk, validated: Validating) -> None:
        ada.api.create_label("bug", "f29513")
        github.world.repos[REPO].labels["bug"].color = 7  # type: ignore[assignment]
        with validated.off(), pytest.MonkeyPatch.context() as patch:
            hook(patch, Validating())
            with pytest.raises(Wrong, match=r"the answer 200 at \$\[0\]\.color: 7"):
                ada.api.get_labels().totalCount  # noqa: B018

    def test_calls_of_other_processes_are_read_from_the_log(self, github: GitHub, ada: Desk) -> None:
        path = f"/repos/{REPO}/labels"
        wrong = state.Exchange("GET", "", path, {"colour": "red"}, None, 200, {}, [], "ada")
        github.world.log.append(wrong)
        with pytest.raises(Wrong, match=r"query\.colour"):
            Validating().logged(github.world.log)
        github.world.log.remove(wrong)

    def test_other_calls_are_none_of_its_business(self) -> None:
        request = requests.Request("GET", "https://example.org/repos/x").prepare()
        assert exchange_of(request, requests.Response()) is None
