"""Rasters, catalogues and the shell around :mod:`chronozarr_core`: sources, conversion, export, the command line."""
