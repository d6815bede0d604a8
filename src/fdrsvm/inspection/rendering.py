"""Pages from templates: what the model's page, the demo's and the paper's share.

A page extends ``base.html.j2``, which has the style for light and dark, wide and narrow screens.
Names on a page come from other people's files, so every value is made printable and escaped unless
it is markup already.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fdrsvm.core.texts import printable

_HOME = "fdrsvm.inspection"


def render(template: str, package: str = _HOME, **values: Any) -> Markup:
    """A template of a package's folder ``templates``, which may extend those of this package."""
    return Markup(_environment(package).get_template(template).render(values))  # noqa: S704


def number(value: float) -> str:
    """For a tick or a cell."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else ("∞" if value > 0.0 else "-∞")
    return f"{value:.4g}"


@cache
def _environment(package: str) -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(_HOME)]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    return environment


def _shown(value: Any) -> Any:
    """Text in which every character is seen.

    A page with half a surrogate pair could not be written, and an override of direction would turn
    what comes after it.
    """
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(value) if is_text else value
