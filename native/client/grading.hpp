// Objective and lower bound from scratch: nothing here trusts, or shares code with, the solver.
//
// Primal   P(w, b) = min over lam >= ||w||_* of the worst-case risk, one-dimensional, solved
//          exactly, + (rho/2) ||w - c||^2 + tau ||w||^2 + (rho/2) (b - c_b)^2
// Dual     [gap-dual]: masses a_n (label kept) and f_n (flipped), any numbers, made feasible by
//          clipping and scaling, [repair]
// Bound    D <= optimum <= P for any numbers handed in
// Cost     two passes over X
#pragma once

#include "../core/norms.hpp"
#include "../core/rows.hpp"

namespace fdrsvm::grading {

// A problem as its certificate reads it. Vectors over samples are padded as the rows are.
struct Grounds {
    const Rows* rows;
    const double* labels;
    const double* mass;
    size_t n_features;  // an intercept comes after
    double epsilon;
    double kappa;  // inf where labels are trusted
    Norm norm;
    double rho;
    double tau;
    double intercept_rho;
};

struct Centre {
    const double* w;
    double intercept;
};

// What is judged: w (an intercept last) and any masses.
struct Candidate {
    const double* w;
    const double* kept;
    const double* flipped;
};

// The tension, sum_n (a_n - f_n) y_n (x_n, 1), goes where `tension` says; constant and norm_weight
// make the cut with it, [cut].
struct Grade {
    double objective;
    double lam;  // at which the objective is attained
    double bound;
    double constant;
    double norm_weight;

    // Never a nan.
    double gap() const;
};

// Sizes: those of the rows, without padding; `tension` has one entry per column.
Grade grade(const Grounds& grounds, const Centre& centre, const Candidate& candidate,
            Vector tension);

}  // namespace fdrsvm::grading
