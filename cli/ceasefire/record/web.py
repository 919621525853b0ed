# SPDX-License-Identifier: GPL-2.0-only
"""The page of a recording as HTML: one file that needs nothing else, light and dark, any width."""

from ceasefire import __version__
from ceasefire.pages import render
from ceasefire.record import icicle, page
from ceasefire.record.model import Recording


def document(recording: Recording) -> str:
    """Return the page."""
    environment = recording.environment
    machine = f"Linux {environment.release}, {environment.cpus} CPUs"
    made = render(
        "record/page.html.j2",
        title=f"Shootdowns of {page.title_of(recording)}",
        conclusion=page.conclusion(recording),
        tables=page.tables(recording),
        picture=icicle.svg(recording.sites),
        notes=page.notes(recording),
        machine=machine + (", emulated by QEMU" if environment.emulated else ""),
        seconds=f"{environment.seconds:.1f}",
        version=__version__,
    )
    return str(made)
