"""Both GDAL adapters behind the port: the same tests run over rasterio and over osgeo."""

from __future__ import annotations

import importlib.util
import json
import resource
import struct
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyproj
import pytest

from chronozarr_core.errors import ChronozarrError
from chronozarr_core.grid import RasterGrid
from gdal_tools.rasters import RESAMPLING, Raster, RasterBackend, RasterError, Warp, raster_backend
from tests.gdal.builders import CRS, TRANSFORM, WORLD_FILE, frame, write_png, write_tif

# What gdalwarp 3.6.2 prints for the 40 x 30 pixels at TRANSFORM in EPSG:4326.
SUGGESTED_SHAPE = (23, 44)
SUGGESTED_TRANSFORM = (0.000115215249213, 0, 2.999999999999992, 0, -0.000115215249213, 45.153477183356024)


def whole(raster: Raster) -> Any:
    """Every pixel of every band."""
    return raster.read(slice(0, raster.header.height), slice(0, raster.header.width))


def opened(backend: RasterBackend, path: Path, warp: Warp | None = None) -> Any:
    """All pixels and the header."""
    raster = backend.open(str(path), warp)
    try:
        return whole(raster), raster.header
    finally:
        raster.close()


def bare_tiff(path: Path, data: Any, nodata: str | None = None) -> Path:
    """A TIFF of one strip, written from the TIFF standard: what no binding of every version writes."""
    data = np.asarray(data)
    height, width = data.shape
    kind = {"u": 1, "i": 2, "f": 3}[data.dtype.kind]
    note = (nodata or "").encode() + b"\0"
    body = data.astype(data.dtype.newbyteorder("<")).tobytes()
    entries = [
        (256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, data.dtype.itemsize * 8), (259, 3, 1, 1), (262, 3, 1, 1),
        (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, height), (279, 4, 1, len(body)), (339, 3, 1, kind),
    ]  # fmt: skip
    if nodata is not None:
        entries.append((42113, 2, len(note), 8 + len(body)))
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in entries)
    start = 8 + len(body) + len(note)
    path.write_bytes(struct.pack("<2sHI", b"II", 42, start) + body + note + directory + bytes(4))
    return path


def zarr_group(path: Path, names: list[str]) -> str:
    """A Zarr v2 group of small arrays, as a GDAL name: a container that holds no band itself."""
    path.mkdir()
    (path / ".zgroup").write_text('{"zarr_format": 2}')
    for name in names:
        (path / name).mkdir()
        array = {
            "zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": "|u1", "compressor": None, "fill_value": 0,
            "order": "C", "filters": None,
        }  # fmt: skip
        (path / name / ".zarray").write_text(json.dumps(array))
        (path / name / "0.0").write_bytes(bytes(range(6)))
    return f'ZARR:"{path}"'


def north_up(height: int, width: int, size: float, west: float = 500000.0, north: float = 5000000.0) -> RasterGrid:
    return RasterGrid(CRS, (size, 0.0, west, 0.0, -size, north), height, width)


class TestChoice:
    def test_the_variable_chooses(self, backend: RasterBackend) -> None:
        assert raster_backend().name == backend.name

    def test_an_unknown_binding_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CHRONOZARR_GDAL", "gdal")
        with pytest.raises(ChronozarrError, match=r"CHRONOZARR_GDAL is 'gdal': expected one of rasterio, osgeo"):
            raster_backend()

    def test_inside_qgis_it_is_osgeo(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from gdal_tools import rasters

        monkeypatch.delenv("CHRONOZARR_GDAL", raising=False)
        monkeypatch.setitem(sys.modules, "qgis", sys)
        assert rasters._choice() == "osgeo"

    def test_elsewhere_it_is_rasterio_where_that_is_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from gdal_tools import rasters

        monkeypatch.delenv("CHRONOZARR_GDAL", raising=False)
        monkeypatch.delitem(sys.modules, "qgis", raising=False)
        expected = "rasterio" if importlib.util.find_spec("rasterio") else "osgeo"
        assert rasters._choice() == expected

    def test_the_version_is_that_of_a_gdal_with_a_cog_driver(self, backend: RasterBackend) -> None:
        assert (3, 1, 0) <= backend.gdal_version < (5, 0, 0)


class TestHeader:
    def test_everything_a_geotiff_declares(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_tif(
            tmp_path / "a.tif", frame(), nodata=7, scales=[0.1, 0.2], offsets=[-1.0, 2.0], units=["K", "m"],
            descriptions=["B04", "B08"],
        )  # fmt: skip
        header = backend.header(str(path))
        assert (header.uri, header.driver, header.width, header.height) == (str(path), "GTiff", 40, 30)
        assert header.transform == TRANSFORM
        assert pyproj.CRS(header.crs_wkt).to_epsg() == 32631
        assert [band.dtype for band in header.bands] == ["uint16", "uint16"]
        assert [band.nodata for band in header.bands] == [7, 7]
        assert [(band.scale, band.offset) for band in header.bands] == [(0.1, -1.0), (0.2, 2.0)]
        assert [(band.unit, band.description) for band in header.bands] == [("K", "B04"), ("m", "B08")]
        assert header.tags["AREA_OR_POINT"] == "Area"
        assert not header.mask
        assert header.alpha is None

    def test_what_is_not_declared_has_its_default(self, backend: RasterBackend, tmp_path: Path) -> None:
        band = backend.header(str(write_tif(tmp_path / "a.tif", frame()))).bands[0]
        assert (band.nodata, band.scale, band.offset, band.unit, band.description) == (None, 1.0, 0.0, "", "")

    @pytest.mark.parametrize(
        "dtype",
        ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"],
    )
    def test_types_are_reported_truthfully_even_where_no_store_holds_them(
        self, backend: RasterBackend, tmp_path: Path, dtype: str
    ) -> None:
        path = bare_tiff(tmp_path / "a.tif", frame(bands=1)[0].astype(dtype))
        assert backend.header(str(path)).bands[0].dtype == dtype

    def test_complex_values_are_reported(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_tif(tmp_path / "a.tif", frame().astype("complex64"))
        assert backend.header(str(path)).bands[0].dtype == "complex64"

    def test_nodata_of_64_bits_is_reported(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = bare_tiff(tmp_path / "a.tif", np.zeros((2, 3), "int64"), str(-(2**63)))
        assert backend.header(str(path)).bands[0].nodata == -(2**63)

    def test_nan_nodata_is_kept(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_tif(tmp_path / "a.tif", frame(dtype="float32"), nodata=float("nan"))
        nodata = backend.header(str(path)).bands[0].nodata
        assert nodata is not None
        assert np.isnan(nodata)

    def test_a_raster_without_georeferencing_has_neither(self, backend: RasterBackend, tmp_path: Path) -> None:
        header = backend.header(str(write_png(tmp_path / "a.png", frame(bands=1, dtype="uint8")[0])))
        assert (header.transform, header.crs_wkt) == (None, None)

    def test_ground_control_points_are_no_geotransform(self, backend: RasterBackend, tmp_path: Path) -> None:
        write_tif(tmp_path / "a.tif", frame(bands=1), transform=None, crs=None)
        (tmp_path / "a.vrt").write_text(
            '<VRTDataset rasterXSize="40" rasterYSize="30"><GCPList Projection="EPSG:4326">'
            '<GCP Pixel="0" Line="0" X="3" Y="45"/><GCP Pixel="40" Line="0" X="4" Y="45"/>'
            '<GCP Pixel="0" Line="30" X="3" Y="44"/></GCPList><VRTRasterBand dataType="UInt16" band="1"><SimpleSource>'
            '<SourceFilename relativeToVRT="1">a.tif</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>'
        )
        assert backend.header(str(tmp_path / "a.vrt")).transform is None

    def test_a_world_file_and_an_aux_xml_are_read(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_png(tmp_path / "a.png", frame(bands=1, dtype="uint8")[0])
        path.with_suffix(".pgw").write_text(WORLD_FILE)
        (tmp_path / "a.png.aux.xml").write_text(
            "<PAMDataset><SRS>EPSG:32631</SRS><PAMRasterBand band='1'><Description>red</Description>"
            "<NoDataValue>9</NoDataValue></PAMRasterBand></PAMDataset>"
        )
        header = backend.header(str(path))
        assert header.transform == TRANSFORM
        assert header.crs_wkt is not None
        assert (header.bands[0].description, header.bands[0].nodata) == ("red", 9)

    def test_an_internal_mask_is_a_mask_and_an_alpha_band_is_a_band(
        self, backend: RasterBackend, tmp_path: Path
    ) -> None:
        data = frame(bands=4, dtype="uint8")
        masked = backend.header(str(write_tif(tmp_path / "m.tif", data[:3], mask=data[0] > 100)))
        alpha = backend.header(str(write_tif(tmp_path / "a.tif", data, alpha=True)))
        assert (masked.mask, masked.alpha) == (True, None)
        assert (alpha.mask, alpha.alpha, len(alpha.bands)) == (False, 3, 4)

    def test_an_alpha_band_beside_nodata_is_still_listed(self, backend: RasterBackend, tmp_path: Path) -> None:
        header = backend.header(str(write_tif(tmp_path / "a.tif", frame(bands=4, dtype="uint8"), alpha=True, nodata=0)))
        assert (header.alpha, header.mask, header.bands[0].nodata) == (3, False, 0)

    def test_a_container_of_one_raster_is_that_raster(self, backend: RasterBackend, tmp_path: Path) -> None:
        header = backend.header(zarr_group(tmp_path / "g", ["only"]))
        assert (header.width, header.height, len(header.bands)) == (3, 2, 1)

    def test_a_container_of_several_lists_them(self, backend: RasterBackend, tmp_path: Path) -> None:
        with pytest.raises(RasterError, match=r"it holds 2 subdatasets \(.*first.*second.*\); name one of them"):
            backend.header(zarr_group(tmp_path / "g", ["first", "second"]))

    @pytest.mark.parametrize("name", ["missing.tif", "text.tif"])
    def test_what_does_not_open_is_named_and_nothing_is_printed(
        self, backend: RasterBackend, tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
    ) -> None:
        (tmp_path / "text.tif").write_text("no raster")
        with pytest.raises(RasterError, match=rf"cannot open source .*{name}: \S+"):
            backend.header(str(tmp_path / name))
        assert capfd.readouterr() == ("", "")


class TestRead:
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32", "float64"])
    @pytest.mark.parametrize("layout", [{}, {"tiled": True, "blockxsize": 16, "blockysize": 16}])
    def test_a_window_of_all_bands(
        self, backend: RasterBackend, tmp_path: Path, dtype: str, layout: dict[str, Any]
    ) -> None:
        data = frame(bands=3, dtype=dtype)
        raster = backend.open(str(write_tif(tmp_path / "a.tif", data, **layout)))
        window = raster.read(slice(5, 22), slice(7, 40))
        raster.close()
        assert window.dtype == dtype
        np.testing.assert_array_equal(window, data[:, 5:22, 7:40])

    def test_the_mask_of_a_window(self, backend: RasterBackend, tmp_path: Path) -> None:
        mask = frame(3, bands=1)[0] > 100
        raster = backend.open(str(write_tif(tmp_path / "a.tif", frame(), mask=mask)))
        np.testing.assert_array_equal(raster.read_mask(slice(2, 9), slice(1, 4)) != 0, mask[2:9, 1:4])
        raster.close()

    def test_signed_bytes(self, backend: RasterBackend, tmp_path: Path) -> None:
        values = np.array([[-128, -5, 0], [1, 2, 127]], "int8")
        read, _ = opened(backend, bare_tiff(tmp_path / "a.tif", values))
        np.testing.assert_array_equal(read[0], values)
        assert read.dtype == np.int8

    def test_another_thread_may_read_and_close(self, backend: RasterBackend, tmp_path: Path) -> None:
        data = frame()
        raster = backend.open(str(write_tif(tmp_path / "a.tif", data)))
        with ThreadPoolExecutor(1) as pool:
            np.testing.assert_array_equal(pool.submit(whole, raster).result(), data)
            pool.submit(raster.close).result()

    @pytest.mark.parametrize("compress", ["none", "deflate"])
    @pytest.mark.parametrize("layout", [{"tiled": False}, {"tiled": True, "blockxsize": 16, "blockysize": 16}])
    def test_a_truncated_tiff_raises_and_never_reads_as_zeros(
        self,
        backend: RasterBackend,
        tmp_path: Path,
        capfd: pytest.CaptureFixture[str],
        compress: str,
        layout: dict[str, Any],
    ) -> None:
        path = write_tif(tmp_path / "a.tif", frame(bands=1, height=256, width=256), compress=compress, **layout)
        content = path.read_bytes()
        path.write_bytes(content[: len(content) * 2 // 3])
        with pytest.raises(RasterError, match=r"cannot (open source|read rows 0 to 256 of) .*a\.tif: \S+"):
            opened(backend, path)
        assert capfd.readouterr() == ("", "")

    def test_a_damaged_block_raises(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_tif(tmp_path / "a.tif", frame(bands=1, height=256, width=256), compress="deflate")
        content = bytearray(path.read_bytes())
        middle = len(content) // 2
        content[middle : middle + 2000] = bytes(2000)
        path.write_bytes(content)
        with pytest.raises(RasterError, match=r"cannot read rows 0 to 256 of .*a\.tif"):
            opened(backend, path)

    def test_nothing_is_written_beside_a_source(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_png(tmp_path / "a.png", frame(bands=1, dtype="uint8")[0])
        path.with_suffix(".pgw").write_text(WORLD_FILE)
        opened(backend, path)
        opened(backend, path, Warp(north_up(30, 40, 10.0), "nearest", source_crs=CRS))
        assert {item.name for item in tmp_path.iterdir()} == {"a.png", "a.pgw"}


class TestWarp:
    def test_nearest_gives_the_source_pixel_under_each_centre(self, backend: RasterBackend, tmp_path: Path) -> None:
        data = frame(bands=2, height=90, width=120)
        path = write_tif(tmp_path / "a.tif", data, nodata=0)
        grid = RasterGrid("EPSG:4326", (0.0001, 0.0, 2.9990, 0.0, -0.0001, 45.1550), 80, 140)
        values, _ = opened(backend, path, Warp(grid, "nearest", nodata=0))
        np.testing.assert_array_equal(values, under_centres(data, grid))

    @pytest.mark.parametrize(("size", "factor"), [(5.0, 2), (2.5, 4)])
    def test_a_finer_grid_repeats_pixels(
        self, backend: RasterBackend, tmp_path: Path, size: float, factor: int
    ) -> None:
        data = frame()
        warp = Warp(north_up(30 * factor, 40 * factor, size), "nearest", nodata=0)
        values, header = opened(backend, write_tif(tmp_path / "a.tif", data), warp)
        np.testing.assert_array_equal(values, data.repeat(factor, 1).repeat(factor, 2))
        assert header.transform == warp.grid.transform
        assert len(header.bands) == 2

    def test_a_coarser_grid_takes_original_pixels_though_there_are_overviews(
        self, backend: RasterBackend, tmp_path: Path
    ) -> None:
        data = frame(bands=1, height=510, width=600)
        write_tif(tmp_path / "a.tif", data)
        options = {"BLOCKSIZE": "128", "OVERVIEWS": "AUTO", "RESAMPLING": "AVERAGE"}
        backend.copy_cog(tmp_path / "a.tif", tmp_path / "cog.tif", options)
        values, _ = opened(backend, tmp_path / "cog.tif", Warp(north_up(102, 120, 50.0), "nearest", nodata=0))
        np.testing.assert_array_equal(values, data[:, 2::5, 2::5])

    def test_outside_the_source_is_nodata(self, backend: RasterBackend, tmp_path: Path) -> None:
        data = frame()
        warp = Warp(north_up(50, 60, 10.0, west=499900.0, north=5000100.0), "nearest", nodata=999)
        values, header = opened(backend, write_tif(tmp_path / "a.tif", data), warp)
        expected = np.full((2, 50, 60), 999, "uint16")
        expected[:, 10:40, 10:50] = data
        np.testing.assert_array_equal(values, expected)
        assert [band.nodata for band in header.bands] == [999, 999]

    def test_without_nodata_an_alpha_band_says_where_there_is_a_source(
        self, backend: RasterBackend, tmp_path: Path
    ) -> None:
        data = frame()
        warp = Warp(north_up(50, 60, 10.0, west=499900.0, north=5000100.0), "nearest")
        values, header = opened(backend, write_tif(tmp_path / "a.tif", data), warp)
        assert [band.color == "alpha" for band in header.bands] == [False, False, True]
        assert [band.nodata for band in header.bands] == [None] * 3
        inside = np.zeros((50, 60), bool)
        inside[10:40, 10:50] = True
        np.testing.assert_array_equal(values[2] != 0, inside)
        np.testing.assert_array_equal(values[:2, 10:40, 10:50], data)

    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
    @pytest.mark.parametrize("declared", ["nodata", "mask", "alpha", "given"])
    def test_missing_source_pixels_have_alpha_0_and_no_alpha_appears_twice(
        self, backend: RasterBackend, tmp_path: Path, dtype: str, declared: str
    ) -> None:
        data = frame(bands=3, dtype=dtype)
        missing = frame(5, bands=1)[0] > 150
        path, source_nodata = with_missing(tmp_path / "a.tif", data, missing, declared)
        values, header = opened(backend, path, Warp(north_up(30, 40, 10.0), "nearest", source_nodata=source_nodata))
        assert [band.color == "alpha" for band in header.bands] == [False, False, False, True]
        np.testing.assert_array_equal(values[3] == 0, missing)
        np.testing.assert_array_equal(values[:3, ~missing], data[:, ~missing])

    @pytest.mark.parametrize("declared", ["mask", "alpha"])
    def test_a_given_value_is_missing_beside_a_plane(
        self, backend: RasterBackend, tmp_path: Path, declared: str
    ) -> None:
        data = frame(bands=3, dtype="uint8")
        data[:, 3, 4] = 201
        missing = frame(5, bands=1)[0] > 150
        path, _ = with_missing(tmp_path / "a.tif", data, missing, declared)
        values, _ = opened(backend, path, Warp(north_up(30, 40, 10.0), "nearest", source_nodata=201))
        np.testing.assert_array_equal(values[3] == 0, missing | (data[0] == 201))

    def test_a_mask_beside_a_given_value_is_not_averaged(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_tif(tmp_path / "a.tif", frame(), mask=frame()[0] > 100)
        with pytest.raises(RasterError, match=r"cannot warp .*a\.tif by average: it has a mask.*; use nearest"):
            backend.open(str(path), Warp(north_up(15, 20, 20.0), "average", source_nodata=7))

    @pytest.mark.parametrize("nodata", [None, 9])
    def test_a_declared_value_may_be_data(self, backend: RasterBackend, tmp_path: Path, nodata: int | None) -> None:
        data = np.array([[[0, 50], [100, 150]]], "uint8")
        path = write_tif(tmp_path / "a.tif", data, nodata=0)
        warp = Warp(north_up(1, 1, 20.0), "average", ignore_declared_nodata=True, nodata=nodata)
        values, _ = opened(backend, path, warp)
        assert values[0, 0, 0] == 75

    def test_a_pixel_that_is_missing_in_one_band_is_missing_in_all(
        self, backend: RasterBackend, tmp_path: Path
    ) -> None:
        data = frame(bands=2)
        data[1, 4, 5] = 0
        values, _ = opened(
            backend, write_tif(tmp_path / "a.tif", data, nodata=0), Warp(north_up(30, 40, 10.0), "nearest")
        )
        np.testing.assert_array_equal(np.argwhere(values[2] == 0), [[4, 5]])

    def test_nodata_is_each_bands_own_and_never_averaged(self, backend: RasterBackend, tmp_path: Path) -> None:
        data = np.full((2, 4, 4), 100, "uint16")
        data[1, 0, 0] = 0
        path = write_tif(tmp_path / "a.tif", data, nodata=0)
        values, _ = opened(backend, path, Warp(north_up(2, 2, 20.0), "average", nodata=0))
        np.testing.assert_array_equal(values, np.full((2, 2, 2), 100))

    @pytest.mark.parametrize("size", [10.0, 20.0])
    def test_nan_is_missing_where_it_is_declared(self, backend: RasterBackend, tmp_path: Path, size: float) -> None:
        data = frame(dtype="float32")
        data[:, :2, :2] = np.nan
        path = write_tif(tmp_path / "a.tif", data, nodata=float("nan"))
        values, _ = opened(backend, path, Warp(north_up(int(300 / size), int(400 / size), size), "average"))
        hole = np.zeros(values.shape[1:], bool)
        hole[: int(20 / size), : int(20 / size)] = True
        np.testing.assert_array_equal(values[2] == 0, hole)

    def test_a_raster_without_georeferencing_is_placed_by_what_is_given(
        self, backend: RasterBackend, tmp_path: Path
    ) -> None:
        pixels = frame(bands=1, dtype="uint8")[0]
        path = write_png(tmp_path / "a.png", pixels)
        warp = Warp(north_up(60, 80, 5.0), "nearest", source_crs=CRS, source_transform=TRANSFORM, nodata=0)
        values, _ = opened(backend, path, warp)
        np.testing.assert_array_equal(values[0], pixels.repeat(2, 0).repeat(2, 1))

    def test_a_rotated_raster_is_turned(self, backend: RasterBackend, tmp_path: Path) -> None:
        data = frame(bands=1)
        turned = (0.0, 10.0, 500000.0, -10.0, 0.0, 5000000.0)  # columns run south, rows run east
        values, _ = opened(
            backend,
            write_tif(tmp_path / "a.tif", data, transform=turned),
            Warp(north_up(40, 30, 10.0), "nearest", nodata=0),
        )
        np.testing.assert_array_equal(values[0], data[0].T)

    @pytest.mark.parametrize("resampling", RESAMPLING)
    def test_every_resampling_keeps_a_constant(self, backend: RasterBackend, tmp_path: Path, resampling: str) -> None:
        path = write_tif(tmp_path / "a.tif", np.full((1, 40, 40), 77, "uint16"))
        values, _ = opened(
            backend, path, Warp(north_up(10, 10, 33.0, west=500020.0, north=4999980.0), resampling, nodata=0)
        )
        np.testing.assert_array_equal(values, np.full((1, 10, 10), 77))

    @pytest.mark.parametrize(
        ("resampling", "expected"), [("average", 25), ("min", 10), ("max", 40), ("mode", 10), ("med", 20)]
    )
    def test_resampling_of_a_block_means_what_it_says(
        self, backend: RasterBackend, tmp_path: Path, resampling: str, expected: int
    ) -> None:
        block = np.array([[10, 20], [30, 40]] if resampling != "mode" else [[10, 10], [30, 40]], "uint16")
        path = write_tif(tmp_path / "a.tif", block)
        values, _ = opened(backend, path, Warp(north_up(1, 1, 20.0), resampling, nodata=0))
        assert values[0, 0, 0] == expected

    def test_a_crs_that_proj_does_not_know_is_refused(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_tif(tmp_path / "a.tif", frame(), crs=None)
        with pytest.raises(ChronozarrError, match=r"EPSG:999999"):
            backend.open(str(path), Warp(north_up(3, 4, 10.0), "nearest", source_crs="EPSG:999999"))


def under_centres(data: Any, grid: RasterGrid) -> Any:
    """The pixel of ``data``, which lies at TRANSFORM, under the centre of each pixel of a grid; 0 outside."""
    x, y = pyproj.Transformer.from_crs(grid.crs, CRS, always_xy=True).transform(*np.meshgrid(grid.x, grid.y))
    cols = np.floor((x - TRANSFORM[2]) / TRANSFORM[0]).astype(int)
    rows = np.floor((y - TRANSFORM[5]) / TRANSFORM[4]).astype(int)
    inside = (rows >= 0) & (rows < data.shape[1]) & (cols >= 0) & (cols < data.shape[2])
    values = np.zeros((len(data), *inside.shape), data.dtype)
    values[:, inside] = data[:, rows[inside], cols[inside]]
    assert inside.any()
    return values


def with_missing(path: Path, data: Any, missing: Any, declared: str) -> tuple[Path, float | None]:
    """A raster whose missing pixels are declared in one of four ways; the nodata value to give with it."""
    if declared == "mask":
        return write_tif(path, data, mask=~missing), None
    if declared == "alpha":
        opaque = {"uint8": 255, "uint16": 65535, "int16": 32767, "float32": 1}[data.dtype.name]
        plane = np.where(missing, 0, opaque).astype(data.dtype)
        return write_tif(path, np.concatenate([data, plane[None]]), alpha=True, photometric="rgb"), None
    marked = np.where(missing, 0, data).astype(data.dtype)
    if declared == "nodata":
        return write_tif(path, marked, nodata=0), None
    return write_tif(path, marked), 0


class TestSuggestedGrid:
    def test_in_its_own_crs_a_raster_keeps_its_grid(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_tif(tmp_path / "a.tif", frame())
        assert backend.suggest_grid(str(path), CRS, None, None) == RasterGrid(CRS, TRANSFORM, 30, 40)

    def test_in_another_crs_it_is_the_grid_of_gdalwarp(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_tif(tmp_path / "a.tif", frame())
        grid = backend.suggest_grid(str(path), "EPSG:4326", None, None)
        assert (grid.height, grid.width) == SUGGESTED_SHAPE
        np.testing.assert_allclose(grid.transform, SUGGESTED_TRANSFORM, rtol=1e-9)

    def test_what_a_raster_does_not_declare_is_given(self, backend: RasterBackend, tmp_path: Path) -> None:
        path = write_png(tmp_path / "a.png", frame(bands=1, dtype="uint8")[0])
        assert backend.suggest_grid(str(path), CRS, CRS, TRANSFORM) == RasterGrid(CRS, TRANSFORM, 30, 40)


class TestGeoTiff:
    @pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
    @pytest.mark.parametrize("masked", [False, True])
    def test_strips_come_back(self, backend: RasterBackend, tmp_path: Path, dtype: str, masked: bool) -> None:
        data, mask = frame(bands=3, height=70, dtype=dtype), frame(9, bands=1, height=70)[0] > 100
        path = tmp_path / "a.tif"
        with backend.create_geotiff(path, 40, 70, 3, dtype, mask=masked, block_size=32) as target:
            for start in range(0, 70, 24):
                rows = slice(start, start + 24)
                target.write(start, data[:, rows], mask[rows].astype(np.uint8) if masked else None)
        raster = backend.open(str(path))
        np.testing.assert_array_equal(whole(raster), data)
        assert raster.header.mask is masked
        valid = raster.read_mask(slice(0, 70), slice(0, 40)) != 0
        raster.close()
        np.testing.assert_array_equal(valid, mask if masked else np.ones_like(mask))
        assert [item.name for item in tmp_path.iterdir()] == ["a.tif"]

    def test_an_error_of_the_writer_is_not_gdals(self, backend: RasterBackend, tmp_path: Path) -> None:
        create = backend.create_geotiff(tmp_path / "a.tif", 4, 4, 1, "uint8", mask=False, block_size=16)
        with pytest.raises(ChronozarrError, match=r"^a chunk is broken$"), create:
            raise ChronozarrError("a chunk is broken")

    def test_a_folder_that_does_not_exist_is_an_error(self, backend: RasterBackend, tmp_path: Path) -> None:
        create = backend.create_geotiff(tmp_path / "no" / "a.tif", 4, 4, 1, "uint8", mask=False, block_size=16)
        with pytest.raises(RasterError, match=r"cannot write .*a\.tif"):
            create.__enter__()

    @pytest.mark.parametrize("masked", [False, True])
    def test_a_full_disk_is_an_error(self, backend: RasterBackend, tmp_path: Path, masked: bool) -> None:
        data = frame(bands=1, height=256, width=256)
        create = backend.create_geotiff(tmp_path / "a.tif", 256, 256, 1, "uint16", mask=masked, block_size=64)
        with pytest.raises(RasterError, match=r"cannot write .*a\.tif"), at_most(20000), create as target:
            target.write(0, data, np.ones((256, 256), np.uint8) if masked else None)


class TestCog:
    def test_a_copy_has_the_pixels_and_nothing_lies_beside_it(self, backend: RasterBackend, tmp_path: Path) -> None:
        data = frame(bands=2)
        write_tif(tmp_path / "a.tif", data, nodata=3)
        (tmp_path / "out").mkdir()
        backend.copy_cog(tmp_path / "a.tif", tmp_path / "out" / "c.tif", {"COMPRESS": "DEFLATE"})
        values, header = opened(backend, tmp_path / "out" / "c.tif")
        np.testing.assert_array_equal(values, data)
        assert header.bands[0].nodata == 3
        assert [item.name for item in (tmp_path / "out").iterdir()] == ["c.tif"]

    def test_a_failure_leaves_nothing(self, backend: RasterBackend, tmp_path: Path) -> None:
        write_tif(tmp_path / "a.tif", frame(bands=1, height=300, width=300, dtype="float32"))
        (tmp_path / "out").mkdir()
        with pytest.raises(RasterError, match=r"cannot write .*c\.tif"), at_most(20000):
            backend.copy_cog(tmp_path / "a.tif", tmp_path / "out" / "c.tif", {"COMPRESS": "NONE"})
        assert list((tmp_path / "out").iterdir()) == []

    def test_a_source_that_does_not_open_is_an_error(self, backend: RasterBackend, tmp_path: Path) -> None:
        with pytest.raises(RasterError, match=r"a\.vrt"):
            backend.copy_cog(tmp_path / "a.vrt", tmp_path / "c.tif", {})
        assert list(tmp_path.iterdir()) == []


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Files that grow no further, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.skipif(importlib.util.find_spec("osgeo") is None, reason="only osgeo has a setting that QGIS shares")
@pytest.mark.parametrize("before", [False, True])
def test_whether_gdal_raises_stays_as_qgis_has_it(backend: RasterBackend, tmp_path: Path, before: bool) -> None:
    from osgeo import gdal

    were_on = gdal.GetUseExceptions()
    try:
        (gdal.UseExceptions if before else gdal.DontUseExceptions)()
        opened(backend, write_tif(tmp_path / "a.tif", frame()), Warp(north_up(30, 40, 10.0), "nearest"))
        with pytest.raises(RasterError, match=r"cannot open source"):
            backend.header(str(tmp_path / "missing.tif"))
        assert bool(gdal.GetUseExceptions()) is before
    finally:
        (gdal.UseExceptions if were_on else gdal.DontUseExceptions)()
