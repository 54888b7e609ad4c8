"""The published package's same commands, run by its own environment: ``python peer_tasks.py CASE FOLDER ENCODING``."""

from __future__ import annotations

import contextlib
import io
import runpy
import shutil
import sys
from pathlib import Path

from meter import measure


def task(case: str, folder: Path, encoding: str):  # type: ignore[no-untyped-def]
    """The task as a function without arguments."""
    import chronozarr
    import numpy as np
    import xarray

    out, store = folder / "out", folder / f"store-{encoding}"
    if case == "encode":
        data = np.load(folder / "array.npy")
        size = data.shape[2]
        times = np.array((folder / "manifest.csv").read_text().split("\n")[1:-1])
        array = xarray.DataArray(
            data,
            dims=("time", "band", "y", "x"),
            coords={
                "time": np.array([row.split(",")[1] for row in times], "datetime64[ns]"),
                "band": [str(band) for band in range(data.shape[1])],
                "y": 5000000.0 - (np.arange(size) + 0.5) * 10,
                "x": 500000.0 + (np.arange(size) + 0.5) * 10,
            },
        )
        return lambda: chronozarr.encode(array, out, crs="EPSG:32631", encoding=encoding)
    command = str(Path(sys.executable).parent / "chronozarr")
    if case == "convert":
        return lambda: _run(command, "convert", folder / "manifest.csv", out, "--encoding", encoding)
    if case == "export-cog":
        return lambda: _run(command, "export-cog", store, out)
    opened = chronozarr.open_store(store)
    return lambda: [opened.read(t=t).shape for t in range(len(opened.times))]


def _run(command: str, *arguments: object) -> None:
    """The package's own command, in this process."""
    sys.argv = [str(word) for word in (command, *arguments)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            runpy.run_path(command, run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise


def main(case: str, folder: str, encoding: str) -> None:
    """Run one task on a fresh output and print its figures."""
    shutil.rmtree(Path(folder) / "out", ignore_errors=True)
    shutil.rmtree(Path(folder) / "out.convert-work", ignore_errors=True)
    measure(task(case, Path(folder), encoding))


if __name__ == "__main__":
    main(*sys.argv[1:])
