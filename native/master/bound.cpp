#include "bound.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "../core/products.hpp"

namespace fdrsvm::master {

namespace {

// The cut that shares combine: constant + slope.u + norm_weight ||u||_*.
struct CombinedCut {
    double constant;
    Buffer<> slope;
    double norm_weight;
};

Buffer<> sums_by_client(const CutModel& model, ConstVector shares) {
    Buffer<> sums(model.n_clients(), 0.0);
    for (size_t k = 0; k < model.n_cuts(); ++k) sums[model.owners[k]] += shares[k];
    return sums;
}

// Not negative, and with a sum of at most 1 for each client.
Buffer<> feasible(const CutModel& model, ConstVector shares) {
    Buffer<> repaired(model.n_cuts());
    for (size_t k = 0; k < model.n_cuts(); ++k)
        repaired[k] = std::isfinite(shares[k]) ? std::clamp(shares[k], 0.0, 1.0) : 0.0;
    const Buffer<> sums = sums_by_client(model, repaired);
    for (size_t k = 0; k < model.n_cuts(); ++k) repaired[k] /= std::max(sums[model.owners[k]], 1.0);
    return repaired;
}

// Scales down the cuts with the heavier sign of v_b, until r_b = 0 up to rounding: the model may
// have an intercept of any size.
void remove_intercept_slope(const CutModel& model, Vector shares) {
    if (!model.has_intercept()) return;
    double up = 0.0, down = 0.0;
    for (size_t k = 0; k < model.n_cuts(); ++k) {
        const double slope = model.slopes[k][model.n_normed];
        const double pull = model.alphas[model.owners[k]] * shares[k] * slope;
        if (pull > 0.0) up += pull;
        if (pull < 0.0) down -= pull;
    }
    for (size_t k = 0; k < model.n_cuts(); ++k) {
        const double slope = model.slopes[k][model.n_normed];
        if (up > down && slope > 0.0) shares[k] *= down / up;
        if (down > up && slope < 0.0) shares[k] *= up / down;
    }
}

CombinedCut combine(const CutModel& model, ConstVector shares) {
    Buffer<> weights(model.n_cuts());
    for (size_t k = 0; k < model.n_cuts(); ++k)
        weights[k] = model.alphas[model.owners[k]] * shares[k];
    const Buffer<> sums = sums_by_client(model, shares);
    double of_floors = 0.0;
    for (size_t g = 0; g < model.n_clients(); ++g)
        of_floors += model.alphas[g] * std::max(1.0 - sums[g], 0.0) * model.floors[g];
    CombinedCut cut{dot(weights.data(), model.constants.data(), weights.size()),
                    Buffer<>(model.width()),
                    dot(weights.data(), model.norm_weights.data(), weights.size()) + of_floors};
    transposed_times(model.slopes, weights, cut.slope);
    return cut;
}

// The transport norm; nan if an entry is.
double transport_norm(ConstVector x, Norm norm) {
    for (double value : x)
        if (value != value) return value;
    if (norm == Norm::l1) return sum_of_magnitudes(x);
    return norm == Norm::l2 ? euclidean_length(x) : largest_magnitude(x);
}

// The height at which entries of x are cut off to minimise 1/2 ||u - x||^2 + t max |u|: what sticks
// out above it amounts to t.
double cut_off_height(ConstVector x, double t) {
    Buffer<> sizes(x.size());
    for (size_t p = 0; p < x.size(); ++p) sizes[p] = std::fabs(x[p]);
    std::sort(sizes.data(), sizes.data() + sizes.size(), std::greater<>());
    double total = 0.0, height = 0.0;
    for (size_t p = 0; p < x.size(); ++p) {
        total += sizes[p];
        height = std::max(height, (total - t) / static_cast<double>(p + 1));
    }
    return height;
}

// Sets x to the u that minimises 1/2 ||u - x||^2 + t ||u||_*; x is finite.
void shrink(Vector x, double t, Norm norm) {
    if (norm == Norm::linf) {
        for (double& value : x) value = std::copysign(std::max(std::fabs(value) - t, 0.0), value);
    } else if (norm == Norm::l2) {
        const double size = euclidean_length(x);
        const double left = size > 0.0 ? std::max(1.0 - t / size, 0.0) : 1.0;
        for (double& value : x) value *= left;
    } else {
        const double height = cut_off_height(x, t);
        for (double& value : x) value = std::clamp(value, -height, height);
    }
}

}  // namespace

Mixture mixture_bound(double constant, double excess, double floor, double radius) {
    Mixture mixture{constant, kInfinity, 1.0};
    if (!(excess <= 0.0)) {  // a nan proves nothing: below it becomes 0
        if (floor > 0.0) {
            mixture.share = floor / (excess + floor);
            mixture.value *= mixture.share;
        } else {  // nothing keeps u small, so the bound falls with its size
            mixture.value -= radius * excess;
            mixture.radius = radius;
        }
    }
    if (!(mixture.value > 0.0)) return {0.0, kInfinity, 0.0};  // the floors alone, for all u
    return mixture;
}

Bound model_bound(const CutModel& model, ConstVector shares, double radius) {
    Buffer<> repaired = feasible(model, shares);
    remove_intercept_slope(model, repaired);
    const CombinedCut cut = combine(model, repaired);
    const ConstVector slope = cut.slope;
    const double excess = transport_norm(slope.first(model.n_normed), model.norm) - cut.norm_weight;
    const Mixture mixture = mixture_bound(cut.constant, excess, total_floor(model), radius);
    for (size_t k = 0; k < model.n_cuts(); ++k) repaired[k] *= mixture.share;
    Bound bound{mixture.value, mixture.radius, std::move(repaired),
                Buffer<>(model.n_clients() * model.width())};
    slope_by_client(
        model, bound.shares,
        {bound.slope_by_client.data(), model.n_clients(), model.width(), model.width()});
    return bound;
}

void slope_by_client(const CutModel& model, ConstVector shares, Matrix out) {
    for (size_t g = 0; g < out.rows; ++g) std::fill_n(out[g].data(), out.columns, 0.0);
    for (size_t k = 0; k < model.n_cuts(); ++k)
        add_scaled(out[model.owners[k]].data(), shares[k], model.slopes[k].data(), out.columns);
}

double distance_bound(const CutModel& model, const LevelSet& set, ConstVector shares,
                      double multiplier) {
    const CombinedCut cut = combine(model, feasible(model, shares));
    Buffer<> u(model.width());
    for (size_t j = 0; j < u.size(); ++j) u[j] = set.centre[j] - multiplier * cut.slope[j];
    if (!all_finite(u)) return -kInfinity;
    shrink({u.data(), model.n_normed}, multiplier * cut.norm_weight, model.norm);
    const double excess = cut.constant + dot(cut.slope.data(), u.data(), u.size()) +
                          cut.norm_weight * dual_size(model, u) - set.level;
    const double bound = half_squared_distance(u, set.centre) + multiplier * excess;
    return bound == bound ? bound : -kInfinity;
}

double half_squared_distance(ConstVector x, ConstVector y) {
    return 0.5 * sum_lanes(x.size(), [&](size_t i, size_t count) {
               const Lanes apart =
                   load_up_to(x.data() + i, count) - load_up_to(y.data() + i, count);
               return apart * apart;
           });
}

}  // namespace fdrsvm::master
