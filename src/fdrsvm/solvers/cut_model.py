"""The cutting-plane model of a federation's objective: what the server knows of its clients.

    f_g(w) >= A_gk + v_gk.w + sigma_gk ||w||_*            cut k of client g, [cut]
    f_g(w) >= floor_g ||w||_*                             the floor: losses are not negative
    M(w) = sum_g alpha_g max over k of (right-hand sides) <= F(w) = sum_g alpha_g f_g(w)

The first ``n_normed`` entries of w are features; one more, if there is one, is an intercept, which
the norm does not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.vectors import NORM_CODES, Norm
from fdrsvm.native import master as kernels


@dataclass(frozen=True)
class CutModel:
    """Cuts of all clients, stacked; takes clean arrays.

    Attributes
    ----------
    constants : ndarray of shape (n_cuts,)
        A.
    slopes : ndarray of shape (n_cuts, width)
        v, an intercept's last; ``width`` is ``n_normed``, or one more.
    norm_weights : ndarray of shape (n_cuts,)
        sigma, not negative.
    owners : ndarray of int of shape (n_cuts,)
        The client of each cut, in ascending order. A client may have none.
    alphas : ndarray of shape (n_clients,)
        Weights of the clients, not negative, with sum 1.
    floors : ndarray of shape (n_clients,)
        Norm weights of the floors, not negative.
    n_normed : int
        Number of features.
    norm : {"l1", "l2", "linf"}
        The transport norm; the model has its dual.
    """

    constants: Array
    slopes: Array
    norm_weights: Array
    owners: npt.NDArray[np.int64]
    alphas: Array
    floors: Array
    n_normed: int
    norm: Norm

    @property
    def n_clients(self) -> int:
        """Clients, those without cuts or weight among them."""
        return self.alphas.size

    @property
    def width(self) -> int:
        """Features, and one for an intercept."""
        return int(self.slopes.shape[1])

    @property
    def floor(self) -> float:
        """E = sum_g alpha_g floor_g: the model is at least E ||w||_*."""
        return self.kernel.floor()

    @cached_property
    def kernel(self) -> kernels.Cuts:
        """The model as compiled code reads it."""
        return kernels.Cuts(
            constants=clean(self.constants),
            slopes=clean(self.slopes),
            norm_weights=clean(self.norm_weights),
            owners=np.ascontiguousarray(self.owners, dtype=np.int64),
            alphas=clean(self.alphas),
            floors=clean(self.floors),
            n_normed=self.n_normed,
            norm=NORM_CODES[self.norm],
        )

    def cut_values(self, w: Array) -> Array:
        """Right-hand sides of all cuts at ``w``."""
        return self.kernel.cut_values(clean(w))

    def client_values(self, w: Array) -> Array:
        """Largest right-hand side at ``w`` of each client."""
        return self.kernel.client_values(clean(w))

    def value(self, w: Array) -> float:
        """M(w)."""
        return self.kernel.value(clean(w))


def clean(values: Array) -> Array:
    """As compiled code takes arrays: C-ordered float64, a copy only if they are not."""
    return np.ascontiguousarray(values, dtype=np.float64)
