"""Anchors, references, residuals and groups (§4). Knows nothing of files and pyramids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chronozarr_core.errors import ChronozarrError

DEFAULT_ANCHOR_INTERVAL = 6


def anchor_indices(n_time: int, anchor_interval: int) -> tuple[int, ...]:
    """``0, k, 2k, ...`` below ``n_time`` (§4.2.1)."""
    if anchor_interval < 1:
        raise ChronozarrError(f"anchor_interval is {anchor_interval}: expected an integer of at least 1")
    return tuple(range(0, n_time, anchor_interval))


def nearest_anchor(t: int, anchors: tuple[int, ...]) -> int:
    """The anchor nearest to ``t`` by index distance, ties toward the earlier one (§4.2.2)."""
    return min(anchors, key=lambda anchor: (abs(anchor - t), anchor))


def delta_references(n_time: int, anchor_interval: int) -> dict[int, int]:
    """The anchor that a fresh encode gives each non-anchor timestep, by timestep (§4.2.2)."""
    anchors = anchor_indices(n_time, anchor_interval)
    return {t: _nearest(t, anchor_interval, anchors) for t in range(n_time) if t % anchor_interval}


def _nearest(t: int, interval: int, anchors: tuple[int, ...]) -> int:
    before = t // interval
    return nearest_anchor(t, anchors[before : before + 2])


def residual(source: NDArray[Any], anchor: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Modular difference of a timestep to its anchor (§4.2.4).

    Parameters
    ----------
    source, anchor : ndarray of uint8 or uint16, same shape
    out : ndarray to write into, optional

    Returns
    -------
    ndarray, same dtype and shape: (source - anchor) mod 2**bits; never clipped.
    """
    difference: NDArray[Any] = np.subtract(source, anchor, out=out)
    return difference


def reconstruct(stored: NDArray[Any], anchor: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """The timestep whose residual to ``anchor`` is ``stored``: (anchor + stored) mod 2**bits, never clamped (§4.2)."""
    true: NDArray[Any] = np.add(anchor, stored, out=out)
    return true


def absolute_difference_sum(source: NDArray[Any], anchor: NDArray[Any]) -> int | float:
    """Exact sum of |source - anchor| over all elements, invalid ones included (§5).

    An int for integer data; for float32 the differences and their sum are float64.
    """
    if source.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            return float(np.abs(source.astype(np.float64) - anchor).sum())
    # The difference of two n-bit integers fits n unsigned bits, so no wider copy is needed.
    unsigned = np.dtype(f"u{source.dtype.itemsize}")
    difference = np.subtract(np.maximum(source, anchor), np.minimum(source, anchor)).view(unsigned)
    return int(difference.sum(dtype=np.uint64))


@dataclass(frozen=True)
class Group:
    """An anchor and the timesteps that refer to it, in time order."""

    anchor: int
    members: tuple[int, ...]

    @property
    def timesteps(self) -> tuple[int, ...]:
        """The anchor first, then the others."""
        return (self.anchor, *self.members)


def groups(n_time: int, references: Mapping[int, int]) -> tuple[Group, ...]:
    """Each anchor with its timesteps; together they cover every timestep once."""
    members: dict[int, list[int]] = {t: [] for t in range(n_time) if t not in references}
    for t, anchor in sorted(references.items()):
        members[anchor].append(t)
    return tuple(Group(anchor, tuple(timesteps)) for anchor, timesteps in members.items())
