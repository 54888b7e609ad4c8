"""Export to COGs: every pixel of every level, validity, metadata, file names, and that a failure leaves nothing."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from chronozarr_core import Band, ChronoStore
from chronozarr_core.errors import ChronozarrError, SelectionError
from chronozarr_core.instants import as_instants
from gdal_tools.cog import COMPRESSIONS, export_cogs, parse_times
from gdal_tools.rasters import RasterBackend
from tests.core.builders import drifting, noise, planes, write_store

pytestmark = pytest.mark.usefixtures("backend")


class Pixels(NamedTuple):
    """What GDAL reads at one level of a file: data (band, y, x) and the mask of the first band, nonzero valid."""

    data: Any
    mask: Any


def read_level(backend: RasterBackend, path: Path, overview: int | None) -> Pixels:
    """A file's own pixels (None) or those of one of its overviews, read by the binding and not by this project."""
    return _read_rasterio(path, overview) if backend.name == "rasterio" else _read_osgeo(path, overview)


def _read_rasterio(path: Path, overview: int | None) -> Pixels:
    import rasterio

    options = {} if overview is None else {"overview_level": overview}
    with rasterio.open(path, **options) as dataset:
        return Pixels(dataset.read(), dataset.read_masks(1))


def _read_osgeo(path: Path, overview: int | None) -> Pixels:
    from osgeo import gdal

    dataset = gdal.Open(str(path))
    bands = [dataset.GetRasterBand(number + 1) for number in range(dataset.RasterCount)]
    if overview is not None:
        bands = [band.GetOverview(overview) for band in bands]
    mask = np.frombuffer(bands[0].GetMaskBand().ReadRaster(), np.uint8)
    shape = (bands[0].YSize, bands[0].XSize)
    dtype = {"Byte": "uint8", "UInt16": "uint16", "Int16": "int16", "Float32": "float32"}
    data = [np.frombuffer(band.ReadRaster(), dtype[gdal.GetDataTypeName(band.DataType)]) for band in bands]
    return Pixels(np.stack(data).reshape(len(bands), *shape), mask.reshape(shape))


def overview_count(backend: RasterBackend, path: Path) -> int:
    if backend.name == "rasterio":
        import rasterio

        with rasterio.open(path) as dataset:
            return len(dataset.overviews(1))
    from osgeo import gdal

    dataset = gdal.Open(str(path))
    return int(dataset.GetRasterBand(1).GetOverviewCount())


def assert_levels_equal(backend: RasterBackend, store: ChronoStore, paths: Sequence[Path], level: int = 0) -> None:
    """Every level from ``level`` on of every timestep is in the files, with its mask, and nothing else."""
    assert len(paths) == len(store.times)
    for t, path in enumerate(paths):
        assert overview_count(backend, path) == len(store.levels) - level - 1
        for lod in range(level, len(store.levels)):
            pixels = read_level(backend, path, None if lod == level else lod - level - 1)
            np.testing.assert_array_equal(pixels.data, store.read(t, lod))
            assert pixels.data.dtype == store.dtype
            expected = store.read_mask(t, lod)
            if expected is not None:
                np.testing.assert_array_equal(pixels.mask != 0, expected != 0)


@pytest.mark.parametrize(
    ("shape", "level", "levels"),
    [
        ((2, 2, 70, 45), 0, 4),
        ((2, 2, 70, 45), 1, 3),
        ((2, 2, 70, 45), 3, 1),
        ((1, 3, 129, 1), 0, 5),
        ((2, 1, 1, 1), 0, 1),
        ((1, 4, 16, 16), 0, 1),
        ((1, 1, 17, 3), 0, 2),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_overviews_are_the_stores_levels_whatever_the_size(
    backend: RasterBackend, tmp_path: Path, shape: tuple[int, ...], level: int, levels: int, masked: bool
) -> None:
    store = write_store(tmp_path / "s", noise(shape), mask=planes(shape, 1) if masked else None)
    assert len(store.levels) - level == levels
    assert_levels_equal(backend, store, export_cogs(store, tmp_path / "o", level=level), level)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("nodata", [None, 0, 7])
@pytest.mark.parametrize("masked", [False, True])
def test_every_type_and_kind_of_validity(
    backend: RasterBackend, tmp_path: Path, dtype: str, nodata: int | None, masked: bool
) -> None:
    data = noise((2, 3, 40, 50), dtype)
    data[:, :, :5, :5] = 7
    mask = planes(data.shape, 1)
    mask[:, :5, :5] = 0
    store = write_store(tmp_path / "s", data, nodata=nodata, mask=mask if masked else None)
    assert_levels_equal(backend, store, export_cogs(store, tmp_path / "o"))


def test_star_delta_is_reconstructed_at_every_level(backend: RasterBackend, tmp_path: Path) -> None:
    data = drifting((7, 2, 70, 45))
    options = {"encoding": "star-delta", "anchor_interval": 3}
    store = write_store(tmp_path / "s", data, options=options, mask=planes(data.shape, 1))
    assert store.metadata.temporal.is_star_delta
    assert_levels_equal(backend, store, export_cogs(store, tmp_path / "o"))


@pytest.mark.parametrize(("chunk_size", "tile"), [(16, 512), (128, 128), (256, 256), (136, 512), (144, 144)])
def test_tiles_are_the_stores_chunks_where_gdal_takes_them(
    backend: RasterBackend, tmp_path: Path, chunk_size: int, tile: int
) -> None:
    data = noise((1, 2, 300, 290), "uint8")
    store = write_store(tmp_path / "s", data, options={"chunk_size": chunk_size}, mask=planes(data.shape, 1))
    (path,) = export_cogs(store, tmp_path / "o")
    assert backend.header(str(path)).block_height == tile
    assert_levels_equal(backend, store, [path])


@pytest.mark.parametrize("compress", COMPRESSIONS)
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_every_compression_is_lossless(backend: RasterBackend, tmp_path: Path, compress: str, dtype: str) -> None:
    store = write_store(tmp_path / "s", noise((1, 2, 70, 45), dtype))
    paths = export_cogs(store, tmp_path / "o", compress=compress)
    assert_levels_equal(backend, store, paths)
    assert structure(backend, paths[0]).get("COMPRESSION", "NONE") == compress.upper()


def structure(backend: RasterBackend, path: Path) -> dict[str, str]:
    """GDAL's IMAGE_STRUCTURE of a file."""
    if backend.name == "rasterio":
        import rasterio

        with rasterio.open(path) as dataset:
            return dict(dataset.tags(ns="IMAGE_STRUCTURE"))
    from osgeo import gdal

    return dict(gdal.Open(str(path)).GetMetadata("IMAGE_STRUCTURE"))


class TestValidity:
    def test_a_nodata_store_gives_its_nodata_and_no_mask(self, backend: RasterBackend, tmp_path: Path) -> None:
        header = self.exported(backend, tmp_path, nodata=5)
        assert [band.nodata for band in header.bands] == [5, 5]
        assert not header.mask

    def test_a_mask_store_gives_an_internal_mask(self, backend: RasterBackend, tmp_path: Path) -> None:
        header = self.exported(backend, tmp_path, nodata=None, mask=np.ones((1, 20, 20), np.uint8))
        assert header.mask
        assert [band.nodata for band in header.bands] == [None, None]

    def test_a_store_with_neither_gives_neither(self, backend: RasterBackend, tmp_path: Path) -> None:
        header = self.exported(backend, tmp_path, nodata=None)
        assert [band.nodata for band in header.bands] == [None, None]
        assert not header.mask

    @pytest.mark.parametrize(("valid", "expected"), [(0, 5), (1, None)])
    def test_a_masked_stores_nodata_is_given_unless_a_valid_pixel_holds_it(
        self, backend: RasterBackend, tmp_path: Path, valid: int, expected: int | None
    ) -> None:
        data = np.full((1, 2, 20, 20), 9, "uint16")
        data[0, 1, 3, 4] = 5
        mask = np.ones((1, 20, 20), np.uint8)
        mask[0, 3, 4] = valid
        store = write_store(tmp_path / "s", data, nodata=5, mask=mask)
        (path,) = export_cogs(store, tmp_path / "o")
        assert backend.header(str(path)).bands[0].nodata == expected
        assert_levels_equal(backend, store, [path])

    def exported(self, backend: RasterBackend, folder: Path, **parts: Any) -> Any:
        store = write_store(folder / "s", np.full((1, 2, 20, 20), 9, "uint16"), **parts)
        (path,) = export_cogs(store, folder / "o")
        return backend.header(str(path))


class TestPhysical:
    @pytest.mark.parametrize("masked", [False, True])
    def test_values_are_scaled_and_nan_where_invalid_at_every_level(
        self, backend: RasterBackend, tmp_path: Path, masked: bool
    ) -> None:
        data = noise((2, 2, 70, 45), "uint16") % 50
        bands = [Band("B1", scale=0.0001, offset=-0.1, units="1"), Band("B2", scale=0.02, offset=273.15, units="K")]
        store = write_store(tmp_path / "s", data, bands=bands, nodata=0, mask=planes(data.shape, 1) if masked else None)
        paths = export_cogs(store, tmp_path / "o", physical=True)
        for t, path in enumerate(paths):
            for lod in range(len(store.levels)):
                values = read_level(backend, path, lod - 1 if lod else None).data
                np.testing.assert_array_equal(values, self.expected(store, t, lod))

    def expected(self, store: ChronoStore, t: int, lod: int) -> Any:
        stored, mask = store.read(t, lod), store.read_mask(t, lod)
        valid = stored != store.nodata if mask is None else np.broadcast_to(mask == 1, stored.shape)
        scale, offset = np.array([0.0001, 0.02])[:, None, None], np.array([-0.1, 273.15])[:, None, None]
        return np.where(valid, stored.astype(np.float64) * scale + offset, np.nan).astype(np.float32)

    def test_the_file_says_nan_and_units_and_no_scale(self, backend: RasterBackend, tmp_path: Path) -> None:
        bands = [Band("B1", scale=0.5, offset=1.0, units="K")]
        store = write_store(tmp_path / "s", noise((1, 1, 20, 20)), bands=bands, mask=np.ones((1, 20, 20), np.uint8))
        (path,) = export_cogs(store, tmp_path / "o", physical=True)
        header = backend.header(str(path))
        band = header.bands[0]
        assert (band.dtype, band.scale, band.offset, band.unit) == ("float32", 1.0, 0.0, "K")
        assert band.nodata is not None
        assert np.isnan(band.nodata)
        assert not header.mask


class TestMetadata:
    def test_bands_grid_and_date(self, backend: RasterBackend, tmp_path: Path) -> None:
        bands = [Band('red <"&> edge', "rededge", 0.0001, -0.1, "1"), Band("LST", None, 0.02, 0.0, "°K")]
        store = write_store(tmp_path / "s", noise((1, 2, 40, 30)), bands=bands, times=["2024-03-05T06:07:08Z"])
        (path,) = export_cogs(store, tmp_path / "o", level=1)
        header = backend.header(str(path))
        assert [band.description for band in header.bands] == ['red <"&> edge', "LST"]
        assert [(band.scale, band.offset, band.unit) for band in header.bands] == [(0.0001, -0.1, "1"), (0.02, 0, "°K")]
        assert header.tags["TIFFTAG_DATETIME"] == "2024:03:05 06:07:08"
        assert header.transform == store.grids[1].transform
        assert header.crs_wkt is not None
        assert "32631" in header.crs_wkt

    @pytest.mark.parametrize("level", [0, 4])
    def test_a_single_pixel_knows_where_it_is(self, backend: RasterBackend, tmp_path: Path, level: int) -> None:
        store = write_store(tmp_path / "s", noise((1, 1, 16, 1)), options={"n_lods": 5})
        (path,) = export_cogs(store, tmp_path / "o", level=level)
        assert backend.header(str(path)).transform == store.grids[level].transform

    @pytest.mark.parametrize("names", [("red", "green", "blue"), ("blue", "green", "red", "nir")])
    def test_bands_that_are_colours_are_shown_as_colours(
        self, backend: RasterBackend, tmp_path: Path, names: tuple[str, ...]
    ) -> None:
        bands = [Band(name.upper(), name) for name in names]
        store = write_store(tmp_path / "s", noise((1, len(names), 20, 20), "uint8"), bands=bands)
        (path,) = export_cogs(store, tmp_path / "o")
        colors = [band.color for band in backend.header(str(path)).bands]
        assert colors == [name if name != "nir" else "undefined" for name in names]

    def test_other_bands_are_never_shown_as_colours_or_transparency(
        self, backend: RasterBackend, tmp_path: Path
    ) -> None:
        store = write_store(tmp_path / "s", noise((1, 4, 20, 20), "uint8"))
        (path,) = export_cogs(store, tmp_path / "o")
        assert [band.color for band in backend.header(str(path)).bands] == ["gray", *["undefined"] * 3]


class TestNames:
    @pytest.mark.parametrize(
        ("times", "expected"),
        [
            (["2024-01-01", "2024-02-01"], ["L0_2024-01-01.tif", "L0_2024-02-01.tif"]),
            (
                ["2024-01-01", "2024-01-01T10:30:00Z"],
                ["L0_2024-01-01T000000Z.tif", "L0_2024-01-01T103000Z.tif"],
            ),
            (["2024-01-01T10:30:00.250Z"], ["L0_2024-01-01T103000.250Z.tif"]),
        ],
    )
    def test_the_time_of_day_appears_when_it_matters(
        self, tmp_path: Path, times: list[str], expected: list[str]
    ) -> None:
        store = write_store(tmp_path / "s", noise((len(times), 1, 20, 20)), times=times)
        paths = export_cogs(store, tmp_path / "o")
        assert [path.name for path in paths] == expected
        assert sorted(item.name for item in (tmp_path / "o").iterdir()) == sorted(expected)

    def test_chosen_timesteps_come_once_and_only_they(self, backend: RasterBackend, tmp_path: Path) -> None:
        store = write_store(tmp_path / "s", noise((4, 1, 20, 20)))
        paths = export_cogs(store, tmp_path / "o", times=[2, -1, 2], level=1)
        assert [path.name for path in paths] == ["L1_2024-03-01.tif", "L1_2024-04-01.tif"]
        for t, path in zip((2, 3), paths, strict=True):
            np.testing.assert_array_equal(read_level(backend, path, None).data, store.read(t, 1))


class TestFailures:
    def test_existing_files_are_refused_before_anything_is_written(self, tmp_path: Path) -> None:
        store = write_store(tmp_path / "s", noise((3, 1, 20, 20)))
        out = tmp_path / "o"
        out.mkdir()
        (out / "L0_2024-02-01.tif").write_text("mine")
        with pytest.raises(ChronozarrError, match=r"L0_2024-02-01\.tif exist already"):
            export_cogs(store, out)
        assert [item.name for item in out.iterdir()] == ["L0_2024-02-01.tif"]
        assert (out / "L0_2024-02-01.tif").read_text() == "mine"

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"level": 9}, r"level 9 does not exist: the store has 2"),
            (
                {"times": [3]},
                r"timestep 3 does not exist: the store has 3 timesteps, 2024-01-01T00:00:00Z to 2024-03-01",
            ),
            ({"compress": "jpeg"}, r"compress 'jpeg' is unknown: expected one of deflate, zstd, lzw, none"),
        ],
    )
    def test_what_the_store_does_not_have_is_refused(
        self, tmp_path: Path, options: dict[str, Any], expected: str
    ) -> None:
        store = write_store(tmp_path / "s", noise((3, 1, 20, 20)))
        with pytest.raises(ChronozarrError, match=expected):
            export_cogs(store, tmp_path / "o", **options)
        assert not (tmp_path / "o").exists()

    @pytest.mark.parametrize("exists", [False, True])
    def test_a_broken_chunk_is_named_and_finished_files_go_too(self, tmp_path: Path, exists: bool) -> None:
        store = write_store(tmp_path / "s", noise((4, 1, 20, 20)))
        (tmp_path / "s" / "0" / "data" / "c" / "3" / "0" / "0" / "0").write_bytes(b"broken")
        out = tmp_path / "o"
        if exists:
            out.mkdir()
        with pytest.raises(ChronozarrError, match=r"0/data/c/3/0/0/0"):
            export_cogs(store, out, workers=1)
        assert out.exists() is exists
        assert not exists or list(out.iterdir()) == []

    def test_an_interrupt_leaves_nothing(self, tmp_path: Path) -> None:
        store = write_store(tmp_path / "s", noise((4, 1, 20, 20)))

        def interrupt(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            export_cogs(store, tmp_path / "o", workers=2, progress=interrupt)
        assert not (tmp_path / "o").exists()
        assert [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")] == []

    def test_a_folder_that_is_a_file_is_one_clear_error(self, tmp_path: Path) -> None:
        store = write_store(tmp_path / "s", noise((1, 1, 20, 20)))
        (tmp_path / "o").write_text("mine")
        with pytest.raises(ChronozarrError, match=r"cannot create .*/o"):
            export_cogs(store, tmp_path / "o")
        assert (tmp_path / "o").read_text() == "mine"

    def test_a_folder_that_takes_no_files_is_one_clear_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = write_store(tmp_path / "s", noise((1, 1, 20, 20)))
        monkeypatch.setattr("gdal_tools.cog.tempfile.TemporaryDirectory", no_space)
        with pytest.raises(ChronozarrError, match=r"cannot write to .*/o: No space left on device"):
            export_cogs(store, tmp_path / "o")
        assert not (tmp_path / "o").exists()


def no_space(**options: Any) -> None:
    raise OSError(28, "No space left on device")


def test_progress_counts_every_file(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    store = write_store(tmp_path / "s", noise((3, 1, 20, 20)))
    export_cogs(store, tmp_path / "o", workers=2, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_the_number_of_workers_changes_no_byte(tmp_path: Path) -> None:
    store = write_store(tmp_path / "s", noise((4, 2, 70, 45)), mask=planes((4, 2, 70, 45), 1))
    alone = export_cogs(store, tmp_path / "a", workers=1)
    together = export_cogs(store, tmp_path / "b", workers=4)
    assert [path.read_bytes() for path in alone] == [path.read_bytes() for path in together]


@pytest.mark.skipif(importlib.util.find_spec("rio_cogeo") is None, reason="rio-cogeo needs rasterio")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (70, 45), (600, 700)])
@pytest.mark.parametrize("physical", [False, True])
def test_an_independent_validator_accepts_every_file(
    tmp_path: Path, masked: bool, height: int, width: int, physical: bool
) -> None:
    from rio_cogeo import cog_validate

    shape = (1, 2, height, width)
    store = write_store(
        tmp_path / "s", noise(shape), mask=planes(shape, 1) if masked else None, options={"chunk_size": 128}
    )
    (path,) = export_cogs(store, tmp_path / "o", physical=physical)
    assert cog_validate(path, strict=True) == (True, [], [])


TIMES = as_instants(["2023-12-31", "2024-01-01", "2024-01-15T12:00", "2024-02-01", "2024-03-01", "2025-01-01"])


class TestParseTimes:
    @pytest.mark.parametrize(
        ("specs", "expected"),
        [
            (["0"], [0]),
            (["-1"], [5]),
            (["5,0,-1,0"], [0, 5]),
            (["1:3"], [1, 2]),
            (["::2"], [0, 2, 4]),
            (["-2:"], [4, 5]),
            (["::-1"], [0, 1, 2, 3, 4, 5]),
            (["2024"], [1, 2, 3, 4]),
            (["2024-01"], [1, 2]),
            (["2024-01-15"], [2]),
            (["2024-01-15T12:00:00Z"], [2]),
            (["2024-01-15T14:00+02:00"], [2]),
            (["2024-01..2024-02"], [1, 2, 3]),
            (["2023..2023"], [0]),
            (["2024-02..2025"], [3, 4, 5]),
            (["2024-03, 2023", "1"], [0, 1, 4]),
        ],
    )
    def test_what_is_chosen(self, specs: list[str], expected: list[int]) -> None:
        assert parse_times(specs, TIMES) == expected

    @pytest.mark.parametrize(
        "spec",
        ["6", "-7", "100000", "2022", "2024-04", "2025..2024", "1:1", "::0", "1:2:3:4", "abc", "", "2024-13", "..",
         "2024-1", "0..3", "2024-01-15T25:00", "1.5"],
    )  # fmt: skip
    def test_what_chooses_nothing_is_named_with_what_the_store_has(self, spec: str) -> None:
        with pytest.raises(SelectionError) as caught:
            parse_times([spec], TIMES)
        assert repr(spec) in str(caught.value)
        assert "6 timesteps, 2023-12-31T00:00:00Z to 2025-01-01T00:00:00Z" in str(caught.value)
