"""Models and certificates have the same bits on every instruction set, BLAS and thread count."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from fdrsvm.native._choice import runnable_levels

TRAIN = """
import hashlib, json, sys, warnings
import numpy as np
from scipy import sparse
from fdrsvm import DRSVC, FDRSVC, FedSVC, FederatedStandardScaler, worst_case_risk

warnings.simplefilter("ignore")
rng = np.random.default_rng(7)
X = rng.normal(size=(330, 11)) * np.geomspace(0.1, 30.0, 11)
y = np.where(X[:, 0] / X[:, 0].std() - X[:, 7] / X[:, 7].std() + rng.normal(size=330) > 0, 1, -1)
clients = np.repeat(["a", "b", "c"], [90, 100, 140])
scaled = FederatedStandardScaler().fit(X, clients=clients).transform(X)
boxed = (X - X.min(axis=0)) / np.ptp(X, axis=0)

def digest(*numbers):
    parts = (np.ascontiguousarray(number, dtype=float).tobytes() for number in numbers)
    return hashlib.sha256(b"".join(parts)).hexdigest()

def of(model):
    return digest(model.coef_, model.intercept_, model.objective_, model.lower_bound_)

found = {"scaler": digest(scaled)}
for algorithm in ("bundle", "admm", "admm-sc", "subgradient"):
    for norm in ("l1", "l2", "linf"):
        model = FDRSVC(algorithm, norm=norm, epsilon=0.02, max_rounds=12)
        found[f"{algorithm} {norm}"] = of(model.fit(scaled, y, clients=clients))
found["threads"] = of(FDRSVC(n_threads=2, max_rounds=12).fit(scaled, y, clients=clients))
found["box"] = of(FDRSVC(support="unit-box", max_rounds=12).fit(boxed, y, clients=clients))
three = np.digitize(scaled[:, 0] + scaled[:, 1], [-0.5, 0.5])
found["three classes"] = of(FDRSVC(max_rounds=8).fit(scaled, three, clients=clients))
for algorithm in ("fedavg", "fedsgd", "fedprox"):
    model = FedSVC(algorithm, max_rounds=8, random_state=0)
    found[algorithm] = of(model.fit(scaled, y, clients=clients))
found["central"] = of(DRSVC(epsilon=0.01).fit(scaled, y))
thinned = np.where(rng.random(scaled.shape) < 0.3, scaled, 0.0)
found["sparse"] = of(DRSVC(epsilon=0.01).fit(sparse.csr_array(thinned), y))
risk = worst_case_risk(rng.normal(size=11), X, y, epsilon=0.1)
found["risk"] = digest(risk.value, risk.subgradient, risk.proof)
print(json.dumps(found))
"""


def trained(**settings):
    environment = {**os.environ, **settings}
    run = subprocess.run(
        [sys.executable, "-c", TRAIN], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def here():
    return trained()


@pytest.mark.parametrize("level", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_gives_the_same_bits(level, here):
    if level not in runnable_levels():
        pytest.skip(f"this processor or this build has no {level}")
    assert trained(FDRSVM_LEVEL=level) == here


def test_another_blas_kernel_and_thread_count_change_nothing(here):
    assert trained(OPENBLAS_CORETYPE="Prescott", OPENBLAS_NUM_THREADS="2") == here


def test_an_older_processor_as_numpy_and_the_c_library_see_it_changes_nothing(here):
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    settings = {"NPY_DISABLE_CPU_FEATURES": " ".join(simd.get("found", []))}
    settings["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F"
    assert trained(**settings) == here
