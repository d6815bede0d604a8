// The rules of [limits] on the answers of one round, all clients in one pass.
//
// Cut      mass rule, [mass]: a hinge cut with constant A is made of rows of mass A, so
//          |v_j| <= R_j A
// Risk     between what the best and the worst rows within the limits would give
// Both     rows that give the cut have a risk within certain bounds at every model, [pair]; a risk
//          of the same client outside these bounds is wrong, in the same answer or another round
// Result   the first broken rule per client, with the number and its limit; kept otherwise
// Cost     clients x cuts x points x width; `judge_round` has clients x rounds kept x width, in one
//          product, and repeats the exact rule only where that product looks suspicious
#pragma once

#include <cstdint>

#include "findings.hpp"
#include "pair.hpp"

namespace fdrsvm::screening {

// Risks and cuts of those who answered, one client after the other.
struct Answers {
    std::span<const std::int64_t> clients;
    ConstMatrix risks;                     // one row per client, one column per point
    std::span<const std::int64_t> counts;  // how many cuts each has, those at the points first
    Cuts cuts;
};

// Cuts of any clients, in any order.
struct OwnedCuts {
    std::span<const std::int64_t> owners;
    Cuts cuts;
};

// What is known of the rounds before, where every client sends one cut.
struct Past {
    ConstVector best_risks;  // of all clients, at the best model
    ConstMatrix constants;   // one row per round, one column per client; nan if it was absent
    ConstMatrix slopes;      // rows: round after round, in each client after client
    ConstMatrix norm_weights;
};

// The first rule that each client breaks, if any. With `penalties`, one per client of the
// federation, risks are those of the baselines: a mean loss plus the penalty times ||w||^2.
void judge_answers(const Bounds& bounds, const Radii& radii, const Points& points,
                   const Answers& answers, ConstVector penalties, std::span<Finding> findings);

// For each client (a row of `risks`) whether one of its cuts contradicts one of its risks at the
// points; a nan is a risk that is not known.
void find_contradictions(const Bounds& bounds, const Radii& radii, const Points& points,
                         ConstMatrix risks, const OwnedCuts& known, std::span<Finding> findings);

// One risk and one cut per client: `judge_answers`, and contradictions with the past. The points
// are the model that was asked about and the best one.
void judge_round(const Bounds& bounds, const Radii& radii, const Points& points,
                 const Answers& answers, const Past& past, std::span<Finding> findings);

}  // namespace fdrsvm::screening
