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

// Shares that are not negative and sum to at most 1 for each client. Any such shares give a valid
// cut of F, because the floor takes what is missing; so nothing a solver returns can make the bound
// wrong, only weak.
Buffer<> feasible(const CutModel& model, ConstVector shares) {
    Buffer<> repaired(model.n_cuts());
    for (size_t k = 0; k < model.n_cuts(); ++k)
        repaired[k] = std::isfinite(shares[k]) ? std::clamp(shares[k], 0.0, 1.0) : 0.0;
    const Buffer<> sums = sums_by_client(model, repaired);
    // Only sums above 1 are scaled: scaling up would claim more than the solver found.
    for (size_t k = 0; k < model.n_cuts(); ++k) repaired[k] /= std::max(sums[model.owners[k]], 1.0);
    return repaired;
}

// Scales down the cuts with the heavier sign of v_b until r_b = 0 up to rounding. The norm does not
// see an intercept, so no norm term could make up for r_b b: unless r_b = 0 the bound is -inf.
void remove_intercept_slope(const CutModel& model, Vector shares) {
    if (!model.has_intercept()) return;
    double up = 0.0, down = 0.0;
    for (size_t k = 0; k < model.n_cuts(); ++k) {
        const double slope = model.slopes[k][model.n_normed];
        const double pull = model.alphas[model.owners[k]] * shares[k] * slope;
        if (pull > 0.0) up += pull;
        if (pull < 0.0) down -= pull;
    }
    // Down, never up: the sums stay at most 1, and the floors take the rest.
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
    // A floor is the cut 0 + 0.u + floor_g ||u||_*: it adds to the norm weight alone.
    double of_floors = 0.0;
    for (size_t g = 0; g < model.n_clients(); ++g)
        of_floors += model.alphas[g] * std::max(1.0 - sums[g], 0.0) * model.floors[g];
    CombinedCut cut{dot(weights.data(), model.constants.data(), weights.size()),
                    Buffer<>(model.width()),
                    dot(weights.data(), model.norm_weights.data(), weights.size()) + of_floors};
    transposed_times(model.slopes, weights, cut.slope);
    return cut;
}

// The transport norm; nan if an entry is. (A maximum would skip a nan, and a slope that is not a
// number must not pass as a small one.)
double checked_norm(ConstVector x, const Transport& transport) {
    for (double value : x)
        if (value != value) return value;
    return transport_norm(x, transport);
}

// The height at which numbers that are not negative, in descending order, are cut off so that what
// is cut off adds up to weight + give * height. With give = 0 that minimises
// 1/2 ||u - x||^2 + weight max |u|: lowering the height by d gains weight * d from the second term
// and costs d times the sum of what sticks out.
double cut_off_height(ConstVector sizes, double weight, double give = 0.0) {
    // If the p + 1 largest stick out, the height is (their sum - weight)/(p + 1 + give). The right
    // p is where this is largest, so no test for it is needed; 0 remains if the weight exceeds the
    // sum.
    double total = 0.0, height = 0.0;
    for (size_t p = 0; p < sizes.size(); ++p) {
        total += sizes[p];
        height = std::max(height, (total - weight) / (static_cast<double>(p + 1) + give));
    }
    return height;
}

// Magnitudes in descending order, group by group.
Buffer<> sorted_sizes(ConstVector x, const Transport& groups) {
    Buffer<> sizes(x.size());
    for (size_t p = 0; p < x.size(); ++p) sizes[p] = std::fabs(x[p]);
    for (size_t j = 0; j < groups.n_groups(x.size()); ++j)
        std::sort(sizes.data() + groups.start(j), sizes.data() + groups.start(j + 1),
                  std::greater<>());
    return sizes;
}

// Sets heights to the m that minimises 1/2 sum (|x_p| - m_j)_+^2 + weight ||m||_2. Where it does
// not vanish, what is cut off from group j adds up to weight m_j / ||m||. Given ||m|| that is one
// height per group; the size for which ||m|| comes out as it was put in is found by bisection.
void set_heights_l2(ConstVector sizes, double weight, const Transport& groups, Vector heights) {
    const auto set_for = [&](double size) {
        for (size_t j = 0; j < heights.size(); ++j)
            heights[j] = cut_off_height(groups.group(sizes, j), 0.0, weight / size);
    };
    std::fill_n(heights.data(), heights.size(), 0.0);
    if (!(weight < transport_norm(sizes, groups))) return;
    double low = 0.0, high = dual_norm(sizes, groups);
    // An error in the size costs its square: 60 halvings leave nothing of it.
    for (int n = 0; n < 60; ++n) {
        const double middle = 0.5 * (low + high);
        set_for(middle);
        (euclidean_length(heights) > middle ? low : high) = middle;
    }
    set_for(high);
}

// Sets x to the u that minimises 1/2 ||u - x||^2 + weight ||u||_*, for groups, linf and l2: entries
// are cut off at one height per group.
void shrink_groups(Vector x, double weight, const Transport& groups) {
    const Buffer<> sizes = sorted_sizes(x, groups);
    Buffer<> heights(groups.n_groups(x.size()));
    if (groups.norm == Norm::l2)
        set_heights_l2(sizes, weight, groups, heights);
    else
        for (size_t j = 0; j < heights.size(); ++j)
            heights[j] = cut_off_height(groups.group(sizes, j), weight);
    for (size_t j = 0; j < heights.size(); ++j)
        for (size_t p = groups.start(j); p < groups.start(j + 1); ++p)
            x[p] = std::clamp(x[p], -heights[j], heights[j]);
}

// Sets x to the u that minimises 1/2 ||u - x||^2 + weight ||u||_*; x is finite. The dual norm of
// linf is l1 (soft thresholding), of l2 itself, of l1 the largest entry.
void shrink(Vector x, double weight, const Transport& transport) {
    if (transport.norm == Norm::l1) {
        const size_t starts[] = {0, x.size()};  // all features have one height
        shrink_groups(x, weight, {Norm::linf, starts});
    } else if (transport.is_grouped()) {
        shrink_groups(x, weight, transport);
    } else if (transport.norm == Norm::linf) {
        for (double& value : x)
            value = std::copysign(std::max(std::fabs(value) - weight, 0.0), value);
    } else {
        const double size = euclidean_length(x);
        const double left = size > 0.0 ? std::max(1.0 - weight / size, 0.0) : 1.0;
        for (double& value : x) value *= left;
    }
}

// Pulls q back until its transport norm is at most `most`.
void pull_back(Vector q, double most, const Transport& transport) {
    if (transport.norm == Norm::linf && !transport.is_grouped()) {
        for (double& value : q) value = std::clamp(value, -most, most);
        return;
    }
    const double size = transport_norm(q, transport);
    if (!(size > most)) return;
    for (double& value : q) value *= most / size;
}

// [metric-bound]. Since S ||u||_* >= q.u for every q with ||q|| <= S, the Lagrangian is at least
// 1/2 x'Bx + g.x + mu (Abar + (r + q).c - level) at x = u - c, with g = mu (r + q); for any d and
// e = g + B d its least value is at least 1/2 d'Bd + g.d - ||e||^2 / (2 least). q is the one that
// makes e vanish at d = near - c, as far as its norm allows.
double bound_in_metric(const CutModel& model, const LevelSet& set, const CombinedCut& cut,
                       double multiplier, ConstVector near) {
    if (!(cut.norm_weight >= 0.0)) return -kInfinity;  // no q has such a norm, nor a nan's
    const size_t width = model.width(), P = model.n_normed;
    Buffer<> apart(width), curved(width), pull(width, 0.0);
    for (size_t j = 0; j < width; ++j) apart[j] = near[j] - set.centre[j];
    times(set.metric.matrix, apart, curved);
    if (multiplier > 0.0)
        for (size_t p = 0; p < P; ++p) pull[p] = -curved[p] / multiplier - cut.slope[p];
    pull_back({pull.data(), P}, cut.norm_weight, model.transport);
    double excess = cut.constant - set.level, left_over = 0.0, distance = 0.0;
    for (size_t j = 0; j < width; ++j) {
        const double slope = cut.slope[j] + pull[j], error = multiplier * slope + curved[j];
        excess += slope * near[j];
        left_over += error * error;
        distance += 0.5 * apart[j] * curved[j];
    }
    return distance + multiplier * excess - 0.5 * left_over / set.metric.least;
}

}  // namespace

Mixture mixture_bound(double constant, double excess, double floor, double radius) {
    Mixture mixture{constant, kInfinity, 1.0};
    if (!(excess <= 0.0)) {  // a nan proves nothing: below it becomes 0
        if (floor > 0.0) {
            // Largest share with share * ||r|| <= share * S + (1 - share) * floor.
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
    // By Hoelder r.u >= -||r|| ||u||_*, so only this excess over S can pull the cut down.
    const ConstVector slope = cut.slope;
    const double length = checked_norm(slope.first(model.n_normed), model.transport);
    const double excess = length - cut.norm_weight;
    const Mixture mixture = mixture_bound(cut.constant, excess, total_floor(model), radius);
    // The shares that are reported are those of the proof itself: others can check it with them.
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
                      double multiplier, ConstVector near) {
    // Weak duality: for multiplier >= 0 the Lagrangian is at most 1/2 ||u - centre||^2 wherever
    // M(u) <= level, so its minimum over all u bounds the distance. That minimum is in closed form,
    // a proximal step; r_b need not vanish, since the distance keeps b bounded.
    const CombinedCut cut = combine(model, feasible(model, shares));
    if (!set.metric.is_euclidean()) {
        const double bound = bound_in_metric(model, set, cut, multiplier, near);
        return bound == bound ? bound : -kInfinity;
    }
    Buffer<> u(model.width());
    for (size_t j = 0; j < u.size(); ++j) u[j] = set.centre[j] - multiplier * cut.slope[j];
    if (!all_finite(u)) return -kInfinity;
    shrink({u.data(), model.n_normed}, multiplier * cut.norm_weight, model.transport);
    const double excess = cut.constant + dot(cut.slope.data(), u.data(), u.size()) +
                          cut.norm_weight * dual_size(model, u) - set.level;
    const double bound = half_squared_distance(u, set.centre) + multiplier * excess;
    return bound == bound ? bound : -kInfinity;  // a nan proves nothing
}

double half_squared_distance(ConstVector x, ConstVector y, const Metric& metric) {
    if (!metric.is_euclidean()) {
        Buffer<> apart(x.size()), curved(x.size());
        for (size_t j = 0; j < x.size(); ++j) apart[j] = x[j] - y[j];
        times(metric.matrix, apart, curved);
        return 0.5 * dot(apart.data(), curved.data(), apart.size());
    }
    return 0.5 * sum_lanes(x.size(), [&](size_t i, size_t count) {
               const Lanes apart =
                   load_up_to(x.data() + i, count) - load_up_to(y.data() + i, count);
               return apart * apart;
           });
}

}  // namespace fdrsvm::master
