# SPDX-License-Identifier: GPL-2.0-only
"""A flame graph upside down, as SVG: programs on top, below them who called whom.

The width of a box is its part of all shootdowns. Positions are per cent, so the picture fits any
screen without scripts, and the text keeps its size; each box is cut off at its own edge.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from markupsafe import Markup

from ceasefire.pages import render
from ceasefire.record.causes import label
from ceasefire.record.model import Site

_ROW = 20
# Boxes below this part of the whole are left out, with what is below them.
_LEAST = 0.002


@dataclass
class Node:
    """A box. saved: shootdowns of it that FPR spares."""

    name: str
    sent: int = 0
    saved: float = 0.0
    children: dict[str, "Node"] = field(default_factory=dict)

    def child(self, name: str) -> "Node":
        """Return a child, made if needed."""
        return self.children.setdefault(name, Node(name))


def tree(sites: Iterable[Site]) -> Node:
    """Return the root: all shootdowns."""
    root = Node("all")
    for site in sites:
        node = root
        for name in [None, site.program, *site.frames, label(site.cause)]:
            node = node if name is None else node.child(name)
            node.sent += site.sum.sent
            node.saved += site.sum.saved
    return root


def depth(node: Node, whole: int) -> int:
    """Return how many rows of boxes there are."""
    below = [depth(c, whole) for c in node.children.values() if c.sent >= _LEAST * whole]
    return 1 + max(below, default=0)


def svg(sites: Iterable[Site]) -> Markup:
    """Return the picture; empty if there is nothing to draw."""
    root = tree(sites)
    if not root.sent:
        return Markup()
    height = _ROW * depth(root, root.sent)
    boxes = list(_boxes(root, 0.0, 0, root.sent))
    return render("record/icicle.svg.j2", height=height, row=_ROW, boxes=boxes)


def _boxes(node: Node, left: float, row: int, whole: int) -> Iterator[dict[str, str]]:
    """Yield the box of a node, and those below it."""
    width = 100 * node.sent / whole
    spared = f"{node.sent:,} shootdowns, {width:.1f} %, FPR saves {round(node.saved):,}"
    yield {
        "name": node.name,
        "title": f"{node.name}: {spared}",
        "kind": "saved" if node.saved / node.sent >= 0.5 else "stays",
        "left": f"{left:.3f}",
        "top": str(row * _ROW),
        "width": f"{width:.3f}",
    }
    for child in sorted(node.children.values(), key=lambda child: -child.sent):
        if child.sent >= _LEAST * whole:
            yield from _boxes(child, left, row + 1, whole)
        left += 100 * child.sent / whole
