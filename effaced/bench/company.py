"""The company of the benches that erase: people in three tables, and four systems to call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from effaced.bench.ground import Ground

SYSTEMS = ("crm", "mail", "pay", "files")
COMPANY_MAP = """
version: 1
subject: {table: bench_people, key: id}
identifiers: {email: email}
refs: {person: {column: id}}
tables:
  bench_people: {columns: {id: delete, email: delete}}
  bench_orders: {link: {to: bench_people, on: {person: id}}, columns: {id: delete, person: delete}}
  bench_letters: {link: {to: bench_people, on: {person: id}}, columns: {id: delete, person: delete}}
"""
_TABLES = """
    CREATE TABLE bench_people (id integer PRIMARY KEY, email text);
    CREATE TABLE bench_orders (id serial PRIMARY KEY, person integer REFERENCES bench_people);
    CREATE TABLE bench_letters (id serial PRIMARY KEY, person integer REFERENCES bench_people);
    CREATE INDEX ON bench_orders (person);
    CREATE INDEX ON bench_letters (person);
"""
_PEOPLE = """
    INSERT INTO bench_people SELECT n, n || '@people.example' FROM generate_series(1, :people) n;
    INSERT INTO bench_orders (person) SELECT n FROM generate_series(1, :people) n, generate_series(1, 3);
    INSERT INTO bench_letters (person) SELECT n FROM generate_series(1, :people) n, generate_series(1, 2);
"""


@contextmanager
def company(ground: Ground, people: int) -> Iterator[None]:
    """The company with so many people, numbered from 1. Its tables go at the end."""
    try:
        with ground.database.begin() as session:
            session.execute(text(_TABLES))
            for statement in filter(str.strip, _PEOPLE.split(";")):
                session.execute(text(statement), {"people": people})
        yield
    finally:
        with ground.database.begin() as session:
            session.execute(text("DROP TABLE IF EXISTS bench_letters, bench_orders, bench_people"))
