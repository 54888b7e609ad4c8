"""``python -m gdal_tools.cli``: the command without an installed script."""

from gdal_tools.cli.main import main

main(prog_name="chronozarr")
