"""Ctrl-C ends a run of the tests, also when it comes while a command runs in process, and with workers of xdist."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import time
from pathlib import Path

import pytest

from stripe.cli.start import opt


@pytest.mark.parametrize("number", range(20))
def test_a_command(number, tmp_path, monkeypatch):
    def wait(*_):
        Path("ready").touch()
        time.sleep(20)

    monkeypatch.setattr("stripe.cli.arguments.opt.OptSpec.read", wait)
    assert opt(["x.tile"]) == 0
"""


@pytest.mark.long
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_an_interrupt_ends_the_run(workers: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "test_commands.py").write_text(TESTS, "utf-8")
    (tmp_path / "conftest.py").write_text("pytest_plugins = ['tests.support.interrupts']", "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, start_new_session=True, stdout=subprocess.PIPE, text=True
    ) as process:
        give_up = time.monotonic() + 60
        while not (tmp_path / "ready").exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        try:
            said, _ = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, said
    assert "KeyboardInterrupt" in said
