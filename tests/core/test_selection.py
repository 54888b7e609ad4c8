"""How ``auto`` chooses the temporal encoding (§4.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
from numpy.typing import NDArray

from chronozarr_core import ChronoStore
from tests.core import reference
from tests.core.builders import DTYPES, drifting, noise, write_store

SHAPE = (7, 2, 30, 40)


def compressed(data: NDArray[Any], size: int, map_: dict[int, int]) -> int:
    """Bytes of every chunk of level 0 through zstd level 5, those that are all fill not counted."""
    codec = numcodecs.Zstd(level=5)
    total = 0
    for t in range(len(data)):
        for _, _, cell in reference.padded(reference.stored(data, t, map_), size, 0):
            total += len(codec.encode(np.ascontiguousarray(cell))) if cell.any() else 0
    return total


def temporal(store: ChronoStore) -> dict[str, Any]:
    return reference.document(Path(store.location), "")["attributes"]["chronozarr"]["temporal"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize(("make", "encoding"), [(drifting, "star-delta"), (noise, "none")])
def test_the_ratio_is_that_of_all_cells_where_there_are_at_most_three(
    tmp_path: Path, dtype: str, make: Any, encoding: str
) -> None:
    data = make(SHAPE, dtype)
    chosen = temporal(write_store(tmp_path / "out", data, options={"chunk_size": 30, "anchor_interval": 3}))
    ratio = compressed(data, 30, reference.references(7, 3)) / compressed(data, 30, {})
    assert chosen["encoding"] == encoding
    assert (ratio <= 0.85) == (encoding == "star-delta")
    assert chosen["selection"] == {"mode": "auto", "sampled_cells": 2, "ratio": pytest.approx(ratio, rel=1e-12)}


def test_three_cells_are_sampled_of_many(tmp_path: Path) -> None:
    assert temporal(write_store(tmp_path / "out", drifting(SHAPE)))["selection"]["sampled_cells"] == 3


def test_a_none_store_by_choice_has_no_other_member(tmp_path: Path) -> None:
    assert set(temporal(write_store(tmp_path / "out", noise(SHAPE)))) == {"encoding", "selection"}


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_signed_and_float_data_are_none_without_a_selection(tmp_path: Path, dtype: str) -> None:
    assert temporal(write_store(tmp_path / "out", drifting(SHAPE, dtype))) == {"encoding": "none"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_series_that_stores_nothing_has_a_choice_that_reads(tmp_path: Path, dtype: str) -> None:
    data = np.zeros(SHAPE, dtype)
    store = write_store(tmp_path / "out", data, nodata=0)
    assert temporal(store)["encoding"] == "none"
    assert not store.read(3).any()


def test_all_cells_count_where_there_is_one_timestep(tmp_path: Path) -> None:
    chosen = temporal(write_store(tmp_path / "out", noise((1, 1, 16, 16))))
    assert chosen == {"encoding": "none", "selection": {"mode": "auto", "sampled_cells": 1, "ratio": 1.0}}
