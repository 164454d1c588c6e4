"""No function takes more than seven parameters: more belong together in a value object."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "effaced"
MOST = 7
# Signatures that companies which embed effaced may rely on; the seeds name them.
SEED_SIGNATURES = {
    "breakers.repository.CircuitBreakerStateRepository.update_state",
    "deadletters.interface.FailedOperationRepository.create",
    "deadletters.repository.SQLFailedOperationRepository.create",
    "saga.runner.SagaRunner.__init__",
}
# The draft's rules are the subject of an issue of their own.
LEFT_ALONE = "draft"
# Written from the OpenAPI document: every filter of a list is an argument by name.
GENERATED = ("client", "resources")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(node: ast.AST, path: str, *, in_class: bool = False) -> Iterator[tuple[str, Function, bool]]:
    """All functions below a node with their dotted names, and whether they are methods."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef():
                yield from functions(child, f"{path}.{child.name}", in_class=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{path}.{child.name}", child, in_class
                yield from functions(child, f"{path}.{child.name}")
            case _:
                yield from functions(child, path, in_class=in_class)


def parameters(function: Function, *, is_method: bool) -> list[str]:
    takes = function.args
    every = [*takes.posonlyargs, *takes.args, takes.vararg, *takes.kwonlyargs, takes.kwarg]
    names = [each.arg for each in every if each is not None]
    return names[1:] if is_method and names[:1] in (["self"], ["cls"]) else names


def is_command(function: Function) -> bool:
    """Whether it is a command of the command line: its parameters are the command's options."""
    decorators = [each.func for each in function.decorator_list if isinstance(each, ast.Call)]
    return any(isinstance(each, ast.Attribute) and each.attr == "command" for each in decorators)


def long_signatures() -> dict[str, list[str]]:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE).with_suffix("").parts
        if path[0] == LEFT_ALONE or path[:2] == GENERATED:
            continue
        for name, function, is_method in functions(ast.parse(file.read_bytes()), ".".join(path)):
            names = parameters(function, is_method=is_method)
            if len(names) > MOST and not is_command(function):
                found[name] = names
    return found


def test_no_function_takes_more_than_seven_parameters() -> None:
    assert {name: names for name, names in long_signatures().items() if name not in SEED_SIGNATURES} == {}


@pytest.mark.parametrize("name", sorted(SEED_SIGNATURES))
def test_every_exception_is_still_needed(name: str) -> None:
    assert name in long_signatures()
