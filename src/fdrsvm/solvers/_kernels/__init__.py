"""Compiled inner loops of the solvers. They take clean arrays, check nothing, change what they say.

Rows are *signed*: row n is y_n (x_n, 1), so a margin is ``row @ w``. ``kept[n]`` and ``flipped[n]``
are the multipliers of the pieces 1 - m_n and 1 + m_n - kappa lam of sample n's loss, ``pull`` and
``sigma`` those of the cone lam >= ||w||_*. ``grading`` shares nothing with the other modules.
"""
