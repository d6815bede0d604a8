#include "lagrangian.hpp"

#include <algorithm>
#include <cmath>

namespace fdrsvm::client {

Space::Space(const Terms& given, const double* linear_term, double constant_)
    : terms(given),
      n(given.n_padded),
      q(padded(given.width + 1)),
      constant(constant_),
      over_samples_(5, n),
      over_unknowns_(16, q) {
    margins = over_samples_.next();
    margin_changes = over_samples_.next();
    band.sample = Buffer<std::int32_t>(n);
    band.place = over_samples_.next();
    band.weight = over_samples_.next();
    band.tilt = over_samples_.next();
    curvature = over_unknowns_.next();
    linear = over_unknowns_.next();
    is_normed = over_unknowns_.next();
    square_price = over_unknowns_.next();
    flat_price = over_unknowns_.next();
    flat_reach = over_unknowns_.next();
    gradient = over_unknowns_.next();
    direction = over_unknowns_.next();
    shifted = over_unknowns_.next();
    pull = over_unknowns_.next();
    projected = over_unknowns_.next();
    own = over_unknowns_.next();
    diagonal = over_unknowns_.next();
    cone = {over_unknowns_.next(), {over_unknowns_.next(), over_unknowns_.next()}, {0.0, 0.0}};
    for (size_t j = 0; j < terms.width; ++j) {
        curvature[j] = terms.curvature(j);
        linear[j] = linear_term[j];
        is_normed[j] = j < terms.n_normed ? 1.0 : 0.0;
        // See `stationarity_price`: one of the two prices is 0, so both can be added everywhere
        // without a branch.
        const bool is_curved = curvature[j] > 0.0;
        square_price[j] = is_curved ? 0.5 / curvature[j] : 0.0;
        flat_price[j] = is_curved ? 0.0 : 1.0;
        flat_reach[j] = terms.reach;
    }
    // lam is the last unknown: linear with price epsilon, no curvature, may move by one unit.
    linear[terms.width] = -terms.epsilon;
    flat_price[terms.width] = flat_reach[terms.width] = 1.0;
}

namespace {

// By lanes for linf, where it is a plain sum and the mask removes the intercept and lam.
double dual_norm_of_w(const Space& space, const Point& point) {
    if (space.terms.norm == Norm::linf) {
        Lanes total = Lanes::all(0.0);
        for (size_t j = 0; j < space.q; j += kLanes)
            total += magnitude(Lanes::load(point.w.data() + j)) * Lanes::load(space.is_normed + j);
        return total.sum();
    }
    return dual_norm({point.w.data(), space.terms.n_normed}, space.terms.norm);
}

struct SampleSums {
    double flipped;
    double slack;
    double loss;
};

// Multipliers plus penalty times the violation, for eight samples: what the projections are given.
struct Residuals {
    Lanes kept;
    Lanes flipped;
};

// `price` is kappa lam.
template <bool Flips>
FDRSVM_INLINE Residuals residuals(const Space& space, const Stage& stage, const Point& point,
                                  size_t n, const Lanes& margin, const Lanes& price) {
    const Lanes one = Lanes::all(1.0);
    const Lanes weight = Lanes::all(stage.penalty) * Lanes::load(space.terms.mass + n);
    const Lanes kept = Lanes::load(point.kept.data() + n) + weight * (one - margin);
    if constexpr (!Flips) return {kept, Lanes::all(0.0)};
    return {kept, Lanes::load(point.flipped.data() + n) + weight * (one + margin - price)};
}

FDRSVM_INLINE void add_to_band(Band& band, size_t n, const Lanes& place) {
    if (!any(below(Lanes::all(kVertex), place))) return;
    double places[kLanes];
    place.store(places);
    // Every sample is written where the next one that counts belongs, and the count decides whether
    // it stays: whether a sample is near a kink is close to random, so a branch would mispredict.
    for (size_t k = 0; k < kLanes; ++k) {
        band.sample[band.count] = static_cast<std::int32_t>(n + k);
        band.place[band.count] = places[k];
        band.count += places[k] != kVertex;
    }
}

// One pass over samples and rows, block by block, so that a block's rows are fetched once for the
// product: sums over the samples, and rows' (kept - flipped) for the gradient. `lam` prices the
// losses and is at least ||w||_*, which the objective needs; the multipliers use the point's own
// lam, which need not be feasible before the end.
template <bool Flips, bool Project>
SampleSums look_at_samples(Space& space, const Stage& stage, const Point& point, double lam,
                           double step) {
    const Lanes zero = Lanes::all(0.0), one = Lanes::all(1.0), steps = Lanes::all(step);
    const Lanes price = Lanes::all(space.terms.kappa * lam);
    const Lanes own_price = Lanes::all(space.terms.kappa * point.w[space.terms.width]);
    Lanes total_flipped = zero, total_slack = zero, total_loss = zero;
    TransposedSum product(*space.terms.rows, space.gradient);
    double signed_masses[TransposedSum::kBlock];
    if constexpr (Project) space.band.count = 0;
    for (size_t first = 0; first < space.n; first += TransposedSum::kBlock) {
        const size_t last = std::min(first + TransposedSum::kBlock, space.n);
        for (size_t n = first; n < last; n += kLanes) {
            Lanes margin = Lanes::load(space.margins + n);
            // The line search's step is applied here, where the margins are read anyway.
            if (step != 0.0) {
                margin += steps * Lanes::load(space.margin_changes + n);
                margin.store(space.margins + n);
            }
            const Lanes mass = Lanes::load(space.terms.mass + n);
            Lanes kept, flipped;
            if constexpr (Project) {
                const auto shifted = residuals<Flips>(space, stage, point, n, margin, own_price);
                const auto projected = project_samples<Flips>(shifted.kept, shifted.flipped, mass);
                kept = projected.kept;
                flipped = projected.flipped;
                add_to_band(space.band, n, places<Flips>(shifted.kept, shifted.flipped, mass));
            } else {
                kept = Lanes::load(point.kept.data() + n);
                flipped = Lanes::load(point.flipped.data() + n);
            }
            (kept - flipped).store(signed_masses + (n - first));
            const Lanes kept_loss = one - margin, flipped_loss = one + margin - price;
            Lanes loss = larger(kept_loss, zero);
            if constexpr (Flips) loss = larger(flipped_loss, loss);
            loss = loss * mass;
            total_flipped += flipped;
            total_loss += loss;
            // Each sample's term is nonnegative for feasible multipliers: a loss is the largest of
            // its pieces. Summed sample by sample it does not cancel, unlike value minus dual.
            total_slack += loss - kept * kept_loss - flipped * flipped_loss;
        }
        product.add(first, last - first, signed_masses);
    }
    return {total_flipped.sum(), total_slack.sum(), total_loss.sum()};
}

// What a gradient g that is not 0 may be worth: minimising over a coordinate with curvature c gains
// g^2 / (2 c) at most; without curvature |g| per unit of the distance it may have to go, which
// [repair] pays by scaling the multipliers.
FDRSVM_INLINE Lanes stationarity_price(const Space& space, size_t j, const Lanes& gradient,
                                       const Lanes& w) {
    const Lanes far = magnitude(w) + Lanes::load(space.flat_reach + j);
    return gradient * gradient * Lanes::load(space.square_price + j) +
           magnitude(gradient) * far * Lanes::load(space.flat_price + j);
}

// The rest of a view, once the pull (and sigma, in `cone`) are known.
template <bool Project>
View look_with(Space& space, const Stage& stage, const Point& point, const double* pull,
               const ConeProjection& cone, double step) {
    const Terms& terms = space.terms;
    const size_t last = terms.width;
    // The objective at the feasible lam >= ||w||_*: the value then is one of the true problem.
    const double lam = larger(dual_norm_of_w(space, point), point.w[last]);
    const SampleSums sums = terms.flips
                                ? look_at_samples<true, Project>(space, stage, point, lam, step)
                                : look_at_samples<false, Project>(space, stage, point, lam, step);
    // The rows' product has only the padded width of (w, b); lam's entry comes from the sums.
    double* gradient = space.gradient;
    std::fill(gradient + padded(last), gradient + space.q, 0.0);
    gradient[last] = terms.kappa * sums.flipped + cone.sigma;
    const Lanes half = Lanes::all(0.5);
    Lanes pulled = Lanes::all(0.0), quadratic = pulled, price = pulled, pulled_price = pulled;
    for (size_t j = 0; j < space.q; j += kLanes) {
        const Lanes w = Lanes::load(point.w.data() + j), pull_j = Lanes::load(pull + j);
        const Lanes curvature = Lanes::load(space.curvature + j) * w;
        const Lanes linear = Lanes::load(space.linear + j);
        const Lanes slope = curvature - linear - Lanes::load(gradient + j) + pull_j;
        const Lanes prox = Lanes::load(stage.prox + j) * (w - Lanes::load(stage.anchor + j));
        (slope + prox).store(gradient + j);
        pulled += pull_j * w;
        quadratic += (half * curvature - linear) * w;
        // Two prices: the gap knows no proximal term, but a stage is over when its own gradient,
        // with that term, is small.
        price += stationarity_price(space, j, slope, w);
        pulled_price += stationarity_price(space, j, slope + prox, w);
    }
    View view;
    view.slack = cone.sigma * lam - pulled.sum() + sums.slack;
    view.value =
        quadratic.sum() + terms.epsilon * (lam - point.w[last]) + space.constant + sums.loss;
    view.price = price.sum();
    view.pulled_price = pulled_price.sum();
    view.cone = cone;
    return view;
}

// Computed again rather than stored by every look: a stage looks several times and settles once.
template <bool Flips>
void settle_samples(const Space& space, const Stage& stage, Point& point) {
    const Lanes price = Lanes::all(space.terms.kappa * point.w[space.terms.width]);
    for (size_t n = 0; n < space.n; n += kLanes) {
        const Lanes margin = Lanes::load(space.margins + n);
        const auto shifted = residuals<Flips>(space, stage, point, n, margin, price);
        const auto projected = project_samples<Flips>(shifted.kept, shifted.flipped,
                                                      Lanes::load(space.terms.mass + n));
        projected.kept.store(point.kept.data() + n);
        projected.flipped.store(point.flipped.data() + n);
    }
}

}  // namespace

View look(Space& space, const Stage& stage, const Point& point, double step) {
    const Lanes cone_penalty = Lanes::all(stage.cone_penalty);
    for (size_t j = 0; j < space.q; j += kLanes) {
        const Lanes w = Lanes::load(point.w.data() + j) * Lanes::load(space.is_normed + j);
        (Lanes::load(point.pull.data() + j) + cone_penalty * w).store(space.shifted + j);
    }
    const double shifted_sigma = point.sigma - stage.cone_penalty * point.w[space.terms.width];
    const ConeProjection cone =
        project_cone(space.shifted, space.q, shifted_sigma, space.terms.norm, space.pull);
    return look_with<true>(space, stage, point, space.pull, cone, step);
}

View look_as_is(Space& space, const Stage& stage, const Point& point) {
    return look_with<false>(space, stage, point, point.pull.data(), {point.sigma, 0.0}, 0.0);
}

void settle(const Space& space, const Stage& stage, double sigma, Point& point) {
    if (space.terms.flips)
        settle_samples<true>(space, stage, point);
    else
        settle_samples<false>(space, stage, point);
    std::copy_n(space.pull, space.q, point.pull.data());
    point.sigma = sigma;
}

}  // namespace fdrsvm::client
