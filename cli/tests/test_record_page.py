# SPDX-License-Identifier: GPL-2.0-only
"""What is told of a recording: the forecast, the text, JSON, the page for browsers."""

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ceasefire.__main__ import main
from ceasefire.record import forecast, icicle, model, page, web
from ceasefire.record.model import Calls, Environment, Recording, Run, Site, Sum

EVIL = "<script>alert('1')</script> & co"


def recording(*, emulated: bool = False, fpr: bool = True) -> Recording:
    parts = {
        "munmap": Sum(900, 1800, 800.0, 1600.0, 10, 50.0),
        "madvise:DONTNEED": Sum(300, 300),
        "reclaim": Sum(100, 100, 50.4, 50.4),
    }
    return Recording(
        environment=Environment(["prog", EVIL], "6.12", 4, emulated, fpr, 2.0),
        causes=parts,
        programs={"prog": Sum(1200, 2100, 800.0, 1600.0), "kswapd0": Sum(100, 100, 50.4, 50.4)},
        why_not={"anonymous": 90, "dirty": 10},
        by_source=90,
        lazy=90,
        files={"/srv/a": 700, "": 100},
        calls={"munmap": Calls(900, 9000.0, 10, 20.0), "mmap": Calls(0, 0.0, 900, 900.0)},
        sites=[
            Site("prog", "munmap", ["main (a.c:1)", EVIL], Sum(900, 1800, 800.0)),
            Site("prog", "madvise:DONTNEED", ["main (a.c:1)", "free (libc.so.6)"], Sum(300)),
            Site("kswapd0", "reclaim", [], Sum(100, 100, 50.4)),
        ],
        machine_sent=1500,
    )


def text_of(some: Recording) -> str:
    stream = io.StringIO()
    page.show(some, stream)
    return stream.getvalue()


def test_forecast() -> None:
    found = forecast.forecast(recording())
    assert (found.sent, found.removed, found.left, found.reclaim) == (1300, 850, 450, 50)
    assert found.worth
    assert found.received_removed == 1650
    assert forecast.sentence(found) == (
        "Forecast: FPR would remove 1,650 of 2,200 shootdowns that CPUs received (75 %), "
        "550 would stay. Of these removed, 50 are of reclaim, which is an estimate."
    )


def of_run(received: int, removed: float) -> Recording:
    """Return a recording of one run."""
    return Recording(
        Environment(["prog"], "6.12", 4, False, True, 1.5),
        causes={"munmap": Sum(received, received, removed, removed)},
        runs=[Run(received, received, removed)],
    )


def test_what_interrupts_nobody_counts_for_nothing() -> None:
    some = recording()
    for part in some.causes.values():
        part.received, part.saved_received = 0, 0.0
    found = forecast.forecast(some)
    assert not found.worth
    assert forecast.sentence(found).startswith(
        "Forecast: the 1,300 shootdowns that were sent interrupted no CPU, "
    )
    assert forecast.advice(some, found)[0].endswith("nothing to gain from FPR.")


def test_few_shootdowns_are_not_worth_it() -> None:
    """A share of next to nothing is what differs most from run to run."""
    found = forecast.forecast(of_run(9, 9.0))
    assert (found.share, found.worth) == (1.0, False)
    first, second = forecast.advice(of_run(9, 9.0), found)
    assert first.endswith("fewer than 10 shootdowns in each run: nothing to gain from FPR.")
    assert "might remove 9 of the 9 that were sent" in second
    assert forecast.forecast(of_run(10, 9.0)).worth
    # Those of a run count, not those of all.
    whole = model.merged([of_run(9, 9.0), of_run(8, 8.0)])
    assert not forecast.forecast(whole).worth
    assert "In 2 of 2 runs CPUs received fewer than 10 shootdowns" in text_of(whole)


def test_runs_with_few_shootdowns_say_nothing() -> None:
    """All threads of a program may have to share one CPU for a while."""
    whole = model.merged([of_run(0, 0.0), of_run(132, 131.0), of_run(1, 0.0), of_run(18, 17.0)])
    found = forecast.forecast(whole)
    assert found.verdicts == [None, True, None, True]
    assert found.worth and found.agree
    first, second = forecast.spread(found)
    assert first == "In 2 of 4 runs it was 94 to 99 %."
    assert second.startswith("In 2 of 4 runs CPUs received fewer than 10 shootdowns")


def test_busy_machine_is_told() -> None:
    some = recording()
    some.environment.load = 13.5
    assert "The machine was busy before (load 13.5, 4 CPUs)" in text_of(some)
    # All threads may have shared one CPU: that is no verdict.
    starved = of_run(3, 0.0)
    starved.environment.load = 13.5
    lines = forecast.advice(starved, forecast.forecast(starved))
    assert lines[0].startswith("No verdict: ")
    assert len(lines) == 1
    some.environment.load = 3.5
    assert "busy" not in text_of(some)


def test_runs_that_agree() -> None:
    found = forecast.forecast(model.merged([of_run(100, 95.0), of_run(120, 120.0)]))
    assert found.worth and found.agree
    assert forecast.spread(found) == ["In 2 runs it was 95 to 100 %."]
    assert forecast.spread(forecast.forecast(of_run(100, 95.0))) == [
        "That is one run: --repeat 5 tells how much it varies."
    ]
    # A process that ran already cannot be run again.
    assert forecast.spread(forecast.forecast(recording())) == []


def test_runs_that_disagree() -> None:
    whole = model.merged([of_run(100, 97.0), of_run(100, 0.0), of_run(100, 96.0)])
    found = forecast.forecast(whole)
    assert found.worth and not found.agree
    text = text_of(whole)
    assert "In 3 runs it was 0 to 97 %." in text
    assert "Of these runs 2 say that FPR is worth it, 1 do not" in text
    rows = [line.split() for line in text.splitlines()]
    assert ["1", "100", "97", "97", "%", "100"] in rows
    assert "3 runs, 4 CPUs" in text
    assert found.verdicts == [True, False, True]


def test_runs_become_one_recording() -> None:
    first, second = recording(), recording()
    first.runs, second.runs = [Run(1300, 2200, 1650.4)], [Run(1300, 2200, 1650.4)]
    second.remarks, first.remarks = ["one", "two"], ["one"]
    second.machine_sent, second.lost = 100, 3
    second.sites[0].frames = ["main (a.c:1)", "other"]
    whole = model.merged([first, second])
    assert whole.total().sent == 2 * recording().total().sent
    assert whole.programs["prog"].received == 2 * 2100
    assert whole.calls["munmap"].flushing == 2 * 900
    assert (whole.why_not["dirty"], whole.by_source, whole.files["/srv/a"]) == (20, 180, 1400)
    assert whole.lazy == 180
    assert (whole.lost, whole.machine_sent, whole.remarks) == (3, 1600, ["one", "two"])
    assert whole.environment.seconds == 4.0
    assert len(whole.runs) == 2
    assert sorted(site.sum.sent for site in whole.sites) == [200, 600, 900, 900]
    # The parts stay as they are, and a kernel that counts nothing for one counts nothing at all.
    assert first.total() == recording().total()
    second.machine_sent = None
    assert model.merged([first, second]).machine_sent is None
    assert model.from_json(json.loads(json.dumps(model.to_json(whole)))) == whole


def test_advice() -> None:
    some = recording()
    lines = forecast.advice(some, forecast.forecast(some))
    assert lines[0].startswith("Switch it on: ceasefire run -- prog '<script>")
    assert any(line.startswith("90 more if") for line in lines)
    assert any(line.startswith("madvise DONTNEED: an allocator") for line in lines)
    assert not any(line.startswith("munmap") for line in lines)


def test_advice_about_other_mechanisms() -> None:
    some = recording()
    some.lazy = 1980
    lines = forecast.advice(some, forecast.forecast(some))
    latr, rest = (next((line for line in lines if words in line), "") for words in ("LATR", "ABIS"))
    assert latr.startswith("LATR would remove 1,980 of those received (90 %)")
    assert rest.startswith("Sharers and ABIS")
    some.lazy = 2000
    assert not any("ABIS" in line for line in forecast.advice(some, forecast.forecast(some)))
    some.lazy = 100
    lines = forecast.advice(some, forecast.forecast(some))
    assert not any("LATR" in line for line in lines)
    # Hardly anything was received: nothing to say.
    assert not forecast.others(forecast.forecast(of_run(9, 9.0)))


def test_advice_on_a_stock_kernel() -> None:
    some = recording(fpr=False)
    lines = forecast.advice(some, forecast.forecast(some))
    assert lines[0].startswith("Try it in a virtual machine: ceasefire try --data DIR -- prog")
    assert "boot the ceasefire kernel" in lines[1]


def test_advice_for_a_process_that_runs() -> None:
    some = recording()
    some.environment.command = ["-p", "17"]
    lines = forecast.advice(some, forecast.forecast(some))
    assert lines[0] == "Switch it on: ceasefire run -- CMD..."
    assert "started that way" in lines[1]
    assert page.title_of(some) == "process 17"


def test_advice_for_some_files() -> None:
    files = {"/srv/a/x": 3, "/srv/a/b/y": 1, "": 7}
    assert forecast.common_folder(files) == "/srv/a"
    assert forecast.common_folder({"/srv/x": 1, "/home/y": 1}) == ""
    assert forecast.common_folder({"": 1}) == ""
    some = recording()
    some.files = files
    some.environment.command = ["sh"]
    lines = forecast.advice(some, forecast.forecast(some))
    assert "Only for these files: ceasefire run --path '/srv/a/*' -- ..." in lines


def test_nothing_to_save() -> None:
    some = Recording(Environment(["true"], "6.12", 4, False, True))
    assert "sent no shootdowns" in page.conclusion(some)[0]
    assert "(no shootdown was sent)" in text_of(some)
    assert web.document(some).count("<svg") == 0
    some.causes = {"mprotect": Sum(50, 50)}
    assert page.conclusion(some)[1] == "FPR is not worth it for this program."


def test_text() -> None:
    text = text_of(recording())
    rows = [line.split() for line in text.splitlines()]
    assert ["munmap", "1,800", "81.8", "%", "1,600", "900", "5.0"] in rows
    assert ["all", "2,200", "100.0", "%", "1,650", "1,300", "5.0"] in rows
    assert "anonymous memory" in text
    assert "/srv/a" in text
    assert "free (libc.so.6) < main (a.c:1)" in text
    assert "Meanwhile 200 more shootdowns" in text
    assert "Senders waited" in text


def test_no_times_from_an_emulator() -> None:
    text = text_of(recording(emulated=True))
    assert "us each" not in text
    assert "Senders waited" not in text
    assert "Times are left out" in text


def test_lost_events_are_told() -> None:
    some = recording()
    some.lost, some.unread = 1234, 5
    some.missing = ["stacktrace", "exceptions:page_fault_user"]
    text = text_of(some)
    assert "1,234 events did not fit" in text
    assert "5 lines of the trace" in text
    assert "no stacks of its own" in text
    assert "look clean" in text


class Strict(HTMLParser):
    """Checks that tags are closed in order, and notes what the page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.loads += [name for name, _ in attrs if name in ("src", "href")]
        if tag not in ("meta", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "rect":
            assert self.open.pop() == tag


def test_page_for_browsers() -> None:
    text = web.document(recording())
    reader = Strict()
    reader.feed(text)
    assert not reader.open
    assert not reader.loads
    assert "script" not in reader.names
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert "url(" not in text


def test_icicle() -> None:
    picture = icicle.svg(recording().sites)
    root = ElementTree.fromstring(picture)
    boxes = {
        title.text.partition(":")[0]: (box.get("x"), box.get("width"), box.get("y"))
        for box in root
        if (title := box.find(".//{*}title")) is not None and title.text
    }
    assert boxes["all"] == ("0.000%", "100.000%", "0")
    assert boxes["prog"] == ("0.000%", "92.308%", "20")
    assert boxes["kswapd0"] == ("92.308%", "7.692%", "20")
    assert boxes["reclaim"][2] == "40"
    assert int(root.get("height", "0")) == 100
    classes = [box.get("class") for box in root.iter("{http://www.w3.org/2000/svg}g")]
    assert set(classes) == {"saved", "stays"}


def test_icicle_leaves_out_what_is_too_narrow() -> None:
    sites = [Site("a", "munmap", [], Sum(10000)), Site("b", "munmap", [], Sum(1))]
    assert ">b<" not in icicle.svg(sites)
    assert icicle.svg([]) == ""


def test_json_is_read_back(tmp_path: Path) -> None:
    some = recording()
    path = tmp_path / "recording.json"
    path.write_text(json.dumps(model.to_json(some)))
    assert model.load(path) == some


def test_advise_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, browser, output = (tmp_path / name for name in ("r.json", "p.html", "p.txt"))
    path.write_text(json.dumps(model.to_json(recording())))
    assert main(["advise", "-i", str(path)]) == 0
    text = capsys.readouterr().out
    assert "Forecast: FPR would remove 1,650 of 2,200" in text
    assert main(["advise", "-i", str(path), "-o", str(output), "--html", str(browser)]) == 0
    assert capsys.readouterr().out == ""
    assert output.read_text() == text
    assert browser.read_text().startswith("<!doctype html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.html", "p.txt", "r.json"]
    assert main(["advise", "-i", str(path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["forecast"]["removed"] == 850
    assert record["schema"] == model.SCHEMA


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not json", "is not a recording"),
        ("[]", "is not a recording"),
        ('{"kind": "other"}', "is not a recording"),
        (json.dumps({"kind": model.KIND, "schema": 99}), "another version"),
        (json.dumps({"kind": model.KIND, "schema": model.SCHEMA}), "damaged"),
    ],
)
def test_files_that_are_no_recordings(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    assert main(["advise", "-i", str(path)]) == 1
    assert re.fullmatch(f"ceasefire advise: .*{says}.*\n", capsys.readouterr().err)
