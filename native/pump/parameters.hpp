// What a pump is made of, in SI units (speeds of the controller in rpm); gauge pressures.
#pragma once

#include <cstddef>

namespace fdrsvm::pump {

inline constexpr std::size_t kChambers = 3;
inline constexpr std::size_t kPressures = 8;
// After the chambers; the outlet's side and then the inlet's.
enum Node : std::size_t { kOutManifold = kChambers, kOutPipe, kLoad, kInManifold, kInPipe };

// Oil with trapped air; `exponent` is one over the air's polytropic index.
struct Fluid {
    double atmosphere, bulk_modulus, air, exponent;
};

// Conductances of a check valve, closed and fully open; pressures where it starts and ends to open.
struct Valve {
    double closed, opened, crack, full;
};

struct Volumes {
    double chamber, manifold, pipe, load;
};

// What the fluid flows through: conductances in flow per root of pressure, or per pressure.
struct Circuit {
    Fluid fluid;
    Valve inlet_1;  // of plunger 1, which may be blocked
    Valve inlet;    // of the others
    Valve outlet;
    double leak;  // conductance from chamber 1 to the tank
    double load;  // conductance to the back pressure
    double back_pressure;
    double pipe;       // conductance of half a pipe
    double smoothing;  // below this pressure an orifice is laminar
    Volumes volumes;
};

// Crank-slider and what resists it.
struct Mechanics {
    double crank, rod, plunger_area, inertia, damping;
    double breakaway, breakaway_speed, coulomb, viscous;
};

// Torque-limited drive under a PI controller of the shaft speed, in rpm.
struct Motor {
    double reference, gain, integral_gain, integral_limit, torque_limit, lag, filter_rate, gear;
};

}  // namespace fdrsvm::pump
