"""What officers say over the API."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from effaced.api.models import Body
from effaced.api.requests.models import Reason


class ApprovalBody(Body):
    reason: Reason = Field(repr=False, description="Why, for officers to read; kept sealed.")
    datamap_hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="`datamap_hash` of the plan that the officer has seen: by another data map, 409.",
    )


class AttestationBody(Body):
    """That a call was made by hand, or that the data is gone although no read-back says so."""

    reason: Reason = Field(repr=False, description="What was done, and how it was checked.")
