// The pump's time loop: angle first, then the pressures, then shaft and motor.
#pragma once

#include "../core/views.hpp"
#include "parameters.hpp"

namespace fdrsvm::pump {

struct Pump {
    Circuit circuit;
    Mechanics mechanics;
    Motor motor;
};

// Columns of the record, in the order in which src/fdrsvm/native/pump.pyi names them.
enum Signal : size_t {
    kFlow,
    kPressure,
    kInletFlow,
    kInletPressure,
    kSpeed,
    kTorque,
    kLeakFlow,
    kAngle,
    kFirstChamber,
    kSignals = kFirstChamber + kChambers
};

struct Outcome {
    int most_iterations = 0;  // of Newton's method in a step
    size_t failed_step = 0;   // the number, from 1, of the step that could not be solved; 0 if none
};

// Fills the record, a row per `every` steps of `dt`, from standstill, with the outlet's side at the
// back pressure and the inlet's at the tank's.
Outcome run(const Pump& pump, double dt, size_t every, Matrix record);

}  // namespace fdrsvm::pump
