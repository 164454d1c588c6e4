"""What an error says to programs: the code of each field error. A code keeps its meaning for ever."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CODES: Mapping[str, str] = MappingProxyType(
    {
        # What was sent, whatever it is about.
        "missing": "The field is needed and is not there.",
        "empty": "The field is there, and nothing is in it.",
        "unknown_field": "There is no such field or argument. A mistyped filter would take in everything.",
        "repeated": "The field, the argument or the thing that it names is there more than once.",
        "wrong_type": "The value has another type than the field.",
        "malformed": "The value has the right type, but can't be read as what the field holds.",
        "not_allowed": "The value is none of those that the message names.",
        "too_short": "A text or a list has fewer than it must have.",
        "too_long": "A text or a list has more than it may have.",
        "too_small": "A number is below the smallest one.",
        "too_large": "A number is above the largest one.",
        "out_of_range": "A number or a moment is not within the bounds that the message names.",
        "invalid": "The value is not accepted, for the reason that the message gives.",
        "more": "There are more problems than are listed.",
        # Who asks.
        "missing_scope": "The API key lacks the scope.",
        "sandbox_key": "A sandbox key can't do this.",
        "not_for_sandbox_keys": "The argument can't be used with a sandbox key.",
        "not_an_active_officer": "An officer or admin who is active is needed, and this is none.",
        "not_declared": "The API key does not declare a metadata field of this name.",
        # What is there.
        "not_found": "There is nothing with this id.",
        "unknown": "The installation has nothing of this name, such as a resolver.",
        "unknown_request": "There is no such request, or this key does not reach it.",
        "unknown_type": "There is no type of event of this name.",
        "unknown_person": "The data map's table has no such person.",
        "erased": "The person was erased; nothing is left to correct.",
        "not_correctable": "The data map does not say that this can be corrected.",
        "unsuitable_value": "The column can't hold the value.",
        "taken": "Something else has this name already.",
        "wrong_state": "The thing is in another state than this needs.",
        "nothing_matches": "The filter fits nothing.",
        "ended": "It has ended already, so it can't be changed any more.",
        "in_use": "The person's key belongs to somebody again, so nothing more is erased under it.",
        "already_running": "The same thing is being done already.",
        "nothing_due": "Nothing that was kept has come due.",
        "waiting": "What was kept waits for rows that point at it.",
        "not_retained": "The data map does not say any more that this is kept.",
        "unreadable": "What was kept can't be read: a key is missing, or the map has changed.",
        "nothing_to_decide": "This dead letter is not one that this decision is about.",
        "work_not_done": "The work that it stands for has not been done yet.",
        "too_many": "There are as many as there may be; remove one first.",
        "too_many_exports": "The key has as many open exports as it may have; delete one, or wait.",
        "address_not_allowed": "Messages may not be sent to this address.",
        "out_of_date": "What was looked at has changed since.",
        # How effaced is.
        "not_ready": "A part of effaced that this needs does not work.",
    }
)
