// One Newton step of the interior point method on the master problem, [master].
//
// System   R dv + dslack = -rows,  curvature dv + R' dz - dcone_z = -stationarity,
//          slack dz + z dslack = target - slack z - (last dslack)(last dz)
// Reduced  (diag(curvature) + R' diag(z/slack) R + W^-2) dv = right-hand side; see system.hpp
// Cost     predictor: one solve; corrector: two, the second refines
#pragma once

#include "cone.hpp"
#include "start.hpp"
#include "system.hpp"

namespace fdrsvm::master {

// By how much each part of an iterate is to change.
struct Direction {
    Variables v;
    Buffer<> slack;
    Buffer<> z;
    Buffer<> cone_u;  // of (s, w), for l2
    Buffer<> cone_z;
};

// By how much an iterate misses its equations.
struct Residuals {
    Buffer<> rows;           // R v + offset + slack
    Variables stationarity;  // curvature (v - centre) + R' z - cone_z
};

// What predictor and corrector of one iterate have in common.
struct Linearised {
    Linearised(const Problem& problem, size_t n_rows);

    Residuals residuals;
    Buffer<> weights;     // z / slack
    Buffer<> cone_u;      // the cone's slack: (s, w) itself
    ConeScaling scaling;  // of the cone
    System system;        // Newton's matrix
};

class NewtonStep {
  public:
    NewtonStep(const Problem& problem, size_t n_rows);

    // Towards complementarity 0, ignoring products of changes.
    void predict(const Iterate& iterate, Linearised& at);
    // Towards products `target`, allowing for the last direction's products of changes.
    void correct(const Iterate& iterate, Linearised& at, double target);

    const Direction& direction() const { return direction_; }

  private:
    void set_right_hand_side(const Residuals& residuals);
    void solve(Linearised& at, int n_solves);
    void solve_once(Linearised& at);
    void subtract_product(const Linearised& at);
    void set_direction(const Linearised& at);

    const Problem& problem_;
    const RowPlaces at_;
    Direction direction_;
    // The multipliers' change if v did not change; the rest is weights * (R times v's change).
    Buffer<> z_at_rest_;
    Buffer<> cone_z_at_rest_;
    Variables right_hand_side_;
    Variables v_increment_;      // what one solve adds to v's change
    Buffer<> rows_increment_;    // and to the change of R v
    Buffer<> rows_change_;       // of all solves together
    Buffer<> weighted_change_;   // weights * rows_change
    Buffer<> cone_pushed_back_;  // W^-2 times the change of (s, w)
    Buffer<> cone_increment_;    // what one solve adds to the change of (s, w)
};

// Sets out += sign * cone over the variables (s, w), or (s, a) with groups.
void add_cone(const Problem& problem, ConstVector cone, double sign, Variables& out);

}  // namespace fdrsvm::master
