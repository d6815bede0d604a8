#include "search.hpp"

#include <cmath>

namespace fdrsvm::client {

namespace {

// Multipliers of eight samples at these margins; `price` is kappa lam. Only slopes are searched,
// never values: near the minimum values differ by rounding long before slopes do.
template <bool Flips>
FDRSVM_INLINE SampleMultipliers multipliers_at(const Space& space, const Stage& stage,
                                               const Point& point, size_t n, const Lanes& margin,
                                               const Lanes& price) {
    const Lanes one = Lanes::all(1.0), mass = Lanes::load(space.terms.mass + n);
    const Lanes weight = Lanes::all(stage.penalty) * mass;
    const Lanes kept = Lanes::load(point.kept.data() + n) + weight * (one - margin);
    const Lanes flipped =
        Flips ? Lanes::load(point.flipped.data() + n) + weight * (one + margin - price)
              : Lanes::all(0.0);
    return project_samples<Flips>(kept, flipped, mass);
}

// lam enters the samples only through the price of a flip.
double total_flipped(const Space& space, const Stage& stage, const Point& point, double lam) {
    if (!space.terms.flips) return 0.0;
    const Lanes price = Lanes::all(space.terms.kappa * lam);
    Lanes total = Lanes::all(0.0);
    for (size_t n = 0; n < space.n; n += kLanes)
        total += multipliers_at<true>(space, stage, point, n, Lanes::load(space.margins + n), price)
                     .flipped;
    return total.sum();
}

// Derivative of the augmented Lagrangian in lam alone.
double lam_slope(const Space& space, const Stage& stage, const Point& point, double lam) {
    const Terms& terms = space.terms;
    const double sigma =
        project_cone(space.shifted, space.q, point.sigma - stage.cone_penalty * lam, terms.norm,
                     space.projected)
            .sigma;
    const double of_prox = stage.prox[terms.width] * (lam - stage.anchor[terms.width]);
    return terms.epsilon - terms.kappa * total_flipped(space, stage, point, lam) - sigma + of_prox;
}

// The samples' part of the slope: multipliers times the change of what they multiply.
template <bool Flips>
double samples_along(const Space& space, const Stage& stage, const Point& point, double step,
                     double lam) {
    const Lanes steps = Lanes::all(step), price = Lanes::all(space.terms.kappa * lam);
    const Lanes turn = Lanes::all(space.terms.kappa * space.direction[space.terms.width]);
    Lanes total = Lanes::all(0.0);
    for (size_t n = 0; n < space.n; n += kLanes) {
        const Lanes change = Lanes::load(space.margin_changes + n);
        const Lanes margin = Lanes::load(space.margins + n) + steps * change;
        const auto [kept, flipped] = multipliers_at<Flips>(space, stage, point, n, margin, price);
        total += (kept - flipped) * change;
        if constexpr (Flips) total += flipped * turn;
    }
    return total.sum();
}

// Derivative of the augmented Lagrangian at `step`. The margins there are margins + step *
// margin_changes, so a trial step costs one pass over samples and features, and none over X.
double slope_along(const Space& space, const Stage& stage, const Point& point, double step) {
    const Terms& terms = space.terms;
    const double lam = point.w[terms.width] + step * space.direction[terms.width];
    const double samples = terms.flips ? samples_along<true>(space, stage, point, step, lam)
                                       : samples_along<false>(space, stage, point, step, lam);
    const Lanes steps = Lanes::all(step), cone_penalty = Lanes::all(stage.cone_penalty);
    Lanes total = Lanes::all(0.0);
    for (size_t j = 0; j < space.q; j += kLanes) {
        const Lanes direction = Lanes::load(space.direction + j);
        const Lanes w = Lanes::load(point.w.data() + j) + steps * direction;
        const Lanes prox = Lanes::load(stage.prox + j) * (w - Lanes::load(stage.anchor + j));
        const Lanes slope = Lanes::load(space.curvature + j) * w - Lanes::load(space.linear + j);
        total += (slope + prox) * direction;
        (Lanes::load(point.pull.data() + j) + cone_penalty * (w * Lanes::load(space.is_normed + j)))
            .store(space.projected + j);
    }
    const double sigma =
        project_cone(space.projected, space.q, point.sigma - stage.cone_penalty * lam, terms.norm,
                     space.projected)
            .sigma;
    const double of_norm = dot(space.projected, space.direction, space.q);
    return total.sum() - samples + of_norm - sigma * space.direction[terms.width];
}

}  // namespace

double centre_lam(const Space& space, const Stage& stage, const Point& point) {
    const double lam = point.w[space.terms.width];
    const double here = lam_slope(space, stage, point, lam);
    double reach = (here > 0.0 ? -1.0 : here < 0.0 ? 1.0 : 0.0) / stage.penalty;
    // Doubling from 1/penalty, the width of a kink: the bracket is then within a factor of two.
    double a = lam, slope_a = here, b = lam, slope_b = here;
    for (int k = 0; k < 200 && !(slope_b * here <= 0.0); ++k) {
        a = b;
        slope_a = slope_b;
        b += reach;
        reach *= 2.0;
        slope_b = lam_slope(space, stage, point, b);
    }
    // The slope is piecewise linear and increasing: a secant is exact once the bracket lies within
    // one piece. Every third step bisects, so that a flat piece cannot hold an end in place.
    for (int k = 0; k < 100; ++k) {
        // An exact 0, a flat piece, or ends that agree to rounding: nothing is left to gain.
        const bool is_close = std::fabs(b - a) <= 1e-12 * (std::fabs(a) + std::fabs(b));
        if (slope_b == 0.0 || slope_a == slope_b || is_close) break;
        const double middle =
            k % 3 == 2 ? 0.5 * (a + b) : b - slope_b * (b - a) / (slope_b - slope_a);
        const double slope = lam_slope(space, stage, point, middle);
        if (slope * slope_b <= 0.0) {
            a = b;
            slope_a = slope_b;
        }
        b = middle;
        slope_b = slope;
    }
    return b;
}

// The full step is tried first and is right once the active pieces are: Newton then ends in one
// step. Otherwise a step is accepted whose slope lies between half the first one and a tenth of its
// size beyond the minimum; more exactness would not pay, since the next direction differs.
double search_step(const Space& space, const Stage& stage, const Point& point, double slope) {
    double low = 0.0, high = 1.0, low_slope = slope, step = 1.0;
    for (int k = 0; k < 30; ++k) {
        const double now = slope_along(space, stage, point, step);
        if (now > -0.1 * slope) {
            high = step;
            const double share = low_slope / (low_slope - now);
            // Kept away from the ends: the slope has kinks, and a secant may stick at one.
            step = low + (high - low) * smaller(larger(share, 0.1), 0.9);
        } else if (now < 0.5 * slope && step < 1.0) {
            low = step;
            low_slope = now;
            step = 0.5 * (low + high);
        } else {
            break;
        }
    }
    return step;
}

}  // namespace fdrsvm::client
