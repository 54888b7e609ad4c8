"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from tqdm import tqdm

from chronozarr_core.chunks import CODECS, Compression
from chronozarr_core.plan import ENCODINGS, EncodeOptions, default_workers
from chronozarr_core.progress import Progress
from chronozarr_core.temporal import DEFAULT_ANCHOR_INTERVAL

Command = TypeVar("Command", bound=Callable[..., Any])


class Numbers(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on, which older ones are not
    """A fixed count of numbers separated by commas."""

    def __init__(self, *names: str, kind: type = float) -> None:
        self._names, self._kind = names, kind
        self.name = ",".join(names)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in str(value).split(",")]
        if len(parts) == len(self._names):
            try:
                numbers = tuple(self._kind(part) for part in parts)
            except ValueError:
                numbers = ()
            if numbers and all(math.isfinite(number) for number in numbers):
                return numbers
        return self.fail(f"{value!r} is not {len(self._names)} numbers: expected {self.name}", param, ctx)


ENCODE_OPTIONS = (
    click.option("--encoding", type=click.Choice(ENCODINGS), default="auto", show_default=True,
                 help="Temporal encoding; auto measures a sample and keeps star-delta where it saves 15 %."),
    click.option("--anchor-interval", type=click.IntRange(1), default=DEFAULT_ANCHOR_INTERVAL, show_default=True,
                 help="Timesteps between anchors."),
    click.option("--codec", type=click.Choice(CODECS), default="zstd", show_default=True,
                 help="Chunk compression; blosc is blosc-zstd-shuffle."),
    click.option("--level", type=int, help="Compression level (default: zstd 5, blosc 1, gzip 6)."),
    click.option("--chunk-size", type=click.IntRange(2), default=512, show_default=True,
                 help="Edge of a cell in pixels: 256 or 512; even."),
    click.option("--lods", "n_lods", type=click.IntRange(1),
                 help="Pyramid levels, level 0 included (default: up to the first of one cell)."),
    click.option("--workers", type=click.IntRange(1), help="Threads (default: one per processor)."),
)  # fmt: skip


def encode_options(command: Command) -> Command:
    """Add the options that say how a store is written."""
    for option in reversed(ENCODE_OPTIONS):
        command = option(command)
    return command


def make_encode_options(
    encoding: str,
    anchor_interval: int,
    codec: str,
    level: int | None,
    chunk_size: int,
    n_lods: int | None,
    workers: int | None,
) -> EncodeOptions:
    """The values of :func:`encode_options` as one object."""
    return EncodeOptions(
        encoding, anchor_interval, Compression.parse(codec, level), chunk_size, n_lods, workers or default_workers()
    )


quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")


@contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Progress]:
    """A bar on standard error, where that is a terminal; called with what is done and the total."""
    bar: Any = tqdm(desc=label, disable=True if quiet else None, leave=False, unit="step", dynamic_ncols=True)

    def update(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    with bar:
        yield update


def megabytes(nbytes: int) -> str:
    """A size as a person reads it, in powers of ten."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes} bytes"
