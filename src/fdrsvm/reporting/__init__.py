"""A page about one model: one HTML file that needs no network, no scripts and no other package."""

from __future__ import annotations

from fdrsvm.reporting.page import model_page

__all__ = ["model_page"]
