"""One task in one process: ``python -m benchmarks.tasks CASE WHO FOLDER``; prints seconds and peak memory as JSON.

``WHO`` is ``ours`` (this project) or ``floor`` (numcodecs on all processors and plain file writes).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numcodecs import Zstd

from benchmarks.data import CRS, TRANSFORM, dates
from benchmarks.meter import measure

Task = Callable[[], Any]


def ours(case: str, folder: Path, encoding: str) -> Task:
    """This project's own commands, called in process."""
    import chronozarr_core as core
    from gdal_tools.cog import export_cogs
    from gdal_tools.convert import convert

    store, out = folder / f"store-{encoding}", folder / "out"
    if case == "encode":
        data = np.load(folder / "array.npy")
        times = dates(len(data))
        return lambda: core.encode(data, out, crs=CRS, transform=TRANSFORM, times=times, encoding=encoding)
    if case == "convert":
        options = core.EncodeOptions(encoding=encoding)
        return lambda: convert(folder / "manifest.csv", out, options=options)
    opened = core.open_store(store)
    if case == "read":
        return lambda: [opened.read(t).shape for t in range(len(opened.times))]
    return lambda: export_cogs(opened, out)


def floor(case: str, folder: Path, encoding: str) -> Task:
    """The chunks of this project's store of the case through numcodecs and plain files, and nothing else."""
    codec, out = Zstd(level=5), folder / "out"
    if case == "read":
        files = chunk_files(folder / f"store-{encoding}" / "0")
        return lambda: _everywhere(lambda path: len(memoryview(codec.decode(path.read_bytes()))), files)
    chunks = [codec.decode(path.read_bytes()) for path in chunk_files(folder / f"store-{encoding}")]
    out.mkdir()

    def write(number: int) -> None:
        (out / str(number)).write_bytes(codec.encode(chunks[number]))

    return lambda: _everywhere(write, range(len(chunks)))


def chunk_files(folder: Path) -> list[Path]:
    """The objects of the data arrays below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "data/c/" in path.as_posix())


def _everywhere(function: Callable[[Any], Any], items: Any) -> None:
    with ThreadPoolExecutor() as pool:
        list(pool.map(function, items))


def main(case: str, who: str, folder: str, encoding: str) -> None:
    """Run one task on a fresh output and print its figures."""
    shutil.rmtree(Path(folder) / "out", ignore_errors=True)
    task = {"ours": ours, "floor": floor}[who](case, Path(folder), encoding)
    measure(task)


if __name__ == "__main__":
    main(*sys.argv[1:])
