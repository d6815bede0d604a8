#include "interior_point.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rows.hpp"
#include "start.hpp"
#include "step.hpp"

namespace fdrsvm::master {

namespace {

// Of the longest step: the boundary itself would leave weights z/slack of 0 or infinity.
constexpr double kToBoundary = 0.99;
// Steps without a better point before giving up. Far from the optimum a bad stretch may pass; close
// to it, rounding is the likely cause and more steps would only wander.
constexpr int kPatience = 20, kLatePatience = 4;
constexpr double kLate = 1e-5;
// Values below these are rounding: of the objective, and of the level (per unit of its multiplier).
constexpr double kSmallValue = 1e-3, kLevelRounding = 1e-13;
constexpr double kLargest = 1e100;  // a gap beyond it means that the iterates diverge

// Sum over i of x_i |y_i|: what residuals y may be worth at prices x. In lanes, so that the test
// for stopping, and with it the answer, has the same bits on every processor.
double sum_times_magnitudes(ConstVector x, ConstVector y) {
    return sum_lanes(x.size(), [&](size_t i, size_t count) {
        double products[kLanes] = {};
        for (size_t k = 0; k < count; ++k) products[k] = x[i + k] * std::fabs(y[i + k]);
        return Lanes::load(products);
    });
}

// The largest t with x + t step >= 0. The smallest of eight lanes is the smallest of all, so lanes
// are only for speed.
double longest_step(ConstVector x, ConstVector step) {
    double least[kLanes];
    std::fill_n(least, kLanes, kInfinity);
    const auto look_at = [&](size_t i, size_t lane) {
        const double ratio = step[i] < 0.0 ? -x[i] / step[i] : kInfinity;
        least[lane] = ratio < least[lane] ? ratio : least[lane];
    };
    size_t i = 0;
    for (; i + kLanes <= x.size(); i += kLanes)
        for (size_t k = 0; k < kLanes; ++k) look_at(i + k, k);
    for (size_t k = 0; i + k < x.size(); ++k) look_at(i + k, k);
    return *std::min_element(least, least + kLanes);
}

// Sum over i of (x + x_length dx)_i (y + y_length dy)_i.
double product_after(ConstVector x, ConstVector dx, double x_length, ConstVector y,
                     ConstVector dy, double y_length) {
    const Lanes x_lengths = Lanes::all(x_length), y_lengths = Lanes::all(y_length);
    return sum_lanes(x.size(), [&](size_t i, size_t count) {
        const auto lanes = [&](ConstVector of) { return load_up_to(of.data() + i, count); };
        return (lanes(x) + x_lengths * lanes(dx)) * (lanes(y) + y_lengths * lanes(dy));
    });
}

struct StepLengths {
    double primal, dual;
};

// How far an iterate is from optimal.
struct Distance {
    double gap;    // of complementarity
    double apart;  // all that may separate it from the optimum, relative to the objective
};

class Method {
  public:
    // All memory is taken here: a step allocates nothing.
    explicit Method(const Problem& problem)
        : problem_(problem),
          offsets_(row_offsets(problem)),
          iterate_(first_iterate(problem, problem.centre, offsets_)),
          at_(problem, offsets_.size()),
          step_(problem, offsets_.size()),
          apart_(problem.cuts.stride, 0.0),
          curved_(problem.cuts.stride) {}

    Answer run(double tol, int max_iter);

  private:
    Distance linearise_residuals();
    void set_apart();
    double residual_price() const;
    double objective();
    void take_step(double gap);
    StepLengths step_lengths(double share) const;
    double gap_after(StepLengths lengths) const;
    void move(StepLengths lengths);
    void keep_iterate(Answer& best) const;

    const Problem& problem_;
    Buffer<> offsets_;
    Iterate iterate_;
    Linearised at_;
    NewtonStep step_;
    Buffer<> apart_;   // w - centre
    Buffer<> curved_;  // its curvature
};

void Method::set_apart() {
    for (size_t j = 0; j < problem_.width(); ++j)
        apart_[j] = iterate_.v.w()[j] - problem_.centre[j];
}

// Sets the residuals at the iterate and estimates how far from optimal it is. The estimate decides
// only when to stop; what is claimed of the answer is computed from it by bound.hpp.
Distance Method::linearise_residuals() {
    const Iterate& it = iterate_;
    Residuals& residuals = at_.residuals;
    // Primal: R v + offset + slack. Computed afresh from the iterate in every step, since updating
    // it by (1 - length) would let the two drift apart.
    times_rows(problem_, it.v, residuals.rows);
    for (size_t i = 0; i < it.z.size(); ++i) residuals.rows[i] += offsets_[i] + it.slack[i];
    std::ranges::fill(residuals.stationarity.all(), 0.0);
    set_apart();
    add_curved(problem_, apart_.data(), 1.0, residuals.stationarity.w());
    // Dual: the gradient of the Lagrangian. theta has no other term than its price and its rows.
    const double theta_price = it.theta_price(problem_);
    add_transposed_rows(problem_, it.z, theta_price, 1.0, residuals.stationarity);
    double gap = dot(it.slack.data(), it.z.data(), it.z.size());
    if (problem_.has_cone()) {
        gather_cone(problem_, it.v, at_.cone_u);
        add_cone(problem_, it.cone_z, -1.0, residuals.stationarity);
        gap += dot(it.cone_z.data(), at_.cone_u.data(), at_.cone_u.size());
    }
    // Where the residuals vanish the gap is objective minus dual objective; elsewhere their price
    // is about what a repair would cost, so the sum estimates what the grade will say.
    double missing = gap + residual_price(), value = objective();
    if (problem_.levelled)
        // The level itself is only known to rounding, and a projection's value may be tiny: without
        // this allowance the test could never be met when the centre is nearly within the level.
        missing -= kLevelRounding * theta_price;
    else
        value = std::max(value, kSmallValue);
    return {gap, missing / value};
}

// What the residuals may be worth in units of the objective: a row's at its multiplier, and a slope
// left over in stationarity at the size of what it multiplies. For w that is at least the price
// ||w*||_* <= M(0)/E, since the repair of [model-bound] multiplies a slope by as much.
double Method::residual_price() const {
    double price = sum_times_magnitudes(iterate_.z, at_.residuals.rows);
    const ConstVector dual = at_.residuals.stationarity.all(), v = iterate_.v.all();
    for (size_t j = 0; j < v.size(); ++j)
        price += std::fabs(dual[j]) * (1.0 + std::max(std::fabs(v[j]), problem_.price));
    return price;
}

// Sums in the order of the clients, respectively the features: part of the stopping test.
double Method::objective() {
    if (!problem_.levelled)
        return dot(problem_.alphas.data(), iterate_.v.theta(), problem_.n_clients());
    double value = 0.0;
    std::fill_n(curved_.data(), curved_.size(), 0.0);
    add_curved(problem_, apart_.data(), 1.0, curved_.data());
    for (size_t j = 0; j < problem_.width(); ++j) value += 0.5 * curved_[j] * apart_[j];
    return value;
}

// Only a linear program may take different primal and dual lengths: with curvature or a cone,
// stationarity couples both, and unequal lengths would create a residual that was not there.
StepLengths Method::step_lengths(double share) const {
    const Direction& direction = step_.direction();
    double primal = longest_step(iterate_.slack, direction.slack);
    double dual = longest_step(iterate_.z, direction.z);
    if (problem_.has_cone()) {
        primal = std::min(primal, longest_cone_step(at_.cone_u, direction.cone_u));
        dual = std::min(dual, longest_cone_step(iterate_.cone_z, direction.cone_z));
    }
    primal = std::min(1.0, share * primal);
    dual = std::min(1.0, share * dual);
    if (problem_.levelled || problem_.has_cone()) primal = dual = std::min(primal, dual);
    return {primal, dual};
}

double Method::gap_after(StepLengths lengths) const {
    const Direction& direction = step_.direction();
    double gap = product_after(iterate_.slack, direction.slack, lengths.primal, iterate_.z,
                               direction.z, lengths.dual);
    if (problem_.has_cone())
        gap += product_after(at_.cone_u, direction.cone_u, lengths.primal, iterate_.cone_z,
                             direction.cone_z, lengths.dual);
    return gap;
}

void Method::move(StepLengths lengths) {
    const Direction& direction = step_.direction();
    const auto add = [](Vector to, double length, ConstVector change) {
        add_scaled(to.data(), length, change.data(), to.size());
    };
    add(iterate_.v.all(), lengths.primal, direction.v.all());
    add(iterate_.slack, lengths.primal, direction.slack);
    add(iterate_.z, lengths.dual, direction.z);
    if (problem_.has_cone()) add(iterate_.cone_z, lengths.dual, direction.cone_z);
}

void Method::take_step(double gap) {
    // The matrix is the same for predictor and corrector, so it is built and factorised once.
    for (size_t i = 0; i < at_.weights.size(); ++i)
        at_.weights[i] = iterate_.z[i] / iterate_.slack[i];
    if (problem_.has_cone()) set_scaling(at_.cone_u, iterate_.cone_z, at_.scaling);
    at_.system.build(at_.weights, at_.scaling);
    step_.predict(iterate_, at_);
    // Mehrotra's rule: how much of the gap the predictor would leave, cubed, is the share of the
    // mean product to aim at. A predictor that succeeds needs no centring.
    const double left = gap_after(step_lengths(1.0)) / gap;
    // The cone counts as one product: (s, w).z is one complementarity condition of degree 1.
    const double n_products =
        static_cast<double>(iterate_.z.size() + (problem_.has_cone() ? 1 : 0));
    step_.correct(iterate_, at_, left * left * left * gap / n_products);
    move(step_lengths(kToBoundary));
}

void Method::keep_iterate(Answer& best) const {
    std::copy_n(iterate_.v.w(), best.w.size(), best.w.data());
    std::copy_n(iterate_.z.data(), best.cut_multipliers.size(), best.cut_multipliers.data());
    best.theta_price = iterate_.theta_price(problem_);
}

Answer Method::run(double tol, int max_iter) {
    Answer best{Buffer<>(problem_.width()), Buffer<>(problem_.n_cuts()), 0.0, 0};
    // Even the first iterate is an answer: whatever happens, there is something to grade.
    keep_iterate(best);
    double least_apart = kInfinity;
    int n_iter = 0, best_at = 0;
    while (true) {
        const auto [gap, apart] = linearise_residuals();
        if (apart < least_apart) {
            least_apart = apart;
            best_at = n_iter;
            keep_iterate(best);
        }
        // The best point is kept apart from the current one: the last steps before giving up are
        // often worse, and the grade counts, not the path.
        const bool is_lost = !(0.0 < gap && gap < kLargest) || apart != apart;
        const int patience = least_apart <= kLate ? kLatePatience : kPatience;
        if (least_apart <= tol || is_lost || n_iter >= std::min(max_iter, best_at + patience))
            break;
        ++n_iter;
        take_step(gap);
    }
    best.n_iter = n_iter;
    return best;
}

}  // namespace

Answer interior_point(const Problem& problem, double tol, int max_iter) {
    return Method(problem).run(tol, max_iter);
}

}  // namespace fdrsvm::master
