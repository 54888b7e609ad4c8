"""The benchmark's input: a correlated field that changes with the season, plus noise, as COGs and as an array."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CRS = "EPSG:32631"
TRANSFORM = (10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0)
BANDS = 4


def dates(n_time: int) -> list[str]:
    """First days of consecutive months."""
    return [f"{2020 + month // 12}-{month % 12 + 1:02}-01" for month in range(n_time)]


@lru_cache(maxsize=1)
def field(size: int) -> NDArray[np.float64]:
    """The ground: four bands of random texture correlated over two pixels, as fields and forests are."""
    frequency = np.fft.fftfreq(size)
    smooth = np.exp(-2 * (np.pi * 2) ** 2 * (frequency[:, None] ** 2 + frequency[None] ** 2))
    texture = np.random.default_rng(0).normal(size=(BANDS, size, size))
    correlated = np.fft.ifft2(np.fft.fft2(texture) * smooth).real
    return 3000 + 800 * correlated / correlated.std()


def frame(t: int, size: int) -> NDArray[np.uint16]:
    """Four bands of one month, shape (4, size, size): the ground in its season, and noise."""
    noise = np.random.default_rng(t + 1).normal(0, 20, (BANDS, size, size))
    return (field(size) * (1 + 0.05 * np.sin(t)) + noise).clip(1, 10000).astype(np.uint16)


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
