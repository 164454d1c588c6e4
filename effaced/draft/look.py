"""What a column holds, by its name, its type and what its sampled values look like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from effaced.datamap.schema.tables import LiveColumn, LiveTable
from effaced.datamap.vocabulary import words
from effaced.datamap.vocabulary.concepts import BY_WORD, CONCEPTS, Concept
from effaced.datamap.vocabulary.names import concept_in, concept_of, names_person, singular, split_name
from effaced.draft.samples import Samples, documents, is_code, is_prose, shape

# Forms that no other content has by chance.
_UNMISTAKABLE = ("email", "ip", "bank")


@dataclass(frozen=True, slots=True)
class Look:
    """What a column seems to hold. `telling`: something about the person that must not stay."""

    concept: Concept | None
    telling: bool
    reason: str
    doubt: str = ""

    @property
    def telling_by_name(self) -> bool:
        return self.telling and self.concept is not None


def look_at(samples: Samples, table: LiveTable, column: LiveColumn, *, of_person: bool) -> Look:
    """`of_person`: whether a row of the table is about somebody, so that a mere `name` is theirs."""
    concept = concept_in(table, column)
    values = samples.values(table.name, column.name)
    seen = shape(values) if column.family == "text" else None
    if column.family in ("inet", "cidr"):
        concept = BY_WORD["ip"]
    if seen in _UNMISTAKABLE and (concept is None or concept.word != seen):
        label = BY_WORD[seen].label
        if concept is None or not concept.personal or concept.word == "free_text":
            return Look(BY_WORD[seen], True, f"{label}: {sampled(values)} of its form")
    if concept is None and seen == "phone" and all(value.strip()[:1] == "+" for value in values):
        return Look(BY_WORD["phone"], True, f"{BY_WORD['phone'].label}: {sampled(values)} of its form")
    if concept is None:
        return _by_values(column, values)
    how = "by its name"
    if seen == concept.word:
        how += f" and {sampled(values)} of its form"
    if concept.word == "email" and len(values) >= 5 and seen != "email":
        return Look(concept, True, f"{concept.label}: {how}", "but its sampled values have another form")
    if concept.word == "name":
        theirs = of_person or names_person(column.name)
        return Look(BY_WORD["full_name"] if theirs else concept, theirs, f"{concept.label}: {how}")
    return Look(concept, concept.personal, f"{concept.label}: {how}")


def sampled(values: list[Any]) -> str:
    return f"{len(values)} sampled value{'' if len(values) == 1 else 's'}"


def _by_values(column: LiveColumn, values: list[Any]) -> Look:
    if column.family == "true or false":
        return Look(None, False, "yes or no")
    if column.enum_values:
        return Look(None, False, "one of a few fixed words", "what the words are about is unknown")
    if column.family == "text" and documents(values):
        return Look(BY_WORD["free_text"], True, f"JSON in a text: {sampled(values)}")
    if column.family == "text" and is_prose(values):
        return Look(BY_WORD["free_text"], True, f"free text: {sampled(values)} like sentences")
    if column.family == "uuid":
        return Look(None, True, "an id by which others may know the person")
    if column.family == "date and time":
        return Look(BY_WORD["moment"], False, "a moment: by its type")
    if column.family == "tsvector":
        return Look(BY_WORD["free_text"], True, "words of other columns, to be searched")
    if is_code(values):
        kinds = len(set(map(str, values)))
        said = "the same value" if kinds == 1 else f"{kinds} different values"
        return Look(None, False, f"a code: {said} in {len(values)} sampled rows")
    return Look(None, True, "name and type say little", "what it holds is unknown")


# --- JSON --------------------------------------------------------------------------------------------

Path = tuple[str | None, ...]


def json_rules(values: list[Any]) -> tuple[dict[str, str], int, bool]:
    """Paths in the sampled documents with something personal in them, how many documents were read, and
    whether there is more under keys that can't be written down, because a key may be somebody's name."""
    found: dict[Path, str] = {}
    hidden = False
    read = documents(values)
    for document in read:
        for path, label in _personal(document, ()):
            if all(part is None or _is_known(part) for part in path):
                found[path] = label
            else:
                hidden = True
    paths = {
        _written(path): label for path, label in sorted(found.items(), key=lambda pair: _written(pair[0]))
    }
    return paths, len(read), hidden


def json_tells(values: list[Any]) -> bool:
    """Whether something personal stands in these documents; a name or a place may be anything's."""
    vague = (BY_WORD["name"].label, BY_WORD["place"].label)
    return any(
        label not in vague or names_person("_".join(part for part in path if part))
        for document in documents(values)
        for path, label in _personal(document, ())
    )


def _personal(node: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            inner = (*path, str(key))
            if isinstance(value, dict) or (
                isinstance(value, list) and any(not isinstance(each, str) for each in value)
            ):
                yield from _personal(value, inner)
            elif value is not None and (label := _label(inner, value)):
                yield inner, label
    elif isinstance(node, list):
        for value in node:
            yield from _personal(value, (*path, None))


def _label(path: Path, value: Any) -> str | None:
    """By the key, or by the key and what it stands in: a number in a passport is the passport's."""
    family = "text" if isinstance(value, str) else "number" if isinstance(value, (int, float)) else None
    keys = [part for part in path if part]
    concept = concept_of(keys[-1], family)
    if len(keys) > 1 and not (concept and concept.personal):
        whole = concept_of("_".join(keys[-2:]), family)
        concept = whole if whole and whole.personal else concept
    seen = shape([value])
    if seen in _UNMISTAKABLE:
        return BY_WORD[seen].label
    if concept is None or isinstance(value, bool):
        return None
    return concept.label if concept.personal or concept.word == "name" else None


def _is_known(key: str) -> bool:
    vocabulary = _vocabulary()
    return bool(re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", key)) and all(
        word in vocabulary or singular(word) in vocabulary for word in split_name(key)
    )


def _vocabulary() -> frozenset[str]:
    phrases = {word for concept in CONCEPTS for phrase in concept.phrases for word in split_name(phrase)}
    return frozenset(
        {
            *phrases,
            *words.CONTAINERS,
            *words.PEOPLE,
            *words.STAFF,
            *words.OWNING_ROLES,
            *words.MENTIONING_ROLES,
        }
    )


def _written(path: Path) -> str:
    text = "$"
    for part in path:
        text += "[*]" if part is None else f".{part}"
    return text
