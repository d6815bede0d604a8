// The cutting-plane model of a federation's objective, and its values; docs/master.md, [cut].
//
//     f_g(w) >= A_k + v_k.w + sigma_k ||w||_*        cut k of client g
//     f_g(w) >= floor_g ||w||_*                      the floor: losses are not negative
//     M(w) = sum_g alpha_g max over k of (right-hand sides)
//
// The definition that solver and bound have in common; they share nothing else but core/.
#pragma once

#include <cstdint>

#include "../core/norms.hpp"

namespace fdrsvm::master {

struct CutModel {
    ConstVector constants;                 // A
    ConstMatrix slopes;                    // v; an intercept's entry comes last
    ConstVector norm_weights;              // sigma
    std::span<const std::int64_t> owners;  // the client of each cut, ascending
    ConstVector alphas;                    // weights of the clients
    ConstVector floors;
    size_t n_normed;      // how many entries of w the norm sees: all, or all but an intercept
    Transport transport;  // of which the model has the dual norm

    size_t n_cuts() const { return constants.size(); }
    size_t n_clients() const { return alphas.size(); }
    size_t width() const { return slopes.columns; }
    bool has_intercept() const { return width() > n_normed; }
};

// How far apart two models are: 1/2 (x - y)' matrix (x - y), or 1/2 ||x - y||^2 where the matrix has
// no rows. It is symmetric, and no eigenvalue is below `least`, above 0.
struct Metric {
    ConstMatrix matrix;
    double least;

    bool is_euclidean() const { return matrix.rows == 0; }
};

// The models with M(u) <= level, seen from a centre.
struct LevelSet {
    ConstVector centre;
    double level;
    Metric metric = {};
};

// 1/2 of the squared distance of x and y.
double half_squared_distance(ConstVector x, ConstVector y, const Metric& metric = {});

// ||w||_*, over features.
inline double dual_size(const CutModel& model, ConstVector w) {
    return dual_norm(w.first(model.n_normed), model.transport);
}

// E = sum_g alpha_g floor_g.
double total_floor(const CutModel& model);

// Right-hand sides at w of all cuts; the largest of each client; M(w).
void cut_values(const CutModel& model, ConstVector w, Vector out);
void client_values(const CutModel& model, ConstVector w, Vector out);
double model_value(const CutModel& model, ConstVector w);

}  // namespace fdrsvm::master
