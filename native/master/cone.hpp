// The second-order cone s >= ||w||_2 of the master problem: its scaling and its steps.
//
// Vectors are (s, w). Rows have one weight z/slack each; a cone needs a matrix instead. For u in
// the cone and its multiplier z, Nesterov and Todd's scaling W is the symmetric one with
// W z = W^-1 u: primal and dual then look alike, and W^-2 takes the place of the weight in Newton's
// matrix. W is eta times a reflection-like matrix built from one vector, the axis, of hyperbolic
// norm 1, so applying it costs O(P).
#pragma once

#include "../core/views.hpp"

namespace fdrsvm::master {

struct ConeScaling {
    explicit ConeScaling(size_t size) : axis(size), room(3 * size) {}
    Buffer<> axis;
    double eta = 1.0;
    Buffer<> room;  // for a correction
};

void set_scaling(ConstVector u, ConstVector z, ConeScaling& scaling);

// Sets out += W^-2 x.
void add_inverse_square(const ConeScaling& scaling, ConstVector x, Vector out);

// The steps of a predictor: how far its products u_step and z_step miss is what a corrector mends.
struct ConeSteps {
    ConstVector u, z;
};

// Sets out = W^-1 (target e - (W^-1 steps.u) o (W steps.z)) / lam, lam = W z. The product o and the
// quotient are the cone's own: x o y = (x.y, x_0 y_1 + y_0 x_1), e its unit.
void set_correction(ConeScaling& scaling, ConstVector z, const ConeSteps& steps, double target,
                    Vector out);

// The largest t with u + t step in the cone.
double longest_cone_step(ConstVector u, ConstVector step);

}  // namespace fdrsvm::master
