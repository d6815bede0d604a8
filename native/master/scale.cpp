#include "scale.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../core/linear_algebra.hpp"
#include "../core/products.hpp"

namespace fdrsvm::master {

namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);
// Beyond this ||w||_*, in units of M(0) over the largest slope, no minimiser is looked for: where
// nothing bounds w, the iterates must stay finite ...
constexpr double kFarthest = 1e5;
// ... nor beyond this multiple of where the floors keep it.
constexpr double kSlackReach = 4.0;

// Largest magnitude among the columns [first, last): the unit in which slopes are about 1.
double largest_slope(const CutModel& model, size_t first, size_t last) {
    double largest = 0.0;
    for (size_t k = 0; k < model.n_cuts(); ++k)
        largest =
            std::max(largest, largest_magnitude(model.slopes[k].subspan(first, last - first)));
    return largest;
}

// Units must not be 0; where everything is 0 any unit will do.
double first_that_is_not_0(double first, double second) { return first != 0.0 ? first : second; }

// g' B^-1 g, B the metric.
double squared_length(const Metric& metric, ConstVector g) {
    const size_t width = g.size(), stride = padded(width);
    Buffer<> factor(width * stride, 0.0), solved(stride, 0.0);
    for (size_t j = 0; j < width; ++j)
        std::copy_n(metric.matrix[j].data(), width, factor.data() + j * stride);
    const Matrix U{factor.data(), width, width, stride};
    factorise(U);
    std::copy(g.begin(), g.end(), solved.data());
    solve_factorised(U, solved.data());
    return dot(g.data(), solved.data(), width);
}

// Squared length of a subgradient g of M at w, |g|^2 or g' B^-1 g in a metric B. For a single cut
// the projection onto the level moves by (M(w) - level)/|g| and its multiplier is
// (M(w) - level)/|g|^2: dividing by that makes the scaled multiplier 1, [master]. Cuts of a client
// that are equally large share equally.
double steepness(const CutModel& model, const LevelSet& set) {
    const ConstVector w = set.centre;
    Buffer<> values(model.n_cuts()), largest(model.n_clients()), counts(model.n_clients(), 0.0);
    cut_values(model, w, values);
    client_values(model, w, largest);
    // A client whose floor is largest has no active cut: the floor's slope, along the norm, is left
    // out. Only the order of magnitude matters here.
    const auto is_active = [&](size_t k) { return values[k] >= largest[model.owners[k]]; };
    for (size_t k = 0; k < model.n_cuts(); ++k)
        if (is_active(k)) counts[model.owners[k]] += 1.0;
    Buffer<> weights(model.n_cuts(), 0.0), slope(model.width());
    for (size_t k = 0; k < model.n_cuts(); ++k)
        if (is_active(k)) weights[k] = model.alphas[model.owners[k]] / counts[model.owners[k]];
    transposed_times(model.slopes, weights, slope);
    const double norm_weight = dot(weights.data(), model.norm_weights.data(), weights.size());
    add_dual_norm_subgradient(w.first(model.n_normed), model.transport, norm_weight, slope);
    const double length = set.metric.is_euclidean() ? dot(slope.data(), slope.data(), slope.size())
                                                    : squared_length(set.metric, slope);
    return first_that_is_not_0(length, 1.0);
}

}  // namespace

struct Scaled::Aim {
    double value_unit;
    ConstVector centre;
    double level;      // inf: none
    double curvature;  // of the distance to the centre
    double radius;
    Metric metric = {};
};

Scaled::Scaled(const CutModel& model, const Aim& aim)
    : feature_scale_(
          first_that_is_not_0(first_that_is_not_0(largest_slope(model, 0, model.n_normed),
                                                  largest_magnitude(model.norm_weights)),
                              1.0)),
      intercept_scale_(
          first_that_is_not_0(largest_slope(model, model.n_normed, model.width()), 1.0)),
      units_(model.width()),
      multiplier_unit_(aim.curvature > 0.0 ? 1.0 / aim.curvature : 0.0) {
    // w' = w / unit: then slope * w and value are both in units of value_unit.
    for (size_t j = 0; j < model.width(); ++j)
        units_[j] = aim.value_unit / (j < model.n_normed ? feature_scale_ : intercept_scale_);
    place_rows(model);
    fill_cuts(model, aim);
    fill_problem(model, aim);
}

// Cuts and floors of clients with weight, client by client, each floor after its client's cuts.
// Nothing would hold the theta of a client without weight, so it is left out.
void Scaled::place_rows(const CutModel& model) {
    const size_t n_weighted = static_cast<size_t>(
        std::count_if(model.alphas.begin(), model.alphas.end(), [](double a) { return a > 0.0; }));
    rows_ = Buffer<size_t>(model.n_cuts(), kNowhere);
    starts_ = Buffer<size_t>(n_weighted + 1);
    alphas_ = Buffer<>(n_weighted);
    size_t row = 0, place = 0, k = 0;
    for (size_t g = 0; g < model.n_clients(); ++g) {
        const bool has_weight = model.alphas[g] > 0.0;
        if (has_weight) {
            alphas_[place] = model.alphas[g];
            starts_[place++] = row;
        }
        // Owners ascend, so one pass over the cuts suffices; cuts of a client without weight are
        // passed over and get the share 0.
        for (; k < model.n_cuts() && static_cast<size_t>(model.owners[k]) == g; ++k)
            if (has_weight) rows_[k] = row++;
        if (has_weight) ++row;  // its floor
    }
    starts_[n_weighted] = row;
}

void Scaled::fill_cuts(const CutModel& model, const Aim& aim) {
    const size_t n_rows = starts_[alphas_.size()], width = model.width();
    // One more column for sigma, the slope in s; padding to whole lanes stays 0.
    const size_t stride = padded(width + 1);
    cuts_ = Buffer<>(n_rows * stride, 0.0);
    constants_ = Buffer<>(n_rows, 0.0);
    for (size_t k = 0; k < model.n_cuts(); ++k) {
        if (rows_[k] == kNowhere) continue;
        double* row = cuts_.data() + rows_[k] * stride;
        for (size_t j = 0; j < width; ++j)
            row[j] = model.slopes[k][j] / (j < model.n_normed ? feature_scale_ : intercept_scale_);
        // s is measured like the features, since it bounds their norm.
        row[width] = model.norm_weights[k] / feature_scale_;
        constants_[rows_[k]] = model.constants[k] / aim.value_unit;
    }
    // A floor is a cut with constant 0 and slope 0, the last row of its client.
    for (size_t g = 0, place = 0; g < model.n_clients(); ++g)
        if (model.alphas[g] > 0.0)
            cuts_[(starts_[++place] - 1) * stride + width] = model.floors[g] / feature_scale_;
    problem_.cuts = {cuts_.data(), n_rows, width + 1, stride};
}

void Scaled::fill_problem(const CutModel& model, const Aim& aim) {
    const size_t width = model.width();
    centre_ = Buffer<>(width);
    curvature_ = Buffer<>(width);
    for (size_t j = 0; j < width; ++j) {
        centre_[j] = aim.centre[j] / units_[j];
        // 1/2 ||w - c||^2 in scaled variables, times the factor that makes the multiplier 1.
        curvature_[j] = aim.curvature * units_[j] * units_[j] / aim.value_unit;
    }
    fill_metric(aim);
    problem_.constants = constants_;
    problem_.starts = starts_;
    problem_.alphas = alphas_;
    problem_.n_normed = model.n_normed;
    problem_.transport = model.transport;
    problem_.curvature = curvature_;
    problem_.centre = centre_;
    problem_.levelled = aim.level < kInfinity;
    problem_.level = problem_.levelled ? aim.level / aim.value_unit : 0.0;
    // E > 0 implies ||w*||_* <= M(0)/E, which is 1/floor in scaled units. A few times that as reach
    // leaves the optimum well inside; for a projection the centre may be farther out.
    const double floor = total_floor(model) / feature_scale_, size = dual_size(model, centre_);
    const double price = std::min(floor > 0.0 ? 1.0 / floor : aim.radius / units_[0], kFarthest);
    problem_.price = problem_.levelled ? 0.0 : price;
    problem_.reach = floor > 0.0 || problem_.levelled ? kSlackReach * (price + size) : price;
    // Nothing in the model bounds an intercept, so its reach is far; it only keeps iterates finite.
    const double intercept = model.has_intercept() ? std::fabs(centre_[width - 1]) : 0.0;
    problem_.intercept_reach = kFarthest + kSlackReach * intercept;
}

// 1/2 (w - c)' B (w - c) in scaled variables, times the same factor as the curvature.
void Scaled::fill_metric(const Aim& aim) {
    const size_t width = units_.size(), stride = problem_.cuts.stride;
    if (aim.metric.is_euclidean()) return;
    metric_ = Buffer<>(width * stride, 0.0);
    for (size_t i = 0; i < width; ++i)
        for (size_t j = 0; j < width; ++j)
            metric_[i * stride + j] = aim.metric.matrix[i][j] *
                                      (aim.curvature * units_[i] * units_[j] / aim.value_unit);
    problem_.metric = {metric_.data(), width, width, stride};
}

void Scaled::bring_back(ConstVector scaled_w, Vector w) const {
    for (size_t j = 0; j < w.size(); ++j) w[j] = scaled_w[j] * units_[j];
}

Buffer<> Scaled::shares(ConstVector multipliers, double price) const {
    Buffer<> shares(rows_.size(), 0.0);
    // Without a price (or with a nan) the multipliers say nothing; zeros leave all to the floors.
    if (!(price > 0.0)) return shares;
    size_t client = 0;  // rows ascend with the cuts, so it only moves forward
    for (size_t k = 0; k < rows_.size(); ++k) {
        if (rows_[k] == kNowhere) continue;
        while (rows_[k] >= starts_[client + 1]) ++client;
        shares[k] = multipliers[rows_[k]] / (price * alphas_[client]);
    }
    return shares;
}

double Scaled::level_multiplier(double scaled) const {
    // A negative multiplier proves nothing about a distance; 0 proves that it is at least 0.
    return std::max(scaled, 0.0) * multiplier_unit_;
}

Scaled scale_minimisation(const CutModel& model, double value_unit, double radius) {
    const Buffer<> origin(model.width(), 0.0);
    return Scaled(model, {value_unit, origin, kInfinity, 0.0, radius});
}

Scaled scale_projection(const CutModel& model, const LevelSet& set) {
    const Buffer<> origin(model.width(), 0.0);
    const double start = model_value(model, set.centre);
    // M(0) as for the minimisation, so that both problems of a round see the same units.
    const double value_unit = first_that_is_not_0(model_value(model, origin), start);
    const double curvature = steepness(model, set) / (start - set.level);
    return Scaled(model, {value_unit, set.centre, set.level, curvature, kInfinity, set.metric});
}

}  // namespace fdrsvm::master
