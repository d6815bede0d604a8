// Semismooth Newton on one augmented Lagrangian after another: the engine behind every local solve.
//
// Primal   min over (w, b, lam >= ||w||_*)  epsilon lam + (rho/2) ||w - c||^2 + tau ||w||^2
//          + sum_n p_n max(0, 1 - m_n, 1 + m_n - kappa lam), [local]
// Dual     multipliers (a_n, f_n) of the pieces, in the triangle a, f >= 0, a + f <= p_n, and
//          (u, sigma) of the cone, ||u|| <= sigma, [gap-dual]
// Method   [stage]: with penalty r, the multipliers that (w, lam) calls for are projections;
//          (w, lam) minimises a convex function whose gradient is piecewise linear and reads them.
//          Newton with a line search does it in a few steps, since only samples within 1/r of a
//          kink have curvature. Then the multipliers move, r grows, and it starts again.
// Link     (rho + 2 tau) w = rho c + sum (a - f) y x - u;   sigma = epsilon - kappa sum f
// Stop     the method's own estimate of the gap, relative to max(1, |objective|); see solve.hpp
// Cost     a Newton step: two passes over X, the Gram matrix of the samples near a kink, one
//          Cholesky factor of size P + 1; above a few hundred features conjugate gradients instead,
//          which form neither, preconditioned by the kernel matrix of the samples near a kink.
#pragma once

#include "lagrangian.hpp"

namespace fdrsvm::client {

// The quadratic's linear term in (w, b), and its value at 0.
struct Quadratic {
    const double* linear;
    double constant;
};

struct Goal {
    double tol;
    int max_newton;
};

struct Progress {
    int n_newton;
    double penalty;  // of the last stage
};

// Stage after stage from `point`, which is changed in place.
Progress multiplier_method(const Terms& terms, const Quadratic& quadratic, Point& point,
                           double penalty, const Goal& goal);

}  // namespace fdrsvm::client
