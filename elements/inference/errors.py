"""The error that every part of a model's set-up raises."""

from __future__ import annotations


class ModelError(Exception):
    """A model cannot be used. The text is complete for the user: which file, what was seen, what to change."""
