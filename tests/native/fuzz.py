"""Calls everything in the compiled module with arguments that are wrong in all sorts of ways.

``python -m tests.native.fuzz LOG [FIRST]`` makes the calls from number FIRST on and writes each
one's number and name to LOG before it is made: whatever ends this process, the last line says
where. A call that is still running after LIMIT seconds ends it by SIGALRM: it may have been asked
for very many steps.

A first call that works is found by listening to what the edge says, such as "x: must have 3
entries, it has 4"; then one or two of its arguments are replaced. New parts need no words here.
"""

import ast
import os
import re
import resource
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from fdrsvm.native import _core

N_CALLS = 80  # per function
N_TRIALS = 300  # to find arguments that work
LIMIT = 5  # seconds per call
MEMORY = 8 << 30  # bytes: more is a MemoryError and not the end of the machine
HUGE = (2**31, 2**40, 2**62, 2**63, 2**64, 10**30)
MISSING = object()
CSR = (np.full(2, 0.5), np.zeros(2, np.int64), np.array([0, 1, 2]))
NOT_TO_BE_GUESSED = {"csr": [CSR, (*CSR, 1)], "first": [np.array([0, 2, 4])]}  # by argument


def under_sanitizer():
    return "libasan" in os.environ.get("LD_PRELOAD", "")  # it ends the process for want of memory


class Function(NamedTuple):
    """Something that can be called; a method has the class that it is a method of."""

    name: str
    call: Any
    owner: type | None
    annotations: dict[str, str]


def functions(owner=_core, path=""):
    """All that the module has, with names such as ``products.times``."""
    for name, value in sorted(vars(owner).items()):
        here = f"{path}.{name}" if path else name
        if isinstance(value, ModuleType):
            yield from functions(value, here)
        elif isinstance(value, type):
            if hasattr(value.__init__, "__nb_signature__"):  # else only the module makes them
                yield Function(here, value, None, arguments(value.__init__))
            for method, part in sorted(vars(value).items()):
                if hasattr(part, "__nb_signature__") and not method.startswith("__"):
                    is_bound = "self" in arguments(part, ())
                    yield Function(
                        f"{here}.{method}", part, value if is_bound else None, arguments(part)
                    )
        elif hasattr(value, "__nb_signature__"):
            yield Function(here, value, None, arguments(value))


def arguments(function, but=("self",)):
    """Names and annotations."""
    text = re.sub(r"\\\d+", "...", function.__nb_signature__[0][0])  # defaults
    made = ast.parse(f"{text}: ...").body[0].args
    every = [*made.posonlyargs, *made.args, *made.kwonlyargs]
    return {
        a.arg: ast.unparse(a.annotation) if a.annotation else "object"
        for a in every
        if a.arg not in but
    }


class Caller:
    """Knows what was made so far, so that methods have something to be called on."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.made = {}  # by the name of a class

    def keep(self, result):
        for each in result if isinstance(result, tuple) else (result,):
            if type(each).__module__.startswith("fdrsvm.native"):
                self.made.setdefault(type(each).__name__, []).append(each)
                for name in dir(each):
                    if not name.startswith("_"):
                        getattr(each, name)  # every field can be read

    def bound(self, function):
        """What to call: of a method, the one of an object that was made before."""
        if function.owner is None:
            return function.call
        made = self.made.get(function.owner.__name__)
        return getattr(made[-1], function.name.split(".")[-1]) if made else None

    def first_guess(self, name, annotation):
        if name in NOT_TO_BE_GUESSED:
            return NOT_TO_BE_GUESSED[name][0]
        if annotation.endswith("| None"):
            return None
        kind = annotation.split(".")[-1].strip("'\"")
        if kind in self.made:
            return self.made[kind][-1]
        scalars = {"int": 1, "float": 0.5, "bool": True, "str": "l2", "tuple": (), "dict": {}}
        return scalars[kind] if kind in scalars else np.linspace(0.1, 0.9, 4)

    def another(self, name, message, old):
        """What the message about an argument asks for."""
        if name in NOT_TO_BE_GUESSED:
            options = NOT_TO_BE_GUESSED[name]
            return options[self.rng.integers(len(options))]
        if rule := re.search(r"array of (\w+).* with (\d) dimension", message):
            return filled((4, 3, 2)[: int(rule[2])], rule[1], self.rng)
        if rule := re.search(r"must have (\d+) entries, it has (\d+)", message):
            wanted, found = int(rule[1]), int(rule[2])
            if isinstance(old, np.ndarray) and found in old.shape:
                shape = list(old.shape)
                shape[self.rng.choice([k for k, n in enumerate(shape) if n == found])] = wanted
                return filled(tuple(shape), old.dtype.name, self.rng)
        if isinstance(old, np.ndarray):
            shape = tuple(int(n) for n in self.rng.integers(0, 6, old.ndim))
            return filled(shape, old.dtype.name, self.rng)
        if isinstance(old, bool):
            return not old
        if isinstance(old, int | float):
            return type(old)(self.rng.choice([0, 1, 2, 3, 4, 5]))
        return (
            self.rng.choice(self.made[type(old).__name__])
            if type(old).__name__ in self.made
            else old
        )

    def working_arguments(self, function):
        """Arguments that the function takes, or the last ones tried, and whether they work."""
        call = self.bound(function)
        given = {name: self.first_guess(name, kind) for name, kind in function.annotations.items()}
        for _ in range(N_TRIALS if call else 0):
            try:
                self.keep(call(**given))
            except Exception as error:
                if isinstance(error, SystemError) or not given:
                    raise
                blamed = re.split(r"[:\[ ]", str(error))[0]
                if blamed not in given:
                    blamed = str(self.rng.choice(list(given)))
                given[blamed] = self.another(blamed, str(error), given[blamed])
            else:
                return given, True
        return given, False


def filled(shape, dtype, rng):
    if dtype.startswith("int"):
        return np.zeros(shape, dtype)
    return rng.uniform(0.1, 0.9, shape).astype(dtype)


def misaligned(array, by):
    room = np.zeros(array.nbytes + 16, np.uint8)
    start = (by - room.ctypes.data) % 16
    return room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)


def read_only(array):
    locked = array.copy()
    locked.flags.writeable = False
    return locked


def wrong_arrays(array):
    """The same array, wrong in one way each."""
    yield from (array.astype(t) for t in ("f4", "f8", ">f8", "i4", "i8", "u8", ">i8", "c16", "O"))
    yield array.astype(bool)
    yield np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array
    yield array[..., ::-1] if array.ndim else array
    yield np.asfortranarray(array)
    yield from (misaligned(array, by) for by in (1, 4))
    yield read_only(array)
    yield from (array[..., None], array[None], array.reshape(-1), np.float64(1.0), np.array(1.0))
    for shape in ((0,), (0, 3), (3, 0), (0, 0), (1,), (1, 1), (7,), (7, 5), (2, 2, 2)):
        yield np.full(shape, 0.5).astype(array.dtype)
    for value in (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, -1e308, 5e-324):
        if array.dtype.kind == "f":
            yield np.full_like(array, value)
    for value in (-1, 1, 10**6, np.iinfo("i4").max, np.iinfo("i4").min):
        if array.dtype.kind == "i":
            yield np.full_like(array, value)
    yield from (array.tolist(), memoryview(np.ascontiguousarray(array)), array.tobytes())


def wrong_values(value):
    if isinstance(value, np.ndarray):
        yield from wrong_arrays(value)
    huge = (10**5,) if under_sanitizer() else HUGE
    yield from (None, "", "linf", b"x", object(), [], (), {}, 1j, True, MISSING)
    yield from (0, 1, -1, 2, 3, 4, 255, *huge, *(-n for n in huge))
    yield from (0.0, -1.0, 0.5, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324)


def wrong_calls(caller, function):
    """Sets of arguments, one or two of them wrong."""
    base, _ = caller.working_arguments(function)
    for _ in range(N_CALLS * len(base)):
        given = dict(base)
        for name in caller.rng.choice(list(base), size=caller.rng.integers(1, 3)):
            options = list(wrong_values(base[str(name)]))
            given[str(name)] = options[caller.rng.integers(len(options))]
        yield {name: value for name, value in given.items() if value is not MISSING}


def described(value):
    if isinstance(value, np.ndarray):
        first = value.flat[0] if value.size else ""
        return f"{value.dtype.str}{value.shape}{value.strides} {first!r}"
    return repr(value)[:60]


def main(log, first=0):
    """All calls from number ``first`` on; the ones before it are drawn but not made."""
    if not under_sanitizer():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    number = 0
    caller = Caller()
    with open(log, "a", encoding="utf-8", buffering=1) as lines:
        for function in functions():
            for given in wrong_calls(caller, function):
                call = caller.bound(function)
                number += 1
                if number <= first or call is None:
                    continue
                words = ", ".join(f"{name}={described(value)}" for name, value in given.items())
                lines.write(f"{number} {function.name}({words})\n")
                signal.alarm(LIMIT)
                try:
                    call(**given)
                except SystemError:  # an error without its exception: a fault of ours
                    raise
                except Exception:
                    pass
                signal.alarm(0)
        lines.write("done\n")


def unreached():
    """Names of what could not be called with arguments that work."""
    caller = Caller()
    missed = {}
    for _ in range(2):  # what one makes another may need
        for function in functions():
            missed[function.name] = not caller.working_arguments(function)[1]
    return [name for name, is_missed in missed.items() if is_missed]


if __name__ == "__main__":
    main(Path(sys.argv[1]), *(int(word) for word in sys.argv[2:3]))
