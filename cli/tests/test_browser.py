# SPDX-License-Identifier: GPL-2.0-only
"""The page of a suite's results in a real browser: a phone and a desktop, light and dark.

Debian's Chromium without a window, driven by Selenium. It sees what a reader sees: what is cut off
or unreadable, what the console says, what is asked of the network. Nothing of it is left behind.
"""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from ceasefire import modes
from ceasefire.bench.report import page
from ceasefire.bench.results import store

# WCAG 2: text, and what carries meaning without being text.
TEXT_CONTRAST = 4.5
PICTURE_CONTRAST = 3.0
# A page takes a tenth of a second; on a machine that also runs guests it takes longer.
LIMIT = 600

# Boxes and colours of all that has text of its own or is drawn, as the browser made them.
LOOK = """
const solid = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const found = getComputedStyle(at).backgroundColor;
    if (!/, 0\\)$/.test(found)) return found;
  }
  return "rgb(255, 255, 255)";
};
const own = (element) => [...element.childNodes].some((n) => n.nodeType == 3 && n.data.trim());
const box = (element) => {
  const b = element.getBoundingClientRect();
  return {left: b.left, right: b.right, top: b.top, bottom: b.bottom};
};
const all = [...document.body.querySelectorAll("*")];
const shown = (e) => !e.closest("svg title") && getComputedStyle(e).display != "none";
const seen = all.filter(shown);
return {
  wide: document.documentElement.scrollWidth,
  room: document.documentElement.clientWidth,
  blocks: seen.filter((e) => e.matches("section, svg, table, h1, h2, h3, h4"))
    .map((e) => ({what: e.tagName + " " + (e.id || e.textContent.slice(0, 40)), ...box(e)})),
  texts: seen.filter(own).map((e) => ({
    what: e.textContent.trim().slice(0, 40),
    colour: e.closest("svg") ? getComputedStyle(e).fill : getComputedStyle(e).color,
    ground: solid(e), ...box(e), inside: e.closest("svg") ? box(e.closest("svg")) : null,
  })),
  drawn: seen.filter((e) => e.matches(".bar, .curve, .mark, .spread")).map((e) => ({
    what: e.getAttribute("class"), ground: solid(e),
    colour: e.matches(".bar, .mark") ? getComputedStyle(e).fill : getComputedStyle(e).stroke,
  })),
  ids: all.map((e) => e.id).filter((id) => id),
  links: [...document.links].map((a) => a.getAttribute("href")),
};
"""


@contextmanager
def started() -> Iterator[webdriver.Chrome]:
    """Run a browser that keeps all it has in a folder, which is gone afterwards."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("chromium is not installed")
    # Not that of pytest: its name is too long for the sockets of a browser.
    place = Path(tempfile.mkdtemp(prefix="browser-"))
    options = Options()
    options.binary_location = browser
    for word in (
        "--headless=new",
        "--no-sandbox",  # for root
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={place / 'profile'}",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    own = {name: str(place) for name in ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    try:
        found = webdriver.Chrome(options, Service(driver, env={**os.environ, **own}))
        try:
            found.set_page_load_timeout(LIMIT)
            yield found
        finally:
            found.quit()
    finally:
        end = time.monotonic() + LIMIT
        while processes_of(place) and time.monotonic() < end:
            time.sleep(0.1)
        shutil.rmtree(place)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    with started() as found:
        yield found


def opened(browser: webdriver.Chrome, path: Path, width: int, scheme: str) -> dict[str, Any]:
    """Open a page and return what LOOK finds."""
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(path.as_uri())
    looked: dict[str, Any] = browser.execute_script(LOOK)
    return looked


def brightness(colour: str) -> float:
    """Return the relative luminance of WCAG 2 of a colour such as `rgb(1, 2, 3)`."""
    numbers = [float(text) / 255 for text in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (
        n / 12.92 if n <= 0.04045 else ((n + 0.055) / 1.055) ** 2.4 for n in numbers
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21."""
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast() -> None:
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(118, 118, 118)", "rgb(255, 255, 255)") == pytest.approx(4.54, abs=0.01)


def test_colours_of_modes_to_come_can_be_seen() -> None:
    source = Path(page.__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    schemes = re.findall(r":root \{([^}]*)\}", source)
    assert len(schemes) == 2
    for scheme in schemes:
        found = dict(re.findall(r"--([\w]+): (#[0-9a-f]{3,6});", scheme))
        shades = [name for name in found if name.startswith("mode") or name == "combined"]
        assert len(shades) == len({found[name] for name in shades}) > len(modes.MECHANISMS)
        for name in (*shades, "off", "other"):
            for ground in ("page", "card"):
                assert contrast(rgb(found[name]), rgb(found[ground])) >= PICTURE_CONTRAST, name


def rgb(colour: str) -> str:
    """Return `rgb(1, 2, 3)` of a colour of a style sheet."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    return f"rgb({int(digits[:2], 16)}, {int(digits[2:4], 16)}, {int(digits[4:], 16)})"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_page_can_be_read(
    browser: webdriver.Chrome, suite_results: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    path = tmp_path / "page.html"
    some = store.read(suite_results)
    page.write([some, some], path)
    looked = opened(browser, path, width, scheme)

    assert looked["wide"] <= looked["room"] <= width
    cut = [t for t in looked["texts"] if t["left"] < 0 or t["right"] > looked["room"]]
    assert not cut
    outside = [
        (t["what"], t["inside"])
        for t in looked["texts"]
        if t["inside"]
        and not (
            t["inside"]["left"] - 1 <= t["left"] <= t["right"] <= t["inside"]["right"] + 1
            and t["inside"]["top"] - 1 <= t["top"] <= t["bottom"] <= t["inside"]["bottom"] + 1
        )
    ]
    assert not outside
    empty = [
        b["what"]
        for b in looked["blocks"]
        if b["right"] - b["left"] < 1 or b["bottom"] - b["top"] < 1
    ]
    assert not empty
    assert sum(b["what"].startswith("SECTION") for b in looked["blocks"]) == 6
    assert sum(b["what"].startswith("svg") for b in looked["blocks"]) > 20

    # The theme is that of the reader, and can be read.
    dark = brightness(looked["texts"][0]["ground"]) < 0.1
    assert dark is (scheme == "dark")
    for kind, least in (("texts", TEXT_CONTRAST), ("drawn", PICTURE_CONTRAST)):
        weak = {
            (found["what"], found["colour"], found["ground"])
            for found in looked[kind]
            if contrast(found["colour"], found["ground"]) < least
        }
        assert not weak

    assert len(set(looked["ids"])) == len(looked["ids"])
    assert {link[1:] for link in looked["links"]} <= set(looked["ids"])
    check_silence(browser, path)


def check_silence(browser: webdriver.Chrome, path: Path) -> None:
    """Nothing on the console, and nothing asked for but the page itself."""
    assert log_of(browser, "browser") == []
    messages = [json.loads(line["message"])["message"] for line in log_of(browser, "performance")]
    asked = [
        message["params"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    # The browser's own first page has some, too.
    urls = [found["request"]["url"] for found in asked if found["documentURL"] == path.as_uri()]
    assert urls == [path.as_uri()]


def log_of(browser: webdriver.Chrome, kind: str) -> list[dict[str, Any]]:
    """Return what has come to a log since it was read last."""
    read: Callable[[str], list[dict[str, Any]]] = browser.get_log
    return read(kind)


def test_what_is_broken_is_noticed(browser: webdriver.Chrome, tmp_path: Path) -> None:
    path = tmp_path / "broken.html"
    path.write_text(
        "<meta name=viewport content='width=device-width'><p style='width:2000px;color:#bbb'>x</p>"
        "<svg width=0 height=0></svg><img src='http://localhost:9/x.png'>",
        encoding="utf-8",
    )
    looked = opened(browser, path, 390, "light")
    assert looked["wide"] > looked["room"]
    assert [b["right"] - b["left"] for b in looked["blocks"]] == [0]
    (text,) = looked["texts"]
    assert contrast(text["colour"], text["ground"]) < TEXT_CONTRAST
    with pytest.raises(AssertionError):
        check_silence(browser, path)


def test_nothing_is_left_behind() -> None:
    with started() as browser:
        place = Path(browser.capabilities["chrome"]["userDataDir"]).parent
        browser.get("data:text/html,x")
        assert place.is_dir() and processes_of(place)
    assert not place.exists() and not processes_of(place)


def processes_of(place: Path) -> list[str]:
    """Return the command lines of processes that have a folder in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(place) in words:
            found.append(words.replace("\0", " "))
    return found
