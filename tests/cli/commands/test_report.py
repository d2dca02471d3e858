"""A page about a model in a file."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import run, write
from tests.report.browser import opened


def test_the_page_tells_what_is_proved(tmp_path: Path) -> None:
    write(tmp_path / "data", n_classes=3)
    run("train", "data", "-q", "--solver", "dcd", cwd=tmp_path)
    made = run("report", "data.model", "data", cwd=tmp_path)
    assert made.code == 0
    assert made.out.strip() == "data.model.html"
    with opened(tmp_path / "data.model.html") as driver:
        text = driver.find_element("css selector", "body").text
        assert "The objective of every class is within" in text
        assert "J and L closing in on each other" in text
        assert "certsvm verify data.model" in text
        assert "claimed by the file" in text
        assert "L remains a claim" in text
        assert "could not flip" in text
        assert "fingerprint" in text


def test_without_data_and_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "data")
    run("train", "data", "--witness", "-q", cwd=tmp_path)
    assert run("report", "data.model", "-o", "page.html", cwd=tmp_path).code == 0
    page = (tmp_path / "page.html").read_text()
    assert "could not flip" not in page
    assert page.startswith("<!DOCTYPE html>")
    assert "can recompute the certificate" in page
    # As in the file, which counts from one.
    assert "feature 1<" in page
