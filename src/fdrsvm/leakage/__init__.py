"""The documented path of 0.1 to what is now in :mod:`fdrsvm.privacy`."""

from fdrsvm.privacy import *  # noqa: F403
from fdrsvm.privacy import __all__ as __all__
