#include "pump.hpp"

#include <algorithm>
#include <cmath>

#include "drive.hpp"
#include "pressures.hpp"

namespace fdrsvm::pump {

namespace {

void write(const Circuit& circuit, const Shaft& shaft, const double* p, double leak, Vector row) {
    row[kFlow] = circuit.pipe * (p[kOutManifold] - p[kOutPipe]);
    row[kPressure] = p[kOutManifold];
    row[kInletFlow] = circuit.pipe * (p[kInPipe] - p[kInManifold]);
    row[kInletPressure] = p[kInManifold];
    row[kSpeed] = shaft.speed;
    row[kTorque] = shaft.torque;
    row[kLeakFlow] = leak;
    row[kAngle] = shaft.angle;
    std::copy_n(p, kChambers, &row[kFirstChamber]);
}

}  // namespace

Outcome run(const Pump& pump, double dt, size_t every, Matrix record) {
    PressureSolver solver(pump.circuit, dt);
    Shaft shaft;
    alignas(64) double p[kPressures] = {};
    p[kOutManifold] = p[kOutPipe] = p[kLoad] = pump.circuit.back_pressure;
    double levers[kChambers], displaced[kChambers];
    Outcome outcome;
    write(pump.circuit, shaft, p, solver.leak_flow(p), record[0]);
    for (size_t k = 1; k <= (record.rows - 1) * every; ++k) {
        shaft.angle += dt * shaft.speed;
        fill_levers(pump.mechanics, shaft.angle, levers);
        for (size_t i = 0; i < kChambers; ++i)
            displaced[i] = pump.mechanics.plunger_area * levers[i] * shaft.speed;
        const int iterations = solver.move(p, displaced);
        shaft = next_shaft(pump.mechanics, pump.motor, shaft, levers, p, dt);
        if (iterations == kNotSettled || !std::isfinite(shaft.speed)) {
            outcome.failed_step = k;
            return outcome;
        }
        outcome.most_iterations = std::max(outcome.most_iterations, iterations);
        if (k % every == 0) write(pump.circuit, shaft, p, solver.leak_flow(p), record[k / every]);
    }
    return outcome;
}

}  // namespace fdrsvm::pump
