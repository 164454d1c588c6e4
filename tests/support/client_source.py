"""The resources of effaced.client, written from the OpenAPI document: a method for each operation.

`make record` writes them; tests/unit/client/test_source.py compares.
"""

from __future__ import annotations

import keyword
import re
from typing import Any

from client_words import (
    Operation,
    body_schema,
    camel,
    doc,
    docstring,
    formatted,
    names_of,
    optional,
    optional_null,
    safe,
    snake,
    wrapped,
)
from pydantic import BaseModel

Json = dict[str, Any]
_HEAD = '''"""{about}

Written by `make record` from the OpenAPI document.
"""

from __future__ import annotations
'''
_IMPORTS = """
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID

from pydantic import Field

from effaced.client.answers import Answer, Listed
from effaced.client.exchange import NOT_GIVEN, Call, Listing, NotGiven, given, part, stated
from effaced.client.runners import M, Resource, listing, operation
"""
_OURS = frozenset(
    ("Answer", "Any", "Call", "Field", "Listed", "Listing", "Literal", "Mapping", "Resource", "Sequence")
)
_SHARED = "shared"
_IDEMPOTENCY = "idempotency_key"


def client_source(document: Json) -> dict[str, str]:
    """The modules of effaced/client/resources by the names of their files."""
    api = _Api(document)
    modules = {f"{module}.py": api.module(tag, module) for tag, module in api.tags.items()}
    if _SHARED in api.home.values():
        modules["shared.py"] = api.shared()
    modules["__init__.py"] = api.index()
    return {name: formatted(source) for name, source in modules.items()}


def methods(document: Json) -> dict[str, tuple[str, str]]:
    """For each operation its resource's name in the client, and its method's."""
    api = _Api(document)
    return {each.id: (api.tags[each.tag], api.names[each.id]) for each in api.operations}


class _Api:
    def __init__(self, document: Json) -> None:
        self.schemas: dict[str, Json] = document["components"]["schemas"]
        self.operations = [
            Operation(described["operationId"], method.upper(), path, described)
            for path, methods in document["paths"].items()
            for method, described in methods.items()
        ]
        self.about = {each["name"]: each.get("description", "") for each in document["tags"]}
        self.tags = {tag: snake(tag) for tag in self.about}
        self.names = dict(names_of(each, self.operations) for each in self.operations)
        self.sent = self._reachable(*(body_schema(each) for each in self.operations))
        answered = {tag: self._reachable(*self._answers(tag)) for tag in self.tags}
        used = {
            tag: answered[tag] | self._reachable(*(body_schema(each) for each in self._of(tag)))
            for tag in self.tags
        }
        self.answered = set().union(*answered.values())
        # A schema is with the resource that alone uses it; the others are shared.
        self.home = {
            name: self.tags[users[0]] if len(users) == 1 else _SHARED
            for name in self.schemas
            if (users := [tag for tag in self.tags if name in used[tag]])
        }
        assert not _OURS & set(self.schemas), "a schema has the name of one of the client's own classes"

    # --- modules ---

    def module(self, tag: str, module: str) -> str:
        methods = [self._method(each) for each in self._of(tag)]
        body = "\n\n".join(self._types(module))
        shared = [name for name, home in self.home.items() if home == _SHARED and not self._is_word(name)]
        imports = f"from effaced.client.resources.shared import {', '.join(shared)}\n" if shared else ""
        about = self.about[tag] or f"{tag}."
        return (
            _HEAD.format(about=wrapped(about))
            + _IMPORTS
            + imports
            + body
            + f'\n\nclass {camel(tag)}Api(Resource[M]):\n    """{wrapped(about, "    ")}"""\n\n'
            + "\n\n".join(methods)
        )

    def shared(self) -> str:
        return (
            _HEAD.format(about="What several resources answer or take.")
            + _IMPORTS
            + "\n\n".join(self._types(_SHARED))
        )

    def index(self) -> str:
        lines = [_HEAD.format(about="All resources of the API."), "\nfrom typing import Generic\n\n"]
        for tag, module in self.tags.items():
            lines.append(f"from effaced.client.resources.{module} import {camel(tag)}Api\n")
        lines.append("from effaced.client.runners import M\n\n")
        lines.append('class Resources(Generic[M]):\n    """The resources of a client, by their names."""\n\n')
        lines.append("    def __init__(self, runner: M) -> None:\n")
        lines += [f"        self.{module} = {camel(tag)}Api(runner)\n" for tag, module in self.tags.items()]
        return "".join(lines)

    # --- types ---

    def _types(self, module: str) -> list[str]:
        names = [name for name, home in self.home.items() if home == module and not self._is_word(name)]
        return [self._type(name) for name in self._in_order(names)]

    def _type(self, name: str) -> str:
        schema = self.schemas[name]
        bodies = {body.get("$ref", "").rpartition("/")[2] for body in map(body_schema, self.operations)}
        sent = name in self.sent and name not in self.answered
        if sent and (name in bodies or any(map(keyword.iskeyword, schema["properties"]))):
            return ""  # its fields are the method's arguments
        lines = doc(schema)
        required, base = schema.get("required", []), "Answer"
        if sent:
            base = "TypedDict"
            for field, part in schema["properties"].items():
                hint = self._hint(part, sent=True)
                lines.append(f"    {field}: {hint if field in required else f'NotRequired[{hint}]'}")
                lines += doc(part)
        else:
            properties = dict(schema.get("properties", {}))
            if (item := self._item(name)) is not None:
                base = f"Listed[{item}]"
                properties.pop("data")
                properties.pop("next", None)
            for field, part in properties.items():
                lines.append(f"    {self._field(field, part, needed=field in required)}")
                lines += doc(part)
        return f"\n\nclass {name}({base}):\n" + ("\n".join(lines) or "    pass") + "\n"

    def _field(self, name: str, schema: Json, *, needed: bool) -> str:
        """One field of an answer. A name that Python or pydantic needs itself gets a `_`."""
        hint, default = self._hint(schema), schema.get("default")
        default = repr(default) if isinstance(default, str | int | float) else "None"
        if not needed and default == "None" and "None" not in hint:
            hint += " | None"
        if keyword.iskeyword(name) or hasattr(BaseModel, name):
            return f"{name}_: {hint} = Field({'' if needed else f'default={default}, '}alias={name!r})"
        return f"{name}: {hint}" if needed else f"{name}: {hint} = {default}"

    def _item(self, name: str) -> str | None:
        """What a list is of."""
        data = self.schemas[name].get("properties", {}).get("data", {})
        return self._hint(data["items"]) if data.get("type") == "array" else None

    def _hint(self, schema: Json, *, sent: bool = False) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            if self._is_word(name):
                return self._hint(self.schemas[name], sent=sent)
            # What is also answered is a class there; to be sent, any mapping will do. Nor can a class that
            # describes a dict have names that Python needs itself.
            reserved = any(map(keyword.iskeyword, self.schemas[name]["properties"]))
            return "Mapping[str, Any]" if sent and (reserved or name in self.answered) else name
        if options := schema.get("anyOf") or schema.get("oneOf"):
            hints = list(dict.fromkeys(self._hint(each, sent=sent) for each in options))
            return " | ".join([each for each in hints if each != "None"] + ["None"] * ("None" in hints))
        if "const" in schema or "enum" in schema:
            words = schema.get("enum", [schema.get("const")])
            # A newer server may answer with a new word.
            return f"Literal[{', '.join(map(repr, words))}]" if sent else type(words[0]).__name__
        return self._plain_hint(schema, sent=sent)

    def _plain_hint(self, schema: Json, *, sent: bool) -> str:
        kind = schema.get("type")
        if kind == "array":
            item = self._hint(schema.get("items", {}), sent=sent)
            return f"Sequence[{item}]" if sent else f"list[{item}]"
        if kind == "object":
            inner = schema.get("additionalProperties")
            inner = inner or next(iter(schema.get("patternProperties", {}).values()), True)
            value = self._hint(inner, sent=sent) if isinstance(inner, dict) else "Any"
            return f"{'Mapping' if sent else 'dict'}[str, {value}]"
        if kind == "string":
            wide = {"date-time": "datetime", "date": "date", "uuid": "UUID"}.get(schema.get("format", ""))
            return (f"{wide} | str" if wide == "UUID" and sent else wide) or "str"
        names = {"integer": "int", "number": "float", "boolean": "bool", "null": "None"}
        return names.get(kind, "Any") if isinstance(kind, str) else "Any"

    # --- methods ---

    def _method(self, each: Operation) -> str:
        path_names = re.findall(r"{(\w+)}", each.path)
        body, query = self._body_fields(each), self._query_fields(each)
        both = set(body) & set(query) | (set(body) | set(query)) & set(path_names)
        assert not both, f"{each.id} has arguments of one name: {both}"
        by_name = {**body, **query}
        positional = [f"{safe(name)}: UUID | str" for name in path_names]
        keywords = [f"{safe(name)}: {hint}" for name, (hint, needed) in by_name.items() if needed]
        keywords += [
            f"{safe(name)}: {optional(hint)}" for name, (hint, needed) in by_name.items() if not needed
        ]
        if each.method == "POST":
            keywords.append(f"{_IDEMPOTENCY}: str | None = None")
        parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
        answer, item = self._answer(each)
        kind, hint = ("listing", f"Listing[{answer}, {item}]") if item else ("operation", f"Call[{answer}]")
        path = re.sub(r"{(\w+)}", lambda name: f"{{part({safe(name[1])})}}", each.path)
        arguments = [repr(each.id), repr(each.method), f'{"f" if path_names else ""}"{path}"']
        arguments.append("type(None)" if answer == "None" else answer)
        if query:
            arguments.append(f"query={{{', '.join(f'{name!r}: {safe(name)}' for name in query)}}}")
        if body_schema(each):
            whole = list(body) == ["body"]
            arguments.append("body=body" if whole else f"body={self._body_value(body)}")
        if each.method == "POST":
            arguments.append(f"{_IDEMPOTENCY}={_IDEMPOTENCY}")
        returned = f"Listing({', '.join(arguments)})" if item else f"Call({', '.join(arguments)})"
        return (
            f"    @{kind}\n    def {self.names[each.id]}({parameters}) -> {hint}:\n"
            f'        """{docstring(each)}"""\n        return {returned}'
        )

    @staticmethod
    def _body_value(fields: dict[str, tuple[str, bool]]) -> str:
        always = ", ".join(f"{name!r}: {safe(name)}" for name, (_, needed) in fields.items() if needed)
        parts = [f"{{{always}}}"]
        for function, null_is_said in (("given", False), ("stated", True)):
            names = [
                f"{name}={safe(name)}"
                for name, (hint, needed) in fields.items()
                if not needed and ("NotGiven" in hint) is null_is_said
            ]
            parts += [f"{function}({', '.join(names)})"] if names else []
        return " | ".join(parts)

    def _body_fields(self, each: Operation) -> dict[str, tuple[str, bool]]:
        schema = body_schema(each)
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        required = schema.get("required", [])
        if schema and "properties" not in schema:
            return {"body": ("Mapping[str, Any]", True)}
        return {
            name: (optional_null(part, self._hint(part, sent=True)), name in required)
            for name, part in schema.get("properties", {}).items()
        }

    def _query_fields(self, each: Operation) -> dict[str, tuple[str, bool]]:
        return {
            part["name"]: (self._hint(part["schema"], sent=True), bool(part.get("required")))
            for part in each.described.get("parameters", [])
            if part.get("in") == "query"
        }

    def _answer(self, each: Operation) -> tuple[str, str | None]:
        """The answer's type, and what it is a list of."""
        for status, response in each.described["responses"].items():
            if status.startswith("2"):
                content = response.get("content", {})
                if not content:
                    return "None", None
                if "application/json" not in content:
                    return "bytes", None
                name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
                return name, self._item(name)
        raise AssertionError(f"{each.id} never succeeds")

    # --- schemas ---

    def _of(self, tag: str) -> list[Operation]:
        return [each for each in self.operations if each.tag == tag]

    def _answers(self, tag: str) -> list[Json]:
        return [
            content.get("schema", {})
            for each in self._of(tag)
            for status, response in each.described["responses"].items()
            if status.startswith("2")
            for content in response.get("content", {}).values()
        ]

    def _reachable(self, *schemas: Any) -> set[str]:
        found: set[str] = set()
        waiting = list(schemas)
        while waiting:
            part = waiting.pop()
            if isinstance(part, list):
                waiting += part
            elif isinstance(part, dict):
                waiting += [value for name, value in part.items() if name != "$ref"]
                name = str(part.get("$ref", "")).rpartition("/")[2]
                if name and name not in found:
                    found.add(name)
                    waiting.append(self.schemas[name])
        return found

    def _in_order(self, names: list[str]) -> list[str]:
        """Each after those that it needs."""
        done: list[str] = []

        def add(name: str, above: tuple[str, ...] = ()) -> None:
            for needed in sorted(self._reachable(self.schemas[name]) & set(names) - {*above, name}):
                add(needed, (*above, name))
            if name not in done:
                done.append(name)

        for name in sorted(names):
            add(name)
        return done

    def _is_word(self, name: str) -> bool:
        return "properties" not in self.schemas[name]
