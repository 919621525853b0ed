# SPDX-License-Identifier: GPL-2.0-only
"""Fills a Markdown text with figures of results: docs/results.md.j2, for instance.

The text is a Jinja template. What it can call is the public methods of Figures; results are named
as their folders are. What is not there is an error: a text never has a figure less than it says.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor, log10
from pathlib import Path

import jinja2

from ceasefire import modes
from ceasefire.bench.catalog.spec import BASELINE, load_all
from ceasefire.bench.figures import paper
from ceasefire.bench.figures.compare import Comparison, Interval, Shootdowns, comparisons
from ceasefire.bench.figures.copies import copies
from ceasefire.bench.figures.ideal import lost
from ceasefire.bench.report import charts
from ceasefire.bench.report.table import COSTS, costs_text, ratio_text
from ceasefire.bench.results.store import Results
from ceasefire.errors import Failure, UsageError
from ceasefire.files import write_whole
from ceasefire.text import shown

# What a text means when it names no mode.
_MODE = modes.FPR.name
# The mechanism whose CPUs have tables of their own.
_COPYING = "sharers"
# Decimals of a number of shootdowns.
_DECIMALS = 5


class Figures:
    """What a template can ask for. Everything is returned as text, ready to stand in a sentence.

    benchmark, mode, cpus and metric are those of `bench run`; results: the name of a folder, only
    needed where several have the benchmark. Failure: there is no such thing, or data was wrong.
    """

    def __init__(self, found: Mapping[str, Results]) -> None:
        self._results = found
        self._compared = {name: comparisons(some) for name, some in found.items()}
        for name, compared in self._compared.items():
            for c in compared:
                if c.wrong or c.different:
                    raise Failure(f"results '{name}': wrong data in {c.benchmark}, {c.mode}")

    def functions(self) -> dict[str, Callable[..., object]]:
        """Return what templates call, by name."""
        return {
            name: getattr(self, name)
            for name, value in vars(Figures).items()
            if not name.startswith("_") and callable(value) and name != "functions"
        }

    def has(self, results: str, benchmark: str = "") -> bool:
        """Say whether there are results of that name, with a benchmark if one is given."""
        own = self._compared.get(results, [])
        return results in self._results and (
            not benchmark or any(c.benchmark == benchmark for c in own)
        )

    def command(self, results: str) -> str:
        """Return the command that measures these results."""
        suite, compared = self._folder(results).suite, self._compared[results]
        names = dict.fromkeys(c.benchmark for c in compared)
        known = suite.get("name") in load_all()[1]
        whole = known and set(names) == set(suite.get("benchmarks", {}))
        chosen = suite["name"] if whole else " ".join(names)
        cpus = ",".join(str(number) for number in sorted({c.cpus for c in compared}))
        stock = " --stock" if any(c.mode == modes.STOCK.name for c in compared) else ""
        return (
            f"ceasefire bench run {chosen} --cpus {cpus} --rounds {suite.get('rounds')} "
            f"--seconds {float(suite.get('seconds', 0)):g}{stock}"
        )

    def machine(self, results: str) -> str:
        """Return where it was measured, and when."""
        hosts = self._folder(results).hosts
        host = hosts[-1] if hosts else {}
        return (
            f"{host.get('where', 'somewhere')}, {host.get('host_cpus', '?')} CPUs in the host, "
            f"commit {host.get('commit') or 'unknown'}, {str(host.get('date', ''))[:10]}"
        )

    def received(
        self, benchmark: str, mode: str = _MODE, cpus: int = 2, results: str | None = None
    ) -> str:
        """Return the shootdowns received for each operation. mode: "off", too."""
        shot = self._shootdowns(benchmark, _MODE if mode == BASELINE else mode, cpus, results)
        return count_text(shot.base if mode == BASELINE else shot.own)

    def left(
        self, benchmark: str, mode: str = _MODE, cpus: int = 2, results: str | None = None
    ) -> str:
        """Return how many percent of the shootdowns for each operation are left."""
        share = self._shootdowns(benchmark, mode, cpus, results).share
        if share is None:
            raise Failure(f"{benchmark}, {cpus} CPUs: too few shootdowns to say what is left")
        return f"{100 * share:.2f} %"

    def ratio(
        self,
        benchmark: str,
        metric: str | None = None,
        mode: str = _MODE,
        cpus: int = 2,
        results: str | None = None,
        *,
        against: str = BASELINE,
    ) -> str:
        """Return the ratio to another mode, of the first metric if none is named."""
        ratios = self._one(benchmark, mode, cpus, results, against=against).ratios
        chosen = metric if metric is not None else next(iter(ratios), "")
        return ratio_text(_of(ratios, chosen, f"{benchmark}, {cpus} CPUs, {mode}: ratio"))

    def latency(
        self,
        benchmark: str,
        quantile: str,
        mode: str = _MODE,
        cpus: int = 2,
        results: str | None = None,
        *,
        against: str = BASELINE,
    ) -> str:
        """Return the ratio of a quantile of the latency to that of another mode."""
        found = self._one(benchmark, mode, cpus, results, against=against).latency
        return ratio_text(_of(found, quantile, f"{benchmark}, {cpus} CPUs, {mode}: latency"))

    def lost(
        self, benchmark: str, mode: str = "off", cpus: int = 2, results: str | None = None
    ) -> str:
        """Return how much compute is lost to shootdowns, in percent with its interval."""
        name = self._name_of(benchmark, results)
        shares = {
            loss.cpus: loss.shares
            for loss in lost(self._results[name])
            if loss.benchmark == benchmark
        }.get(cpus, {})
        return charts.percent(_of(shares, mode, f"{benchmark}, {cpus} CPUs: lost compute"))

    def rounds(
        self, benchmark: str, mode: str = _MODE, cpus: int = 2, results: str | None = None
    ) -> str:
        """Return how many rounds have both the mode and off."""
        return str(self._one(benchmark, mode, cpus, results).rounds)

    def table(
        self,
        results: str,
        benchmarks: Sequence[str] | None = None,
        cpus: Sequence[int] | None = None,
        mode: str = _MODE,
    ) -> str:
        """Return a line for each benchmark and number of CPUs: shootdowns, ratios, other modes.

        benchmarks: these, in that order; all without. Samples that failed are named below it.
        """
        own = self._chosen(results, benchmarks)
        facts = self._folder(results).suite.get("benchmarks", {})
        rows = []
        for name, count in dict.fromkeys((c.benchmark, c.cpus) for c in own):
            measured = [c for c in own if (c.benchmark, c.cpus) == (name, count)]
            first = next((c for c in measured if c.mode == mode), None)
            if first is None or (cpus is not None and count not in cpus):
                continue
            shot = first.shootdowns
            share = None if shot is None else shot.share
            title = str(facts.get(name, {}).get("title", name))
            rows.append(
                [
                    f"`{name}`: {title}",
                    str(count),
                    "" if shot is None else count_text(shot.base),
                    "" if shot is None else count_text(shot.own),
                    "too few" if share is None else f"{100 * share:.2f} %",
                    _ratios_text(first),
                    "; ".join(
                        f"{charts.mode_text(c.mode)}: {_ratios_text(c)}"
                        for c in measured
                        if c is not first and c.ratios
                    ),
                ]
            )
        if not rows:
            raise Failure(f"results '{results}': nothing of mode {mode} for a table")
        head = [
            "",
            "CPUs",
            "shootdowns received for each operation, off",
            mode,
            "left",
            f"{mode} / off",
            "others / off",
        ]
        if not any(row[-1] for row in rows):
            head, rows = head[:-1], [row[:-1] for row in rows]
        failed = dict.fromkeys(f"{c.benchmark}, {c.cpus} CPUs, {t}" for c in own for t in c.failed)
        return "\n".join(
            [table_text(head, rows), *(["", f"Failed: {'; '.join(failed)}."] if failed else [])]
        )

    def beside(self, results: str, benchmarks: Sequence[str] | None = None) -> str:
        """Return a line for each benchmark, a column for each mode: the part of off's shootdowns.

        benchmarks: these, in that order; all without.
        """
        own = self._chosen(results, benchmarks)
        modes = list(dict.fromkeys(c.mode for c in own))
        rows = []
        for name, count in dict.fromkeys((c.benchmark, c.cpus) for c in own):
            found = {c.mode: c for c in own if (c.benchmark, c.cpus) == (name, count)}
            shot = next((c.shootdowns for c in found.values() if c.shootdowns), None)
            off = "" if shot is None else count_text(shot.base)
            left = [_left_text(found.get(mode)) for mode in modes]
            rows.append([f"`{name}`", str(count), off, *left])
        if not rows:
            raise Failure(f"results '{results}': nothing for a table")
        return table_text(["", "CPUs", "off", *modes], rows)

    def copies(self, results: str, benchmarks: Sequence[str] | None = None) -> str:
        """Return what sharers cost: a line for each benchmark and number of CPUs.

        benchmarks: only these. The mode is named where it is not sharers alone.
        """
        known = {c.benchmark for c in self._chosen(results, benchmarks)}
        rows = [
            [
                f"`{c.benchmark}`" + ("" if c.mode == _COPYING else f", {c.mode}"),
                str(c.cpus),
                f"{c.fills:.5f}",
                *costs_text(c),
            ]
            for c in copies(self._results[results])
            if c.benchmark in known
        ]
        if not rows:
            raise Failure(f"results '{results}': no CPU had tables of its own")
        return table_text(["", "CPUs", "fills for each operation", *COSTS], rows)

    def paper(
        self,
        results: str | None = None,
        mode: str = paper.FPR.mode,
        benchmarks: Sequence[str] | None = None,
    ) -> str:
        """Return a table of what a paper measured, beside ours. results: all without.

        mode: what the paper is about. benchmarks: these; all without.
        """
        names = list(self._results) if results is None else [results]
        about = next((p for p in paper.PAPERS if p.mode == mode), None)
        if about is None:
            raise Failure(f"there is no paper about mode {mode}")
        rows = []
        for name in names:
            facts = paper.facts(self._folder(name).suite)
            for benchmark in dict.fromkeys(c.benchmark for c in self._compared[name]):
                if benchmarks is not None and benchmark not in benchmarks:
                    continue
                line = paper.beside(
                    benchmark, facts.get(benchmark, {}), self._compared[name], about
                )
                if line is not None:
                    texts = ["; ".join(line.paper), "; ".join(line.ours), line.note]
                    rows.append([f"`{benchmark}`", *texts])
        if not rows:
            raise Failure("the paper measured none of these benchmarks")
        return table_text(["", "the paper", "here", "comparable"], rows)

    def _folder(self, name: str) -> Results:
        if name not in self._results:
            there = ", ".join(self._results) or "none"
            raise Failure(f"there are no results '{name}' (see `bench keep`), only: {there}")
        return self._results[name]

    def _chosen(self, results: str, benchmarks: Sequence[str] | None) -> list[Comparison]:
        self._folder(results)
        all_of = self._compared[results]
        if benchmarks is None:
            return all_of
        lost_ones = set(benchmarks) - {c.benchmark for c in all_of}
        if lost_ones:
            raise Failure(f"results '{results}' have no benchmark {min(lost_ones)}")
        return [c for name in benchmarks for c in all_of if c.benchmark == name]

    def _name_of(self, benchmark: str, results: str | None) -> str:
        """Return the name of the results that have a benchmark."""
        if results is not None:
            self._folder(results)
        found = [
            name
            for name, compared in self._compared.items()
            if results in (None, name) and any(c.benchmark == benchmark for c in compared)
        ]
        if not found:
            raise Failure(f"no results have the benchmark {benchmark}")
        if len(found) > 1:
            raise Failure(f"say which results: {' and '.join(found)} have {benchmark}")
        return found[0]

    def _one(
        self,
        benchmark: str,
        mode: str,
        cpus: int,
        results: str | None,
        *,
        against: str = BASELINE,
    ) -> Comparison:
        name = self._name_of(benchmark, results)
        compared = self._compared[name]
        if against != BASELINE:
            compared = comparisons(self._folder(name), against)
        for c in compared:
            if (c.benchmark, c.mode, c.cpus) == (benchmark, mode, cpus):
                return c
        raise Failure(f"results '{name}' have no {benchmark} with {cpus} CPUs, mode {mode}")

    def _shootdowns(self, benchmark: str, mode: str, cpus: int, results: str | None) -> Shootdowns:
        found = self._one(benchmark, mode, cpus, results).shootdowns
        if found is None:
            raise Failure(f"{benchmark}, {cpus} CPUs, {mode}: nothing counted the shootdowns")
        return found


def write(found: Mapping[str, Results], template: Path, path: Path) -> None:
    """Write the text. Nothing is changed when that fails."""
    text = render(found, template)
    try:
        write_whole(path, text)
    except OSError as error:
        raise UsageError(f"--markdown {path}: {error.strerror}") from None


def render(found: Mapping[str, Results], template: Path) -> str:
    """Return the text of a template. found: results by the names that it has for them.

    The order of the results does not matter: shells and Python sort names differently.
    """
    found = dict(sorted(found.items()))
    environment = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    try:
        source = template.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--template {template}: {error.strerror}") from None
    try:
        return environment.from_string(source).render(Figures(found).functions())
    except jinja2.TemplateSyntaxError as error:
        raise Failure(f"{template.name}, line {error.lineno}: {error.message}") from None
    except (jinja2.TemplateError, TypeError) as error:
        raise Failure(f"{template.name}: {error}") from None
    except Failure as failure:
        raise Failure(f"{template.name}: {failure}") from None


def table_text(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    escaped = [[shown(cell).replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(
        "".join(f"| {cell} " if cell else "| " for cell in line) + "|" for line in escaped
    )


def count_text(value: float) -> str:
    """Return a number of shootdowns with three digits that count, five decimals at most."""
    if value <= 0:
        return "0"
    if value >= 100:
        return f"{value:,.0f}"
    text = f"{value:.{min(max(2 - floor(log10(value)), 0), _DECIMALS)}f}"
    return text if float(text) else "0.00001"


def _left_text(c: Comparison | None) -> str:
    """Return what is left of off's shootdowns; nothing was measured, or too few, in words."""
    if c is None or c.shootdowns is None:
        return "not measured"
    share = c.shootdowns.share
    return "too few" if share is None else f"{100 * share:.2f} %"


def _ratios_text(c: Comparison) -> str:
    return ", ".join(f"{metric} {ratio_text(ratio)}" for metric, ratio in c.ratios.items())


def _of(found: Mapping[str, Interval], name: str, what: str) -> Interval:
    if name not in found:
        raise Failure(f"{what}: there is no '{name}', only: {', '.join(found) or 'nothing'}")
    return found[name]
