// Where the interior point method on the master problem begins.
#pragma once

#include "problem.hpp"

namespace fdrsvm::master {

// A primal and dual point.
struct Iterate {
    Variables v;
    Buffer<> slack;   // of the rows
    Buffer<> z;       // their multipliers
    Buffer<> cone_z;  // the multiplier of (s, w) in the cone, for l2; its slack is (s, w) itself

    // What a unit of theta costs: the level's multiplier, or its weight in the objective.
    double theta_price(const Problem& problem) const {
        return problem.levelled ? z[z.size() - 1] : 1.0;
    }
};

// Strictly inside every row at w, but for the level and the reach if w exceeds them.
Iterate first_iterate(const Problem& problem, ConstVector w, ConstVector offsets);

// Sets out = (s, w), or (s, a) with groups.
void gather_cone(const Problem& problem, const Variables& v, Vector out);

}  // namespace fdrsvm::master
