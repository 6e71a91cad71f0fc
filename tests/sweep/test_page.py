"""The report in a real browser: it opens, the front is drawn, a click works, the console is clean."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from stripe.cli.start import sweep

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs Debian's chromium and chromium-driver"
)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    """A headless browser that keeps its console."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for word in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--window-size=1200,1600", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'profile'}",
    ):  # fmt: skip
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.mark.long
def test_the_page_opens_offline_and_a_click_shows_a_point(
    browser: webdriver.Chrome,
    sweep_file: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    axes = {"SRAM_SIZE_KIB": {"log2": [64, 256]}, "CLOCK_MHZ": {"values": [400, 500]}}
    out = str(tmp_path / "out")
    assert sweep(["run", str(sweep_file(axes=axes)), "--out", out, "--jobs", "1"]) == 0
    assert sweep(["report", out]) == 0
    browser.get((tmp_path / "out" / "report.html").as_uri())
    wait = WebDriverWait(browser, 60)
    wait.until(lambda b: b.find_element(By.TAG_NAME, "body").get_attribute("data-ready") == "yes")
    assert browser.title == "sweep"

    marks = browser.find_elements(By.CSS_SELECTOR, "#front .scatterlayer .trace path.point")
    assert len(marks) == 6
    title = browser.find_element(By.ID, "chosen-title")
    assert title.text.startswith("Point: passes=dsp_conv")
    before = title.text
    for mark in marks:
        ActionChains(browser).move_to_element(mark).pause(0.3).click().perform()
        if title.text != before:
            break
    assert title.text != before
    assert browser.find_elements(By.CSS_SELECTOR, "#timeline .barlayer path")
    assert browser.find_elements(By.CSS_SELECTOR, "#parallel .scatterlayer .lines path")

    second = Select(browser.find_element(By.ID, "b"))
    second.select_by_index(len(second.options) - 1)
    assert "They differ in" in browser.find_element(By.ID, "comparison").text
    assert browser.find_element(By.ID, "options").text.startswith("--config dsp_conv --hw dsp_conv -D ")
    assert '"clock_mhz"' in browser.find_element(By.ID, "model").text
    assert browser.get_log("browser") == []
