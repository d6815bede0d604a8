#include "stages.hpp"

#include <algorithm>
#include <cmath>

#include "newton.hpp"
#include "search.hpp"

namespace fdrsvm::client {

namespace {

// Measured: with a warm penalty of 1000, 4.0 warm Newton steps at 90 x 30; 6.6 with 10 and 100.
constexpr double kGrowth = 3.0;  // of the penalty from stage to stage ...
constexpr int kHardStage = 15;   // ... unless the last one took this many Newton steps
constexpr int kStageSteps = 40;
constexpr int kIdleStages = 20;  // stages without a Newton step before giving up
// Beyond these the rounding of the margins, times the penalty, spoils the multipliers; where every
// coordinate is curved the gap feels only its square.
constexpr double kMaxPenalty = 1e5, kMaxCurvedPenalty = 1e8;
// Proximal weights, over the penalty: of coordinates without curvature, and of lam in units of
// epsilon. The tiny number keeps the matrix regular at epsilon = 0.
constexpr double kProx = 1e-5, kLamProx = 1e-4, kTiny = 1e-300;
constexpr double kFreshFrom = 1e4;   // the penalty from which every stage recomputes the margins
constexpr double kRounding = 1e-16;  // a step that promises less cannot be judged by values

// One solve's stages, with all that they share.
class Descent {
  public:
    Descent(const Terms& terms, const Quadratic& quadratic, Point& point)
        : terms_(terms),
          point_(point),
          space_(terms, quadratic.linear, quadratic.constant),
          system_(space_),
          anchor_(space_.q, 0.0),
          prox_(space_.q, 0.0) {}

    // Newton until the multipliers are worth moving; whether tol is reached, and the steps.
    struct Outcome {
        bool reached;
        int n_newton;
    };
    Outcome minimise(double penalty, const Goal& goal);

  private:
    const Terms& terms_;
    Point& point_;
    Space space_;
    System system_;
    Buffer<> anchor_, prox_;

    bool has_margins_ = false;

    Stage begin(double penalty);
    void refresh_margins(double penalty);
    bool end_linearly(const Stage& stage, double tol);
    void move_linearly(const Stage& stage);
    void move_sample_linearly(const Stage& stage, size_t k);
};

// The proximal terms make Newton's matrix regular where the problem itself has no curvature, and
// fade with the penalty, so that they change the answer by less than the tolerance; one on lam that
// grew instead stopped convergence at small kappa.
Stage Descent::begin(double penalty) {
    for (size_t j = 0; j < terms_.width; ++j)
        prox_[j] = terms_.curvature(j) > 0.0 ? 0.0 : kProx / penalty;
    prox_[terms_.width] = kLamProx * terms_.epsilon / penalty + kTiny;
    std::copy_n(point_.w.data(), space_.q, anchor_.data());
    return {anchor_.data(), prox_.data(), penalty, penalty * terms_.cone_scale};
}

// Sample k of the band: its multipliers change by the derivative of their projection, which depends
// on where in the triangle they lie. The result is projected again, as the step may leave the edge.
void Descent::move_sample_linearly(const Stage& stage, size_t k) {
    const size_t n = static_cast<size_t>(space_.band.sample[k]);
    const double scale = stage.penalty * terms_.mass[n], place = space_.band.place[k];
    const double margin = row_dot(*terms_.rows, n, space_.direction);
    const double flip = margin - terms_.kappa * space_.direction[terms_.width];
    double kept = point_.kept[n], flipped = point_.flipped[n];
    if (place == kFullEdge) {
        kept -= 0.5 * scale * (margin + flip);
        flipped += 0.5 * scale * (margin + flip);
    } else {
        if (place != kFlippedEdge) kept -= scale * margin;
        if (place != kKeptEdge) flipped += scale * flip;
    }
    const Lanes given_kept = Lanes::all(kept), given_flipped = Lanes::all(flipped);
    const Lanes mass = Lanes::all(terms_.mass[n]);
    const SampleMultipliers projected =
        terms_.flips ? project_samples<true>(given_kept, given_flipped, mass)
                     : project_samples<false>(given_kept, given_flipped, mass);
    // All lanes hold the same sample: one scalar projection would be a second formula.
    double first[kLanes];
    projected.kept.store(first);
    point_.kept[n] = first[0];
    projected.flipped.store(first);
    point_.flipped[n] = first[0];
}

// Takes a tiny Newton step and changes the multipliers by their derivative instead of recomputing
// them from the margins. Margins carry a rounding error of 1e-16, and recomputed multipliers would
// carry `penalty` times that, which the bound divides by epsilon.
void Descent::move_linearly(const Stage& stage) {
    const double* direction = space_.direction;
    const ConeCurvature& cone = space_.cone;
    for (size_t k = 0; k < space_.band.count; ++k) move_sample_linearly(stage, k);
    // The cone's multipliers by their derivative as well: diagonal plus two rank-one terms.
    const double along_0 = dot(cone.low[0], direction, space_.q);
    const double along_1 = dot(cone.low[1], direction, space_.q);
    for (size_t j = 0; j <= terms_.width; ++j) {
        const double bent =
            cone.weight[0] * along_0 * cone.low[0][j] + cone.weight[1] * along_1 * cone.low[1][j];
        const double change = stage.cone_penalty * (cone.diagonal[j] * direction[j] + bent);
        if (j < terms_.n_normed)
            point_.pull[j] += change;
        else if (j == terms_.width)
            point_.sigma -= change;
        point_.w[j] += direction[j];
    }
}

// Updated step by step, margins accumulate rounding, which multipliers see times the penalty.
void Descent::refresh_margins(double penalty) {
    if (has_margins_ && penalty < kFreshFrom) return;
    times(*terms_.rows, point_.w.data(), space_.margins);
    has_margins_ = true;
}

Descent::Outcome Descent::minimise(double penalty, const Goal& goal) {
    const Stage stage = begin(penalty);
    refresh_margins(penalty);
    int n_newton = 0;
    double step = 0.0;
    bool is_centred = false;
    while (true) {
        const View view = look(space_, stage, point_, step);
        step = 0.0;
        // Over, if the gap is closed; or if the stage's own gradient is small against what the
        // multipliers still miss: then it is them that must move, and more Newton steps would only
        // polish a point that the next stage leaves. At least one step is taken in every stage
        // unless the gradient is already negligible.
        const double enough = goal.tol * larger(std::fabs(view.value), 1.0);
        const bool reached = view.slack + view.price <= enough;
        const bool is_flat = view.pulled_price <= 0.1 * enough ||
                             (n_newton > 0 && view.pulled_price <= 0.1 * view.slack);
        if (reached || is_flat || n_newton >= goal.max_newton) {
            settle(space_, stage, view.cone.sigma, point_);
            return {reached, n_newton};
        }
        system_.build(stage, point_, view.cone);
        // Newton would send a lam without curvature to infinity. It is set to its best value for
        // this w instead, once per step, and everything is evaluated again.
        if (!system_.lam_is_curved() && !is_centred) {
            point_.w[terms_.width] = centre_lam(space_, stage, point_);
            is_centred = true;
            continue;
        }
        is_centred = false;
        system_.solve();
        ++n_newton;
        const double slope = dot(space_.gradient, space_.direction, space_.q);
        // No measurable descent left: a line search would compare rounding errors.
        if (slope >= -kRounding) {
            settle(space_, stage, view.cone.sigma, point_);
            return {end_linearly(stage, goal.tol), n_newton};
        }
        // One product with X per Newton step serves all trial steps and the next look.
        times(*terms_.rows, space_.direction, space_.margin_changes);
        step = search_step(space_, stage, point_, slope);
        add_scaled(point_.w.data(), step, space_.direction, space_.q);
    }
}

bool Descent::end_linearly(const Stage& stage, double tol) {
    move_linearly(stage);
    times(*terms_.rows, point_.w.data(), space_.margins);
    // Not `look`: that would recompute the multipliers from the margins, with their rounding.
    const View view = look_as_is(space_, stage, point_);
    return view.slack + view.price <= tol * larger(std::fabs(view.value), 1.0);
}

}  // namespace

Progress multiplier_method(const Terms& terms, const Quadratic& quadratic, Point& point,
                           double penalty, const Goal& goal) {
    Descent descent(terms, quadratic, point);
    // Stages without a Newton step only move multipliers; a number of them in a row means that the
    // penalty is at its cap and rounding decides.
    const double max_penalty = terms.is_curved() ? kMaxCurvedPenalty : kMaxPenalty;
    int n_newton = 0, n_idle = 0;
    while (n_idle < kIdleStages && n_newton < goal.max_newton) {
        const int limit = std::min(kStageSteps, goal.max_newton - n_newton);
        const auto [reached, n_steps] = descent.minimise(penalty, {goal.tol, limit});
        n_newton += n_steps;
        if (reached) break;
        // A stage that was hard for Newton shows that the penalty is already too steep for where
        // the multipliers are: they catch up first.
        n_idle = n_steps == 0 ? n_idle + 1 : 0;
        if (n_steps < kHardStage) penalty = smaller(kGrowth * penalty, max_penalty);
    }
    return {n_newton, penalty};
}

}  // namespace fdrsvm::client
