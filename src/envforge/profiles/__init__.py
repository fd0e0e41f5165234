"""Read: YAML becomes a Profile, or a list of mistakes with line and column.

The doors: `loader.load`, `loader.loads`, `lookup.find`, `lookup.catalogue`, `matching.fits`, `settings.load`.
"""
