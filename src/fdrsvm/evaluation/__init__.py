"""The documented path of 0.1 to what is now :mod:`fdrsvm.inspection`."""

from fdrsvm.inspection import *  # noqa: F403
from fdrsvm.inspection import __all__ as __all__
