#include "tasks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fdrsvm::master {

namespace {

constexpr double kRadiusFactor = 10.0;  // of ||w||_*: the models that a bound without floors covers

Guess guess_of(const Answer& answer) {
    return {answer.w, answer.cut_multipliers, answer.theta_price};
}

Buffer<> copy(ConstVector x) {
    Buffer<> out(x.size());
    std::copy(x.begin(), x.end(), out.data());
    return out;
}

}  // namespace

Minimisation::Minimisation(const CutModel& model, double radius)
    : model_(model),
      radius_(radius),
      w_(model.width(), 0.0),
      value_(model_value(model, w_)),
      value_at_0_(value_),
      bound_(model_bound(model, Buffer<>(model.n_cuts(), 0.0), kInfinity)) {
    // M is never negative, so M(0) = 0 is the minimum and there is nothing to scale or solve.
    if (value_at_0_ > 0.0) scaled_ = scale_minimisation(model, value_at_0_, radius);
}

void Minimisation::solve(Effort effort) {
    if (is_trivial()) return;
    const Answer answer = interior_point(scaled_->problem(), effort.tol, effort.max_iter);
    n_iter_ = answer.n_iter;
    offer(guess_of(answer));
}

void Minimisation::offer(const Guess& guess) {
    Buffer<> w(model_.width());
    scaled_->bring_back(guess.w, w);
    const double value = model_value(model_, w);
    // Point and bound are kept independently: the best of each makes the smallest gap, and both
    // remain valid whichever solver they come from.
    if (all_finite(w) && value < value_) {
        w_ = std::move(w);
        value_ = value;
    }
    const double radius = radius_ == kInfinity ? kRadiusFactor * dual_size(model_, w_) : radius_;
    const Buffer<> shares = scaled_->shares(guess.cut_multipliers, guess.theta_price);
    Bound bound = model_bound(model_, shares, radius);
    if (bound.value > bound_.value) bound_ = std::move(bound);
}

Projection::Projection(const CutModel& model, LevelSet set)
    : model_(model),
      set_(set),
      value_at_centre_(model_value(model, set.centre)),
      value_at_0_(model_value(model, Buffer<>(model.width(), 0.0))) {
    // A nan is not within the level: it is solved, and graded as what it is.
    if (!(value_at_centre_ <= set.level)) scaled_ = scale_projection(model, set);
}

GradedPoint Projection::solve(Effort effort) {
    if (is_trivial()) return grade_point(set_.centre);
    const Answer answer = interior_point(scaled_->problem(), effort.tol, effort.max_iter);
    n_iter_ = answer.n_iter;
    return grade(guess_of(answer));
}

GradedPoint Projection::grade(const Guess& guess) const {
    Buffer<> w(model_.width());
    scaled_->bring_back(guess.w, w);
    return grade(std::move(w), scaled_->shares(guess.cut_multipliers, guess.theta_price),
                 scaled_->level_multiplier(guess.theta_price));
}

GradedPoint Projection::grade_point(ConstVector w) const {
    return grade(copy(w), Buffer<>(model_.n_cuts(), 0.0), 0.0);
}

GradedPoint Projection::grade(Buffer<> w, Buffer<> shares, double multiplier) const {
    const double value = model_value(model_, w);
    const double distance = half_squared_distance(w, set_.centre, set_.metric);
    const double gap = distance - distance_bound(model_, set_, shares, multiplier, w);
    // The multipliers of a projection also prove a bound on min M, at no extra cost.
    Bound bound = model_bound(model_, shares, kInfinity);
    for (size_t k = 0; k < shares.size(); ++k)
        if (!std::isfinite(shares[k])) shares[k] = 0.0;
    return {std::move(w), value, std::move(shares), multiplier, distance, gap, std::move(bound)};
}

}  // namespace fdrsvm::master
