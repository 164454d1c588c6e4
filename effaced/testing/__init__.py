"""What authors of resolvers use: a suite that holds a resolver to its contract, and fakes.

    class TestLdapResolver(VerifyingConformance):
        def make_resolver(self): ...
        def add_person(self): ...
        def is_present(self, ref): ...

Derive from one class per ability the resolver has; `ResolverConformance` alone if it only erases.
"""

try:
    import pytest
except ModuleNotFoundError as missing:
    if missing.name != "pytest":
        raise
    raise ModuleNotFoundError(
        "effaced.testing needs pytest, which is not installed: pip install pytest", name="pytest"
    ) from None

# Before the imports below: a failing assert then shows its values in the author's run too.
pytest.register_assert_rewrite(
    *(f"effaced.testing.{each}" for each in ("conformance", "rectifying", "scheduling", "verifying"))
)

from effaced.testing.conformance import ResolverConformance  # noqa: E402
from effaced.testing.fakes import RecordingResolver, VerifyingRecordingResolver  # noqa: E402
from effaced.testing.rectifying import RectifyingConformance  # noqa: E402
from effaced.testing.scheduling import (  # noqa: E402
    RetainingConformance,
    RetentionOnlyConformance,
    SchedulingConformance,
)
from effaced.testing.verifying import VerifyingConformance  # noqa: E402

__all__ = [
    "RecordingResolver",
    "RectifyingConformance",
    "ResolverConformance",
    "RetainingConformance",
    "RetentionOnlyConformance",
    "SchedulingConformance",
    "VerifyingConformance",
    "VerifyingRecordingResolver",
]
