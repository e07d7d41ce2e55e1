"""plantain: build, judge and benchmark text-guided edits of medical images.

A research tool. It is not a medical device, it diagnoses nothing, and what it makes is synthetic.
"""

from __future__ import annotations

__version__ = "0.1.0"
