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
    return Markup(environment(package).get_template(template).render(values))  # noqa: S704


def number(value: float) -> str:
    """For a tick or a cell."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else ("∞" if value > 0.0 else "-∞")
    return f"{value:.4g}"


@cache
def environment(package: str) -> Environment:
    """How templates of a package and of this one are found and filled in."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(_HOME)]),
        autoescape=True,
        undefined=StrictUndefined,
        # A page with half a surrogate pair could not be written, and an override of direction
        # would turn what comes after it.
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["number"] = number
    made.filters["share"] = lambda part: "-" if part != part else f"{part:.3f}"
    return made
