"""The demonstration as a command."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from certsvm import demo
from certsvm.cli.commands.demo import command


def test_the_command_runs_the_demonstration(monkeypatch: pytest.MonkeyPatch) -> None:
    small = demo.text_like(n_documents=500, n_words=100, length=20)
    monkeypatch.setattr(demo, "text_like", lambda: small)
    result = CliRunner().invoke(command)
    assert result.exit_code == 0, result.output
    assert "certificate confirmed" in result.output
