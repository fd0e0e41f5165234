"""envforge: provisions conda and venv environments from declarative profiles, one per GPU."""

__version__ = "0.1.0"
