// The eight pressures at the end of a step: backward Euler in conservative form, by Newton.
//
// Unknowns  three chambers; outlet manifold, outlet pipe, load chamber; inlet manifold, inlet pipe
// Equation  volume * (stored(p) - stored(p_before)) / dt + outflow - inflow = 0, for each
// Jacobian  an arrow: the chambers touch only the two manifolds, each pipe its neighbours. Load,
//           pipes and chambers are eliminated, and two equations in the manifolds' are left.
// Stop      no pressure moves by more than 0.01 Pa: what Newton leaves over is lost mass
// Cost      eight nodes and eight orifices, each worked on side by side; divisions of the arrow
#pragma once

#include "parameters.hpp"

namespace fdrsvm::pump {

inline constexpr int kMaxIterations = 50;  // 8 is the most seen
inline constexpr int kNotSettled = -1;

class PressureSolver {
  public:
    PressureSolver(const Circuit& circuit, double dt);

    // Moves p to the end of the step, through which the plungers take the flow `displaced` out of
    // each chamber; the number of iterations, or kNotSettled.
    int move(double* p, const double* displaced);

    // From chamber 1 to the tank.
    double leak_flow(const double* p) const;

  private:
    static constexpr std::size_t kOrifices = 8;
    // In this order: inlet valves, outlet valves, leak, load.
    enum Orifice : std::size_t { kInlets = 0, kOutlets = kChambers, kLeak = 6, kLoadOrifice = 7 };

    void store_terms(const double* p);
    void orifice_terms(const double* p);
    void add_terms(const double* p, const double* displaced);
    void add_flow(std::size_t source, std::size_t sink, double flow, double slope);
    void solve_arrow();
    double guarded_move(double* p) const;

    const Circuit& circuit_;
    const double dt_;
    // A leak or load is a valve that is always open as far.
    alignas(64) double closed_[kOrifices], opened_[kOrifices], crack_[kOrifices], full_[kOrifices],
        rate_[kOrifices];
    alignas(64) double volume_[kPressures];
    // Of one iteration.
    alignas(64) double stored_[kPressures], compressibility_[kPressures], before_[kPressures];
    alignas(64) double flow_[kOrifices], slope_[kOrifices];
    alignas(64) double residual_[kPressures], diagonal_[kPressures], step_[kPressures];
};

}  // namespace fdrsvm::pump
