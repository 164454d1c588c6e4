"""A PostgreSQL database as good as new, for a fraction of the work of copying and dropping one."""

from __future__ import annotations

from contextlib import closing

import kept_connections
import psycopg

# A row of the catalogue that is changed or made anew has another xmin, and a copy keeps its template's: two
# databases with the same shape have the same tables, triggers and functions, untouched.
_SHAPE = """
SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (
  SELECT concat('class ', oid, ' ', xmin) FROM pg_class WHERE oid >= 16384
  UNION ALL SELECT concat('column ', attrelid, ' ', attnum, ' ', xmin) FROM pg_attribute
    WHERE attrelid >= 16384
  UNION ALL SELECT concat('default ', oid, ' ', xmin) FROM pg_attrdef
  UNION ALL SELECT concat('index ', indexrelid, ' ', xmin) FROM pg_index WHERE indexrelid >= 16384
  UNION ALL SELECT concat('constraint ', oid, ' ', xmin) FROM pg_constraint WHERE oid >= 16384
  UNION ALL SELECT concat('trigger ', oid, ' ', tgenabled) FROM pg_trigger
  UNION ALL SELECT concat('function ', oid, ' ', xmin) FROM pg_proc WHERE oid >= 16384
  UNION ALL SELECT concat('type ', oid, ' ', xmin) FROM pg_type WHERE oid >= 16384
  UNION ALL SELECT concat('schema ', oid, ' ', xmin) FROM pg_namespace WHERE oid >= 16384
  UNION ALL SELECT concat('statistics ', starelid) FROM pg_statistic WHERE starelid >= 16384
  UNION ALL SELECT concat('setting ', setrole, setconfig) FROM pg_db_role_setting
    JOIN pg_database ON pg_database.oid = setdatabase AND datname = current_database()
  UNION ALL SELECT concat('revision ', version_num) FROM effaced_alembic_version
  UNION ALL SELECT concat('level ', revision, ' ', oldest_code) FROM effaced_schema_levels
) AS lines (line)
"""
# In one go: there are many tables, and a test that only looks should not pay for a talk about each of them.
# The triggers that fire always are those of the trail, whatever a session says.
_REMOVE_ALL = """
DO $$
DECLARE
  each record;
  statement text;
  always text[] := ARRAY(
    SELECT format('ALTER TABLE %I %%s TRIGGER %I', relname, tgname)
    FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE tgenabled = 'A'
  );
BEGIN
  FOR each IN
    SELECT 'TABLE' AS kind, relname AS name FROM pg_class
    WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND relname NOT LIKE 'effaced\\_%'
    UNION ALL SELECT 'TYPE', typname FROM pg_type
    WHERE typtype = 'e' AND typnamespace = 'public'::regnamespace
  LOOP
    EXECUTE format('DROP %s %I CASCADE', each.kind, each.name);
  END LOOP;
  FOREACH statement IN ARRAY always LOOP
    EXECUTE format(statement, 'DISABLE');
  END LOOP;
  FOR each IN
    SELECT relname FROM pg_class
    WHERE relkind = 'r' AND relname LIKE 'effaced\\_%'
      AND relname NOT IN ('effaced_alembic_version', 'effaced_schema_levels') AND pg_relation_size(oid) > 0
  LOOP
    EXECUTE format('DELETE FROM %I', each.relname);
  END LOOP;
  FOREACH statement IN ARRAY always LOOP
    EXECUTE format(statement, 'ENABLE ALWAYS');
  END LOOP;
  PERFORM setval(seqrelid::regclass, seqstart, false) FROM pg_sequence;
END $$
"""
_LARGEST = "SELECT max(pg_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND oid >= 16384"
# Dead rows are not cleared away (autovacuum is off), and the planner would see them.
_TOO_LARGE = 256 * 1024


def shape(url: str) -> str:
    with closing(psycopg.connect(url)) as connection:
        return _shape(connection)


def empty(url: str, wanted: str) -> bool:
    """Remove all rows, and every table that is not effaced's; whether the database then has that shape."""
    try:
        with closing(kept_connections.any_of(url)) as connection:
            database = connection.info.dbname
            connection.autocommit = True
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> ALL (%s)",
                [kept_connections.server_processes(database)],
            )
            if (connection.execute(_LARGEST).fetchone() or (0,))[0] > _TOO_LARGE:
                return False
            connection.execute("SET session_replication_role = replica")
            connection.execute(_REMOVE_ALL)
            if _shape(connection) != wanted:
                return False
        kept_connections.renew(database)
        return True
    except psycopg.Error:
        return False


def _shape(connection: psycopg.Connection) -> str:
    found = connection.execute(_SHAPE).fetchone()
    assert found is not None
    return str(found[0])
