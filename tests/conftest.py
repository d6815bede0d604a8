import numpy as np
import pytest
from hypothesis import HealthCheck, settings

collect_ignore = ["smoke.py"]  # a script, for an installed package only

# No deadline, since machines are shared; derandomised, so that CI repeats itself. `make test` tries
# fewer examples, `make test-slow` takes the same tests through four times as many.
for name, max_examples in (("fdrsvm", 50), ("thorough", 200)):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=True,
        max_examples=max_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("fdrsvm")


@pytest.fixture
def rng():
    return np.random.default_rng(20251115)
