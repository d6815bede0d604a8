// The rules of [limits], "ADMM": the vector that a client returns follows from its cut.
//
// Vector   optimality of the local solve: rho (c - w_g) - 2 tau w_g - v lies within sigma of 0 in
//          the transport norm, up to sqrt(2 theta delta), delta the certified gap
// Squares  the three sums of squares are functions of vectors that the server knows
// Risk     at most what the solve proves at w_g, plus what rows within the limits gain up to w
// Cost     two passes over the features per client
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

// The first rule that each answer breaks, if any. `duals` are the mu_g of this round and `own` the
// last w_g, nan if unknown; one row per client.
void judge_solves(const Bounds& bounds, const Radii& radii, const Solve& solve,
                  const Solved& solved, ConstMatrix duals, ConstMatrix own,
                  std::span<Finding> findings);

}  // namespace fdrsvm::screening
