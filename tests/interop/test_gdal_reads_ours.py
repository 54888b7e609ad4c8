"""GDAL 3.12 opens the arrays of a plain store by itself, with CRS, geotransform and values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from chronozarr_core import encode, open_store
from tests.conftest import require
from tests.core.builders import noise

TIMES = ["2024-01-01", "2024-02-01", "2024-03-01"]
GRIDS = [
    ("EPSG:32631", (10.0, 0.0, 500000.0, 0.0, -10.0, 5000000.0)),
    ("EPSG:4326", (0.1, 0.0, -60.0, 0.0, -0.1, 10.0)),
    ("EPSG:2056", (2.5, 0.0, 2600000.0, 0.0, -5.0, 1200000.0)),
    ("EPSG:5070", (30.0, 0.0, 120000.0, 0.0, -30.0, 1500000.0)),
]


@pytest.mark.parametrize(("crs", "transform"), GRIDS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_every_level_of_a_plain_store_opens_with_crs_geotransform_and_values(
    crs: str, transform: tuple[float, ...], dtype: str, tmp_path: Path
) -> None:
    rasterio = require("rasterio")
    assert tuple(int(part) for part in rasterio.__gdal_version__.split(".")[:2]) >= (3, 12)
    data = noise((3, 2, 70, 45), dtype)
    encode(data, tmp_path / "store", crs=crs, transform=transform, times=TIMES, encoding="none", chunk_size=16)
    store = open_store(tmp_path / "store")
    for lod, grid in enumerate(store.grids):
        with rasterio.open(tmp_path / "store" / str(lod) / "data" / "zarr.json") as dataset:
            assert dataset.crs.to_epsg() == int(crs.removeprefix("EPSG:"))
            assert tuple(dataset.transform)[:6] == pytest.approx(grid.transform, rel=1e-12)
            assert (dataset.height, dataset.width, dataset.count) == (grid.height, grid.width, 6)
            values = dataset.read().reshape(3, 2, grid.height, grid.width)
        assert all(np.array_equal(values[t], store.read(t, lod)) for t in range(3))
        assert lod > 0 or np.array_equal(values, data)


def test_a_mask_opens_with_the_same_place(tmp_path: Path) -> None:
    rasterio = require("rasterio")
    crs, transform = GRIDS[0]
    mask = noise((3, 1, 70, 45), "uint8")[:, 0] > 100
    encode(noise((3, 2, 70, 45), "uint8"), tmp_path / "store", crs=crs, transform=transform, times=TIMES, mask=mask)
    with rasterio.open(tmp_path / "store" / "0" / "mask" / "zarr.json") as dataset:
        assert dataset.crs.to_epsg() == 32631
        assert tuple(dataset.transform)[:6] == transform
        assert np.array_equal(dataset.read(), mask)
