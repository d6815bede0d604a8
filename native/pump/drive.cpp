#include "drive.hpp"

#include <cmath>
#include <numbers>

#include "../core/elementary.hpp"

namespace fdrsvm::pump {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr std::size_t kPadded = 4;  // the three plungers and one more, to work side by side

double limited(double value, double limit) {
    const double raised = -limit > value ? -limit : value;
    return limit < raised ? limit : raised;
}

// Viscous, Stribeck and Coulomb force on each plunger.
void fill_friction(const Mechanics& mechanics, const double* speed, double* force) {
    const double peak =
        std::sqrt(2.0 * std::numbers::e) * (mechanics.breakaway - mechanics.coulomb);
    const double unit = std::numbers::sqrt2 * mechanics.breakaway_speed;
    for (std::size_t i = 0; i < kPadded; ++i) {
        const double u = speed[i] / unit;
        const double stick =
            mechanics.coulomb * elementary::tanh(10.0 * speed[i] / mechanics.breakaway_speed);
        force[i] = mechanics.viscous * speed[i] + peak * u * elementary::exp(-u * u) + stick;
    }
}

}  // namespace

void fill_levers(const Mechanics& mechanics, double angle, double* levers) {
    double padded[kPadded];
    for (std::size_t i = 0; i < kPadded; ++i) {
        const double phase = angle + (static_cast<double>(i) - 1.0) * (2.0 * kPi / 3.0);
        const auto [sine, cosine] = elementary::sine_cosine(phase);
        const double across = mechanics.crank * sine;
        const double reach = std::sqrt(mechanics.rod * mechanics.rod - across * across);
        padded[i] = across * (1.0 + mechanics.crank * cosine / reach);
    }
    for (std::size_t i = 0; i < kChambers; ++i) levers[i] = padded[i];
}

Shaft next_shaft(const Mechanics& mechanics, const Motor& motor, const Shaft& shaft,
                 const double* levers, const double* p, double dt) {
    double speed[kPadded] = {}, force[kPadded];
    for (std::size_t i = 0; i < kChambers; ++i) speed[i] = levers[i] * shaft.speed;
    fill_friction(mechanics, speed, force);
    double torque = motor.gear * shaft.torque - mechanics.damping * shaft.speed;
    for (std::size_t i = 0; i < kChambers; ++i)
        torque += (p[i] * mechanics.plunger_area - force[i]) * levers[i];
    const double error = motor.reference - shaft.measured;
    const double integral = limited(shaft.integral + dt * error, motor.integral_limit);
    const double demand =
        limited(motor.gain * error + motor.integral_gain * integral, motor.torque_limit);
    Shaft next = shaft;
    next.speed += dt * torque / mechanics.inertia;
    next.torque += dt * (demand - shaft.torque) / motor.lag;
    next.measured += dt * motor.filter_rate * (shaft.speed * (30.0 / kPi) - shaft.measured);
    next.integral = integral;
    return next;
}

}  // namespace fdrsvm::pump
