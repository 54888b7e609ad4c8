"""The ``chronozarr`` command as a user runs it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

from chronozarr_core import encode, open_store
from tests.conftest import require
from tests.core.builders import closed_folder
from tests.gdal.builders import CRS, TRANSFORM, frame, write_manifest, write_series, write_tif


def chronozarr(*arguments: object, timeout: int = 120) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own; whatever happens, no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "gdal_tools.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def convert_ok(*arguments: object) -> str:
    done = chronozarr("convert", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_convert_validate_info_and_export_follow_each_other(tmp_path: Path) -> None:
    manifest, frames = write_series(tmp_path, nodata=7)
    store = tmp_path / "store"
    assert "wrote" in convert_ok(manifest, store, "--chunk-size", 16)
    assert chronozarr("validate", store).stdout.strip() == f"{store} conforms to chronozarr 0.2.0"
    info = json.loads(chronozarr("info", store, "--json").stdout)
    assert (info["dtype"], info["nodata"], info["crs"], info["chunk_size"]) == ("uint16", 7, CRS, 16)
    assert [level["shape"] for level in info["levels"]] == [[3, 2, 30, 40], [3, 2, 15, 20], [3, 2, 8, 10]]
    done = chronozarr("export-cog", store, tmp_path / "cogs", "--times", "2024-02")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in (tmp_path / "cogs").iterdir()] == ["L0_2024-02-01.tif"]
    again = tmp_path / "again"
    convert_ok(write_manifest(tmp_path / "cogs" / "m.csv", [("L0_2024-02-01.tif", "2024-02-01")]), again)
    assert np.array_equal(open_store(again).read(0), frames[1])


def test_info_prints_a_table_of_bands_and_levels(tmp_path: Path) -> None:
    manifest, _ = write_series(tmp_path)
    convert_ok(manifest, tmp_path / "store", "--chunk-size", 16)
    lines = chronozarr("info", tmp_path / "store").stdout.splitlines()
    assert "times:     3, 2024-01-01T00:00:00Z to 2024-03-01T00:00:00Z" in lines
    assert "0      30      40     10          2 x 3 of 16" in lines


def test_a_dry_run_checks_everything_and_writes_nothing(tmp_path: Path) -> None:
    manifest, _ = write_series(tmp_path)
    printed = convert_ok(manifest, tmp_path / "store", "--dry-run")
    assert "2 bands of uint16" in printed
    assert "every pixel is valid" in printed
    assert "nothing was written" in printed
    assert not list(tmp_path.glob("store*"))


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    manifest, _ = write_series(tmp_path)
    done = chronozarr("convert", manifest, tmp_path / "store", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_error_is_one_message_and_exit_status_1(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path / "m.csv", [("gone.tif", "2024-01-01")])
    done = chronozarr("convert", manifest, tmp_path / "store")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: m.csv row 2 (gone.tif): the file ")
    assert not list(tmp_path.glob("store*"))


def test_every_problem_of_every_file_is_listed_with_its_fix(tmp_path: Path) -> None:
    write_tif(tmp_path / "a.tif", frame(), crs=None)
    write_tif(tmp_path / "b.tif", frame(dtype="float64"))
    rows = [("a.tif", "2024-01-01"), ("b.tif", "2024-01-02"), ("c.tif", "2024-01-03")]
    done = chronozarr("convert", write_manifest(tmp_path / "m.csv", rows), tmp_path / "store")
    assert "has 3 problems, and nothing was written:" in done.stderr
    assert "m.csv row 2 (a.tif): it declares no CRS; say which one with --crs" in done.stderr
    assert "m.csv row 3 (b.tif): its data type is float64" in done.stderr
    assert "m.csv row 4 (c.tif): the file" in done.stderr


def test_an_output_that_is_a_file_or_not_empty_is_refused(tmp_path: Path) -> None:
    manifest, _ = write_series(tmp_path)
    (tmp_path / "file").write_text("mine")
    assert "is a file" in chronozarr("convert", manifest, tmp_path / "file").stderr
    assert (tmp_path / "file").read_text() == "mine"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    assert "exists and is not empty" in chronozarr("convert", manifest, tmp_path / "full").stderr
    (tmp_path / "empty").mkdir()
    convert_ok(manifest, tmp_path / "empty")


def test_a_store_that_is_not_there_or_not_one_is_named(tmp_path: Path) -> None:
    done = chronozarr("info", tmp_path / "none")
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: no chronozarr store at {tmp_path / 'none'}: there is no zarr.json\n",
    )
    (tmp_path / "zarr.json").write_text("{}")
    assert "not a chronozarr store" in chronozarr("info", tmp_path).stderr


AS_NOBODY = """
import os, sys
from gdal_tools.cli import main
from gdal_tools.rasters import raster_backend
raster_backend()  # what is imported later must be readable for everybody
if os.getuid() == 0:
    os.setuid(65534)
main(sys.argv[1:], prog_name="chronozarr")
"""


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    manifest, _ = write_series(tmp_path)
    closed = closed_folder(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, "convert", manifest, closed / "store"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"Error: cannot create {closed / 'store.partial'}: Permission denied\n"


def test_encode_writes_a_store_again_with_other_options(tmp_path: Path) -> None:
    data = np.stack([frame(seed) for seed in range(4)])
    times = [f"2024-0{month}-01" for month in range(1, 5)]
    encode(data, tmp_path / "a", crs=CRS, transform=TRANSFORM, times=times, encoding="star-delta", chunk_size=16)
    done = chronozarr("encode", tmp_path / "a", tmp_path / "b", "--encoding", "none", "--codec", "gzip")
    assert done.returncode == 0, done.stderr
    store = open_store(tmp_path / "b")
    assert (store.metadata.temporal.encoding, store.chunk_size) == ("none", 512)
    assert all(np.array_equal(store.read(t), data[t]) for t in range(4))


def test_encode_reads_a_packed_netcdf_variable_without_unpacking_it(tmp_path: Path) -> None:
    xarray = require("xarray")
    require("netCDF4")
    data = np.arange(2 * 1 * 5 * 6, dtype="int16").reshape(2, 1, 5, 6)
    array = xarray.DataArray(
        data,
        dims=("time", "band", "y", "x"),
        coords={
            "time": np.array(["2024-01-01", "2024-02-01"], "datetime64[ns]"),
            "y": 5e6 - (np.arange(5) + 0.5) * 10,
            "x": 5e5 + (np.arange(6) + 0.5) * 10,
        },
        attrs={"scale_factor": 0.1, "add_offset": 5.0, "units": "K", "_FillValue": np.int16(3)},
        name="tas",
    )
    array.to_netcdf(tmp_path / "a.nc")
    done = chronozarr("encode", tmp_path / "a.nc", tmp_path / "store", "--crs", CRS)
    assert done.returncode == 0, done.stderr
    store = open_store(tmp_path / "store")
    assert np.array_equal(store.read(1), data[1])
    assert (store.nodata, store.bands[0].scale, store.bands[0].offset, store.bands[0].units) == (3, 0.1, 5.0, "K")


@pytest.mark.parametrize("arguments", [("--bounds", "1,2,3"), ("--nodata", "many"), ("--shape", "a,b")])
def test_an_option_that_cannot_be_read_is_named(tmp_path: Path, arguments: tuple[str, str]) -> None:
    manifest, _ = write_series(tmp_path)
    done = chronozarr("convert", manifest, tmp_path / "store", *arguments)
    assert done.returncode == 2
    assert arguments[0] in done.stderr


def test_help_of_every_command_says_what_it_does() -> None:
    for command in ("convert", "encode", "validate", "info", "export-cog", "demo"):
        done = chronozarr(command, "--help")
        assert done.returncode == 0
        assert len(done.stdout.split("\n\n")) > 2


def test_tables_in_the_help_keep_their_lines() -> None:
    lines = chronozarr("convert", "--help").stdout.splitlines()
    assert any(line.startswith("    mask      an alpha band or internal mask") for line in lines)
    assert not any("\\b" in line for line in lines)


def test_progress_is_shown_on_a_terminal_and_nowhere_else(tmp_path: Path) -> None:
    manifest, _ = write_series(tmp_path)
    assert chronozarr("convert", manifest, tmp_path / "a").stderr == ""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(ours, (40, 100))
    process = subprocess.Popen(
        [sys.executable, "-m", "gdal_tools.cli", "convert", manifest, tmp_path / "b"], stderr=theirs, stdout=theirs
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert process.wait() == 0
    assert b"checking" in shown
    assert b"encoding" in shown
    assert b"wrote" in shown


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    manifest, _ = write_series(tmp_path)
    convert_ok(manifest, tmp_path / "store")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "gdal_tools.cli", "info", tmp_path / "store"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.stderr == ""
