"""Block means, mask maxima and coverage means, strip by strip (§6, §2.4, §2.5)."""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronozarr_core import Strip
from chronozarr_core.pyramid import PyramidBuilder, block_coverage, block_maximum, block_mean, halve, stack
from tests.core import reference
from tests.core.builders import DTYPES, grid_of, noise, planes, same_bits


def strips(whole: Strip, rows: int) -> Iterator[Strip]:
    for top in range(0, whole.data.shape[1], rows):
        part = slice(top, top + rows)
        mask = None if whole.mask is None else whole.mask[part]
        yield Strip(whole.data[:, part], mask, None if whole.coverage is None else whole.coverage[part])


def test_integer_means_floor_also_below_zero() -> None:
    assert block_mean(np.array([[[-1, -1], [-1, -2]]], np.int16)).tolist() == [[[-2]]]
    assert block_mean(np.array([[[1, 1], [1, 2]]], np.int16)).tolist() == [[[1]]]
    assert block_mean(np.array([[[-1, -2], [0, 0]]], np.int16), 0).tolist() == [[[-2]]]
    assert block_mean(np.array([[[-5, -5, 9], [-4, 9, 9]]], np.int16), 9).tolist() == [[[-5, 9]]]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
def test_sums_of_extremes_do_not_overflow(dtype: str) -> None:
    limits = np.iinfo(dtype)
    for value in (limits.min, limits.max):
        assert block_mean(np.full((1, 2, 2), value, dtype)).tolist() == [[[value]]]


def test_float_means_accumulate_in_float64() -> None:
    values = np.array([[[16777216.0, 1.0], [1.0, 1.0]]], np.float32)
    assert block_mean(values).tolist() == [[[float(np.float32(16777219 / 4))]]]
    top = np.finfo(np.float32).max
    assert block_mean(np.full((1, 2, 2), top)).tolist() == [[[float(top)]]]


def test_odd_edges_are_replicated() -> None:
    assert block_mean(np.array([[[1, 2, 10]]], np.uint8)).tolist() == [[[1, 10]]]
    assert block_maximum(np.array([[0], [0], [1]], np.uint8)).tolist() == [[0], [1]]
    assert block_coverage(np.array([[1, 2, 10]], np.uint8)).tolist() == [[2, 10]]


def test_invalid_pixels_are_left_out_and_an_invalid_block_is_nodata() -> None:
    values = np.array([[[7, 0, 0, 0], [8, 0, 0, 0]]], np.uint16)
    assert block_mean(values, 0).tolist() == [[[7, 0]]]
    assert block_mean(values, 65535).tolist() == [[[3, 0]]]
    assert block_mean(values).tolist() == [[[3, 0]]]


def test_a_mask_decides_alone_and_an_invalid_block_is_nodata_or_zero() -> None:
    values = np.array([[[7, 0, 5, 5], [9, 0, 5, 5]]], np.uint16)
    mask = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], np.uint8)
    assert block_mean(values, 9, mask).tolist() == [[[5, 9]]]
    assert block_mean(values, None, mask).tolist() == [[[5, 0]]]


def test_coverage_halves_round_up() -> None:
    for total, expected in ((1, 0), (2, 1), (3, 1), (5, 1), (6, 2), (1020, 255)):
        quarter = np.array([[min(total, 255), min(max(total - 255, 0), 255)], [0, 0]])
        quarter[1] = np.array([min(max(total - 510, 0), 255), min(max(total - 765, 0), 255)])
        assert block_coverage(quarter.astype(np.uint8)).tolist() == [[expected]]


def test_a_block_of_infinities_of_both_signs_has_no_mean_and_warns_nobody() -> None:
    values = np.array([[[np.inf, -np.inf], [1, 1]]], np.float32)
    assert np.isnan(block_mean(values)).all()


@settings(deadline=None)
@given(
    dtype=st.sampled_from(DTYPES),
    height=st.integers(1, 40),
    width=st.integers(1, 20),
    size=st.sampled_from((2, 4, 6, 8, 16)),
    n_lods=st.sampled_from((None, 1, 3, 7)),
    masked=st.booleans(),
)
def test_strips_give_the_levels_of_the_whole_frame(
    dtype: str, height: int, width: int, size: int, n_lods: int | None, masked: bool
) -> None:
    shape = (1, 2, height, width)
    whole = Strip(noise(shape, dtype)[0], planes(shape, 1)[0] if masked else None, planes(shape, 255)[0])
    grids = grid_of(shape).levels(size, n_lods)
    builder = PyramidBuilder(grids, size, 3)
    built: dict[int, list[Strip]] = defaultdict(list)
    for strip in strips(whole, size):
        for row in builder.push(strip):
            assert row.cell_row == len(built[row.level])
            built[row.level].append(row.strip)
    assert sorted(built) == list(range(len(grids)))
    for level in range(len(grids)):
        _assert_same(stack(built[level]), whole)
        assert [part.data.shape[1] for part in built[level][:-1]] == [size] * (len(built[level]) - 1)
        whole = halve(whole, 3)


def _assert_same(left: Strip, right: Strip) -> None:
    for one, other in zip(left, right, strict=True):
        assert one is other is None or same_bits(one, other)


@pytest.mark.parametrize("nodata", [None, 0, 3])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
def test_halving_equals_naive_loops(dtype: str, nodata: int | None) -> None:
    data = noise((2, 13, 11), dtype) % np.array(5, dtype)
    for mask in (None, planes((1, 13, 11), 1)[0]):
        coverage = planes((1, 13, 11), 255)[0]
        expected = reference.pyramid((data, mask, coverage), nodata, 2)[1]
        _assert_same(halve(Strip(data, mask, coverage), nodata), Strip(*expected))


def test_a_builder_holds_at_most_one_row_of_cells_of_each_coarser_level() -> None:
    height, width, size = 4096, 64, 16
    grids = grid_of((height, width)).levels(size)
    builder = PyramidBuilder(grids, size, None)
    rows_of_cells = sum(size * grid.width * 2 for grid in grids[1:])
    tracemalloc.start()
    held = 0
    for _ in range(height // size):
        for _row in builder.push(Strip(np.ones((1, size, width), np.uint16))):
            pass
        del _row
        held = max(held, tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held < rows_of_cells + 16 * 1024
    assert rows_of_cells + 16 * 1024 < height * width * 2 // 20
