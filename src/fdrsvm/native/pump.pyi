from fdrsvm.core.arrays import Array

# Columns of a record.
FLOW: int
PRESSURE: int
INLET_FLOW: int
INLET_PRESSURE: int
SPEED: int
TORQUE: int
LEAK_FLOW: int
ANGLE: int
FIRST_CHAMBER: int
N_SIGNALS: int

class Fluid:
    def __init__(
        self, *, atmosphere: float, bulk_modulus: float, air: float, exponent: float
    ) -> None: ...

class Valve:
    def __init__(self, *, closed: float, opened: float, crack: float, full: float) -> None: ...

class Volumes:
    def __init__(self, *, chamber: float, manifold: float, pipe: float, load: float) -> None: ...

class Circuit:
    def __init__(
        self,
        *,
        fluid: Fluid,
        inlet_1: Valve,
        inlet: Valve,
        outlet: Valve,
        leak: float,
        load: float,
        back_pressure: float,
        pipe: float,
        smoothing: float,
        volumes: Volumes,
    ) -> None: ...

class Mechanics:
    def __init__(
        self,
        *,
        crank: float,
        rod: float,
        plunger_area: float,
        inertia: float,
        damping: float,
        breakaway: float,
        breakaway_speed: float,
        coulomb: float,
        viscous: float,
    ) -> None: ...

class Motor:
    def __init__(
        self,
        *,
        reference: float,
        gain: float,
        integral_gain: float,
        integral_limit: float,
        torque_limit: float,
        lag: float,
        filter_rate: float,
        gear: float,
    ) -> None: ...

class Run:
    """``failed_step`` is the number, from 1, of the step that could not be solved; 0 if none."""

    record: Array
    most_iterations: int
    failed_step: int

class Pump:
    def __init__(self, circuit: Circuit, mechanics: Mechanics, motor: Motor) -> None: ...
    def run(self, *, step: float, every: int, n_samples: int) -> Run: ...

class KurtosisPlan:
    """Segments of the window's size, ``hop`` apart; a column per frequency."""

    def __init__(self, window: Array, *, hop: int, first_bin: int, n_bins: int) -> None: ...
    def kurtosis(self, records: Array) -> Array: ...

class SpectrumPlan:
    """Frequencies ``first``, ``first + spacing`` ..., in turns per sample; a column each."""

    def __init__(
        self, window: Array, *, first: float, spacing: float, n_frequencies: int
    ) -> None: ...
    def power(self, records: Array) -> Array: ...
