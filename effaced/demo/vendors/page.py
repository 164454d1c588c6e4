"""The page on which a person switches the vendors' faults."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from effaced.demo.vendors.faults import MEANING, OPTIONS, FaultKind
from effaced.demo.vendors.store import VENDORS

if TYPE_CHECKING:
    from effaced.demo.vendors.server import Vendors

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem }
section { border-top: 1px solid gray; padding: 1rem 0 }
form { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .25rem 0 }
button { min-width: 9rem; min-height: 2rem } input { width: 6rem; min-height: 1.5rem }
small { opacity: .8 } code { overflow-wrap: anywhere }
"""

# A drill: see how a breaker opens, waits, tries and closes, with nobody to switch it off.
OUTAGE: dict[str, str | int | float | bool] = {"how": "503", "for_seconds": 120}
_OUTAGE = "answers 503 for so long and then works again: watch the breaker on the console's Resolvers page"


def render(vendors: Vendors) -> str:
    """The whole page."""
    sections = "".join(_section(vendors, name) for name in VENDORS)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Fake vendors</title><style>{_STYLE}</style></head><body><h1>Fake vendors</h1>"
        "<p>Each vendor has at most one fault at a time. It works from the next call on.</p>"
        f"{sections}</body></html>"
    )


def _section(vendors: Vendors, name: str) -> str:
    fault, left = vendors.fault_of(name), vendors.fault_seconds(name)
    said = str(fault) if fault else "none"
    if left is not None:
        said += f", for another {max(0, round(left))} seconds"
    calls = [call for call in list(vendors.calls)[-200:] if call.vendor == name][-5:]
    recent = "".join(
        f"<li><code>{escape(call.method)} {escape(call.target)}</code> {call.status or 'no answer'}</li>"
        for call in reversed(calls)
    )
    return (
        f"<section><h2>{escape(name)}</h2><p>{len(vendors.records(name))} records. "
        f"Fault: <strong>{escape(said)}</strong></p>"
        f"{_form(name, 'none', {}, 'works as it should')}"
        f"{_form(name, FaultKind.DOWN, OUTAGE, _OUTAGE, 'outage')}"
        + "".join(_form(name, kind, OPTIONS[kind], MEANING[kind]) for kind in FaultKind)
        + (f"<p>Latest calls:</p><ul>{recent}</ul>" if recent else "<p>No calls yet.</p>")
        + "</section>"
    )


def _form(
    vendor: str, kind: str, options: dict[str, str | int | float | bool], meaning: str, button: str = ""
) -> str:
    fields = "".join(
        f'<label>{escape(name)} <input name="{escape(name)}" value="{escape(str(value).lower())}"></label>'
        for name, value in options.items()
    )
    return (
        '<form method="post" action="/_faults">'
        f'<input type="hidden" name="vendor" value="{escape(vendor)}">'
        f'<input type="hidden" name="kind" value="{escape(kind)}">'
        f"<button>{escape(button or kind)}</button>{fields}<small>{escape(meaning)}</small></form>"
    )
