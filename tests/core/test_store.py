"""Reading a store (§10)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from chronozarr_core import (
    Band,
    ChronoStore,
    CorruptStoreError,
    EncodeOptions,
    FrameSeries,
    SelectionError,
    StoreNotFoundError,
    StoreSeries,
    UnsupportedStoreError,
    encode_series,
    open_store,
)
from chronozarr_core.chunks import Compression
from tests.conftest import require
from tests.core import reference
from tests.core.builders import (
    CRS,
    CountingStorage,
    drifting,
    edit_array,
    edit_block,
    edit_json,
    files,
    months,
    noise,
    planes,
    same_bits,
    write_store,
)

SHAPE = (9, 2, 35, 50)
DATA: NDArray[np.uint16] = drifting(SHAPE)
MASK, COVERAGE = planes(SHAPE, 1), planes(SHAPE, 9)
STAR_DELTA = {"encoding": "star-delta", "anchor_interval": 4}
BANDS = [
    Band("B04", "red", 0.0001, -0.1, "reflectance"),
    Band("B08", "nir", 0.0001, 0.0, "reflectance"),
]


@pytest.fixture
def store(tmp_path: Path) -> ChronoStore:
    """Star-delta, three levels, mask, coverage, two bands with scale and offset."""
    return write_store(tmp_path / "out", DATA, options=STAR_DELTA, mask=MASK, coverage=COVERAGE, bands=BANDS)


@pytest.fixture
def plain(tmp_path: Path) -> ChronoStore:
    """Star-delta without planes; nodata 0."""
    return write_store(tmp_path / "out", DATA, options=STAR_DELTA)


def reopened(store: ChronoStore) -> ChronoStore:
    return open_store(store.location)


def test_a_store_says_what_it_holds(store: ChronoStore) -> None:
    assert (store.times == months(9)).all()
    assert store.bands == tuple(BANDS)
    assert (store.crs, store.nodata, store.dtype, store.chunk_size) == (CRS, 0, np.dtype("uint16"), 16)
    assert [level.shape for level in store.levels] == [(9, 2, 35, 50), (9, 2, 18, 25), (9, 2, 9, 13)]
    assert [level.grid for level in store.levels] == [(3, 4), (2, 2), (1, 1)]
    assert [level.resolution for level in store.levels] == [10.0, 20.0, 40.0]


def test_cells_and_windows_are_parts_of_the_frame(store: ChronoStore) -> None:
    for lod, (rows, cols) in enumerate(level.grid for level in store.levels):
        frame = store.read(5, lod)
        for row, col in np.ndindex(rows, cols):
            cell = store.read_cell(5, row, col, lod)
            assert same_bits(cell, np.ascontiguousarray(frame[:, row * 16 : row * 16 + 16, col * 16 : col * 16 + 16]))
    assert (store.read_window(5, slice(3, 34), slice(15, 17)) == DATA[5, :, 3:34, 15:17]).all()
    assert (store.read_window(-1, slice(-2, None), slice(None)) == DATA[8, :, -2:]).all()
    assert store.read_window(0, slice(4, 4), slice(None)).shape == (2, 0, 50)


def test_planes_are_read_whole_and_by_window(store: ChronoStore) -> None:
    assert (store.read_mask(3) == MASK[3]).all()
    assert (store.read_coverage(3, 0, slice(10, 20), slice(14, 40)) == COVERAGE[3, 10:20, 14:40]).all()
    assert (store.read_mask(3, 1) == reference.halve_mask(MASK[3])).all()


def test_a_store_without_planes_returns_none(plain: ChronoStore) -> None:
    assert plain.read_mask(0) is plain.read_coverage(0) is None


def test_a_pixel_is_its_history_with_validity_and_physical_values(store: ChronoStore) -> None:
    pixel = store.read_pixel(34, 49)
    assert (pixel.values == DATA[:, :, 34, 49]).all()
    assert (pixel.valid == MASK[:, 34, 49, None].astype(bool)).all()
    expected = np.where(pixel.valid, DATA[:, :, 34, 49] * 0.0001 + np.array([-0.1, 0.0]), np.nan)
    np.testing.assert_allclose(pixel.physical, expected, rtol=1e-12)
    by_place = store.read_pixel(x=746090 + 499.9, y=2540440 - 349.9)
    assert (by_place.values == pixel.values).all()


def test_a_coordinate_at_a_coarser_level_is_its_larger_pixel(store: ChronoStore) -> None:
    history = store.read_pixel(x=746095.0, y=2540435.0, lod=2).values
    assert (history == np.stack([store.read(t, 2)[:, 0, 0] for t in range(9)])).all()


def test_without_a_mask_a_pixel_is_valid_where_it_differs_from_nodata(tmp_path: Path) -> None:
    data = np.array([0, 5, 0, 7], np.uint8).reshape(1, 1, 2, 2)
    store = write_store(tmp_path / "a", data)
    assert store.read_valid(0).tolist() == [[[False, True], [False, True]]]
    assert write_store(tmp_path / "b", data, nodata=None).read_valid(0).all()
    masked = write_store(tmp_path / "c", data, mask=np.array([[[1, 0], [1, 0]]]))
    assert masked.read_valid(0).tolist() == [[[True, False], [True, False]]]


def test_physical_values_are_scaled_in_float64_and_missing_where_invalid(store: ChronoStore) -> None:
    physical = store.read_physical(2)
    assert physical.dtype == np.float32
    exact = DATA[2].astype(np.float64) * 0.0001 + np.array([-0.1, 0.0])[:, None, None]
    np.testing.assert_array_equal(physical, np.where(MASK[2] == 1, exact, np.nan).astype(np.float32))


@pytest.mark.parametrize(("resolution", "level"), [(1, 0), (10, 0), (19.9, 0), (20, 1), (39, 1), (40, 2), (1e6, 2)])
def test_the_selected_level_is_the_coarsest_not_above_the_resolution(
    store: ChronoStore, resolution: float, level: int
) -> None:
    assert store.select_level(resolution) == level


def test_a_level_as_a_data_array_has_values_coordinates_and_planes(store: ChronoStore) -> None:
    require("xarray")
    array = store.to_xarray(lod=1, times=[1, -1])
    assert array.dims == ("time", "band", "y", "x")
    assert (array.values == np.stack([store.read(1, 1), store.read(8, 1)])).all()
    assert list(array.band.values) == ["B04", "B08"]
    assert (array.time.values == store.times[[1, 8]]).all()
    assert array.x.values[:2].tolist() == [746100.0, 746120.0]
    assert array.y.values[:2].tolist() == [2540430.0, 2540410.0]
    assert (array.coords["mask"].values[1] == store.read_mask(8, 1)).all()
    assert (array.coords["coverage"].values[0] == store.read_coverage(1, 1)).all()
    assert (array.attrs["crs"], array.attrs["nodata"]) == (CRS, 0)


def test_times_of_a_data_array_are_chosen_by_index_slice_or_list(store: ChronoStore) -> None:
    require("xarray")
    assert store.to_xarray(2, times=slice(1, 8, 3)).sizes["time"] == 3
    assert (store.to_xarray(2, times=4).values[0] == store.read(4, 2)).all()
    assert store.to_xarray(2, times=[]).shape == (0, 2, 9, 13)
    with pytest.raises(SelectionError, match="timestep 9 does not exist"):
        store.to_xarray(times=[9])
    physical = store.to_xarray(2, times=slice(0, 2), physical=True)
    assert physical.dtype == np.float32
    np.testing.assert_array_equal(physical.values[1], store.read_physical(1, 2))


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda s: s.read(9), "timestep 9 does not exist: the store has 9, 0 to 8"),
        (lambda s: s.read(-10), "timestep -10 does not exist"),
        (lambda s: s.read(0, 3), "level 3 does not exist: the store has 3"),
        (lambda s: s.read(0, -1), "level -1 does not exist"),
        (lambda s: s.read_mask(9), "timestep 9 does not exist"),
        (lambda s: s.read_cell(0, 3, 0), r"cell \(3, 0\) does not exist: level 0 has 3 x 4 cells"),
        (lambda s: s.read_window(0, slice(0, 9, 2), slice(None)), "rows has step 2"),
        (lambda s: s.read_pixel(35, 0), r"pixel \(35, 0\) does not exist: level 0 has 35 x 50 pixels"),
        (lambda s: s.read_pixel(x=0, y=0), r"\(0, 0\) is outside the store: its bounds are"),
        (lambda s: s.read_pixel(0), "either by row and col or by x and y"),
        (lambda s: s.read_pixel(0, 0, x=1, y=1), "either by row and col or by x and y"),
    ],
)
def test_what_the_store_does_not_have_is_refused_by_name(
    store: ChronoStore, read: Callable[[ChronoStore], object], message: str
) -> None:
    with pytest.raises(SelectionError, match=message):
        read(store)


def test_a_cell_takes_one_chunk_read_or_two_at_every_timestep_and_level(plain: ChronoStore) -> None:
    for lod, (rows, cols) in enumerate(level.grid for level in plain.levels):
        for t, row, col in np.ndindex(9, rows, cols):
            storage = CountingStorage(Path(plain.location))
            ChronoStore(storage).read_cell(t, row, col, lod)
            assert len(storage.chunks) == (1 if t % 4 == 0 else 2)
            assert len(set(storage.chunks)) == len(storage.chunks)


def test_opening_reads_no_chunk_and_the_root_alone(plain: ChronoStore) -> None:
    storage = CountingStorage(Path(plain.location))
    opened = ChronoStore(storage)
    assert opened.levels
    assert opened.dtype == np.uint16
    assert storage.chunks == []


def test_once_the_anchor_is_read_a_timestep_costs_one_chunk(plain: ChronoStore) -> None:
    storage = CountingStorage(Path(plain.location))
    opened = ChronoStore(storage)
    for t in range(9):
        opened.read_cell(t, 0, 0)
    assert len(storage.chunks) == 9


def test_a_none_store_takes_one_chunk_read_for_each_cell(tmp_path: Path) -> None:
    store = write_store(tmp_path / "out", DATA, options={"encoding": "none"})
    storage = CountingStorage(Path(store.location))
    ChronoStore(storage).read(5)
    assert len(storage.chunks) == 12


def test_values_follow_the_recorded_reference_not_the_nearest_anchor(plain: ChronoStore) -> None:
    root = Path(plain.location)
    edit_block(root, lambda block: block["temporal"]["delta_reference"].__setitem__("1", 4))
    for lod in range(3):
        levels = [reference.pyramid((DATA[t], None, None), 0, 3)[lod][0] for t in (1, 4)]
        array = reference.document(root, f"{lod}/data")
        for row, col, cell in reference.padded(reference.stored(np.stack(levels), 0, {0: 1}), 16, 0):
            (root / f"{lod}/data/c/1/0/{row}/{col}").write_bytes(reference.encode(array, cell))
        assert same_bits(reopened(plain).read(1, lod), levels[0])


def test_another_recorded_reference_over_the_same_chunks_gives_other_values(plain: ChronoStore) -> None:
    edit_block(Path(plain.location), lambda block: block["temporal"]["delta_reference"].__setitem__("1", 4))
    assert same_bits(reopened(plain).read(1), DATA[1] - DATA[0] + DATA[4])


def _v0_1(block: dict[str, Any]) -> None:
    for name in ("levels", "band_names"):
        del block[name]
    block["spec_version"] = "0.1.0"
    block["bands"] = ["B04", "B08"]


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("consolidated", [True, False])
def test_a_v0_1_store_is_read(plain: ChronoStore, keyed: bool, consolidated: bool) -> None:
    root = Path(plain.location)
    edit_block(root, _v0_1)
    if not keyed:
        edit_block(root, lambda block: block["temporal"].pop("encoding"))
    if not consolidated:
        edit_json(root / "zarr.json", lambda document: document.pop("consolidated_metadata"))
    old = reopened(plain)
    assert old.bands == (Band("B04"), Band("B08"))
    assert old.levels == plain.levels
    for t in range(9):
        assert same_bits(old.read(t), DATA[t])


def test_band_names_are_derived_and_pixels_per_tile_is_ignored(plain: ChronoStore) -> None:
    root = Path(plain.location)
    edit_block(root, lambda block: block.pop("band_names"))
    edit_json(
        root / "zarr.json",
        lambda document: document["attributes"]["multiscales"][0]["datasets"][0].update(pixels_per_tile=7),
    )
    store = reopened(plain)
    assert store.metadata.band_names == ("B1", "B2")
    assert store.chunk_size == 16


def test_the_variables_name_is_taken_from_the_store(plain: ChronoStore) -> None:
    root = Path(plain.location)
    edit_block(root, lambda block: block.update(variable="reflectance"))
    edit_json(root / "zarr.json", lambda document: document.pop("consolidated_metadata"))
    for level in "012":
        (root / level / "data").rename(root / level / "reflectance")
    assert same_bits(reopened(plain).read(3), DATA[3])


def test_a_store_without_consolidated_metadata_reads_each_document(store: ChronoStore) -> None:
    edit_json(Path(store.location) / "zarr.json", lambda document: document.pop("consolidated_metadata"))
    assert same_bits(reopened(store).read(6), DATA[6])
    assert (reopened(store).read_mask(6) == MASK[6]).all()


@pytest.mark.parametrize("version", ["0.3.0", "1.0.0", "0.20.0", "0.1", "2", None])
def test_other_versions_are_refused_by_name(plain: ChronoStore, version: str | None) -> None:
    edit_block(Path(plain.location), lambda block: block.update(spec_version=version))
    with pytest.raises(UnsupportedStoreError, match=f"spec_version '{version}': this reader reads 0.1.x and 0.2.x"):
        reopened(plain)


def test_a_later_patch_version_is_read(plain: ChronoStore) -> None:
    edit_block(Path(plain.location), lambda block: block.update(spec_version="0.2.9"))
    assert same_bits(reopened(plain).read(0), DATA[0])


def test_other_encodings_are_refused_by_name(plain: ChronoStore) -> None:
    edit_block(Path(plain.location), lambda block: block["temporal"].update(encoding="chain-delta"))
    with pytest.raises(UnsupportedStoreError, match="temporal encoding 'chain-delta': expected 'none' or 'star-delta'"):
        reopened(plain)


BLOSC = {"cname": "zstd", "clevel": 1, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}
SHARDED = [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 2, 16, 16], "codecs": []}}]


def _codec(array: dict[str, Any], name: str, **configuration: Any) -> None:
    array["codecs"][1] = {"name": name, "configuration": configuration}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: _codec(a, "lz4"), "0/data: codec 'lz4' is not supported: expected zstd, blosc or gzip"),
        (
            lambda a: _codec(a, "blosc", **BLOSC | {"shuffle": "bitshuffle"}),
            "0/data: blosc with cname 'zstd' and shuffle 'bit",
        ),
        (lambda a: _codec(a, "blosc", **BLOSC | {"cname": "snappy"}), "0/data: blosc with cname 'snappy'"),
        (lambda a: a.update(codecs=SHARDED), r"0/data: sharded arrays \(§7\)"),
        (lambda a: a["codecs"].insert(0, {"name": "transpose"}), "0/data: codecs are .'transpose', 'bytes', 'zstd'"),
        (lambda a: a["codecs"][0].update(configuration={"endian": "big"}), "0/data: bytes codec with endian 'big'"),
        (lambda a: a.update(data_type="float16"), "0/data: data type 'float16' is not supported"),
        (lambda a: a.update(data_type="float64"), "0/data has data type float64"),
        (
            lambda a: a["chunk_key_encoding"]["configuration"].update(separator="."),
            "0/data: chunk keys are not the default",
        ),
        (lambda a: a.update(fill_value="NaN"), "0/data: fill_value 'NaN' is not a finite number"),
        (
            lambda a: a["chunk_grid"]["configuration"].update(chunk_shape=[1, 1, 16, 16]),
            r"0/data has .* chunks \(1, 1, 16, 16\)",
        ),
    ],
)
def test_arrays_outside_the_specification_are_refused_by_name(
    plain: ChronoStore, change: Callable[[Any], object], message: str
) -> None:
    edit_array(Path(plain.location), "0/data", change)
    with pytest.raises(UnsupportedStoreError, match=message):
        reopened(plain).read(0)


def test_an_array_whose_shape_contradicts_the_levels_is_refused(plain: ChronoStore) -> None:
    edit_array(Path(plain.location), "0/data", lambda array: array.update(shape=[9, 2, 35, 51]))
    with pytest.raises(
        CorruptStoreError, match=r"0/data has shape \(9, 2, 35, 51\), chronozarr.levels says \(9, 2, 35, 50\)"
    ):
        reopened(plain).read(0)


@pytest.mark.parametrize(
    ("path", "shape", "expected"),
    [
        ("1/data", [1, 2, 8, 8], r"uint16 and \(1, 2, 16, 16\)"),
        ("0/mask", [1, 8, 8], r"uint8 and \(1, 16, 16\)"),
        ("1/coverage", [1, 32, 32], r"uint8 and \(1, 16, 16\)"),
    ],
)
def test_arrays_of_other_chunks_than_level_0_are_refused(
    store: ChronoStore, path: str, shape: list[int], expected: str
) -> None:
    edit_array(Path(store.location), path, lambda array: array["chunk_grid"]["configuration"].update(chunk_shape=shape))
    opened = reopened(store)
    read = {"data": opened.read, "mask": opened.read_mask, "coverage": opened.read_coverage}[path[2:]]
    with pytest.raises(CorruptStoreError, match=f"{path} has data type .*: expected {expected}"):
        read(0, int(path[0]))


def test_a_level_of_another_data_type_is_refused(store: ChronoStore) -> None:
    edit_array(Path(store.location), "1/data", lambda array: array.update(data_type="int16"))
    with pytest.raises(CorruptStoreError, match="1/data has data type int16"):
        reopened(store).read(0, 1)


def test_what_is_no_store_is_refused(plain: ChronoStore, tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match=r"no chronozarr store at .*nowhere: there is no zarr.json") as caught:
        open_store(tmp_path / "nowhere")
    assert isinstance(caught.value, FileNotFoundError)
    root = Path(plain.location) / "zarr.json"
    edit_json(root, lambda document: document["attributes"].pop("chronozarr"))
    with pytest.raises(UnsupportedStoreError, match="without a chronozarr block"):
        reopened(plain)
    root.write_text("{")
    with pytest.raises(CorruptStoreError, match=r"zarr.json is not JSON"):
        reopened(plain)


def test_a_missing_array_document_is_named(plain: ChronoStore) -> None:
    root = Path(plain.location)
    edit_array(root, "0/data", lambda _: None)
    (root / "0/data/zarr.json").unlink()
    with pytest.raises(CorruptStoreError, match=r"0/data/zarr.json is missing"):
        reopened(plain).read(0)


@pytest.mark.parametrize("name", ["times", "bands", "crs", "temporal"])
def test_a_missing_member_of_the_block_is_named(plain: ChronoStore, name: str) -> None:
    edit_block(Path(plain.location), lambda block: block.pop(name))
    with pytest.raises(CorruptStoreError, match=f"has no '{name}', which the specification requires"):
        reopened(plain)


@pytest.mark.parametrize("nodata", [0, 7])
def test_a_missing_chunk_decodes_as_fill(tmp_path: Path, nodata: int) -> None:
    store = write_store(tmp_path / "out", DATA, options=STAR_DELTA, nodata=nodata)
    (tmp_path / "out/0/data/c/1/0/0/0").unlink()
    (tmp_path / "out/0/data/c/4/0/0/0").unlink()
    assert same_bits(store.read_cell(1, 0, 0), DATA[0, :, :16, :16] + np.uint16(nodata))
    assert (store.read_cell(4, 0, 0) == nodata).all()


@pytest.mark.parametrize("codec", ["zstd", "gzip", "blosc", "blosc-lz4-noshuffle"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-1],
        lambda raw: b"no chunk" * 9,
        lambda raw: b"\0" * len(raw),
    ],
    ids=["empty", "half", "short", "other", "zeros"],
)
def test_a_torn_chunk_is_refused_by_its_key(tmp_path: Path, codec: str, damage: Callable[[bytes], bytes]) -> None:
    store = write_store(tmp_path / "out", DATA, options=STAR_DELTA | {"compression": Compression.parse(codec)})
    key = "0/data/c/5/0/1/2"
    chunk = tmp_path / "out" / key
    chunk.write_bytes(damage(chunk.read_bytes()))
    with pytest.raises(CorruptStoreError, match=key):
        store.read(5)
    assert same_bits(store.read_cell(5, 0, 0), np.ascontiguousarray(DATA[5, :, :16, :16]))


def test_a_chunk_of_another_size_is_refused_by_its_key(plain: ChronoStore) -> None:
    root = Path(plain.location)
    key = "0/data/c/0/0/0/0"
    (root / key).write_bytes(reference.encode(reference.document(root, "0/data"), np.zeros(16, np.uint16)))
    with pytest.raises(CorruptStoreError, match=f"{key}: the chunk holds fewer than the 1024 bytes"):
        plain.read(0)


def test_a_torn_anchor_is_named_when_a_delta_needs_it(plain: ChronoStore) -> None:
    (Path(plain.location) / "0/data/c/4/0/0/0").write_bytes(b"")
    with pytest.raises(CorruptStoreError, match="0/data/c/4/0/0/0"):
        plain.read_cell(5, 0, 0)


def test_a_store_is_a_series_and_encodes_to_the_same_files(store: ChronoStore, tmp_path: Path) -> None:
    series = StoreSeries(store)
    assert isinstance(series, FrameSeries)
    options = EncodeOptions(chunk_size=16, **STAR_DELTA)
    again = encode_series(series, tmp_path / "again", options)
    assert files(again.path) == files(Path(store.location))


def test_what_reading_returns_may_be_changed_without_harm(plain: ChronoStore) -> None:
    plain.read(4)[:] = 0
    assert same_bits(plain.read(4), DATA[4])
    assert same_bits(plain.read(5), DATA[5])


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_reads_are_arrays_of_the_native_byte_order(tmp_path: Path, dtype: str) -> None:
    store = write_store(tmp_path / "out", noise((2, 1, 5, 5), dtype))
    assert store.read(0).dtype == np.dtype(dtype)
    assert store.read(0).dtype.isnative
