"""A convert killed at any moment leaves OUT absent or whole, and ``--resume`` finishes it to the same bytes."""

from __future__ import annotations

import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from chronozarr_core import open_store
from gdal_tools.rasters import raster_backend
from tests.cli.test_cli import chronozarr
from tests.gdal.builders import write_manifest, write_tif

MOMENTS = 50 if raster_backend().name == "rasterio" else 10  # the moment does not know the binding: once at length
N_TIME = 14


def write_inputs(folder: Path) -> tuple[Path, np.ndarray]:
    """A series that takes long enough to be killed in the middle, anchors every 3 timesteps."""
    rng = np.random.default_rng(0)
    base = rng.integers(0, 3000, (2, 160, 170))
    data = np.stack([base + rng.integers(0, 9, base.shape) for _ in range(N_TIME)]).astype("uint16")
    rows = []
    for t, values in enumerate(data):
        write_tif(folder / f"{t}.tif", values, compress="deflate")
        rows.append((f"{t}.tif", f"2024-01-{t + 1:02}"))
    return write_manifest(folder / "m.csv", rows), data


def command(manifest: Path, out: Path, *more: str) -> list[str]:
    options = ["--encoding", "star-delta", "--anchor-interval", "3", "--chunk-size", "32", "--workers", "2", *more]
    return [sys.executable, "-m", "gdal_tools.cli", "convert", str(manifest), str(out), "--quiet", *options]


def files(folder: Path) -> list[str]:
    return sorted(str(Path(root, name).relative_to(folder)) for root, _, found in os.walk(folder) for name in found)


def assert_same_folder(folder: Path, expected: Path) -> None:
    names = files(expected)
    assert files(folder) == names
    _, mismatch, errors = filecmp.cmpfiles(folder, expected, names, shallow=False)
    assert (mismatch, errors) == ([], [])


def kill_when(process: subprocess.Popen[bytes], partial: Path, objects: int, delay: float) -> bool:
    """Kill -9 a moment after ``objects`` files stand in ``partial``; False where the process was done before."""
    while process.poll() is None and len(files(partial)) < objects:
        time.sleep(0.002)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def test_kill_9_at_random_moments_never_shows_half_a_store_and_resume_finishes_it(tmp_path: Path) -> None:
    manifest, data = write_inputs(tmp_path)
    whole = tmp_path / "whole"
    subprocess.run(command(manifest, whole), check=True)
    total = len(files(whole))
    moments = random.Random(0)
    killed = resumed = 0
    for number in range(MOMENTS):
        out, partial = tmp_path / f"out{number}", tmp_path / f"out{number}.partial"
        process = subprocess.Popen(command(manifest, out))
        killed += kill_when(process, partial, moments.randrange(total), moments.uniform(0, 0.02))
        assert not (out.exists() and partial.exists())
        if not out.exists():
            resumed += partial.exists()
            subprocess.run(command(manifest, out, "--resume"), check=True)
        assert not partial.exists()
        assert_same_folder(out, whole)
        shutil.rmtree(out)
    store = open_store(whole)
    assert all(np.array_equal(store.read(t), data[t]) for t in range(N_TIME))
    assert killed > MOMENTS // 2
    assert resumed > MOMENTS // 2


def test_an_interrupted_run_is_not_overwritten_and_says_how_to_go_on(tmp_path: Path) -> None:
    manifest, _ = write_inputs(tmp_path)
    (tmp_path / "out.partial").mkdir()
    done = chronozarr("convert", manifest, tmp_path / "out")
    assert done.returncode == 1
    assert "continue it with --resume, or remove the folder" in done.stderr


def test_ctrl_c_keeps_what_is_finished_and_names_resume(tmp_path: Path) -> None:
    manifest, _ = write_inputs(tmp_path)
    out = tmp_path / "out"
    process = subprocess.Popen(command(manifest, out), stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "out.partial" / ".encode"
    while not list(journal.glob("group-*.json")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "interrupted: continue with the same command and --resume" in errors
    assert "Traceback" not in errors
    subprocess.run(command(manifest, out, "--resume"), check=True)
    subprocess.run(command(manifest, tmp_path / "whole"), check=True)
    assert_same_folder(out, tmp_path / "whole")
