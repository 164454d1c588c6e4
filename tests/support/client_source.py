"""The resources of effaced.client, written from the OpenAPI document: a method for each operation.

`make record` writes them; tests/unit/client/test_source.py compares.
"""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from effaced.client.exchange import Call, Listing, given, part
from effaced.client.runners import M, Resource, listing, operation
"""
_OURS = frozenset(
    ("Answer", "Any", "Call", "Field", "Listed", "Listing", "Literal", "Mapping", "Resource", "Sequence")
)
_LINE = 100
ROOT = Path(__file__).parents[2]
_SHARED = "shared"
_IDEMPOTENCY = "idempotency_key"


def client_source(document: Json) -> dict[str, str]:
    """The modules of effaced/client/resources by the names of their files."""
    api = _Api(document)
    modules = {f"{module}.py": api.module(tag, module) for tag, module in api.tags.items()}
    if _SHARED in api.home.values():
        modules["shared.py"] = api.shared()
    modules["__init__.py"] = api.index()
    return {name: _formatted(source) for name, source in modules.items()}


def methods(document: Json) -> dict[str, tuple[str, str]]:
    """For each operation its resource's name in the client, and its method's."""
    api = _Api(document)
    return {each.id: (api.tags[each.tag], api.names[each.id]) for each in api.operations}


def method_name(operation_id: str, tag: str) -> str:
    """`list_request_events` of the tag Requests is `list_events`, and `get_request` is `get`."""
    verb, _, noun = operation_id.partition("_")
    plural = _snake(tag)
    for prefix in (plural, plural.removesuffix("s"), re.sub("ies$", "y", plural)):
        if noun == prefix or noun.startswith(f"{prefix}_"):
            noun = noun.removeprefix(prefix).lstrip("_")
            break
    return "_".join(each for each in (verb, noun) if each)


@dataclass(frozen=True)
class _Operation:
    id: str
    method: str
    path: str
    described: Json

    @property
    def tag(self) -> str:
        return str(self.described["tags"][0])


class _Api:
    def __init__(self, document: Json) -> None:
        self.schemas: dict[str, Json] = document["components"]["schemas"]
        self.operations = [
            _Operation(described["operationId"], method.upper(), path, described)
            for path, methods in document["paths"].items()
            for method, described in methods.items()
        ]
        self.about = {each["name"]: each.get("description", "") for each in document["tags"]}
        self.tags = {tag: _snake(tag) for tag in self.about}
        self.names = dict(_names(each, self.operations) for each in self.operations)
        self.sent = self._reachable(*(_body(each) for each in self.operations))
        answered = {tag: self._reachable(*self._answers(tag)) for tag in self.tags}
        used = {
            tag: answered[tag] | self._reachable(*(_body(each) for each in self._of(tag)))
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
            _HEAD.format(about=_one_line(about))
            + _IMPORTS
            + imports
            + body
            + f'\n\nclass {_camel(tag)}Api(Resource[M]):\n    """{_one_line(about)}"""\n\n'
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
            lines.append(f"from effaced.client.resources.{module} import {_camel(tag)}Api\n")
        lines.append("from effaced.client.runners import M\n\n")
        lines.append('class Resources(Generic[M]):\n    """The resources of a client, by their names."""\n\n')
        lines.append("    def __init__(self, runner: M) -> None:\n")
        lines += [f"        self.{module} = {_camel(tag)}Api(runner)\n" for tag, module in self.tags.items()]
        return "".join(lines)

    # --- types ---

    def _types(self, module: str) -> list[str]:
        names = [name for name, home in self.home.items() if home == module and not self._is_word(name)]
        return [self._type(name) for name in self._in_order(names)]

    def _type(self, name: str) -> str:
        schema = self.schemas[name]
        bodies = {body.get("$ref", "").rpartition("/")[2] for body in map(_body, self.operations)}
        sent = name in self.sent and name not in self.answered
        if sent and (name in bodies or any(map(keyword.iskeyword, schema["properties"]))):
            return ""  # its fields are the method's arguments
        lines = _doc(schema)
        required, base = schema.get("required", []), "Answer"
        if sent:
            base = "TypedDict"
            for field, part in schema["properties"].items():
                hint = self._hint(part, sent=True)
                lines.append(f"    {field}: {hint if field in required else f'NotRequired[{hint}]'}")
                lines += _doc(part)
        else:
            properties = dict(schema.get("properties", {}))
            if (item := self._item(name)) is not None:
                base = f"Listed[{item}]"
                properties.pop("data")
                properties.pop("next", None)
            for field, part in properties.items():
                lines.append(f"    {self._field(field, part, needed=field in required)}")
                lines += _doc(part)
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

    def _method(self, each: _Operation) -> str:
        path_names = re.findall(r"{(\w+)}", each.path)
        body, query = self._body_fields(each), self._query_fields(each)
        both = set(body) & set(query) | (set(body) | set(query)) & set(path_names)
        assert not both, f"{each.id} has arguments of one name: {both}"
        by_name = {**body, **query}
        positional = [f"{_safe(name)}: UUID | str" for name in path_names]
        keywords = [f"{_safe(name)}: {hint}" for name, (hint, needed) in by_name.items() if needed]
        keywords += [
            f"{_safe(name)}: {hint if '| None' in hint else f'{hint} | None'} = None"
            for name, (hint, needed) in by_name.items()
            if not needed
        ]
        if each.method == "POST":
            keywords.append(f"{_IDEMPOTENCY}: str | None = None")
        parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
        answer, item = self._answer(each)
        kind, hint = ("listing", f"Listing[{answer}, {item}]") if item else ("operation", f"Call[{answer}]")
        path = re.sub(r"{(\w+)}", lambda name: f"{{part({_safe(name[1])})}}", each.path)
        arguments = [repr(each.id), repr(each.method), f'{"f" if path_names else ""}"{path}"']
        arguments.append("type(None)" if answer == "None" else answer)
        if query:
            arguments.append(f"query={{{', '.join(f'{name!r}: {_safe(name)}' for name in query)}}}")
        if _body(each):
            whole = list(body) == ["body"]
            arguments.append("body=body" if whole else f"body={self._body_value(body)}")
        if each.method == "POST":
            arguments.append(f"{_IDEMPOTENCY}={_IDEMPOTENCY}")
        returned = f"Listing({', '.join(arguments)})" if item else f"Call({', '.join(arguments)})"
        return (
            f"    @{kind}\n    def {self.names[each.id]}({parameters}) -> {hint}:\n"
            f'        """{_docstring(each)}"""\n        return {returned}'
        )

    @staticmethod
    def _body_value(fields: dict[str, tuple[str, bool]]) -> str:
        always = ", ".join(f"{name!r}: {_safe(name)}" for name, (_, needed) in fields.items() if needed)
        given = ", ".join(f"{name}={_safe(name)}" for name, (_, needed) in fields.items() if not needed)
        return f"{{{always}}} | given({given})" if given else f"{{{always}}}"

    def _body_fields(self, each: _Operation) -> dict[str, tuple[str, bool]]:
        schema = _body(each)
        if "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        required = schema.get("required", [])
        if schema and "properties" not in schema:
            return {"body": ("Mapping[str, Any]", True)}
        return {
            name: (self._hint(part, sent=True), name in required)
            for name, part in schema.get("properties", {}).items()
        }

    def _query_fields(self, each: _Operation) -> dict[str, tuple[str, bool]]:
        return {
            part["name"]: (self._hint(part["schema"], sent=True), bool(part.get("required")))
            for part in each.described.get("parameters", [])
            if part.get("in") == "query"
        }

    def _answer(self, each: _Operation) -> tuple[str, str | None]:
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

    def _of(self, tag: str) -> list[_Operation]:
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


def _names(operation: _Operation, operations: list[_Operation]) -> tuple[str, str]:
    """An operation's id, and its method's name: the id itself if two would have the short one."""
    short = method_name(operation.id, operation.tag)
    alike = [
        each for each in operations if (method_name(each.id, each.tag), each.tag) == (short, operation.tag)
    ]
    return operation.id, short if len(alike) == 1 else operation.id


def _body(each: _Operation) -> Json:
    content = each.described.get("requestBody", {}).get("content", {})
    schema: Json = content.get("application/json", {}).get("schema", {})
    return schema


def _docstring(each: _Operation) -> str:
    said = "\n\n".join(
        textwrap.fill(_one_line(paragraph), _LINE)
        for paragraph in each.described["description"].split("\n\n")
    )
    return textwrap.indent(f"{each.described['summary']}.\n\n{said}\n", " " * 8).lstrip() + " " * 8


def _doc(schema: Json) -> list[str]:
    if not schema.get("description"):
        return []
    wrapped = textwrap.fill(_one_line(schema["description"]), _LINE)
    end = "\n" if "\n" in wrapped else ""
    return [textwrap.indent(f'"""{wrapped}{end}"""', "    ") + "\n"]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _snake(tag: str) -> str:
    return re.sub(r"\W+", "_", tag.lower()).strip("_")


def _camel(tag: str) -> str:
    return "".join(each.capitalize() for each in re.split(r"\W+", tag))


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _formatted(source: str) -> str:
    """As ruff formats it, without imports that are not used."""
    ruff = [sys.executable, "-m", "ruff"]
    fix = [
        *ruff,
        "check",
        "--quiet",
        "--fix-only",
        "--select",
        "F401,I",
        "--stdin-filename",
        "effaced/client/x.py",
        "-",
    ]
    line = ["--config", "line-length=110"]
    for command in (fix, [*ruff, "format", "--quiet", *line, "-"]):
        done = subprocess.run(command, input=source, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        source = done.stdout
    return source
