"""The version of plantain, where every room can read it without importing the package's front door."""

__version__ = "0.1.0"
