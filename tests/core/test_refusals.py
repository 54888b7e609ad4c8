"""What cannot be stored is refused with one clear error, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chronozarr_core import ArraySeries, Band, ChronozarrError, EncodeOptions, StorageError, encode, encode_series
from tests.core.builders import CRS, TRANSFORM, closed_folder, grid_of, noise, series_of

DATA = noise((3, 2, 6, 5))
TIMES = ["2024-01-01", "2024-02-01", "2024-03-01"]
GOOD: dict[str, Any] = {"data": DATA, "crs": CRS, "transform": TRANSFORM, "times": TIMES, "bands": ["a", "b"]}
LAMBERT = "+proj=lcc +lat_1=10 +lat_2=20 +lat_0=15 +lon_0=3 +x_0=7 +datum=WGS84"
FLOATS = DATA.astype(np.float32)


def nan_at(t: int) -> Any:
    data = FLOATS.copy()
    data[t, 1, 2, 2] = np.nan
    return data


def plane(value: Any, dtype: Any = np.uint8) -> Any:
    return np.full((3, 6, 5), value, dtype)


def test_the_arguments_that_the_refusals_vary_are_good(tmp_path: Path) -> None:
    encode(out=tmp_path / "out", **GOOD)
    assert (tmp_path / "out" / "zarr.json").exists()


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    # frames
    "three dimensions": ({"data": DATA[:, 0]}, r"data has 3 dimensions: expected 4, \(time, band, y, x\)"),
    "a list": ({"data": [[1]]}, "data has no dimensions: expected 4"),
    "no times": ({"times": None}, "carry no times: pass times="),
    "no crs": ({"crs": None}, 'carry no CRS: pass crs=, for example crs="EPSG:32631"'),
    "no transform": ({"transform": None}, "carry no x and y coordinates: pass transform="),
    "five members": ({"transform": TRANSFORM[:5]}, "transform has 5 members: expected six"),
    "times too few": ({"times": TIMES[:2]}, r"data has shape \(3, 2, 6, 5\): expected .* \(2, 2, 6, 5\)"),
    "bands too many": ({"bands": ["a", "b", "c"]}, r"expected .* \(3, 3, 6, 5\)"),
    "no bands": ({"bands": []}, "a store needs at least one band"),
    "empty band name": ({"bands": ["a", " "]}, "band name ' ' is empty or not text"),
    "band number": ({"bands": [Band("a"), Band(2)]}, "band name 2 is empty or not text"),  # type: ignore[arg-type]
    "duplicate bands": ({"bands": ["a", "a"]}, "band name 'a' is given 2 times: names must be unique"),
    "band without name": ({"bands": ["a", {"scale": 2}]}, "has no 'name'"),
    "scale NaN": ({"bands": ["a", Band("b", scale=np.nan)]}, "band 'b' has scale nan: expected a finite number"),
    "offset text": (
        {"bands": ["a", {"name": "b", "offset": "1"}]},
        "band 'b' has offset '1': expected a finite number",
    ),
    "no timesteps": (
        {"data": DATA[:0], "times": np.array([], "datetime64[ms]")},
        "a store needs at least one timestep",
    ),
    "mask shape": ({"mask": plane(1)[:2]}, r"mask has shape \(2, 6, 5\): expected \(time, y, x\) = \(3, 6, 5\)"),
    "coverage shape": ({"coverage": plane(1)[..., :4]}, r"coverage has shape \(3, 6, 4\)"),
    "mask dtype": ({"mask": plane(1, np.float32)}, "mask has dtype float32: expected bool or integers"),
    "coverage dtype": ({"coverage": plane(1, np.float64)}, "coverage has dtype float64"),
    "mask with 2": ({"mask": plane(2)}, "mask of timestep [0-2] holds values other than 0 and 1"),
    "mask with 256": ({"mask": plane(256, np.int32)}, "mask of timestep [0-2] holds values other than 0 and 1"),
    "negative coverage": ({"coverage": plane(-1, np.int16)}, "coverage of timestep [0-2] holds negative counts"),
    "NaN unmasked": ({"data": nan_at(1)}, r"timestep 1 \(2024-02-01T00:00:00Z\) holds NaN in valid pixels"),
    "NaN valid by mask": ({"data": nan_at(2), "mask": plane(1)}, r"timestep 2 \(2024-03-01T00:00:00Z\) holds NaN"),
    "NaN with nodata": ({"data": nan_at(0), "nodata": -1.0}, "timestep 0 .* pass a mask that is 0 there, or fill them"),
    # grid and crs
    "rotated": ({"transform": (10, 1, 0, 1, -10, 0)}, "the grid is rotated .* a store needs b = d = 0"),
    "south up": ({"transform": (10, 0, 0, 0, 10, 0)}, "the grid is not north up"),
    "east to west": ({"transform": (-10, 0, 0, 0, -10, 0)}, "the grid is not north up"),
    "NaN transform": ({"transform": (10, 0, np.nan, 0, -10, 0)}, "transform .* not finite"),
    "no pixels": ({"data": DATA[:, :, :0]}, "the grid is empty: 0 x 5 pixels"),
    "unknown crs": ({"crs": "EPSG:1"}, "'EPSG:1' is not a CRS that PROJ knows"),
    "crs without code": ({"crs": LAMBERT}, "has no EPSG code, and a store's crs must be EPSG:<code>: reproject"),
    # dtypes
    "float64": ({"data": DATA.astype(np.float64)}, "data type float64 cannot be stored: expected one of uint8, uint16"),
    "bool": ({"data": DATA > 9}, "data type bool cannot be stored"),
    "int32": ({"data": DATA.astype(np.int32)}, "data type int32 cannot be stored"),
    "nodata NaN": ({"data": FLOATS, "nodata": np.nan}, "nodata nan cannot be stored: expected a finite number"),
    "nodata infinite": ({"data": FLOATS, "nodata": -np.inf}, "nodata -inf cannot be stored"),
    "nodata between": (
        {"data": FLOATS, "nodata": 0.1},
        "nodata 0.1 is not a float32 value: the nearest is 0.1000000014",
    ),
    "nodata beyond float32": ({"data": FLOATS, "nodata": 1e40}, r"nodata 1e\+40 is not a float32 value"),
    "nodata below": ({"nodata": -1}, "nodata -1 is not a uint16 value: expected an integer from 0 to 65535"),
    "nodata above": ({"nodata": 65536}, "nodata 65536 is not a uint16 value"),
    "nodata fraction": ({"nodata": 0.5}, "nodata 0.5 is not a uint16 value"),
    "nodata text": ({"nodata": "none"}, "nodata 'none' is not a number"),
    # instants
    "times repeat": ({"times": [TIMES[0], TIMES[0], TIMES[2]]}, "times must be strictly increasing: timestep 1"),
    "times fall": ({"times": TIMES[::-1]}, "times must be strictly increasing"),
    "times fine": ({"times": np.array(TIMES, "datetime64[ns]") + np.timedelta64(1, "ns")}, "finer than a millisecond"),
    "times NaT": ({"times": np.array([*TIMES[:2], "NaT"], "datetime64[ms]")}, "times hold NaT"),
    "times numbers": ({"times": [1, 2, 3]}, "times have dtype int64"),
    "times text": ({"times": [*TIMES[:2], "spring"]}, "'spring' is not a date: expected ISO 8601"),
    # plan and codecs
    "encoding": ({"encoding": "delta"}, "encoding 'delta' is unknown: expected one of auto, none, star-delta"),
    "star-delta of int16": (
        {"data": DATA.astype(np.int16), "encoding": "star-delta"},
        "star-delta is not allowed for int16 data .* use encoding none or auto",
    ),
    "star-delta of float32": ({"data": FLOATS, "encoding": "star-delta"}, "star-delta is not allowed for float32"),
    "anchor_interval": ({"anchor_interval": 0}, "anchor_interval is 0: expected an integer of at least 1"),
    "anchor_interval text": ({"anchor_interval": "six"}, "anchor_interval is six: expected an integer"),
    "odd chunk_size": ({"chunk_size": 511}, "chunk_size is 511: expected an even number, 256 or 512"),
    "chunk_size": ({"chunk_size": 0}, "chunk_size is 0: expected an integer of at least 2"),
    "fractional chunk_size": ({"chunk_size": 2.5}, "chunk_size is 2.5: expected an integer"),
    "n_lods": ({"n_lods": 0}, "n_lods is 0: expected an integer of at least 1"),
    "n_lods bool": ({"n_lods": True}, "n_lods is True: expected an integer"),
    "workers": ({"workers": 0}, "workers is 0: expected an integer of at least 1"),
    "codec": ({"codec": "lzma"}, "codec 'lzma' is not permitted .*: expected one of zstd, gzip, blosc"),
    "bitshuffle": ({"codec": "blosc-zstd-bitshuffle"}, "codec 'blosc-zstd-bitshuffle' is not permitted"),
    "zstd level": ({"level": 23}, "zstd level 23 is out of range: expected an integer from 1 to 22"),
    "gzip level": ({"codec": "gzip", "level": 0}, "gzip level 0 is out of range: expected an integer from 1 to 9"),
    "blosc level": ({"codec": "blosc", "level": 10}, "blosc level 10 is out of range: expected an integer from 0 to 9"),
    "fractional level": ({"level": 2.5}, "zstd level 2.5 is out of range: expected an integer"),
    # provenance
    "provenance": ({"provenance": {"sources": ["s"], "gap_fill": "none"}}, "chronozarr.provenance has no 'composite'"),
    "sources text": (
        {"provenance": {"sources": "s2", "composite": "m", "gap_fill": "none"}},
        "sources of chronozarr.provenance is 's2': expected a list",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_refused_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    change, message = REFUSALS[name]
    with pytest.raises(ChronozarrError, match=message):
        encode(out=tmp_path / "out", **(GOOD | change))
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_that_is_not_empty_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(ChronozarrError, match="out exists and is not empty: choose another path, or remove it first"):
        encode(out=tmp_path / "out", **GOOD)
    assert (tmp_path / "out" / "mine").read_text() == "kept"
    assert len(list(tmp_path.iterdir())) == 1


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    encode(out=tmp_path / "out", **GOOD)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("dangling", [False, True])
def test_a_file_in_the_stores_place_is_refused_and_kept(tmp_path: Path, dangling: bool) -> None:
    if dangling:
        (tmp_path / "out").symlink_to(tmp_path / "nowhere")
    else:
        (tmp_path / "out").write_text("kept")
    with pytest.raises(ChronozarrError, match="out is a file: a store is a folder; choose another path"):
        encode(out=tmp_path / "out", **GOOD)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_place_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(StorageError, match=r"cannot create .*out.partial: Not a directory"):
        encode(out=tmp_path / "file" / "out", **GOOD)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_file_in_the_partial_stores_place_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "out.partial").write_text("kept")
    with pytest.raises(ChronozarrError, match=r"out.partial is left from an interrupted run"):
        encode(out=tmp_path / "out", **GOOD)
    with pytest.raises(StorageError, match=r"cannot create .*out.partial"):
        encode_series(series_of(DATA), tmp_path / "out", resume=True)
    assert (tmp_path / "out.partial").read_text() == "kept"


def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    """In a child without privileges, since the superuser may write anywhere."""
    folder = closed_folder(tmp_path)
    message = _run(
        f"""
        series = series_of(noise((1, 1, 4, 4)))
        if os.getuid() == 0:
            os.setuid(65534)
        encode_series(series, {str(folder / "out")!r})
        """
    )
    assert message.startswith("StorageError: cannot create")
    assert "Permission denied" in message
    assert list(folder.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path | None]:
    """A file system of 1 MB where this process may mount one, else None."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]
    try:
        mounted = os.getuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    yield disk if mounted else None
    if mounted:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_refused_and_nothing_is_left(small_disk: Path | None, tmp_path: Path) -> None:
    """On a small file system, or under a limit of the size of a file."""
    folder = small_disk or tmp_path / "disk"
    limit = "" if small_disk else "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    message = _run(
        f"""
        {limit}
        series = series_of(noise((4, 1, 512, 512)))
        encode_series(series, {str(folder / "out")!r}, EncodeOptions(chunk_size=256))
        """
    )
    assert message.startswith("StorageError: no space left to write")
    assert "free some, or write the store elsewhere" in message
    assert list(folder.iterdir()) == []


def _run(script: str) -> str:
    """Run a script in a child that must end in a ChronozarrError; return the error's type and message."""
    head = """
        import os, resource, sys
        from chronozarr_core import ChronozarrError, EncodeOptions, encode_series
        from tests.core.builders import noise, series_of
        try:
        """
    tail = """
        except ChronozarrError as error:
            print(f"{type(error).__name__}: {error}")
            sys.exit(7)
        """
    body = textwrap.indent(textwrap.dedent(script).strip(), "    ")
    code = f"{textwrap.dedent(head).strip()}\n{body}\n{textwrap.dedent(tail).strip()}\n"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert child.returncode == 7, child.stderr
    return child.stdout


def test_an_error_while_reading_leaves_nothing(tmp_path: Path) -> None:
    class Broken(ArraySeries):
        def read(self, t: int, rows: slice, cols: slice = slice(None)) -> Any:
            if t == 2:
                raise ChronozarrError("scene-3.tif: truncated")
            return super().read(t, rows, cols)

    series = Broken(DATA, grid=grid_of(DATA.shape), times=TIMES, bands=["a", "b"])
    for encoding in ("none", "star-delta", "auto"):
        with pytest.raises(ChronozarrError, match=r"scene-3.tif: truncated"):
            encode_series(series, tmp_path / "out", EncodeOptions(encoding=encoding, chunk_size=2), resumable=True)
        assert list(tmp_path.iterdir()) == []
