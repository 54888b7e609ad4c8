"""Whatever is encoded is read back, bit for bit, and lies on disk as the specification says."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from chronozarr_core import ChronoStore, Compression
from tests.conftest import require
from tests.core import reference
from tests.core.builders import DTYPES, months, same_bits, write_store

CODECS = ("zstd", "gzip", "blosc-zstd-shuffle", "blosc-zstd-noshuffle", "blosc-lz4-shuffle", "blosc-lz4-noshuffle")
SPECIAL = {
    "uint8": (0, 1, 127, 128, 254, 255),
    "uint16": (0, 1, 255, 256, 32767, 32768, 65534, 65535),
    "int16": (-32768, -32767, -9999, -2, -1, 0, 1, 32767),
    "float32": (
        0.0,
        -0.0,
        1.5,
        -9999.0,
        np.inf,
        -np.inf,
        1e-45,
        -1e-45,
        1.1754942e-38,
        3.4028235e38,
        -3.4028235e38,
        0.1,
    ),
}
NODATA = {
    "uint8": ("default", 0, 255, None),
    "uint16": ("default", 0, 255, 65535, None),
    "int16": ("default", 0, -32768, 255, -9999, None),
    "float32": ("default", 0, -9999.0, 255, None),
}
BLOCKS = {"max_examples": 200, "deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


@dataclass
class Case:
    """One series and the options to store it with."""

    data: NDArray[Any]
    nodata: Any
    mask: NDArray[np.uint8] | None
    coverage: NDArray[np.uint8] | None
    encoding: str
    anchor_interval: int
    chunk_size: int
    n_lods: int | None
    codec: str

    def write(self, folder: str) -> ChronoStore:
        options = {
            "encoding": self.encoding,
            "anchor_interval": self.anchor_interval,
            "chunk_size": self.chunk_size,
            "n_lods": self.n_lods,
            "compression": Compression.parse(self.codec),
        }
        parts = {"nodata": self.nodata, "mask": self.mask, "coverage": self.coverage}
        return write_store(Path(folder) / "out", self.data, options=options, **parts)

    def frame(self, t: int) -> reference.Frame:
        return (
            self.data[t],
            None if self.mask is None else self.mask[t],
            None if self.coverage is None else self.coverage[t],
        )


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES, encodings: tuple[str, ...] = ()) -> Case:
    dtype = draw(st.sampled_from(dtypes))
    size = draw(st.sampled_from((2, 4, 6, 16)))
    edge = st.integers(1, min(4 * size + 1, 33))
    shape = (draw(st.integers(1, 8)), draw(st.integers(1, 3)), draw(edge), draw(edge))
    nodata = draw(st.sampled_from(NODATA[dtype]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    plane = (shape[0], *shape[2:])
    allowed = ("none", "star-delta", "auto") if dtype in ("uint8", "uint16") else ("none", "auto")
    return Case(
        data=_values(draw, random, shape, dtype, nodata),
        nodata=nodata,
        mask=random.integers(0, 2, plane, dtype=np.uint8) if draw(st.booleans()) else None,
        coverage=random.integers(0, 256, plane, dtype=np.uint8) if draw(st.booleans()) else None,
        encoding=draw(st.sampled_from(encodings or allowed)),
        anchor_interval=draw(st.integers(1, 8)),
        chunk_size=size,
        n_lods=draw(st.sampled_from((None, None, 1, 2, 5))),
        codec=draw(st.sampled_from(CODECS)),
    )


def _values(
    draw: st.DrawFn, random: np.random.Generator, shape: tuple[int, ...], dtype: str, nodata: Any
) -> NDArray[Any]:
    kind = draw(st.sampled_from(("special", "gaps", "steady", "nodata")))
    special = random.choice(np.array(SPECIAL[dtype], dtype), shape)
    gap = np.array(0 if nodata in ("default", None) else nodata, dtype)
    if kind == "special":
        return special
    if kind == "gaps":
        return np.where(random.random(shape) < 0.5, special, gap)
    if kind == "steady":
        return np.broadcast_to(special[:1], shape).copy()
    return np.full(shape, gap)


@settings(**BLOCKS)
@given(cases())
def test_read_returns_the_input_bit_for_bit(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = case.write(folder)
        assert store.dtype == case.data.dtype
        assert (store.times == months(len(case.data))).all()
        for t in range(len(case.data)):
            data, mask, coverage = case.frame(t)
            assert same_bits(store.read(t), data)
            assert _same_plane(store.read_mask(t), mask)
            assert _same_plane(store.read_coverage(t), coverage)


def _same_plane(read: NDArray[np.uint8] | None, expected: NDArray[np.uint8] | None) -> bool:
    return read is expected is None or (read is not None and expected is not None and same_bits(read, expected))


def _moderate(case: Case) -> Case:
    """Float values whose sums of four are exact in float64, so that no order of summation shows."""
    if case.data.dtype.kind == "f":
        exact = np.round(np.clip(case.data, -16384, 16384) * 256) / 256
        case.data = np.where(np.isposinf(case.data), case.data, exact).astype(np.float32)
    return case


@settings(**BLOCKS | {"max_examples": 60})
@given(cases().map(_moderate))
def test_every_level_is_the_pyramid_of_naive_loops(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = case.write(folder)
        n_levels = case.n_lods or reference.level_count(*case.data.shape[2:], case.chunk_size)
        assert len(store.levels) == n_levels
        for t in range(len(case.data)):
            for lod, (data, mask, coverage) in enumerate(reference.pyramid(case.frame(t), store.nodata, n_levels)):
                np.testing.assert_array_equal(store.read(t, lod), data)
                assert _same_plane(store.read_mask(t, lod), mask)
                assert _same_plane(store.read_coverage(t, lod), coverage)


@settings(**BLOCKS | {"max_examples": 60})
@given(cases())
def test_each_object_holds_its_padded_cell_and_is_absent_only_where_all_is_fill(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = case.write(folder)
        root = Path(store.location)
        expected: set[str] = set()
        for lod in range(len(store.levels)):
            expected |= _check_level(root, store, case, lod)
        chunks = {path.relative_to(root).as_posix() for path in root.glob("*/*/c/**/*") if path.is_file()}
        assert {key for key in chunks if key.split("/")[1] in ("data", "mask", "coverage")} == expected


def _check_level(root: Path, store: ChronoStore, case: Case, lod: int) -> set[str]:
    """Compare every object of a level with what §2.1 and §4.2 say; return the keys that must exist."""
    sources = {"data": np.stack([store.read(t, lod) for t in range(len(case.data))])}
    for name, read in (("mask", store.read_mask), ("coverage", store.read_coverage)):
        if read(0, lod) is not None:
            sources[name] = np.stack([read(t, lod) for t in range(len(case.data))])
    star_delta = store.metadata.temporal.is_star_delta
    map_ = reference.references(len(case.data), case.anchor_interval) if star_delta else {}
    present: set[str] = set()
    for name, source in sources.items():
        array = reference.document(root, f"{lod}/{name}")
        fill = array["fill_value"]
        assert fill == ((store.nodata or 0) if name == "data" else 0)
        for t in range(len(source)):
            residual = name == "data" and t in map_
            values = reference.stored(source, t, map_ if residual else {})
            for row, col, cell in reference.padded(values, case.chunk_size, 0 if residual else fill):
                key = f"{lod}/{name}/c/{t}/{'0/' * (name == 'data')}{row}/{col}"
                if cell.tobytes() == np.full(cell.shape, fill, cell.dtype).tobytes():
                    assert not (root / key).exists()
                else:
                    assert same_bits(reference.decode(array, (root / key).read_bytes())[0], cell)
                    present.add(key)
    return present


def test_a_zero_residual_is_stored_where_fill_is_65535(tmp_path: Path) -> None:
    data = np.full((2, 1, 16, 16), 7, np.uint16)
    store = write_store(tmp_path / "out", data, options={"encoding": "star-delta"}, nodata=65535)
    assert (tmp_path / "out/0/data/c/1/0/0/0").exists()
    assert same_bits(store.read(1), data[1])


def test_a_residual_whose_every_element_is_fill_is_omitted_and_read(tmp_path: Path) -> None:
    data = np.stack([np.zeros((1, 16, 16), np.uint16), np.full((1, 16, 16), 65535, np.uint16)])
    store = write_store(tmp_path / "out", data, options={"encoding": "star-delta"}, nodata=65535)
    assert not (tmp_path / "out/0/data/c/1/0/0/0").exists()
    assert same_bits(store.read(1), data[1])


def test_a_residual_of_an_edge_cell_is_padded_with_zero_and_so_stored_where_fill_is_not_zero(tmp_path: Path) -> None:
    data = np.stack([np.zeros((1, 15, 16), np.uint16), np.full((1, 15, 16), 65535, np.uint16)])
    store = write_store(tmp_path / "out", data, options={"encoding": "star-delta"}, nodata=65535)
    assert (tmp_path / "out/0/data/c/1/0/0/0").exists()
    assert same_bits(store.read(1), data[1])


def test_nan_under_the_mask_is_stored_as_zero(tmp_path: Path) -> None:
    data = np.array([[[[np.nan, 2.0], [3.0, np.nan]]]], np.float32)
    store = write_store(tmp_path / "out", data, mask=~np.isnan(data[:, 0]))
    assert store.read(0).tolist() == [[[0.0, 2.0], [3.0, 0.0]]]
    assert store.read_mask(0).tolist() == [[0, 1], [1, 0]]


def test_coverage_above_255_saturates(tmp_path: Path) -> None:
    coverage = np.array([[[0, 255], [256, 70000]]])
    store = write_store(tmp_path / "out", np.ones((1, 1, 2, 2), np.uint8), coverage=coverage)
    assert store.read_coverage(0).tolist() == [[0, 255], [255, 255]]


def test_big_endian_input_keeps_its_values(tmp_path: Path) -> None:
    data = np.arange(32, dtype=">u2").reshape(2, 1, 4, 4) * 2000
    store = write_store(tmp_path / "out", data)
    assert (store.read(1) == data[1]).all()


@pytest.mark.parametrize("encoding", ["none", "star-delta"])
@settings(**BLOCKS | {"max_examples": 25})
@given(data=st.data())
def test_zarr_python_reads_source_values_and_residuals(encoding: str, data: st.DataObject) -> None:
    zarr = require("zarr")
    dtypes = DTYPES if encoding == "none" else ("uint8", "uint16")
    case = data.draw(cases(dtypes, (encoding,)))
    with tempfile.TemporaryDirectory() as folder:
        store = case.write(folder)
        group = zarr.open_group(store.location, mode="r")
        map_ = reference.references(len(case.data), case.anchor_interval) if encoding == "star-delta" else {}
        expected = np.stack([reference.stored(case.data, t, map_) for t in range(len(case.data))])
        assert same_bits(group["0/data"][:], expected)
        for name, planes in (("mask", case.mask), ("coverage", case.coverage)):
            assert (f"0/{name}" in group) == (planes is not None)
            if planes is not None:
                assert same_bits(group[f"0/{name}"][:], planes)


def test_zarr_python_reads_coordinates_volatility_and_names(tmp_path: Path) -> None:
    zarr = require("zarr")
    write_store(tmp_path / "out", np.ones((3, 2, 20, 17), np.uint16), bands=["red", "grün"])
    group = zarr.open_group(tmp_path / "out", mode="r")
    assert group["1/time"][:].tolist() == [1704067200000, 1706745600000, 1709251200000]
    assert list(group["1/band"][:]) == ["red", "grün"]
    assert group["0/x"][:2].tolist() == [746095.0, 746105.0]
    assert group["1/y"][:2].tolist() == [2540430.0, 2540410.0]
    assert group["volatility"].shape == (2, 2)
    assert group["0/data"].metadata.dimension_names == ("time", "band", "y", "x")
