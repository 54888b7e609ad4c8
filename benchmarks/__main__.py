"""Run every case, ours, the published package's and the codec's floor in turn, and write a table of medians.

python -m benchmarks [--quick] [--peer PYTHON] [--rounds N] [--out FOLDER]
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import click

from benchmarks.data import make
from chronozarr_core import EncodeOptions
from gdal_tools.convert import convert

HERE = Path(__file__).parent
CASES = ("encode", "convert", "read", "export-cog")
ENCODINGS = ("none", "star-delta")


@click.command()
@click.option("--quick", is_flag=True, help="Three rounds of 4 dates of 1024 x 1024.")
@click.option("--peer", default=".venv-peer/bin/python", show_default=True, help="Python with the published package.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=HERE / "data", show_default=True)
def main(quick: bool, peer: str, rounds: int, out: Path) -> None:
    """Benchmark this project against the published package and the codec."""
    n_time, size = (4, 1024) if quick else (12, 2048)
    folder = out / f"{n_time}x{size}"
    prepare(folder, n_time, size)
    rows = [measure(case, encoding, folder, peer, 3 if quick else rounds) for case in CASES for encoding in ENCODINGS]
    table = markdown(rows, n_time, size)
    (folder / "results.json").write_text(json.dumps(rows, indent=2))
    (folder / "results.md").write_text(table)
    click.echo(table)


def prepare(folder: Path, n_time: int, size: int) -> None:
    """The inputs, and a store of each encoding for the reading cases."""
    manifest = make(folder, n_time, size)
    for encoding in ENCODINGS:
        if not (folder / f"store-{encoding}").exists():
            convert(manifest, folder / f"store-{encoding}", options=EncodeOptions(encoding=encoding))


def measure(case: str, encoding: str, folder: Path, peer: str, rounds: int) -> dict[str, object]:
    """Medians of one case; the three are run in turn, so that a change of the machine's speed meets them alike."""
    commands = {
        "ours": [sys.executable, "-m", "benchmarks.tasks", case, "ours", folder, encoding],
        "package": [peer, HERE / "peer_tasks.py", case, folder, encoding],
        "floor": [sys.executable, "-m", "benchmarks.tasks", case, "floor", folder, encoding],
    }
    if case == "export-cog":
        del commands["floor"]
    runs: dict[str, list[dict[str, float]]] = {who: [] for who in commands}
    for _ in range(rounds):
        for who, command in commands.items():
            runs[who].append(_run(command))
    row: dict[str, object] = {"case": case, "encoding": encoding}
    for who, figures in runs.items():
        row[who] = statistics.median(figure["seconds"] for figure in figures)
    row["package/ours"] = statistics.median(
        theirs["seconds"] / mine["seconds"] for theirs, mine in zip(runs["package"], runs["ours"], strict=True)
    )
    row["peak_mb"] = statistics.median(figure["peak_mb"] for figure in runs["ours"])
    row["package_peak_mb"] = statistics.median(figure["peak_mb"] for figure in runs["package"])
    return row


def _run(command: list[object]) -> dict[str, float]:
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, cwd=HERE.parent)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def markdown(rows: list[dict[str, object]], n_time: int, size: int) -> str:
    """The table that the README shows."""
    machine = f"{os.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()}"
    lines = [
        f"{n_time} timesteps of 4 x {size} x {size} uint16, zstd 5; {machine}; medians.",
        "",
        "| case | encoding | seconds | package, s | package / ours | codec's floor, s | peak MB | package's peak MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        floor = f"{row['floor']:.2f}" if "floor" in row else "-"
        lines.append(
            f"| {row['case']} | {row['encoding']} | {row['ours']:.2f} | {row['package']:.2f} "
            f"| {row['package/ours']:.1f} | {floor} | {row['peak_mb']:.0f} | {row['package_peak_mb']:.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
