"""The compiled kernels, for the best instruction set that this processor supports.

``FDRSVM_LEVEL`` forces one of ``baseline``, ``avx2`` and ``avx512``; all give the same bits.
"""

from __future__ import annotations

import os

from fdrsvm.native._choice import choose_level, load_core

LEVEL = choose_level(os.environ.get("FDRSVM_LEVEL"))
_core = load_core(LEVEL)

client = _core.client
elementary = _core.elementary
master = _core.master
norms = _core.norms
products = _core.products
risk = _core.risk
screening = _core.screening
steps = _core.steps
pump = _core.pump
