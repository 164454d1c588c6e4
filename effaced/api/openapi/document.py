"""The OpenAPI document: every operation with its rights, arguments, body, answers and an example of each."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from openapi_pydantic import OpenAPI
from openapi_pydantic.util import construct_open_api_with_schema_class
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from effaced.accounts.scopes import Scope
from effaced.api.catalogue import OPERATIONS, RESOURCES
from effaced.api.models import Query
from effaced.api.openapi.examples import Example, example_of
from effaced.api.operations import idempotency
from effaced.api.operations import version as api_version
from effaced.api.operations.declare import Operation
from effaced.api.operations.models import ProblemDetails

Json = dict[str, Any]
_JSON, _PROBLEM = "application/json", "application/problem+json"
_ABOUT = """\
Systems of your company send subject requests here, follow them, and operate effaced.

Send the header `Authorization: Bearer <API key>` with every call. What a key may do are its scopes; each
operation names those of which it needs one. Times are RFC 3339 in UTC, to the millisecond. Lists are answered
in pages: `data`, and `next`, which is the `after` of the following page. Errors are problem details (RFC
9457) with a code for each field. No answer names a person."""
# Which errors every operation can answer, and which only some.
_ALWAYS = {
    400: "The version of the API or the JSON of the body can't be read.",
    401: "No API key, or one that is not known or was revoked.",
    403: "The key lacks the scope.",
    422: "Something that was sent is missing, unknown or wrong; `errors` names every field.",
    429: "Too many calls; `Retry-After` says when to come back.",
    500: "An error in effaced; its log has more under the `trace_id`.",
    503: "The database does not answer, or the configuration has a mistake. Nothing was changed.",
}
_WITH_PATH = {404: "There is no such thing, or not for this key."}
_WRITING = {409: "It contradicts the present state, or the Idempotency-Key was used for another call."}
_WITH_BODY = {413: "The body is too large.", 415: "The body is not declared as JSON."}
_LIMITS = {
    "RateLimit-Limit": "How many calls this key may make in a minute.",
    "RateLimit-Remaining": "How many of them are left.",
    "RateLimit-Reset": "In how many seconds all of them are there again.",
}


@cache
def document() -> str:
    """The document as JSON, always in the same order."""
    used = {each.body for each in OPERATIONS} | {each.answer for each in OPERATIONS} | {ProblemDetails}
    described = construct_open_api_with_schema_class(
        OpenAPI.model_validate(_document()), [each for each in used if each is not None]
    )
    plain = described.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


def _document() -> Json:
    paths: dict[str, Json] = {}
    for each in OPERATIONS:
        paths.setdefault(each.path, {})[each.method.lower()] = _describe(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "effaced",
            "summary": "Erasure and rectification requests, carried out in every system and proven.",
            "description": _ABOUT,
            "version": api_version.CURRENT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This installation."}],
        "tags": [{"name": each.tag, "description": each.about} for each in RESOURCES],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "apiKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key, `eff_…`. Its scopes are among "
                    + ", ".join(f"`{each}`" for each in Scope)
                    + ".",
                }
            },
            "parameters": {"IdempotencyKey": _IDEMPOTENCY_KEY, "Version": _VERSION},
        },
    }


_IDEMPOTENCY_KEY: Json = {
    "name": idempotency.HEADER,
    "in": "header",
    "description": "1 to 200 visible ASCII characters. The same call with the same key has one effect and one"
    " answer, for 30 days.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
}
_VERSION: Json = {
    "name": api_version.HEADER,
    "in": "header",
    "description": "The version that the caller was written for.",
    "schema": {"type": "string", "enum": list(api_version.SUPPORTED)},
}


def _describe(operation: Operation) -> Json:
    example = example_of(operation.id)
    body = {"requestBody": _body(operation.body, example)} if operation.body else {}
    return {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": _description(operation),
        "parameters": _parameters(operation, example),
        **body,
        "responses": _responses(operation, example),
        # In OpenAPI 3.1 any scheme can name what it needs; one of these will do.
        "security": [{"apiKey": [scope.value]} for scope in operation.scopes] or [{"apiKey": []}],
    }


def _description(operation: Operation) -> str:
    scopes = " or ".join(f"`{each}`" for each in operation.scopes)
    needs = f"Needs the scope {scopes}." if scopes else "Every API key may call it."
    sandbox = " Sandbox keys may call it." if operation.sandbox else ""
    return "\n\n".join(part for part in (operation.description, needs + sandbox) if part)


def _parameters(operation: Operation, example: Example) -> list[Json]:
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1},
            **({"example": example.path[name]} if name in example.path else {}),
        }
        for name in operation.path_names
    ]
    common = ["IdempotencyKey", "Version"] if operation.method == "POST" else ["Version"]
    references = [{"$ref": f"#/components/parameters/{name}"} for name in common]
    return [*in_path, *(_query(operation.query) if operation.query else []), *references]


def _query(model: type[Query]) -> list[Json]:
    _, definitions = models_json_schema([(model, "validation")])
    known = definitions["$defs"]
    schema = known[model.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            **_argument(part, known),
        }
        for name, part in schema["properties"].items()
    ]


def _argument(part: Json, known: Json) -> Json:
    plain = _resolved(part, known)
    description = plain.pop("description", None)
    return {**({"description": description} if description else {}), "schema": plain}


def _resolved(part: Any, known: Json) -> Any:
    """A schema without references, and without null: an argument is there or it is not."""
    if isinstance(part, list):
        return [_resolved(each, known) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        named = known[part["$ref"].rpartition("/")[2]]
        return _resolved(
            {
                **{name: value for name, value in named.items() if name != "description"},
                **{name: value for name, value in part.items() if name != "$ref"},
            },
            known,
        )
    found = {name: _resolved(value, known) for name, value in part.items() if name != "title"}
    options = [each for each in found.get("anyOf", ()) if each != {"type": "null"}]
    if len(options) == 1:
        found = {**options[0], **{name: value for name, value in found.items() if name != "anyOf"}}
    elif options:
        found["anyOf"] = options
    if found.get("default", ...) in (None, []):
        del found["default"]
    return found


def _body(model: type[BaseModel], example: Example) -> Json:
    shown = {"example": example.body} if example.body is not None else {}
    return {"required": True, "content": {_JSON: {"schema": _reference(model), **shown}}}


def _responses(operation: Operation, example: Example) -> Json:
    usual = operation.status if operation.answer or operation.media_types else 204
    successes = {usual: f"{operation.summary}.", **operation.also}
    errors = dict(_ALWAYS)
    errors |= _WITH_PATH if operation.path_names else {}
    errors |= _WRITING if operation.writes else {}
    errors |= _WITH_BODY if operation.body else {}
    errors |= operation.errors
    return {
        **{
            str(status): _success(operation, said, example if status == example.status else Example())
            for status, said in successes.items()
        },
        **{
            str(status): {"description": said, "content": {_PROBLEM: {"schema": _reference(ProblemDetails)}}}
            for status, said in sorted(errors.items())
        },
    }


def _success(operation: Operation, said: str, example: Example) -> Json:
    headers = {name: {"description": about, "schema": {"type": "integer"}} for name, about in _LIMITS.items()}
    answer: Json = {"description": said, "headers": headers}
    if operation.media_types:
        answer["content"] = {each: {"schema": {"type": "string"}} for each in operation.media_types}
    elif operation.answer:
        shown = {"example": example.answer} if example.answer is not None else {}
        answer["content"] = {_JSON: {"schema": _reference(operation.answer), **shown}}
    return answer


def _reference(model: type[BaseModel]) -> Json:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
