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
    fault = vendors.faults.get(name)
    calls = [call for call in list(vendors.calls)[-200:] if call.vendor == name][-5:]
    recent = "".join(
        f"<li><code>{escape(call.method)} {escape(call.target)}</code> {call.status or 'no answer'}</li>"
        for call in reversed(calls)
    )
    return (
        f"<section><h2>{escape(name)}</h2><p>{len(vendors.records(name))} records. "
        f"Fault: <strong>{escape(str(fault) if fault else 'none')}</strong></p>"
        f"{_form(name, 'none', {}, 'works as it should')}"
        + "".join(_form(name, kind, OPTIONS[kind], MEANING[kind]) for kind in FaultKind)
        + (f"<p>Latest calls:</p><ul>{recent}</ul>" if recent else "<p>No calls yet.</p>")
        + "</section>"
    )


def _form(vendor: str, kind: str, options: dict[str, str | int | float | bool], meaning: str) -> str:
    fields = "".join(
        f'<label>{escape(name)} <input name="{escape(name)}" value="{escape(str(value).lower())}"></label>'
        for name, value in options.items()
    )
    return (
        '<form method="post" action="/_faults">'
        f'<input type="hidden" name="vendor" value="{escape(vendor)}">'
        f'<input type="hidden" name="kind" value="{escape(kind)}">'
        f"<button>{escape(kind)}</button>{fields}<small>{escape(meaning)}</small></form>"
    )
