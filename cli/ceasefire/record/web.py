# SPDX-License-Identifier: GPL-2.0-only
"""The page of a recording as HTML: one file that needs nothing else, light and dark, any width."""

from collections.abc import Sequence

from ceasefire import __version__
from ceasefire.record import icicle, page
from ceasefire.record.model import Recording
from ceasefire.text import html_text

_STYLE = """\
:root { color-scheme: light dark; --back: #fff; --text: #1b1b1b; --dim: #5c5c5c; --line: #d5d5d5;
  --saved: #bfe3c0; --stays: #f3cdbb; }
@media (prefers-color-scheme: dark) {
  :root { --back: #16181b; --text: #e6e6e6; --dim: #a0a0a0; --line: #3a3d41;
    --saved: #275a36; --stays: #6b3a25; }
}
body { margin: 0 auto; max-width: 60rem; padding: 1rem; background: var(--back);
  color: var(--text); font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; min-width: 50%; }
th, td { padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; overflow-wrap: break-word; }
th { color: var(--dim); font-weight: normal; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.forecast { font-size: 1.1rem; border-left: .3rem solid var(--saved); padding-left: .8rem; }
.dim, footer { color: var(--dim); font-size: .9rem; }
.icicle { display: block; } .icicle rect { stroke: var(--back); }
.icicle text { font: 12px ui-monospace, monospace; fill: var(--text); }
.saved rect { fill: var(--saved); } .stays rect { fill: var(--stays); }
.key { display: inline-block; width: .9em; height: .9em; }
.key.saved { background: var(--saved); } .key.stays { background: var(--stays); }
"""


def document(recording: Recording) -> str:
    """Return the page."""
    title = html_text(f"Shootdowns of {page.title_of(recording)}")
    first, *others = page.conclusion(recording)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title>",
        f"<style>\n{_STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        f'<p class="forecast">{html_text(first)}</p>',
        *_list(others),
    ]
    for index, table in enumerate(page.tables(recording)):
        heading = table.title if index else "By cause"
        parts += [f"<h2>{html_text(_sentence(heading))}</h2>", *_table(table)]
        if index == 0:
            parts += _picture(recording)
    notes = page.notes(recording)
    if notes:
        parts += ["<h2>About the numbers</h2>", *_list(notes)]
    environment = recording.environment
    machine = f"Linux {environment.release}, {environment.cpus} CPUs"
    machine += ", emulated by QEMU" if environment.emulated else ""
    parts.append(
        f"<footer><p>{html_text(machine)}, recorded for {environment.seconds:.1f} s. "
        f"ceasefire {__version__}</p></footer></body></html>"
    )
    return "\n".join(parts) + "\n"


def _picture(recording: Recording) -> list[str]:
    picture = icicle.svg(recording.sites)
    if not picture:
        return []
    return [
        "<h2>By call site</h2>",
        '<p class="dim">Wide: many shootdowns. Below a box: what it calls. '
        '<span class="key saved"></span> FPR saves most, '
        '<span class="key stays"></span> they stay.</p>',
        picture,
    ]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _list(lines: Sequence[str]) -> list[str]:
    items = [f"<li>{html_text(line)}</li>" for line in lines]
    return ["<ul>", *items, "</ul>"] if items else []


def _table(table: page.Table) -> list[str]:
    def cells(tag: str, row: Sequence[str]) -> str:
        opened = [
            f"<{tag}" + (' class="number">' if i >= table.texts else ">") for i in range(len(row))
        ]
        closed = f"</{tag}>"
        return "".join(o + html_text(cell) + closed for o, cell in zip(opened, row, strict=True))

    return [
        '<div class="table"><table>',
        f"<thead><tr>{cells('th', table.columns)}</tr></thead><tbody>",
        *(f"<tr>{cells('td', row)}</tr>" for row in table.rows),
        "</tbody></table></div>",
    ]
