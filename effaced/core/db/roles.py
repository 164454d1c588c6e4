"""PostgreSQL roles: who owns effaced's tables, who runs on them, who only reads. SQLite has no roles.

The owner migrates. The run role works: it can neither change nor remove an audit event, and it owns nothing,
so that it can't switch a trigger off. The read role reads effaced's tables and none of the company's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, MetaData, Table, text

from effaced.core.db.engine import is_postgres
from effaced.core.db.schema_level import VERSION_TABLE
from effaced.core.errors import ConfigurationError, Problem, Refused

ALL_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")
# The same as effaced's connections ask for. As settings of the role they also hold behind a pooler that
# drops what a connection asks for when it begins.
_ROLE_SETTINGS = {"timezone": "UTC", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "60s"}
_USUAL_SEARCH_PATH = '"$user", public'


@dataclass(frozen=True, slots=True)
class Roles:
    """The names of the three roles."""

    owner: str
    run: str
    read: str


def run_rights(metadata: MetaData) -> dict[str, tuple[str, ...]]:
    """What the run role may do with each of effaced's tables, by the table's name."""
    return {VERSION_TABLE: ("SELECT",), **{table.name: _rights(table) for table in metadata.sorted_tables}}


def _rights(table: Table) -> tuple[str, ...]:
    rights: tuple[str, ...] = table.info.get("run_rights", ALL_RIGHTS)
    return rights


# --- making the roles --------------------------------------------------------------------------------


def role_statements(connection: Connection, metadata: MetaData, roles: Roles) -> Iterator[str]:
    """What makes the roles, or brings existing ones to what this version needs. Running it again is safe."""
    quote = connection.dialect.identifier_preparer.quote
    owner, run, read = quote(roles.owner), quote(roles.run), quote(roles.read)
    database, schema, path, superuser = connection.execute(
        text(
            "SELECT quote_ident(current_database()), quote_ident(current_schema()),"
            " current_setting('search_path'), rolsuper FROM pg_roles WHERE rolname = current_user"
        )
    ).one()
    for name in (roles.owner, roles.run, roles.read):
        yield (
            f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}')"
            f" THEN CREATE ROLE {quote(name)} LOGIN; END IF; END $$"
        )
    if not superuser:  # who is none can give things only to roles that they belong to
        yield f"GRANT {owner} TO CURRENT_USER"
    yield f"GRANT CONNECT ON DATABASE {database} TO {owner}, {run}, {read}"
    yield f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {owner}"
    yield f"GRANT USAGE ON SCHEMA {schema} TO {run}, {read}"
    if path != _USUAL_SEARCH_PATH:
        for role in (owner, run, read):
            yield f"ALTER ROLE {role} IN DATABASE {database} SET search_path = {path}"
    for name, value in _ROLE_SETTINGS.items():
        yield f"ALTER ROLE {run} IN DATABASE {database} SET {name} = '{value}'"
    yield from _existing(connection, run_rights(metadata), owner, run, read)
    yield from _default_privileges(schema, owner, run, read)


def existing_roles(connection: Connection, roles: Roles) -> set[str]:
    query = text("SELECT rolname FROM pg_roles WHERE rolname = ANY(:names)")
    return set(connection.scalars(query, {"names": [roles.owner, roles.run, roles.read]}))


def require_granted(connection: Connection, roles: Roles) -> None:
    """Refuse if the roles lack a right after all: PostgreSQL only warns of a GRANT that had no effect."""
    wanted = [(roles.owner, "CREATE")]
    for role in (roles.owner, roles.run, roles.read):
        wanted += [(role, "CONNECT"), (role, "USAGE")]
    values = {"roles": [role for role, _ in wanted], "rights": [right for _, right in wanted]}
    found = connection.execute(text(_NOT_GRANTED), values).all()
    if found:
        login = connection.scalar(text("SELECT quote_ident(current_user)"))
        raise Refused(
            f"{login} may not give rights that the roles need, so nothing was changed. Run `effaced database"
            " roles` as the owner named here or as a superuser. Or have the owner run this, then try again:",
            problems=[
                Problem(f"as {owner}", f"GRANT {rights} ON {thing} TO {login} WITH GRANT OPTION;")
                for thing, owner, rights in found
            ],
        )


def _existing(
    connection: Connection, rights: dict[str, tuple[str, ...]], owner: str, run: str, read: str
) -> Iterator[str]:
    for kind, full_name in connection.execute(text(_OWN_THINGS), {"tables": list(rights)}):
        yield f"ALTER {kind} {full_name} OWNER TO {owner}"
    for name, full_name in connection.execute(text(_OWN_TABLES), {"tables": list(rights)}):
        yield f"REVOKE ALL ON TABLE {full_name} FROM {run}, {read}"
        yield f"GRANT {', '.join(rights[name])} ON TABLE {full_name} TO {run}"
        yield f"GRANT SELECT ON TABLE {full_name} TO {read}"
    for (full_name,) in connection.execute(text(_SEQUENCES), {"tables": list(rights)}):
        yield f"GRANT USAGE ON SEQUENCE {full_name} TO {run}"


def _default_privileges(schema: str, owner: str, run: str, read: str) -> Iterator[str]:
    """For the tables of later migrations; `revoke_extra_rights` then narrows those of append-only ones."""
    future = f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {schema} GRANT"
    yield f"{future} {', '.join(ALL_RIGHTS)} ON TABLES TO {run}"
    yield f"{future} SELECT ON TABLES TO {read}"
    yield f"{future} USAGE ON SEQUENCES TO {run}"


# Functions of triggers belong to the owner too: who owns a function can replace it.
_OWN_THINGS = """
SELECT 'TABLE', format('%I.%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE c.oid IN (SELECT to_regclass(quote_ident(name)) FROM unnest(CAST(:tables AS text[])) name)
UNION ALL SELECT 'FUNCTION', CAST(p.oid::regprocedure AS text) FROM pg_proc p
WHERE proname LIKE 'effaced\\_%' AND pronamespace = current_schema()::regnamespace
ORDER BY 1, 2
"""
_OWN_TABLES = """
SELECT name, format('%I.%I', nspname, relname) FROM unnest(CAST(:tables AS text[])) name
JOIN pg_class c ON c.oid = to_regclass(quote_ident(name)) JOIN pg_namespace n ON n.oid = relnamespace
ORDER BY 1
"""
_SEQUENCES = """
SELECT format('%I.%I', nspname, s.relname) FROM unnest(CAST(:tables AS text[])) name
JOIN pg_depend d ON refobjid = to_regclass(quote_ident(name)) AND deptype = 'a'
  AND classid = 'pg_class'::regclass
JOIN pg_class s ON s.oid = objid AND s.relkind = 'S' JOIN pg_namespace n ON n.oid = s.relnamespace
ORDER BY 1
"""


# The schema public usually belongs to pg_database_owner, which stands for the database's owner.
_NOT_GRANTED = """
SELECT CASE needed WHEN 'CONNECT' THEN format('DATABASE %I', datname) ELSE format('SCHEMA %I', nspname) END,
  CASE WHEN needed = 'CONNECT' OR pg_get_userbyid(nspowner) = 'pg_database_owner'
    THEN pg_get_userbyid(datdba) ELSE pg_get_userbyid(nspowner) END,
  string_agg(DISTINCT needed, ', ' ORDER BY needed)
FROM unnest(CAST(:roles AS name[]), CAST(:rights AS text[])) AS wanted (role, needed),
  pg_namespace n, pg_database d
WHERE nspname = current_schema() AND datname = current_database() AND NOT CASE needed
  WHEN 'CONNECT' THEN has_database_privilege(role, d.oid, needed)
  ELSE has_schema_privilege(role, n.oid, needed) END
GROUP BY 1, 2 ORDER BY 1
"""


# --- after every migration ---------------------------------------------------------------------------


def revoke_extra_rights(connection: Connection, metadata: MetaData) -> None:
    """Revoke what rights anybody but their owner has on tables that must not be changed.

    Default privileges know no tables by name: a new audit table begins with the rights of every other.
    """
    if not is_postgres(connection):
        return
    for name, rights in run_rights(metadata).items():
        if rights == ALL_RIGHTS:
            continue
        found = connection.execute(text(_EXTRA), {"table": name, "allowed": list(rights)}).all()
        for full_name, grantee, extra in found:
            connection.exec_driver_sql(f"REVOKE {extra} ON TABLE {full_name} FROM {grantee}")


_EXTRA = """
SELECT format('%I.%I', nspname, relname),
  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
  string_agg(privilege_type, ', ' ORDER BY privilege_type)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace, aclexplode(relacl)
WHERE c.oid = to_regclass(quote_ident(:table)) AND grantee <> relowner
  AND privilege_type <> ALL (CAST(:allowed AS text[]))
GROUP BY 1, 2
"""


# --- at start ----------------------------------------------------------------------------------------


def require_rights(connection: Connection, metadata: MetaData) -> None:
    """Refuse to start with a role that lacks a right, and name the GRANT that is missing."""
    if not is_postgres(connection):
        return
    role = connection.scalar(text("SELECT quote_ident(current_user)"))
    missing = [f"GRANT {each} TO {role};" for each in _missing(connection, run_rights(metadata))]
    if missing:
        raise ConfigurationError(
            f"The database role {role} lacks rights that effaced needs. `effaced database roles` grants them;"
            " or, as the tables' owner:",
            problems=[Problem("", each) for each in missing],
        )


def changeable_tables(connection: Connection, metadata: MetaData) -> list[str]:
    """The append-only tables that the connection's role could change all the same."""
    if not is_postgres(connection):
        return []
    closed = [name for name, rights in run_rights(metadata).items() if rights != ALL_RIGHTS]
    return list(connection.scalars(text(_CHANGEABLE), {"tables": closed}))


def _missing(connection: Connection, rights: dict[str, tuple[str, ...]]) -> Iterator[str]:
    for (schema,) in connection.execute(text(_UNUSABLE_SCHEMAS)):
        yield f"USAGE ON SCHEMA {schema}"
    wanted = [(name, right) for name, needed in rights.items() for right in needed]
    values = {"tables": [name for name, _ in wanted], "rights": [right for _, right in wanted]}
    for name, needed in connection.execute(text(_MISSING), values):
        yield f"{needed} ON TABLE {name}"
    for (name,) in connection.execute(text(_MISSING_SEQUENCES), {"tables": list(_inserted(rights))}):
        yield f"USAGE ON SEQUENCE {name}"


def _inserted(rights: dict[str, tuple[str, ...]]) -> Sequence[str]:
    return [name for name, needed in rights.items() if "INSERT" in needed]


# A schema that the role can't use is off its search path, and the tables in it look as if they were missing.
_UNUSABLE_SCHEMAS = f"""
SELECT quote_ident(nspname) FROM pg_namespace n
WHERE NOT has_schema_privilege(n.oid, 'USAGE')
  AND EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = '{VERSION_TABLE}')
"""  # noqa: S608
_MISSING = """
SELECT quote_ident(name), string_agg(needed, ', ' ORDER BY needed)
FROM unnest(CAST(:tables AS text[]), CAST(:rights AS text[])) AS wanted (name, needed)
JOIN pg_class c ON c.oid = to_regclass(quote_ident(name))
WHERE NOT has_table_privilege(c.oid, needed) GROUP BY 1 ORDER BY 1
"""
_MISSING_SEQUENCES = """
SELECT quote_ident(s.relname) FROM unnest(CAST(:tables AS text[])) name
JOIN pg_depend d ON refobjid = to_regclass(quote_ident(name)) AND deptype = 'a'
  AND classid = 'pg_class'::regclass
JOIN pg_class s ON s.oid = objid
WHERE CASE s.relkind WHEN 'S' THEN NOT has_sequence_privilege(s.oid, 'USAGE') END ORDER BY 1
"""
_CHANGEABLE = """
SELECT name FROM unnest(CAST(:tables AS text[])) name
JOIN pg_class c ON c.oid = to_regclass(quote_ident(name))
WHERE has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE') ORDER BY 1
"""
