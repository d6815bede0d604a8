// The rules of [limits] on what a round of ADMM returns: a vector that follows from the cut.
#pragma once

#include <cstdint>

#include "findings.hpp"
#include "pair.hpp"

namespace fdrsvm::screening {

// What a round of ADMM asks of every client.
struct Solve {
    ConstVector w;
    double rho;
    double tau;
    double relaxation;
    double gap;  // of the local solve, relative to its objective
    size_t n_features;
    Norm norm;
};

// What the clients that answered sent, one row per answer, each with one cut.
struct Solved {
    std::span<const std::int64_t> clients;
    ConstMatrix vectors;
    ConstMatrix squares;
    ConstVector risks;  // at the model that was asked about
    Cuts cuts;
};

// For each answer the first rule broken. `duals` are the mu_g of this round, `own` the last w_g,
// nan if not known; one row per client.
void judge_solves(const Bounds& bounds, const Radii& radii, const Solve& solve,
                  const Solved& solved, ConstMatrix duals, ConstMatrix own,
                  std::span<Finding> found);

}  // namespace fdrsvm::screening
