"""A real browser: Chromium, driven by Selenium."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic",
]  # fmt: skip


def require_browser() -> None:
    """Skip the test where there is no Chromium."""
    pytest.importorskip("selenium")
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("needs chromium and chromedriver (Debian: chromium, chromium-driver)")


@contextmanager
def opened(page: Path, width: int = 1200, *, dark: bool = False) -> Iterator[Any]:
    """The page in a browser window; afterwards: no error was logged, nothing was fetched."""
    require_browser()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with tempfile.TemporaryDirectory() as profile:
        scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
        for flag in [*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},900", *scheme]:
            options.add_argument(flag)
        driver: Any = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        try:
            driver.get(page.as_uri())
            yield driver
            assert driver.get_log("browser") == []
            assert fetched(driver) - {page.as_uri()} == set()
        finally:
            driver.quit()


def fetched(driver: Any) -> set[str]:
    """The addresses that the page asked for."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
        # The empty icon, and the tab that was there before.
        and not message["params"]["request"]["url"].startswith(("data:", "chrome:", "about:"))
    }
