"""Names, docstrings and the format of what tests/support/client_source.py writes."""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
_LINE = 100


@dataclass(frozen=True)
class Operation:
    id: str
    method: str
    path: str
    described: Json

    @property
    def tag(self) -> str:
        return str(self.described["tags"][0])


def method_name(operation_id: str, tag: str) -> str:
    """`list_request_events` of the tag Requests is `list_events`, and `get_request` is `get`."""
    verb, _, noun = operation_id.partition("_")
    plural = snake(tag)
    for prefix in (plural, plural.removesuffix("s"), re.sub("ies$", "y", plural)):
        if noun == prefix or noun.startswith(f"{prefix}_"):
            noun = noun.removeprefix(prefix).lstrip("_")
            break
    return "_".join(each for each in (verb, noun) if each)


def names_of(operation: Operation, operations: list[Operation]) -> tuple[str, str]:
    """An operation's id, and its method's name: the id itself if two would have the short one."""
    short = method_name(operation.id, operation.tag)
    alike = [
        each for each in operations if (method_name(each.id, each.tag), each.tag) == (short, operation.tag)
    ]
    return operation.id, short if len(alike) == 1 else operation.id


def body_schema(each: Operation) -> Json:
    content = each.described.get("requestBody", {}).get("content", {})
    schema: Json = content.get("application/json", {}).get("schema", {})
    return schema


def docstring(each: Operation) -> str:
    said = "\n\n".join(
        textwrap.fill(one_line(paragraph), _LINE) for paragraph in each.described["description"].split("\n\n")
    )
    return textwrap.indent(f"{each.described['summary']}.\n\n{said}\n", " " * 8).lstrip() + " " * 8


def doc(schema: Json) -> list[str]:
    if not schema.get("description"):
        return []
    wrapped = textwrap.fill(one_line(schema["description"]), _LINE)
    end = "\n" if "\n" in wrapped else ""
    return [textwrap.indent(f'"""{wrapped}{end}"""', "    ") + "\n"]


def one_line(text: str) -> str:
    return " ".join(text.split())


def optional_null(schema: Json, hint: str) -> str:
    """The field's hint; with NotGiven if null says something else than leaving the field out."""
    nullable = {"type": "null"} in schema.get("anyOf", [])
    differs = nullable and schema.get("default") is not None
    return hint.replace(" | None", " | NotGiven | None") if differs else hint


def optional(hint: str) -> str:
    """The hint of an argument that may be left out, and its default."""
    if "NotGiven" in hint:
        return f"{hint} = NOT_GIVEN"
    return f"{hint} = None" if "| None" in hint else f"{hint} | None = None"


def wrapped(text: str, indent: str = "") -> str:
    """A docstring's text, which ends on a line of its own if it has several."""
    lines = textwrap.wrap(one_line(text), _LINE)
    end = f"\n{indent}" if len(lines) > 1 else ""
    return f"\n{indent}".join(lines) + end


def snake(tag: str) -> str:
    return re.sub(r"\W+", "_", tag.lower()).strip("_")


def camel(tag: str) -> str:
    return "".join(each.capitalize() for each in re.split(r"\W+", tag))


def safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def formatted(source: str) -> str:
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
