"""The data map as the API answers it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from effaced.api.datamap import models
from effaced.core.errors import Problem
from effaced.datamap.model.data_map import (
    ColumnRule,
    DataMap,
    Link,
    Mention,
    RefRule,
    SubjectRule,
    TableRule,
)
from effaced.datamap.model.json_paths import show_path
from effaced.datamap.model.wording import describe_link, describe_rule

_PLACE = re.compile(r".*:([0-9]{1,9})")


def show_map(data_map: DataMap) -> models.DataMap:
    return models.DataMap(
        datamap_hash=data_map.hash,
        schemas=list(data_map.schemas),
        people=[_people(each) for each in data_map.people],
        tables=[_table(data_map, each) for each in data_map.tables.values()],
        not_personal=sorted(data_map.not_personal),
        rectify=[
            models.RectifiableCategory(
                category=name,
                columns=[models.TableColumn(table=table, column=column) for table, column in each.columns],
            )
            for name, each in data_map.rectify.items()
        ],
    )


def show_finding(problem: Problem) -> models.MapFinding:
    """Without the file's path, which is nobody's business outside the machine."""
    place = _PLACE.fullmatch(problem.where)
    return models.MapFinding(line=int(place[1]) if place else None, message=problem.message)


def _people(rule: SubjectRule) -> models.People:
    return models.People(
        type=rule.name,
        table=rule.table,
        key=list(rule.key),
        identifiers=[
            models.MappedIdentifier(kind=each.kind, column=each.column) for each in rule.identifiers
        ],
        refs=[_reference(each) for each in rule.refs],
    )


def _reference(rule: RefRule) -> models.MappedReference:
    template = "".join(
        literal.replace("{", "{{").replace("}", "}}") + (f"{{{column}}}" if column is not None else "")
        for literal, column in rule.parts
    )
    return models.MappedReference(kind=rule.kind, template=template, columns=list(rule.columns))


def _table(data_map: DataMap, rule: TableRule) -> models.MappedTable:
    return models.MappedTable(
        table=rule.name,
        people=[each.name for each in data_map.people if each.table == rule.name],
        action=rule.action if rule.owned else None,
        columns=_columns(rule.columns),
        links=[_link(each) for each in rule.links],
        mentions=[_mention(each) for each in rule.mentions],
    )


def _columns(columns: Mapping[str, ColumnRule]) -> list[models.MappedColumn]:
    return [
        models.MappedColumn(column=name, description=describe_rule(rule), **_treatment(rule))
        for name, rule in columns.items()
    ]


def _treatment(rule: ColumnRule) -> dict[str, Any]:
    return {
        "strategy": rule.strategy,
        "surrogate": rule.surrogate,
        "fixed": rule.text if rule.text is not None else rule.value,
        "truncated_to": rule.to,
        "scrubbed": list(rule.names),
        "paths": [
            models.PathTreatment(path=show_path(path), treatment=models.Treatment(**_treatment(each)))
            for path, each in rule.paths
        ],
        "basis": rule.basis,
        "until": str(rule.until) if rule.until else None,
        "then": models.Treatment(**_treatment(rule.then)) if rule.then else None,
        "reason": rule.reason,
    }


def _link(link: Link) -> models.MappedLink:
    return models.MappedLink(
        to=link.to,
        on=[models.LinkedColumns(column=own, other=other) for own, other in link.on],
        pointed_at=link.back,
        where=[models.LinkCondition(column=column, values=list(values)) for column, values in link.where],
        as_text=link.as_text,
        description=describe_link(link),
    )


def _mention(mention: Mention) -> models.Mention:
    return models.Mention(link=_link(mention.link), columns=_columns(mention.columns))
