"""The version of plantain, importable without the rest of the package."""

__version__ = "0.1.0"
