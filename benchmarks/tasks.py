"""One task in one process: ``python -m benchmarks.tasks CASE WHO FOLDER``; prints seconds and peak memory as JSON.

``WHO`` is ``ours`` (this project) or ``floor`` (numcodecs on all processors and plain file writes).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
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
    """The same chunks through numcodecs and plain files, and nothing else; for export there is no such floor."""
    del encoding
    codec, out = Zstd(level=5), folder / "out"
    if case in ("encode", "convert"):
        chunks = list(_chunks(np.load(folder / "array.npy", mmap_mode="r")))
        out.mkdir()

        def write(number: int) -> None:
            (out / str(number)).write_bytes(codec.encode(chunks[number]))

        return lambda: _everywhere(write, range(len(chunks)))
    files = sorted((folder / "store-none" / "0" / "data" / "c").rglob("*"))
    buffers = [path for path in files if path.is_file()]
    return lambda: _everywhere(lambda path: len(memoryview(codec.decode(path.read_bytes()))), buffers)


def _chunks(array: Any, size: int = 512) -> Iterator[Any]:
    """Every chunk of every level; the coarser levels are stood in for by decimation, whose bytes are alike."""
    while True:
        for frame in array:
            for row in range(0, frame.shape[1], size):
                for col in range(0, frame.shape[2], size):
                    cell = np.zeros((frame.shape[0], size, size), array.dtype)
                    part = frame[:, row : row + size, col : col + size]
                    cell[:, : part.shape[1], : part.shape[2]] = part
                    yield cell
        if max(array.shape[2:]) <= size:
            return
        array = array[:, :, ::2, ::2]


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
