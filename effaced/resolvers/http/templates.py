"""Putting a subject's reference into a call, so that it can never be more than a value.

In a path everything outside RFC 3986's unreserved characters is percent-encoded, slashes and percent
signs included, so the reference stays within one segment. What can't be written safely is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from effaced.core.errors import ResolverError
from effaced.model import SubjectRef

Values = Mapping[str, str]

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_KNOWN = ("ref", "key")
_PATH = re.compile(r"(?:/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2}|\{[^{}]*\})*)+")


def check_template(text: str) -> str:
    """The same text; ValueError if it has other placeholders than {ref} and {key}, or stray braces."""
    for name in _PLACEHOLDER.findall(text):
        if name not in _KNOWN:
            raise ValueError(f"unknown placeholder {{{name}}}; only {{ref}} and {{key}} can be filled in")
    if re.search(r"[{}]", _PLACEHOLDER.sub("", text)):
        raise ValueError("a brace without its partner; only {ref} and {key} can be filled in")
    return text


def check_path(text: str) -> str:
    """The same text; ValueError if it is not an absolute path that stays what it says."""
    check_template(text)
    if not _PATH.fullmatch(text) or "//" in text:
        raise ValueError("expected a path such as /v1/customers/{ref}; parameters go under `query`")
    if any(part in (".", "..") for part in text.split("/")):
        raise ValueError("a path can't have . or .. as a segment")
    return text


def uses_ref(template: Any) -> bool:
    """Whether {ref} stands anywhere in it."""
    if isinstance(template, dict):
        return any(uses_ref(each) for each in template.values())
    if isinstance(template, list):
        return any(uses_ref(each) for each in template)
    return isinstance(template, str) and "{ref}" in template


def values_for(ref: SubjectRef, key: UUID) -> Values:
    """What the placeholders stand for. Refuses references no call can carry safely."""
    value = ref.value
    if not value:
        raise unsafe("is empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise unsafe("is not text") from None
    return {"ref": value, "key": str(key)}


def fill_path(template: str, values: Values) -> str:
    """The path with each value percent-encoded into its segment."""
    # Proxies are known to decode %2F and to resolve the dots that then appear.
    if uses_ref(template) and any(part in (".", "..") for part in re.split(r"[/\\]", values["ref"])):
        raise unsafe("would be a dot segment of the path")
    return _fill(template, values, lambda value: quote(value, safe=""))


def fill_query(template: Mapping[str, str], values: Values) -> str:
    """The query string, with everything in it encoded; empty if there is none."""
    pairs = [(name, _fill(text, values, str)) for name, text in template.items()]
    return urlencode(pairs, quote_via=quote, safe="")


def fill_json(template: Any, values: Values) -> Any:
    """The same structure with its text values filled in; names are left alone."""
    if isinstance(template, dict):
        return {name: fill_json(each, values) for name, each in template.items()}
    if isinstance(template, list):
        return [fill_json(each, values) for each in template]
    return _fill(template, values, str) if isinstance(template, str) else template


def unsafe(why: str) -> ResolverError:
    """The permanent failure of an entry whose reference can't be put into a call."""
    return ResolverError(f"The subject's reference {why}.", code="unsafe_ref")


def _fill(template: str, values: Values, encode: Callable[[str], str]) -> str:
    # One pass: a value that looks like a placeholder is not looked at again.
    return _PLACEHOLDER.sub(lambda match: encode(values[match[1]]), template)
