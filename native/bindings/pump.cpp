#include "../pump/pump.hpp"

#include <cmath>

#include "../pump/kurtosis.hpp"
#include "../pump/spectrum.hpp"
#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

namespace {

using namespace fdrsvm::pump;

struct PumpRun {
    nb::object record;
    int most_iterations;
    size_t failed_step;
};

void check(bool holds, const char* rule) {
    if (!holds) throw nb::value_error(rule);
}

PumpRun run_for(const Pump& pump, double step, size_t every, size_t n_samples) {
    check(step > 0.0 && std::isfinite(step), "step: must be a number above 0");
    check(every >= 1, "every: must be at least 1");
    check(n_samples >= 1, "n_samples: must be at least 1");
    NewMatrix record(n_samples, kSignals);
    Outcome outcome;
    {
        nb::gil_scoped_release unlocked;
        outcome = run(pump, step, every, record.view());
    }
    return {record.object, outcome.most_iterations, outcome.failed_step};
}

void bind_parameters(nb::module_& pump) {
    nb::class_<Fluid>(pump, "Fluid")
        .def(nb::init<double, double, double, double>(), nb::kw_only(), "atmosphere"_a,
             "bulk_modulus"_a, "air"_a, "exponent"_a);
    nb::class_<Valve>(pump, "Valve")
        .def(nb::init<double, double, double, double>(), nb::kw_only(), "closed"_a, "opened"_a,
             "crack"_a, "full"_a);
    nb::class_<Volumes>(pump, "Volumes")
        .def(nb::init<double, double, double, double>(), nb::kw_only(), "chamber"_a, "manifold"_a,
             "pipe"_a, "load"_a);
    nb::class_<Circuit>(pump, "Circuit")
        .def(
            nb::init<Fluid, Valve, Valve, Valve, double, double, double, double, double, Volumes>(),
            nb::kw_only(), "fluid"_a, "inlet_1"_a, "inlet"_a, "outlet"_a, "leak"_a, "load"_a,
            "back_pressure"_a, "pipe"_a, "smoothing"_a, "volumes"_a);
    nb::class_<Mechanics>(pump, "Mechanics")
        .def(nb::init<double, double, double, double, double, double, double, double, double>(),
             nb::kw_only(), "crank"_a, "rod"_a, "plunger_area"_a, "inertia"_a, "damping"_a,
             "breakaway"_a, "breakaway_speed"_a, "coulomb"_a, "viscous"_a);
    nb::class_<Motor>(pump, "Motor")
        .def(nb::init<double, double, double, double, double, double, double, double>(),
             nb::kw_only(), "reference"_a, "gain"_a, "integral_gain"_a, "integral_limit"_a,
             "torque_limit"_a, "lag"_a, "filter_rate"_a, "gear"_a);
}

void bind_run(nb::module_& pump) {
    nb::class_<PumpRun>(pump, "Run")
        .def_ro("record", &PumpRun::record)
        .def_ro("most_iterations", &PumpRun::most_iterations)
        .def_ro("failed_step", &PumpRun::failed_step);
    nb::class_<Pump>(pump, "Pump")
        .def(nb::init<Circuit, Mechanics, Motor>(), "circuit"_a, "mechanics"_a, "motor"_a)
        .def("run", &run_for, nb::kw_only(), "step"_a, "every"_a, "n_samples"_a);
    pump.attr("FLOW") = size_t{kFlow};
    pump.attr("PRESSURE") = size_t{kPressure};
    pump.attr("INLET_FLOW") = size_t{kInletFlow};
    pump.attr("INLET_PRESSURE") = size_t{kInletPressure};
    pump.attr("SPEED") = size_t{kSpeed};
    pump.attr("TORQUE") = size_t{kTorque};
    pump.attr("LEAK_FLOW") = size_t{kLeakFlow};
    pump.attr("ANGLE") = size_t{kAngle};
    pump.attr("FIRST_CHAMBER") = size_t{kFirstChamber};
    pump.attr("N_SIGNALS") = size_t{kSignals};
}

void bind_kurtosis(nb::module_& pump) {
    nb::class_<KurtosisPlan>(pump, "KurtosisPlan")
        .def(
            "__init__",
            [](KurtosisPlan* plan, nb::handle window, size_t hop, size_t first_bin, size_t n_bins) {
                const HeldVector<> held(window, "window");
                check(held.size() >= 1, "window: must have at least one entry");
                check(hop >= 1, "hop: must be at least 1");
                const size_t all_bins = 4 * held.size() + 1;
                check(first_bin <= all_bins && n_bins <= all_bins - first_bin,
                      "n_bins: must end at half the sample rate, 4 bins per entry of the window");
                new (plan) KurtosisPlan(held.view(), hop, {first_bin, n_bins});
            },
            "window"_a, nb::kw_only(), "hop"_a, "first_bin"_a, "n_bins"_a)
        .def(
            "kurtosis",
            [](const KurtosisPlan& plan, nb::handle records) {
                const HeldMatrix<> held(records, "records");
                check(held.shape(1) >= plan.segment_size(),
                      "records: must have as many columns as the window has entries, or more");
                NewMatrix kurtosis(held.shape(0), plan.n_bins());
                {
                    nb::gil_scoped_release unlocked;
                    plan.fill(held.view(), kurtosis.view());
                }
                return kurtosis.object;
            },
            "records"_a);
}

constexpr size_t kMostFrequencies = size_t(1) << 24;

void bind_spectrum(nb::module_& pump) {
    nb::class_<SpectrumPlan>(pump, "SpectrumPlan")
        .def(
            "__init__",
            [](SpectrumPlan* plan, nb::handle window, double first, double spacing,
               size_t n_frequencies) {
                const HeldVector<> held(window, "window");
                check(held.size() >= 1, "window: must have at least one entry");
                check(std::isfinite(first) && std::isfinite(spacing),
                      "first, spacing: must be finite");
                check(n_frequencies >= 1 && n_frequencies <= kMostFrequencies,
                      "n_frequencies: must be from 1 to 2**24");
                new (plan) SpectrumPlan(held.view(), {first, spacing, n_frequencies});
            },
            "window"_a, nb::kw_only(), "first"_a, "spacing"_a, "n_frequencies"_a)
        .def(
            "power",
            [](const SpectrumPlan& plan, nb::handle records) {
                const HeldMatrix<> held(records, "records", kAnySize, plan.n_samples());
                NewMatrix power(held.shape(0), plan.n_frequencies());
                {
                    nb::gil_scoped_release unlocked;
                    plan.fill(held.view(), power.view());
                }
                return power.object;
            },
            "records"_a);
}

}  // namespace

void bind_pump(nb::module_& module) {
    nb::module_ pump = module.def_submodule("pump", "The simulated pump and its spectra.");
    bind_parameters(pump);
    bind_run(pump);
    bind_kurtosis(pump);
    bind_spectrum(pump);
}

}  // namespace fdrsvm::edge
