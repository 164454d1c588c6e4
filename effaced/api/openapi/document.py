"""The OpenAPI document: every operation with its rights, arguments, body, answers and an example of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from openapi_pydantic import (
    Components,
    Contact,
    ExternalDocumentation,
    Header,
    Info,
    License,
    MediaType,
    OpenAPI,
    Operation as Described,
    Parameter,
    PathItem,
    Reference,
    RequestBody,
    Response,
    Schema,
    SecurityScheme,
    Server,
    Tag,
)
from openapi_pydantic.util import PydanticSchema, construct_open_api_with_schema_class
from pydantic.json_schema import models_json_schema

from effaced.accounts.scopes import Scope
from effaced.api.catalogue import RESOURCES
from effaced.api.models import Query
from effaced.api.openapi.examples import example_of
from effaced.api.operations import idempotency
from effaced.api.operations import version as api_version
from effaced.api.operations.declare import Operation, Routes
from effaced.api.operations.models import ProblemDetails

_JSON, _PROBLEM = "application/json", "application/problem+json"
_ABOUT = """\
Systems of your company send subject requests here, follow them, and operate effaced.

Send the header `Authorization: Bearer <API key>` with every call. What a key may do are its scopes; each operation
names those of which it needs one. Times are RFC 3339 in UTC, to the millisecond. Lists are answered in pages: `data`,
and `next`, which is the `after` of the following page. Errors are problem details (RFC 9457) with a code for each
field. No answer names a person."""
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
    described = construct_open_api_with_schema_class(_document())
    plain = described.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(plain, indent=2, ensure_ascii=False, sort_keys=False) + "\n"


def _document() -> OpenAPI:
    return OpenAPI(
        openapi="3.1.0",
        info=Info(
            title="effaced",
            summary="Erasure and rectification requests, carried out in every system and proven.",
            description=_ABOUT,
            version=api_version.CURRENT,
            license=License(name="Apache-2.0", identifier="Apache-2.0"),
        ),
        servers=[Server(url="/", description="This installation.")],
        tags=[Tag(name=each.tag, description=each.about) for each in RESOURCES],
        paths=_paths(RESOURCES),
        components=Components(
            securitySchemes={
                "apiKey": SecurityScheme(
                    type="http",
                    scheme="bearer",
                    description="An API key, `eff_…`. The scopes of an operation are listed with it: "
                    + ", ".join(f"`{each}`" for each in Scope)
                    + ".",
                )
            },
            responses={"Problem": _problem("Any error.")},
            parameters={
                "IdempotencyKey": Parameter(
                    name=idempotency.HEADER,
                    param_in="header",
                    description="1 to 200 visible ASCII characters. The same call with the same key has one"
                    " effect and one answer, for 30 days.",
                    param_schema=Schema(type="string", minLength=1, maxLength=200, pattern="^[!-~]{1,200}$"),
                ),
                "Version": Parameter(
                    name=api_version.HEADER,
                    param_in="header",
                    description="The version that the caller was written for.",
                    param_schema=Schema(type="string", enum=list(api_version.SUPPORTED)),
                ),
            },
        ),
    )


def _paths(resources: Iterable[Routes]) -> dict[str, PathItem]:
    paths: dict[str, dict[str, Described]] = {}
    for resource in resources:
        for each in resource:
            paths.setdefault(each.path, {})[each.method.lower()] = _describe(each)
    return {path: PathItem(**methods) for path, methods in paths.items()}  # type: ignore[arg-type]


def _describe(operation: Operation) -> Described:
    return Described(
        operationId=operation.id,
        tags=[operation.tag],
        summary=operation.summary,
        description=_description(operation),
        parameters=_parameters(operation),
        requestBody=_body(operation),
        responses=_responses(operation),
        # In OpenAPI 3.1 any scheme can name what it needs; one of these will do.
        security=[{"apiKey": [scope.value]} for scope in operation.scopes] or [{"apiKey": []}],
    )


def _description(operation: Operation) -> str:
    scopes = " or ".join(f"`{each}`" for each in operation.scopes)
    needs = f"Needs the scope {scopes}." if scopes else "Every API key may call it."
    sandbox = " Sandbox keys may call it." if operation.sandbox else ""
    return "\n\n".join(part for part in (operation.description, needs + sandbox) if part)


def _parameters(operation: Operation) -> list[Parameter | Reference]:
    example = example_of(operation.id)
    found: list[Parameter | Reference] = [
        Parameter(
            name=name,
            param_in="path",
            required=True,
            param_schema=Schema(type="string", minLength=1),
            example=example.path.get(name),
        )
        for name in operation.path_names
    ]
    found += _query(operation.query) if operation.query else []
    if operation.method == "POST":
        found.append(Reference(**{"$ref": "#/components/parameters/IdempotencyKey"}))
    return [*found, Reference(**{"$ref": "#/components/parameters/Version"})]


def _query(model: type[Query]) -> list[Parameter]:
    schema = _inlined(model)
    return [
        Parameter(
            name=name,
            param_in="query",
            required=name in schema.get("required", ()),
            description=properties.pop("description", None),
            param_schema=Schema.model_validate(properties),
        )
        for name, properties in schema["properties"].items()
    ]


def _inlined(model: type[Query]) -> dict[str, Any]:
    """The model's schema without references, and without null: an argument is there or it is not."""
    _, definitions = models_json_schema([(model, "validation")])
    known: Mapping[str, Any] = definitions.get("$defs", {})

    def resolve(part: Any) -> Any:
        if isinstance(part, list):
            return [resolve(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            named = known[part["$ref"].rpartition("/")[2]]
            return resolve({**named, **{name: value for name, value in part.items() if name != "$ref"}})
        found = {name: resolve(value) for name, value in part.items() if name != "title"}
        options = [each for each in found.get("anyOf", ()) if each != {"type": "null"}]
        if len(options) == 1:
            found = {**options[0], **{name: value for name, value in found.items() if name != "anyOf"}}
        if found.get("default", ...) is None:
            del found["default"]
        return found

    resolved: dict[str, Any] = resolve(known[model.__name__])
    return resolved


def _body(operation: Operation) -> RequestBody | None:
    if operation.body is None:
        return None
    content = MediaType(
        media_type_schema=PydanticSchema(schema_class=operation.body), example=example_of(operation.id).body
    )
    return RequestBody(required=True, content={_JSON: content})


def _responses(operation: Operation) -> dict[str, Response | Reference]:
    example = example_of(operation.id)
    usual = operation.status if operation.answer or operation.media_type else 204
    found: dict[str, Response | Reference] = {}
    for status, said in {usual: operation.summary, **operation.also}.items():
        found[str(status)] = _success(operation, said, example.answer if status == example.status else None)
    errors = dict(_ALWAYS)
    errors |= _WITH_PATH if operation.path_names else {}
    errors |= _WRITING if operation.writes else {}
    errors |= _WITH_BODY if operation.body else {}
    for status, said in sorted(errors.items()):
        found[str(status)] = _problem(said)
    return found


def _success(operation: Operation, said: str, example: Any) -> Response:
    headers: dict[str, Header | Reference] = {
        name: Header(description=about, param_schema=Schema(type="integer"))
        for name, about in _LIMITS.items()
    }
    if operation.media_type:
        content = {operation.media_type: MediaType(media_type_schema=Schema(type="string"))}
    elif operation.answer:
        schema = PydanticSchema(schema_class=operation.answer)
        content = {_JSON: MediaType(media_type_schema=schema, example=example)}
    else:
        content = None
    return Response(description=said, headers=headers, content=content)


def _problem(said: str) -> Response:
    content = {_PROBLEM: MediaType(media_type_schema=PydanticSchema(schema_class=ProblemDetails))}
    return Response(description=said, content=content)
