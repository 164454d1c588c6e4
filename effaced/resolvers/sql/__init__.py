"""Another database as an external system: erased in by a data map of its own."""

from effaced.resolvers.sql.resolver import KIND, RectifyingSql, SqlResolver, from_config

__all__ = ["KIND", "RectifyingSql", "SqlResolver", "from_config"]
