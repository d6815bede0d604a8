// Crank, plunger friction, motor and speed controller.
#pragma once

#include "parameters.hpp"

namespace fdrsvm::pump {

// Angle, speed, motor torque, filtered speed in rpm, integral of the speed error.
struct Shaft {
    double angle = 0.0, speed = 0.0, torque = 0.0, measured = 0.0, integral = 0.0;
};

// Plunger travel per radian of crank, for each plunger; positive while it sucks.
void fill_levers(const Mechanics& mechanics, double angle, double* levers);

// Speed, torque and controller one explicit step on; the angle has been moved before.
Shaft next_shaft(const Mechanics& mechanics, const Motor& motor, const Shaft& shaft,
                 const double* levers, const double* p, double dt);

}  // namespace fdrsvm::pump
