"""Pillow, which only drawing needs; everything else works without it."""

from __future__ import annotations

from chronozarr_core.errors import ChronozarrError


class PillowMissingError(ChronozarrError, ImportError):
    """Pillow is not installed."""


try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:
    raise PillowMissingError("drawing pictures needs Pillow: pip install 'chronozarr-qgis[demo]'") from error

__all__ = ["Image", "ImageDraw", "ImageFont", "PillowMissingError"]
