"""The ``chronozarr`` command."""

from gdal_tools.cli.main import main

__all__ = ["main"]
