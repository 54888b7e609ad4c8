"""Anchors, references, residuals and groups (§4.1, §4.2)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronozarr_core import ChronozarrError
from chronozarr_core.temporal import (
    absolute_difference_sum,
    anchor_indices,
    delta_references,
    groups,
    nearest_anchor,
    reconstruct,
    residual,
)
from tests.core import reference
from tests.core.builders import noise

lengths, intervals = st.integers(1, 60), st.integers(1, 20)


def test_anchors_are_every_kth_timestep() -> None:
    assert anchor_indices(5, 2) == (0, 2, 4)
    assert anchor_indices(5, 1) == (0, 1, 2, 3, 4)
    assert anchor_indices(5, 6) == (0,)


def test_an_interval_below_one_is_refused() -> None:
    with pytest.raises(ChronozarrError, match="anchor_interval is 0: expected an integer of at least 1"):
        anchor_indices(5, 0)


def test_the_nearest_anchor_of_two_as_near_is_the_earlier() -> None:
    assert nearest_anchor(3, (0, 6)) == 0
    assert nearest_anchor(4, (0, 6)) == 6
    assert delta_references(9, 4) == {1: 0, 2: 0, 3: 4, 5: 4, 6: 4, 7: 8}


def test_timesteps_after_the_last_anchor_refer_to_it() -> None:
    assert delta_references(6, 4) == {1: 0, 2: 0, 3: 4, 5: 4}


@given(lengths, intervals)
def test_references_are_those_of_the_specifications_text(n_time: int, interval: int) -> None:
    assert delta_references(n_time, interval) == reference.references(n_time, interval)


@given(lengths, intervals)
def test_references_are_valid_and_complete(n_time: int, interval: int) -> None:
    anchors = set(anchor_indices(n_time, interval))
    found = delta_references(n_time, interval)
    assert set(found) == set(range(n_time)) - anchors
    for t, anchor in found.items():
        assert anchor in anchors
        assert 0 < abs(t - anchor) < interval


@given(lengths, intervals)
def test_groups_cover_every_timestep_once_and_hold_what_refers_to_their_anchor(n_time: int, interval: int) -> None:
    map_ = delta_references(n_time, interval)
    made = groups(n_time, map_)
    assert sorted(t for group in made for t in group.timesteps) == list(range(n_time))
    assert [group.anchor for group in made] == list(anchor_indices(n_time, interval))
    for group in made:
        assert list(group.members) == [t for t, anchor in sorted(map_.items()) if anchor == group.anchor]


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_residuals_are_modular_differences_and_reconstruct_exactly(dtype: str, seed: int) -> None:
    source, anchor = noise((2, 2, 9, 9), dtype, seed)
    difference = residual(source, anchor)
    assert difference.dtype == source.dtype
    modulus = 2 ** (8 * source.dtype.itemsize)
    assert difference.tolist() == ((source.astype(int) - anchor.astype(int)) % modulus).tolist()
    assert reconstruct(difference, anchor).tolist() == source.tolist()


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_every_pair_of_extremes_wraps(dtype: str) -> None:
    high = np.iinfo(dtype).max
    source, anchor = np.array([[0, high, 0, high], [high, 0, 0, high]], dtype)
    assert residual(source, anchor).tolist() == [1, high, 0, 0]
    assert reconstruct(residual(source, anchor), anchor).tolist() == source.tolist()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
def test_absolute_differences_are_summed_in_a_wider_type(dtype: str) -> None:
    source, anchor = noise((2, 3, 50, 50), dtype)
    wide = np.float64 if dtype == "float32" else np.int64
    expected = np.abs(source.astype(wide) - anchor.astype(wide)).sum()
    assert absolute_difference_sum(source, anchor) == pytest.approx(expected, rel=1e-12 if dtype == "float32" else 0)


def test_the_difference_of_the_int16_extremes_is_65535() -> None:
    low, high = np.array([-32768], np.int16), np.array([32767], np.int16)
    assert absolute_difference_sum(low, high) == absolute_difference_sum(high, low) == 65535
