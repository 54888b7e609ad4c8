"""World files beside an image: which GDAL reads, and why it did not read the one that is there."""

from __future__ import annotations

from pathlib import Path

READ_BY_GDAL = (".pgw", ".pngw", ".wld")
"""In the order in which GDAL's PNG driver prefers them; any case."""


def world_files(image: Path) -> list[Path]:
    """The world files of a PNG that GDAL considers, in its order."""
    beside = _siblings(image)
    return [beside[(image.stem + suffix).lower()] for suffix in READ_BY_GDAL if (image.stem + suffix).lower() in beside]


def explain_missing(image: Path) -> str | None:
    """Why a file that looks like the image's world file gave no georeferencing; None where there is no such file."""
    for path in world_files(image):
        return f"{path.name} is ignored by GDAL because {_defect(path)}"
    for path in sorted(_siblings(image).values()):
        stem = path.name.lower().removesuffix(path.suffix.lower())
        looks = path.suffix.lower().endswith("w") or path.suffix.lower() in (".pgwx", ".wld")
        if looks and stem in (image.stem.lower(), image.name.lower()):
            return f"{path.name} is not read as a world file: name it {image.stem}.pgw"
    return None


def disagreement(image: Path) -> str | None:
    """Say so where several world files that GDAL reads differ."""
    files = world_files(image)
    numbers = [_numbers(path) for path in files]
    if any(other != numbers[0] for other in numbers[1:]):
        return f"the world files {' and '.join(path.name for path in files)} differ"
    return None


def _siblings(image: Path) -> dict[str, Path]:
    if not image.parent.is_dir():
        return {}
    return {path.name.lower(): path for path in image.parent.iterdir() if path.is_file() and path != image}


def _numbers(path: Path) -> list[float] | None:
    """The six numbers as GDAL parses them, decimal commas included; None where there are not six."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    try:
        numbers = [float(line.replace(",", ".")) for line in lines if line.strip()]
    except ValueError:
        return None
    return numbers[:6] if len(numbers) >= 6 else None


def _defect(path: Path) -> str:
    raw = path.read_bytes()
    lines = [line for line in raw.splitlines() if line.strip()]
    if raw.startswith(b"\xef\xbb\xbf"):
        return "it starts with a byte order mark: save it as plain ASCII"
    if len(lines) == 1 and len(lines[0].split()) >= 6:
        return "its six numbers stand on one line: put each on its own line"
    if len(lines) < 6:
        return f"it has {len(lines)} lines instead of six"
    return "its six lines are not a usable transform"
