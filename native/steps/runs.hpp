// Whole runs of the baselines, clients with equal weights and without an intercept.
//
// Tables need tens of thousands of runs with small clients, where messages would cost ten times
// what the steps do. What needs memory takes it before the first round.
#pragma once

#include "local.hpp"

namespace fdrsvm::steps {

// All clients' rows, one client below the other: client g's from first[g] to first[g + 1].
struct Clients {
    ConstMatrix X;
    ConstVector y;
    Indices first;

    size_t count() const { return first.size() - 1; }
};

// All batches of all rounds: from drawn[g] on the row numbers, within client g, of its batches of
// sizes[g] in order, as many in each of the `n_local` epochs or steps of each of the rounds.
struct Draws {
    Indices batches;
    Indices drawn;
    Indices sizes;
    size_t n_rounds;
    size_t n_local;

    Batches of_round(size_t client, size_t round) const {
        const size_t first = static_cast<size_t>(drawn[client]);
        const size_t length = (static_cast<size_t>(drawn[client + 1]) - first) / n_rounds;
        const size_t size = static_cast<size_t>(sizes[client]);
        return {batches.data() + first + round * length, length / size, size};
    }
};

// Each sets a row of `models` per round: the model after it.

// [fedsgd]
void fedsgd_run(const Clients& clients, ConstVector epsilons, double learning_rate, Matrix models);

// [fedprox], and [fedavg] at prox_weight 0; the descent's epsilon is not looked at.
void fedprox_run(const Clients& clients, const Draws& draws, ConstVector epsilons, Descent descent,
                 Matrix models);

// What both forms of FedDRO have.
struct TiltedRun {
    double learning_rate;
    double temperature;
    double momentum;
};

// [feddro]
void feddro_run(const Clients& clients, const Draws& draws, ConstVector epsilons,
                const TiltedRun& run, Matrix models);

// [feddro-published]
void feddro_published_run(const Clients& clients, const Draws& draws, const TiltedRun& run,
                          Matrix models);

}  // namespace fdrsvm::steps
