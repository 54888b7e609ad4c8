"""Run by the peer environment's Python: requests as JSON lines on stdin, answers as JSON lines on stdout.

Only the documented interface of the published package is used: ``encode``, ``open_store``, ``validate``. Arrays travel
as .npy files.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import chronozarr
import numpy as np
import xarray as xr


def load(name: str | None) -> Any:
    return None if name is None else np.load(name)


def encode(data: str, times: list[str], out: str, bands: list[Any], transform: list[float], **options: Any) -> Any:
    values = np.load(data)
    a, _, c, _, e, f = transform
    coordinates = {
        "time": np.array(times, "datetime64[ns]"),
        "band": [band if isinstance(band, str) else band["name"] for band in bands],
        "y": f + e * (np.arange(values.shape[2]) + 0.5),
        "x": c + a * (np.arange(values.shape[3]) + 0.5),
    }
    array = xr.DataArray(values, dims=("time", "band", "y", "x"), coords=coordinates)
    planes = {name: load(options.pop(name, None)) for name in ("mask", "coverage")}
    report = chronozarr.encode(array, out, transform=transform, bands=bands, **planes, **options)
    return {"encoding": report.encoding, "levels": len(report.levels)}


def read(store: str, t: int, lod: int, out: str, what: str) -> bool:
    reader = chronozarr.open_store(store)
    values = getattr(reader, what)(t, lod=lod)
    if values is not None:
        np.save(out, values)
    return values is not None


def read_all(store: str, out: str) -> int:
    reader = chronozarr.open_store(store)
    methods = {"data": reader.read, "mask": reader.read_mask, "coverage": reader.read_coverage}
    found = {}
    for lod in range(len(reader.levels)):
        for name, method in methods.items():
            values = [method(t, lod=lod) for t in range(len(reader.times))]
            if values[0] is not None:
                found[f"{lod}/{name}"] = np.stack(values)
    np.savez(out, **found)
    return len(reader.levels)


def info(store: str) -> dict[str, Any]:
    reader = chronozarr.open_store(store)
    return {
        "times": [str(time) for time in np.asarray(reader.times, "datetime64[ms]")],
        "bands": [band if isinstance(band, str) else band.name for band in reader.bands],
        "levels": len(reader.levels),
        "nodata": reader.nodata,
        "dtype": str(np.dtype(reader.dtype)),
    }


def validate(store: str) -> list[str]:
    return [str(problem) for problem in chronozarr.validate(store)]


REQUESTS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (encode, read, read_all, info, validate)}


def answer(line: str) -> dict[str, Any]:
    request = json.loads(line)
    try:
        return {"result": REQUESTS[request["do"]](**request["with"])}
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here is told to the test, which fails with it
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        answers.write(json.dumps(answer(line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
