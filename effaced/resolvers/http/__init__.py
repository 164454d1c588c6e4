"""Systems that are reached over HTTP, described in resolvers.yaml alone."""

from effaced.resolvers.http.resolver import HttpResolver, VerifyingHttp, from_config

__all__ = ["HttpResolver", "VerifyingHttp", "from_config"]
