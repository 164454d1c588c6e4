"""What is sent about circuit breakers: bodies and queries."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from effaced.api.models import WHOLE, Body, Name, Query
from effaced.api.requests.models import Reason
from effaced.breakers.advice.metrics import WINDOW_S
from effaced.breakers.model import BreakerRole
from effaced.breakers.operations import LONGEST_PIN
from effaced.breakers.telemetry import DAY_S, KEPT, LONGEST_S, SHORTEST_S
from effaced.retries.overrides import MOST_PER_SECOND

Whole = Annotated[int, WHOLE]
StatusRange = Annotated[str, StringConstraints(pattern=r"^[1-5][0-9]{2}(-[1-5][0-9]{2})?$")]
Statuses = Annotated[
    list[Annotated[int | StatusRange, WHOLE]],
    Field(max_length=500, examples=[[408, 429, "500-599"]]),
]
_LONGEST_OUTAGE_S = round(KEPT.total_seconds())


class OperatorBody(Body):
    reason: Reason = Field(description="Kept as a note.")


class PinBody(OperatorBody):
    seconds: Annotated[float, Field(gt=0, le=LONGEST_PIN.total_seconds(), allow_inf_nan=False)] | None = (
        Field(default=None, description="For how long; 90 minutes without it.", examples=[7200])
    )


class ResetBody(OperatorBody):
    include_host: bool = Field(
        default=False, description="Whether to reset the breaker of the resolver's host too."
    )


class RollingFields(Body):
    enabled: bool | None = None
    window_s: float | None = None
    threshold_failures: Whole | None = None
    cooldown_s: float | None = None


class ClassifyFields(Body):
    """What a status counts as: single ones, or ranges such as `500-599`."""

    failure_statuses: Statuses | None = None
    neutral_statuses: Statuses | None = None


class RoleFields(Body):
    """What their values may be, the policies themselves say; here it is what they are called."""

    fail_max: Whole | None = None
    reset_timeout_s: float | None = None
    max_reset_timeout_s: float | None = None
    retry_after_cap_s: float | None = None
    success_threshold: Whole | None = None
    trial_calls: Whole | None = None
    stuck_timeout_s: float | None = None
    jitter_ms: Whole | None = None
    rolling: RollingFields | None = None
    classify: ClassifyFields | None = None


class BreakerFields(RoleFields):
    """Fields of a breaker policy, for all roles or under `roles` for some."""

    roles: dict[BreakerRole, RoleFields] = Field(default={}, max_length=len(BreakerRole))

    def stated(self) -> dict[str, Any]:
        """The fields that were sent."""
        return self.model_dump(mode="json", exclude_unset=True)


class BreakerPolicyBody(OperatorBody):
    """What to change; what is not named stays. One of `fields` and `rate_per_second` has to be there."""

    fields: BreakerFields = Field(
        default=BreakerFields(),
        description="Fields of the breaker policy. One that is changed for all roles ends what was changed of"
        " it for a role.",
        examples=[{"fail_max": 3}],
    )
    rate_per_second: Annotated[float, Field(gt=0, le=MOST_PER_SECOND, allow_inf_nan=False)] | None = Field(
        default=None, description="The resolver's rate limit; a host has none.", examples=[5]
    )


class ApplyBody(OperatorBody):
    """Whose advice to apply."""

    breakers: Annotated[list[Name], Field(min_length=1, max_length=500)] | None = Field(
        default=None, description="Without it, all.", examples=[["crm"]]
    )
    window_s: Annotated[float, Field(ge=SHORTEST_S, le=LONGEST_S, allow_inf_nan=False)] = Field(
        default=WINDOW_S, description="From how many seconds the figures are taken."
    )


class SummaryQuery(Query):
    window_s: Annotated[int, Field(ge=SHORTEST_S, le=LONGEST_S)] = Field(
        default=DAY_S, description="How many seconds back."
    )


class AdviceQuery(Query):
    window_s: Annotated[int, Field(ge=SHORTEST_S, le=LONGEST_S)] = Field(
        default=round(WINDOW_S), description="From how many seconds the figures are taken."
    )


class OutageQuery(Query):
    window_s: Annotated[int, Field(ge=SHORTEST_S, le=_LONGEST_OUTAGE_S)] = Field(
        default=DAY_S, description="How many seconds back."
    )
