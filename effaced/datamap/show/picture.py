"""A picture of the data map as SVG: every table with what happens to it, every link, every column.

Colour only supports what the words say. The styles are in `static/css/picture.css`, so that a page whose
policy allows no inline styles can show the picture too.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as Xml

from effaced.core.paths import STATIC
from effaced.datamap.model.data_map import DataMap
from effaced.datamap.model.wording import ONLY_MENTIONS, describe_links
from effaced.datamap.show.picture_arrows import Arrow
from effaced.datamap.show.picture_layout import (
    CHARACTERS,
    HEAD,
    LETTER,
    LINE,
    MARGIN,
    PAD,
    WIDTH,
    Box,
    Layout,
    cut,
    lay_out,
)

_TOP = 102
_SMALL = 1250
# What XML can't hold, not even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LEGEND = ("deleted", "anonymised", "pseudonymised", "retained", ONLY_MENTIONS)
# The console has these from its own style sheets.
_COLOURS = """
:root { color-scheme: light dark; --surface: #ffffff; --raised: #f4f5f6; --line: #dddfe3; --edge: #868b94;
  --text: #1a1c1f; --dim: #5c6068; --info: #1d5a9e; --good: #1a6a3c; --warn: #855000; --bad: #b0241c;
  --sans: system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
  --mono: ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", monospace; }
@media (prefers-color-scheme: dark) { :root { --surface: #1b1d20; --raised: #131416; --line: #34373d;
  --edge: #7d838d; --text: #e8e9eb; --dim: #a4a9b2; --info: #8bbcf4; --good: #74cf94; --warn: #efb660;
  --bad: #ff968c; } }
"""


def draw(data_map: DataMap, *, standalone: bool = True) -> str:
    """The picture: as a file of its own, styles included, or as part of a page that has them."""
    layout = lay_out(data_map, top=_TOP)
    size = {"width": f"{layout.width:g}", "height": f"{layout.height:g}"}
    svg = Xml.Element(
        "svg",
        {
            **({"xmlns": "http://www.w3.org/2000/svg"} if standalone else {}),
            # It may be shrunk a little to fit a page, and can still be read.
            "class": "map small" if layout.width <= _SMALL else "map",
            "role": "img",
            "aria-labelledby": "map-title map-desc",
            "viewBox": f"0 0 {size['width']} {size['height']}",
            **size,
        },
    )
    _add(svg, "title", _heading(data_map), id="map-title")
    _add(svg, "desc", _description(data_map), id="map-desc")
    if standalone:
        _add(svg, "style", _COLOURS + (STATIC / "css" / "picture.css").read_text(encoding="utf-8"))
    _draw_markers(svg)
    _add(svg, "rect", class_="map-ground", **size)
    _draw_heading(svg, data_map, layout)
    for arrow in layout.arrows:
        _draw_arrow(svg, arrow)
    for box in layout.boxes:
        _draw_box(svg, data_map, box)
    _draw_listed(svg, layout)
    return Xml.tostring(svg, encoding="unicode")


def _heading(data_map: DataMap) -> str:
    return f"Data map {data_map.hash[:12]}"


def _description(data_map: DataMap) -> str:
    """The picture in sentences, for screen readers."""
    people = " and ".join(f"{each.name} in {each.table}" for each in data_map.people)
    sentences = [f"{len(data_map.tables)} tables hold something about people: {people}."]
    for rule in data_map.tables.values():
        ways = "; ".join(describe_links(data_map, rule)) or "no link leads to anybody"
        rows = f"rows are {rule.action}" if rule.owned else "rows stay"
        sentences.append(f"{rule.name}: {rows}; {ways}.")
    if data_map.not_personal:
        sentences.append(f"Without personal data: {', '.join(sorted(data_map.not_personal))}.")
    if data_map.undecided:
        sentences.append(f"To be decided: {', '.join(sorted(data_map.undecided))}.")
    return " ".join(sentences)


def _add(
    parent: Xml.Element, tag: str, text: str = "", *, class_: str = "", **attributes: Any
) -> Xml.Element:
    written = {"class": class_} if class_ else {}
    written |= {name.replace("_", "-"): _number(value) for name, value in attributes.items()}
    made = Xml.SubElement(parent, tag, {name: _safe(value) for name, value in written.items()})
    made.text = _safe(text) or None
    return made


def _number(value: Any) -> str:
    return f"{round(value, 1):g}" if isinstance(value, float) else str(value)


def _safe(text: str) -> str:
    return _UNWRITABLE.sub("\ufffd", text)


def _draw_markers(svg: Xml.Element) -> None:
    defs = _add(svg, "defs")
    for kind in ("to", "from", "mentions"):
        marker = _add(
            defs, "marker", id=f"map-{kind}", viewBox="0 0 8 8", refX=7, refY=4,
            markerWidth=8, markerHeight=8, orient="auto-start-reverse",
        )  # fmt: skip
        _add(marker, "path", class_=f"map-tip {kind}", d="M0 0.8 L7.4 4 L0 7.2 Z")


def _draw_heading(svg: Xml.Element, data_map: DataMap, layout: Layout) -> None:
    """Title, and a legend of what the picture shows."""
    fates, kinds = {box.rows for box in layout.boxes}, {arrow.kind for arrow in layout.arrows}
    _add(svg, "text", _heading(data_map), class_="map-title", x=MARGIN, y=34)
    x = float(MARGIN)
    for word in (each for each in _LEGEND if each in fates):
        label = f"rows {word}" if word != ONLY_MENTIONS else f"rows {word}, only mention one"
        _add(svg, "rect", class_=f"map-bar {_class(word)}", x=x, y=50.0, width=12, height=12, rx=2)
        _add(svg, "text", label, class_="map-legend", x=x + 18, y=60.0)
        x += 18 + LETTER * len(label) + 22
    x = float(MARGIN)
    for kind, label in (("to", "belongs to"), ("from", "is pointed at by"), ("mentions", "mentions")):
        if kind not in kinds:
            continue
        _add(svg, "path", class_=f"map-link {kind}", d=f"M{x + 34:g} 76 H{x:g}", **_tip(kind))
        _add(svg, "text", label, class_="map-legend", x=x + 42, y=80.0)
        x += 42 + LETTER * len(label) + 22


def _class(words: str) -> str:
    return {"anonymised": "changed", ONLY_MENTIONS: "others"}.get(words, words)


def _draw_arrow(svg: Xml.Element, arrow: Arrow) -> None:
    path = _add(svg, "path", class_=f"map-link {arrow.kind}", d=arrow.path, **_tip(arrow.kind))
    _add(path, "title", arrow.title)


def _tip(kind: str) -> dict[str, str]:
    """Where another row points here, the arrow's tip is at its start."""
    return {"marker_start" if kind == "from" else "marker_end": f"url(#map-{kind})"}


def _draw_box(svg: Xml.Element, data_map: DataMap, box: Box) -> None:
    fate = _class(box.rows)
    group = _add(svg, "g", class_=f"map-table {fate}{' person' if box.whose else ''}")
    _add(group, "title", f"{box.rule.name}: {'; '.join(describe_links(data_map, box.rule))}")
    x, y = box.x, box.y
    _add(group, "rect", class_="map-box", x=x, y=y, width=WIDTH, height=box.height, rx=6)
    _add(group, "rect", class_=f"map-bar {fate}", x=x, y=y, width=6, height=box.height, rx=3)
    _add(group, "text", cut(box.rule.name, CHARACTERS - 8), class_="map-name", x=x + PAD + 4, y=y + 18)
    label = cut(f"{box.whose} · rows {box.rows}" if box.whose else f"rows {box.rows}", CHARACTERS)
    _add(group, "text", label, class_=f"map-rows {fate}", x=x + PAD + 4, y=y + 34)
    for number, line in enumerate(box.lines):
        for run in line:
            _add(
                group, "text", run.text, class_=f"map-text {run.kind}",
                x=x + PAD + 4 + run.at * LETTER, y=y + HEAD + LINE * number + 12,
            )  # fmt: skip


def _draw_listed(svg: Xml.Element, layout: Layout) -> None:
    for each in layout.lists:
        _add(svg, "text", each.heading, class_="map-name", x=MARGIN, y=each.y)
        for number, line in enumerate(each.lines, start=1):
            _add(svg, "text", line, class_="map-text not_personal", x=MARGIN, y=each.y + LINE * number)
