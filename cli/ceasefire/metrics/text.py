# SPDX-License-Identifier: GPL-2.0-only
"""Metrics as text, in two formats: OpenMetrics, and the older one of Prometheus.

Collectors that ask for a page take OpenMetrics. The textfile collector of node_exporter reads the
older format: of OpenMetrics it would not know which metrics are counters, as the type belongs to
the name with `_total` there.
"""

from collections.abc import Iterable

from ceasefire.metrics.families import COUNTER, Family, Sample

_TOTAL = "_total"
_END = "# EOF\n"


def openmetrics(families: Iterable[Family]) -> str:
    """Return the text of OpenMetrics 1.0."""
    parts = []
    for family in families:
        lines = [f"# TYPE {family.name} {family.kind}"]
        lines += [f"# UNIT {family.name} {family.unit}"] if family.unit else []
        lines += [f"# HELP {family.name} {_escaped(family.help, quotes=True)}."]
        parts += [*lines, *_samples(family)]
    return "".join(f"{line}\n" for line in parts) + _END


def prometheus(families: Iterable[Family]) -> str:
    """Return the text of Prometheus' format 0.0.4, which has no units and no end."""
    parts = []
    for family in families:
        name = _sample_name(family)
        parts += [
            f"# HELP {name} {_escaped(family.help, quotes=False)}.",
            f"# TYPE {name} {family.kind}",
            *_samples(family),
        ]
    return "".join(f"{line}\n" for line in parts)


def _samples(family: Family) -> list[str]:
    name = _sample_name(family)
    return [f"{name}{_label(sample)} {_number(sample.value)}" for sample in family.samples]


def _sample_name(family: Family) -> str:
    return family.name + _TOTAL if family.kind == COUNTER else family.name


def _label(sample: Sample) -> str:
    if sample.label is None:
        return ""
    name, value = sample.label
    return f'{{{name}="{_escaped(value, quotes=True)}"}}'


def _number(value: float) -> str:
    # Counters are 64 bits wide: a float would round them.
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _escaped(text: str, *, quotes: bool) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quotes else text
