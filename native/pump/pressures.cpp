#include "pressures.hpp"

#include <algorithm>
#include <cmath>

#include "../core/elementary.hpp"

namespace fdrsvm::pump {

namespace {

constexpr double kTolerance = 0.01;  // Pa
constexpr double kLeastShare = 0.1;  // of its absolute pressure that a node keeps in one iteration

// The first where one is not a number, so that a nan stays.
double larger(double a, double b) { return b > a ? b : a; }
double smaller(double a, double b) { return b < a ? b : a; }

}  // namespace

PressureSolver::PressureSolver(const Circuit& circuit, double dt) : circuit_(circuit), dt_(dt) {
    const Volumes& volumes = circuit.volumes;
    std::fill_n(volume_, kChambers, volumes.chamber);
    volume_[kOutManifold] = volume_[kInManifold] = volumes.manifold;
    volume_[kOutPipe] = volume_[kInPipe] = volumes.pipe;
    volume_[kLoad] = volumes.load;
    const auto always = [](double conductance) {
        return Valve{conductance, conductance, 0.0, 1.0};
    };
    const Valve valves[kOrifices] = {circuit.inlet_1,      circuit.inlet,       circuit.inlet,
                                     circuit.outlet,       circuit.outlet,      circuit.outlet,
                                     always(circuit.leak), always(circuit.load)};
    for (std::size_t o = 0; o < kOrifices; ++o) {
        const Valve& valve = valves[o];
        closed_[o] = valve.closed, opened_[o] = valve.opened;
        crack_[o] = valve.crack, full_[o] = valve.full;
        rate_[o] = (valve.opened - valve.closed) / (valve.full - valve.crack);
    }
}

int PressureSolver::move(double* p, const double* displaced) {
    store_terms(p);
    std::copy_n(stored_, kPressures, before_);
    for (int iteration = 1; iteration <= kMaxIterations; ++iteration) {
        if (iteration > 1) store_terms(p);
        orifice_terms(p);
        add_terms(p, displaced);
        solve_arrow();
        if (guarded_move(p) <= kTolerance) return iteration;
    }
    return kNotSettled;
}

double PressureSolver::leak_flow(const double* p) const {
    const double square = p[0] * p[0] + circuit_.smoothing * circuit_.smoothing;
    return circuit_.leak * p[0] / std::sqrt(std::sqrt(square));
}

// Volume stored per unit volume at each pressure, and its slope, the compressibility. The air
// expands without bound as p nears absolute zero, so p never gets there.
void PressureSolver::store_terms(const double* p) {
    const Fluid fluid = circuit_.fluid;
    const double stiffness = 1.0 / fluid.bulk_modulus;
    for (std::size_t k = 0; k < kPressures; ++k) {
        const double absolute = fluid.atmosphere + p[k];
        const double ratio = fluid.atmosphere / absolute;
        const double air = fluid.air * elementary::power(ratio, fluid.exponent);
        const double volume = 1.0 - p[k] / fluid.bulk_modulus + air;
        stored_[k] = -elementary::log(volume);
        compressibility_[k] = (stiffness + fluid.exponent * air / absolute) / volume;
    }
}

// Turbulent flow, drop / sqrt(|drop|) smoothed at the origin, through an area that grows linearly
// from a valve's `crack` to its `full`; and the flow's slope.
void PressureSolver::orifice_terms(const double* p) {
    alignas(64) double drop[kOrifices];
    for (std::size_t i = 0; i < kChambers; ++i) {
        drop[kInlets + i] = p[kInManifold] - p[i];
        drop[kOutlets + i] = p[i] - p[kOutManifold];
    }
    drop[kLeak] = p[0];
    drop[kLoadOrifice] = p[kLoad] - circuit_.back_pressure;
    const double smallest = circuit_.smoothing * circuit_.smoothing;
    for (std::size_t o = 0; o < kOrifices; ++o) {
        const double partly = closed_[o] + rate_[o] * (drop[o] - crack_[o]);
        const double beyond = drop[o] < full_[o] ? partly : opened_[o];
        const double conductance = drop[o] <= crack_[o] ? closed_[o] : beyond;
        const double widening = drop[o] < full_[o] ? rate_[o] : 0.0;
        const double rate = drop[o] <= crack_[o] ? 0.0 : widening;
        const double drop_square = drop[o] * drop[o], square = drop_square + smallest;
        const double over_root = 1.0 / std::sqrt(std::sqrt(square));
        const double over_root_square = over_root * over_root;
        const double unit = drop[o] * over_root;
        const double share = 0.5 * drop_square * (over_root_square * over_root_square);
        flow_[o] = conductance * unit;
        slope_[o] = conductance * ((1.0 - share) * over_root) + rate * unit;
    }
}

// What leaves one node enters another: the scheme conserves volume to rounding.
void PressureSolver::add_flow(std::size_t source, std::size_t sink, double flow, double slope) {
    residual_[source] += flow;
    residual_[sink] -= flow;
    diagonal_[source] += slope;
    diagonal_[sink] += slope;
}

// Residuals and the Jacobian's diagonal.
void PressureSolver::add_terms(const double* p, const double* displaced) {
    for (std::size_t k = 0; k < kPressures; ++k) {
        residual_[k] = volume_[k] * (stored_[k] - before_[k]) / dt_;
        diagonal_[k] = volume_[k] * compressibility_[k] / dt_;
    }
    for (std::size_t i = 0; i < kChambers; ++i) {
        add_flow(kInManifold, i, flow_[kInlets + i], slope_[kInlets + i]);
        add_flow(i, kOutManifold, flow_[kOutlets + i], slope_[kOutlets + i]);
        residual_[i] += displaced[i];
    }
    residual_[0] += flow_[kLeak];
    diagonal_[0] += slope_[kLeak];
    const double pipe = circuit_.pipe;
    add_flow(kOutManifold, kOutPipe, pipe * (p[kOutManifold] - p[kOutPipe]), pipe);
    add_flow(kOutPipe, kLoad, pipe * (p[kOutPipe] - p[kLoad]), pipe);
    add_flow(kInPipe, kInManifold, pipe * (p[kInPipe] - p[kInManifold]), pipe);
    residual_[kInPipe] += pipe * p[kInPipe];  // the tank's pressure is 0
    diagonal_[kInPipe] += pipe;
    residual_[kLoad] += flow_[kLoadOrifice];
    diagonal_[kLoad] += slope_[kLoadOrifice];
}

// Newton's step, by elimination towards the two manifolds.
void PressureSolver::solve_arrow() {
    const double* r = residual_;
    const double* d = diagonal_;
    const double *into = slope_ + kInlets, *out = slope_ + kOutlets;
    const double pipe = circuit_.pipe;
    // The unknowns form two stars around the manifolds with a chain at the end, so elimination from
    // the leaves inwards fills nothing in: a two by two system is left.
    const double share_load = pipe / d[kLoad];
    const double pipe_diagonal = d[kOutPipe] - pipe * share_load;
    const double pipe_residual = r[kOutPipe] + share_load * r[kLoad];
    const double share_out = pipe / pipe_diagonal, share_in = pipe / d[kInPipe];
    double a = d[kOutManifold] - pipe * share_out, b = d[kInManifold] - pipe * share_in;
    double cross = 0.0;
    double f = r[kOutManifold] + share_out * pipe_residual;
    double g = r[kInManifold] + share_in * r[kInPipe];
    for (std::size_t i = 0; i < kChambers; ++i) {
        const double to_out = out[i] / d[i], to_in = into[i] / d[i];
        a -= out[i] * to_out;
        b -= into[i] * to_in;
        cross -= out[i] * to_in;
        f += to_out * r[i];
        g += to_in * r[i];
    }
    const double determinant = a * b - cross * cross;
    step_[kOutManifold] = (cross * g - b * f) / determinant;
    step_[kInManifold] = (cross * f - a * g) / determinant;
    for (std::size_t i = 0; i < kChambers; ++i) {
        const double pulled = out[i] * step_[kOutManifold] + into[i] * step_[kInManifold];
        step_[i] = (pulled - r[i]) / d[i];
    }
    step_[kOutPipe] = (pipe * step_[kOutManifold] - pipe_residual) / pipe_diagonal;
    step_[kLoad] = share_load * step_[kOutPipe] - r[kLoad] / d[kLoad];
    step_[kInPipe] = share_in * step_[kInManifold] - r[kInPipe] / d[kInPipe];
}

// Takes the step, held back where Newton would cycle; the largest move that was made. No node
// loses more than 90 % of its absolute pressure, and no chamber jumps past the middle of a valve's
// opening range, as diodes are limited in circuit simulators. One that is at the middle, to the
// tolerance, goes on: held there again, it would seem to have settled, or not, by a last bit.
double PressureSolver::guarded_move(double* p) const {
    const double half = 0.5 * (circuit_.outlet.crack + circuit_.outlet.full);
    const double high = p[kOutManifold] + half, low = p[kInManifold] - half;
    const double atmosphere = circuit_.fluid.atmosphere;
    double largest = 0.0;
    for (std::size_t k = 0; k < kPressures; ++k) {
        double pressure = larger(p[k] + step_[k], kLeastShare * (p[k] + atmosphere) - atmosphere);
        if (k < kChambers) {
            if (p[k] < high - kTolerance) pressure = smaller(pressure, high);
            if (p[k] > low + kTolerance) pressure = larger(pressure, low);
        }
        largest = larger(largest, std::fabs(pressure - p[k]));
        p[k] = pressure;
    }
    return largest;
}

}  // namespace fdrsvm::pump
