# SPDX-License-Identifier: GPL-2.0-only
"""Pages, and the pictures on them, from Jinja templates that lie beside the code which fills them.

Whatever is filled in is text: escaped for HTML, and without control characters, see text.py. Only
what a template has made itself goes into another one as it is. Called by the pages of `bench
report` and of `record`.
"""

from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from ceasefire.text import shown

_ROOT = Path(__file__).parent


def render(template: str, **values: object) -> Markup:
    """Return a page, or a part of one. template: its path in this package."""
    return Markup(_environment().get_template(template).render(values))


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_ROOT),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # A Markup, which a template has made, is a subclass of str.
        finalize=lambda value: shown(value) if type(value) is str else value,
    )
