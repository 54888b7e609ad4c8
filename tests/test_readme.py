"""What the README says is run, and what it lists is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gdal_tools.cli import main
from tests.conftest import ROOT, require

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_every_shell_command_runs_in_the_order_it_stands(tmp_path: Path) -> None:
    require("PIL")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert len(commands) >= 9
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert (tmp_path / "demo-output" / "contact_sheet.png").exists()
    assert len(list((tmp_path / "cogs").glob("L0_*.tif"))) == 3
    assert len(list((tmp_path / "physical").glob("L1_*.tif"))) == 1


def test_the_python_example_runs(tmp_path: Path) -> None:
    (example,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_option_of_a_command_is_in_the_readme(name: str) -> None:
    for parameter in main.commands[name].params:
        if isinstance(parameter, click.Option):
            assert f"`{parameter.opts[-1]}" in README, parameter.opts
