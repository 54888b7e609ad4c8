"""The benchmark's input: a smooth field that drifts from month to month, plus noise, as COGs and as an array."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CRS = "EPSG:32631"
TRANSFORM = (10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0)
BANDS = 4


def dates(n_time: int) -> list[str]:
    """First days of consecutive months."""
    return [f"{2020 + month // 12}-{month % 12 + 1:02}-01" for month in range(n_time)]


def frame(t: int, size: int) -> NDArray[np.uint16]:
    """Four bands of one month, shape (4, size, size)."""
    rng = np.random.default_rng(t)
    y, x = np.mgrid[0:size, 0:size].astype(np.float32) / 300
    season = 1 + 0.05 * np.sin(t)
    field = [1500 + 800 * np.sin(x + band) + 600 * np.cos(1.5 * y - band) for band in range(BANDS)]
    noise = rng.normal(0, 2, (BANDS, size, size)).astype(np.float32)
    return (np.stack(field) * season + noise).clip(1, 10000).astype(np.uint16)


def make(folder: Path, n_time: int, size: int) -> Path:
    """Write ``array.npy``, the COGs and ``manifest.csv`` where they are not there yet; return the manifest."""
    manifest = folder / "manifest.csv"
    if manifest.exists():
        return manifest
    import rasterio
    from rasterio.io import MemoryFile
    from rasterio.shutil import copy

    folder.mkdir(parents=True, exist_ok=True)
    frames = [frame(t, size) for t in range(n_time)]
    np.save(folder / "array.npy", np.stack(frames))
    rows = ["uri,datetime"]
    for date, data in zip(dates(n_time), frames, strict=True):
        profile = {"driver": "GTiff", "count": BANDS, "height": size, "width": size, "dtype": "uint16", "crs": CRS}
        with MemoryFile() as memory:
            with memory.open(**profile, transform=rasterio.Affine(*TRANSFORM), nodata=0) as target:
                target.write(data)
            copy(memory.name, folder / f"{date}.tif", driver="COG", compress="deflate", blocksize=512)
        rows.append(f"{date}.tif,{date}")
    manifest.write_text("\n".join(rows) + "\n")
    return manifest
