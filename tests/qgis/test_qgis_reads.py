"""QGIS opens what we export, as any user of it would, and shows the store's values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gdal_tools.cog import export_cogs
from tests.conftest import require
from tests.core.builders import CRS, DTYPES, TRANSFORM, drifting, noise, planes, write_store

core = require("qgis.core")

SHAPE = (2, 3, 150, 201)

pytestmark = pytest.mark.qgis


@pytest.fixture(scope="session", autouse=True)
def application() -> Any:
    """QGIS without a window, until the process ends: exitQgis would crash on layers that a failed test still holds."""
    running = core.QgsApplication([], False)
    running.initQgis()
    return running


def export(tmp_path: Path, data: NDArray[Any], **parts: Any) -> Any:
    """The layer of the last timestep's COG."""
    store = write_store(tmp_path / "store", data, **parts)
    layer = core.QgsRasterLayer(str(export_cogs(store, tmp_path / "cogs")[-1]), "last")
    assert layer.isValid(), layer.error().summary()
    return layer


def identify(layer: Any, row: int, col: int) -> list[float | None]:
    """What a click in the middle of a pixel shows, one value for each band."""
    a, _, c, _, e, f = TRANSFORM
    point = core.QgsPointXY(c + a * (col + 0.5), f + e * (row + 0.5))
    found = layer.dataProvider().identify(point, core.QgsRaster.IdentifyFormatValue).results()
    return [found[band] for band in sorted(found)]


def block(layer: Any, band: int, height: int, width: int, dtype: str) -> NDArray[Any]:
    """Values of one band as a renderer would get them, resampled where the size is not the layer's."""
    found = layer.dataProvider().block(band, layer.extent(), width, height)
    assert found.isValid()
    return np.frombuffer(bytes(found.data()), dtype).reshape(height, width)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_cogs_place_bands_and_values_are_the_stores(dtype: str, tmp_path: Path) -> None:
    data = noise(SHAPE, dtype)
    layer = export(tmp_path, data, nodata=None)
    assert layer.crs().authid() == CRS
    extent = layer.extent()
    west, north = TRANSFORM[2], TRANSFORM[5]
    assert (extent.xMinimum(), extent.yMaximum()) == (west, north)
    assert (extent.xMaximum(), extent.yMinimum()) == (west + 10 * 201, north - 10 * 150)
    assert (layer.width(), layer.height(), layer.bandCount()) == (201, 150, 3)
    assert [layer.bandName(band) for band in (1, 2, 3)] == ["Band 1: B1", "Band 2: B2", "Band 3: B3"]
    for band in range(3):
        assert np.array_equal(block(layer, band + 1, 150, 201, dtype), data[-1, band])


def test_a_click_shows_the_exact_value_of_a_star_delta_store(tmp_path: Path) -> None:
    data = drifting(SHAPE)
    layer = export(tmp_path, data, nodata=None, options={"encoding": "star-delta", "anchor_interval": 2})
    for row, col in ((0, 0), (149, 200), (77, 13), (15, 16)):
        assert identify(layer, row, col) == data[-1, :, row, col].tolist()


def test_a_click_on_nodata_shows_none(tmp_path: Path) -> None:
    data = np.maximum(noise(SHAPE), 1)
    data[-1, :, 40, 60] = 0
    layer = export(tmp_path, data, nodata=0)
    provider = layer.dataProvider()
    assert [(provider.sourceHasNoDataValue(band), provider.sourceNoDataValue(band)) for band in (1, 2, 3)] == [
        (True, 0)
    ] * 3
    assert identify(layer, 40, 60) == [None] * 3
    assert identify(layer, 40, 61) == data[-1, :, 40, 61].tolist()


def test_a_store_without_nodata_has_valid_zeros(tmp_path: Path) -> None:
    layer = export(tmp_path, np.zeros(SHAPE, np.uint16), nodata=None)
    assert not layer.dataProvider().sourceHasNoDataValue(1)
    assert identify(layer, 3, 4) == [0, 0, 0]


def test_a_mask_becomes_the_layers_transparency(tmp_path: Path) -> None:
    data, mask = noise(SHAPE, "uint8"), planes(SHAPE, 1)
    data[:, :, :][np.broadcast_to(mask[:, None] == 0, SHAPE)] = 0
    layer = export(tmp_path, data, mask=mask, nodata=None)
    assert layer.bandCount() == 4
    assert np.array_equal(block(layer, 4, 150, 201, "uint8"), mask[-1] * 255)
    for band in range(3):
        assert np.array_equal(block(layer, band + 1, 150, 201, "uint8"), data[-1, band])


def test_scale_and_offset_give_physical_values_in_qgis_float32(tmp_path: Path) -> None:
    data = noise(SHAPE)
    bands = [{"name": name, "scale": 1e-4, "offset": -0.1, "units": "reflectance"} for name in ("red", "nir", "swir")]
    layer = export(tmp_path, data, bands=bands, nodata=None)
    assert identify(layer, 10, 20) == pytest.approx((data[-1, :, 10, 20] * 1e-4 - 0.1).tolist(), rel=1e-6)


def test_a_zoomed_out_map_shows_the_stores_own_level(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", noise((1, 1, 512, 512)), nodata=None, options={"chunk_size": 128})
    layer = core.QgsRasterLayer(str(export_cogs(store, tmp_path / "cogs")[0]), "frame")
    for lod in range(len(store.levels)):
        size = 512 >> lod
        assert np.array_equal(block(layer, 1, size, size, "uint16"), store.read(0, lod)[0])


def test_qgis_leaves_no_file_beside_the_export(tmp_path: Path) -> None:
    layer = export(tmp_path, noise(SHAPE), nodata=None)
    block(layer, 1, 150, 201, "uint16")
    assert {path.suffix for path in (tmp_path / "cogs").iterdir()} == {".tif"}
