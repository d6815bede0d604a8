#include "system.hpp"

#include <algorithm>
#include <cmath>

#include "../core/linear_algebra.hpp"
#include "rows.hpp"

namespace fdrsvm::master {

namespace {

// Cuts are centred block by block, so that a block is still in the first-level cache when its Gram
// matrix is added; 2048 numbers are 16 kB, half of the smallest such cache.
constexpr size_t kBlockNumbers = 2048, kLeastBlockRows = 16;

size_t block_rows(size_t stride) { return std::max(kLeastBlockRows, kBlockNumbers / stride); }

// H += scale x x', upper half: the factorisation reads nothing else.
void add_outer(Matrix H, const double* x, double scale) {
    for (size_t i = 0; i < H.columns; ++i) {
        const double scaled = scale * x[i];
        if (scaled != 0.0) add_scaled(H[i].data() + i, scaled, x + i, H.columns - i);
    }
}

}  // namespace

System::System(const Problem& problem)
    : problem_(problem),
      at_(problem),
      n_(problem.width() + 1),
      storage_(problem.cuts.stride * problem.cuts.stride),
      H_{storage_.data(), n_, n_, problem.cuts.stride},
      centred_(block_rows(problem.cuts.stride) * problem.cuts.stride),
      means_storage_(problem.n_clients() * problem.cuts.stride),
      means_{means_storage_.data(), problem.n_clients(), n_, problem.cuts.stride},
      sums_(problem.n_clients()),
      pull_(problem.cuts.stride),
      tilt_(problem.cuts.stride, 0.0),
      leans_(problem.has_bounds() ? problem.n_normed : 0),
      pulls_(problem.n_bounds()),
      bound_sums_(problem.n_bounds()),
      means_times_x_(problem.n_clients()) {}

// xbar_g and delta_g of [master], "Elimination": a client's cuts as theta_g sees them.
void System::set_client_mean(size_t g, ConstVector weights) {
    const size_t stride = problem_.cuts.stride;
    const size_t start = problem_.starts[g], count = problem_.starts[g + 1] - start;
    const ConstMatrix cuts{problem_.cuts.data + start * stride, count, n_, stride};
    double* mean = means_[g].data();
    std::fill_n(mean, stride, 0.0);
    add_transposed_product(cuts, weights.data() + start, 1.0, mean);
    sums_[g] = sum(weights.data() + start, count);
    // Every client has its floor as a cut, so there is at least one positive weight.
    for (size_t j = 0; j < stride; ++j) mean[j] /= sums_[g];
}

// Adds the Gram matrix of the cuts, each minus its client's mean. Eliminating theta_g from a plain
// Gram matrix would subtract delta_g xbar xbar', which near the optimum cancels nearly all of it;
// centring first is the same matrix without that loss. A client's mean is computed just before its
// cuts are centred, while they are in the cache.
void System::add_cuts(ConstVector weights) {
    const size_t stride = problem_.cuts.stride, full = block_rows(stride);
    size_t n_rows = 0;
    for (size_t g = 0; g < problem_.n_clients(); ++g) {
        set_client_mean(g, weights);
        const double* mean = means_[g].data();
        for (size_t k = problem_.starts[g]; k < problem_.starts[g + 1]; ++k) {
            // With the root of its weight in each row, a Gram matrix is all that is needed.
            const double root = std::sqrt(weights[k]);
            const double* cut = problem_.cuts[k].data();
            double* __restrict row = centred_.data() + n_rows * stride;
            for (size_t j = 0; j < stride; ++j) row[j] = root * (cut[j] - mean[j]);
            if (++n_rows == full) {
                add_gram({centred_.data(), n_rows, stride, stride}, H_);
                n_rows = 0;
            }
        }
    }
    add_gram({centred_.data(), n_rows, stride, stride}, H_);
    // u = sum_g alpha_g xbar_g: how the level sees (w, s) once every theta_g follows its cuts.
    std::fill_n(pull_.data(), stride, 0.0);
    add_transposed_product(means_, problem_.alphas.data(), 1.0, pull_.data());
}

// The level row sum_g alpha_g theta_g <= level touches every theta_g, so eliminating them leaves
// one rank-one term, by Sherman and Morrison.
void System::add_level(double weight) {
    level_room_ = 1.0 / weight;
    for (size_t g = 0; g < problem_.n_clients(); ++g)
        // Divided before it is multiplied: a small alpha squared might vanish.
        level_room_ += problem_.alphas[g] * (problem_.alphas[g] / sums_[g]);
    add_outer(H_, pull_.data(), 1.0 / level_room_);
}

// The rows that bound ||w||_* by s. For l1 they touch only w_p and s. Otherwise each bound a_j is
// in the rows of its group, which are eliminated one group after the other, and all of them are in
// one more term: the row sum_j a_j <= s, or for l2 the rank-one part of W^-2 over (s, a).
// Eliminated, that is a rank-one term again.
void System::add_norm_rows(ConstVector weights, const ConeScaling& scaling) {
    const size_t P = problem_.n_normed, last = n_ - 1;
    if (!problem_.has_bounds()) {
        for (size_t p = 0; p < P; ++p) {
            const double up = weights[at_.up + p], down = weights[at_.down + p];
            H_[p][p] += up + down;
            // (e_p; -1) and (-e_p; -1): the products with s have opposite signs.
            H_[p][last] += down - up;
            H_[last][last] += up + down;
        }
        return;
    }
    set_pulls(weights, scaling);
    for (size_t j = 0; j < problem_.n_bounds(); ++j) add_group(j, weights);
    const double before = H_[last][last];
    add_outer(H_, tilt_.data(), 1.0 / bound_room_);
    // Over s, W^-2 also has -1/eta^2. With axis_0^2 = 1 + sum q_j^2 the difference is a sum of
    // positive terms; computed as a difference it would cancel.
    if (problem_.has_cone()) H_[last][last] = before + onto_s_ / bound_room_;
}

// How the term that joins the bounds sees them and s, and 1 over its weight. For l2 that is
// 2 q q' / eta^2 with q = (-axis_0, axis_1, ...), and 1/eta^2 remains on the diagonal of a.
void System::set_pulls(ConstVector weights, const ConeScaling& scaling) {
    const bool has_cone = problem_.has_cone();
    stiffness_ = has_cone ? 1.0 / (scaling.eta * scaling.eta) : 0.0;
    bound_room_ = has_cone ? 0.5 / stiffness_ : 1.0 / weights[at_.sum];
    onto_s_ = 0.5;
    tilt_[n_ - 1] = has_cone ? scaling.axis[0] : 1.0;
    for (size_t j = 0; j < problem_.n_bounds(); ++j)
        pulls_[j] = has_cone ? scaling.axis[j + 1] : 1.0;
}

// Eliminates the bound a_j of a group from the rows +-w_p - a_j of its features. With the weights
// d1, d2 of a feature's two rows, sigma_p = d1 + d2, e_p = (d2 - d1)/sigma_p and D = sum_p sigma_p,
// what remains over w is
//
//     diag(4 d1 d2 / sigma_p) + sum over p < q of sigma_p sigma_q / D (e_p; -e_q)(e_p; -e_q)'
//
// (a stiffness of a_j counts as one more sigma_q, with e_q = 0). These terms are not negative;
// diag(sigma) - (sigma e)(sigma e)'/D, the same matrix, would cancel: near the optimum the weights
// of a group differ by twenty orders of magnitude. The harmonic mean is written as
// 4 (d1/sigma) d2 so that huge weights do not overflow.
void System::add_group(size_t j, ConstVector weights) {
    const size_t first = problem_.transport.start(j), stop = problem_.transport.start(j + 1);
    const double *up = weights.data() + at_.up, *down = weights.data() + at_.down;
    double rows = 0.0;
    for (size_t p = first; p < stop; ++p) rows += up[p] + down[p];
    const double total = rows + stiffness_, pull = pulls_[j];
    for (size_t p = first; p < stop; ++p) {
        const double size = up[p] + down[p], lean = (down[p] - up[p]) / size;
        leans_[p] = (down[p] - up[p]) / total;
        tilt_[p] = leans_[p] * pull;
        H_[p][p] += 4.0 * (up[p] / size) * down[p] + lean * leans_[p] * stiffness_;
        for (size_t q = p + 1; q < stop; ++q) {
            const double size_q = up[q] + down[q], lean_q = (down[q] - up[q]) / size_q;
            const double shared = size * (size_q / total);
            H_[p][p] += shared * (lean * lean);
            H_[p][q] -= shared * (lean * lean_q);
            H_[q][q] += shared * (lean_q * lean_q);
        }
    }
    bound_sums_[j] = total;
    bound_room_ += pull * pull / total;
    onto_s_ += pull * pull * (rows / total);
}

// Adds W^-2 = (2 q q' - J) / eta^2, q = (axis_0, -axis_1, ...), over (s, w).
void System::add_cone(const ConeScaling& scaling) {
    const size_t P = problem_.n_normed, last = n_ - 1;
    const double *axis = scaling.axis.data(), first = axis[0];
    const double factor = 1.0 / (scaling.eta * scaling.eta);
    // s is the cone's first entry, but the matrix' last: only the upper half is written.
    H_[last][last] += factor * (2.0 * first * first - 1.0);
    for (size_t p = 0; p < P; ++p) {
        const double scaled = 2.0 * factor * axis[p + 1];
        add_scaled(H_[p].data() + p, scaled, axis + p + 1, P - p);
        H_[p][p] += factor;
        H_[p][last] -= scaled * first;
    }
}

void System::add_curvature() {
    for (size_t j = 0; j < problem_.width(); ++j) {
        if (problem_.has_metric())
            add_scaled(H_[j].data() + j, 1.0, problem_.metric[j].data() + j, problem_.width() - j);
        else
            H_[j][j] += problem_.curvature[j];
    }
}

void System::build(ConstVector weights, const ConeScaling& scaling) {
    // In this order in every step: the order of additions is part of the result.
    std::fill_n(storage_.data(), storage_.size(), 0.0);
    add_cuts(weights);
    if (problem_.levelled) add_level(weights[at_.level]);
    if (problem_.has_norm_rows())
        add_norm_rows(weights, scaling);
    else
        add_cone(scaling);
    add_curvature();
    H_[n_ - 1][n_ - 1] += weights[at_.reach];
    if (problem_.has_intercept())
        H_[problem_.n_normed][problem_.n_normed] +=
            weights[at_.intercept] + weights[at_.intercept + 1];
    factorise(H_);
}

void System::add_to_x(double scale, ConstVector x, Variables& f) const {
    add_scaled(f.padded_x().data(), scale, x.data(), n_);
}

// The formulas of [master], "Elimination": what theta and a bring to the right-hand side of (w, s),
// one solve there, and what theta and a are, given (w, s).
void System::solve(Variables& f) {
    const size_t G = problem_.n_clients();
    const ConstVector alphas = problem_.alphas;
    const Transport& groups = problem_.transport;
    const size_t n_bounds = problem_.n_bounds();
    double *theta = f.theta(), *a = f.bounds(), *w = f.w();
    double onto_level = 0.0, onto_bounds = 0.0;
    // theta and a are eliminated: their right-hand sides are carried over to (w, s) ...
    for (size_t g = 0; g < G; ++g) onto_level += alphas[g] * (theta[g] / sums_[g]);
    add_transposed_product(means_, theta, 1.0, f.padded_x().data());
    if (problem_.levelled) {
        onto_level /= level_room_;
        add_to_x(-onto_level, pull_, f);
    }
    if (n_bounds > 0) {
        for (size_t j = 0; j < n_bounds; ++j) {
            onto_bounds += pulls_[j] * a[j] / bound_sums_[j];
            for (size_t p = groups.start(j); p < groups.start(j + 1); ++p) w[p] -= leans_[p] * a[j];
        }
        onto_bounds /= bound_room_;
        add_to_x(onto_bounds, tilt_, f);
    }
    // ... one solve of size width + 1 ...
    solve_factorised(H_, f.padded_x().data());
    // ... and theta and a are recovered: onto_level becomes zeta, onto_bounds becomes xi.
    if (problem_.levelled)
        onto_level += dot(pull_.data(), f.padded_x().data(), n_) / level_room_;
    else
        onto_level = 0.0;
    // Given (w, s), every theta_g follows its own cuts: its mean cut, plus what its own right-hand
    // side and the level's multiplier ask for.
    padded_product(means_, f.padded_x(), means_times_x_);
    for (size_t g = 0; g < G; ++g)
        theta[g] = (theta[g] - alphas[g] * onto_level) / sums_[g] + means_times_x_[g];
    if (n_bounds > 0) {
        onto_bounds -= dot(tilt_.data(), f.padded_x().data(), n_) / bound_room_;
        for (size_t j = 0; j < n_bounds; ++j) {
            a[j] = (a[j] - pulls_[j] * onto_bounds) / bound_sums_[j];
            for (size_t p = groups.start(j); p < groups.start(j + 1); ++p) a[j] -= leans_[p] * w[p];
        }
    }
}

}  // namespace fdrsvm::master
