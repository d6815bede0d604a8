"""An installed package trains, saves and loads: run by tests of the release, and for each wheel."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import fdrsvm
from fdrsvm import FDRSVC

assert Path(fdrsvm.__file__).is_relative_to(sys.prefix), fdrsvm.__file__
assert (Path(fdrsvm.__file__).parent / "py.typed").exists()
X = np.array([[0.1, 0.9], [0.2, 0.7], [0.8, 0.3], [0.9, 0.2]])
y, plants = ["healthy", "healthy", "worn", "worn"], ["north", "south", "north", "south"]
model = FDRSVC(epsilon=0.05, kappa=0.5).fit(X, y, clients=plants)
assert model.gap_ <= 1e-4
assert abs(model.objective_ - 0.228) < 1e-3
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    model.save(path)
    again = FDRSVC.load(path)
assert (again.coef_ == model.coef_).all()
assert again.predict(X).tolist() == y
print("works")
