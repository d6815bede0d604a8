// Mehrotra's predictor-corrector interior point method on the master problem, [master].
//
// Primal   minimise sum_g alpha_g theta_g, or the distance to a centre; rows as in problem.hpp
// Dual     multipliers z >= 0 of the rows, and for l2 one in the cone
// Link     stationarity: curvature (v - centre) + R' z - cone_z = 0, slack_i z_i = target
// Method   a step to complementarity 0 (predict) shows how far the step to a target in between
//          (correct) should aim; theta and |w| are eliminated from Newton's matrix
// Stop     gap and residuals, priced at ||w||_*, below tol of the objective; or no better point for
//          a while, or nothing finite. The answer is the best point seen, to be graded by others
// Cost     per step one Gram matrix of the cuts, one Cholesky factor of size width + 1, and ten
//          passes over the cuts; one or two dozen steps
#pragma once

#include "problem.hpp"

namespace fdrsvm::master {

struct Answer {
    Buffer<> w;
    Buffer<> cut_multipliers;
    double theta_price;  // the level's multiplier, or 1: what a client's multipliers sum to / alpha
    int n_iter;
};

Answer interior_point(const Problem& problem, double tol, int max_iter);

}  // namespace fdrsvm::master
