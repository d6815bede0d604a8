#include "pair.hpp"

#include <limits>

#include "findings.hpp"

namespace fdrsvm::screening {

namespace {

// Sum of |x_i y_i|, in lanes like `dot`, so that it bounds the rounding of `dot` term by term.
double product_of_sizes(ConstVector x, ConstVector y) {
    return sum_lanes(y.size(), [&](size_t i, size_t count) {
        double sizes[kLanes] = {};
        for (size_t k = 0; k < count; ++k) sizes[k] = std::fabs(x[i + k] * y[i + k]);
        return Lanes::load(sizes);
    });
}

// The least hinge of the rows that a cut with an intercept is made of, by label: `lost` of [pair].
//
// Rows of label +1 have the mass (A - v_b)/2, those of -1 the rest, and the sums q of z = y x over
// either label add up to -v. By convexity the rows of one label lose at least what their mean
// loses, so it suffices to know how large w.q can be for either label within the limits. A constant
// that was rounded down leaves each mass up to half a step of the grid; in doubt, the client is
// believed, so that no honest answer is refused.
double least_by_label(const Cut& cut, const Place& place, const Bounds& bounds) {
    const size_t n_features = place.n_features;
    const double b = place.point[n_features], v_b = cut.slope[n_features];
    // A rounded constant may be slightly less than |v_b|, which would give one label a negative
    // mass and the other more than the whole; hence the clamps.
    const double whole = larger(cut.constant, 0.0);
    const double least_up = smaller(larger(0.5 * (cut.constant - v_b), 0.0), whole);
    const double least_down = smaller(larger(0.5 * (cut.constant + v_b), 0.0), whole);
    // Upper ends come from A itself, rounded down by a step at most, and never less than |v_b|.
    const double doubt = larger(bounds.grid, std::fabs(v_b) - cut.constant);
    const double up = larger(0.5 * (cut.constant + doubt - v_b), 0.0);
    const double down = larger(0.5 * (cut.constant + doubt + v_b), 0.0);
    // The entries of q are independent of each other: each lies in the intersection of the box of
    // label +1 and the mirrored, shifted box of label -1. So w.q is largest entry by entry.
    double highest = 0.0, lowest = 0.0, total = 0.0;
    for (size_t j = 0; j < n_features; ++j) {
        const double w = place.point[j], v = cut.slope[j], limit = bounds.slopes[j];
        const double low = larger(-up * limit, -v - down * limit);
        // An intersection that rounding has emptied is one point.
        const double high = larger(smaller(up * limit, -v + down * limit), low);
        highest += larger(w * low, w * high);
        lowest += smaller(w * low, w * high);
        total -= w * v;
    }
    // Per label: mass times the hinge at b, less the most that w.q can take off. Where 1 - b (or
    // 1 + b) is negative, more mass means less loss, so the upper end of the mass is the safe one.
    const double of_up = (b < 1.0 ? least_up : up) * (1.0 - b) - highest;
    const double of_down = (b > -1.0 ? least_down : down) * (1.0 + b) - (total - lowest);
    // The loss is a sum of two hinges in w.q, falling and rising; its minimum is the largest of 0,
    // the sum of both (the caller's A + v.w + v_b b) and each hinge alone at its end of w.q.
    return larger(of_up, of_down);
}

// `given` of [pair]: how much of epsilon ||w||_* may be missing because the cut's rows were partly
// flipped, which used up radius. Three bounds hold at once; the smallest is taken.
double given_for_flips(double norm_weight, double of_rows, const Place& place, const Radius& radius,
                       const Bounds& bounds) {
    double given = larger(radius.floor - norm_weight, 0.0) * place.size;
    // In a sum over clients kappas may differ, so only the first bound is safe.
    if (!(given > 0.0) || !bounds.is_single) return given;
    // kappa = inf: nothing can be flipped, nothing is missing.
    if (radius.flips == 0.0) return 0.0;
    const double price = radius.floor * place.size / radius.flips;  // kappa ||w||_*
    const double share = 1.0 - norm_weight / radius.floor;  // of the radius that flips used
    // Second bound: flipped rows carry a loss of at least max(1 + K/2, K) each, K the price.
    given = smaller(given, price * of_rows / larger(1.0 + 0.5 * price, price));
    // Third: flipping a row back changes its hinge by at most min(2 S, 1 + S).
    return smaller(given, share * radius.flips * smaller(2.0 * place.score, 1.0 + place.score));
}

// Between these is every risk at the place, if a hinge cut is true. `linear` is A + v.w + v_b b,
// `of_rows` the least hinge of the rows that it is made of.
Span hinge_span(const Cut& cut, double linear, double of_rows, const Place& place,
                const Radius& radius, const Bounds& bounds) {
    const double constant = cut.constant, score = place.score;
    const double of_radius = radius.floor * place.size;
    const double given = given_for_flips(cut.norm_weight, of_rows, place, radius, bounds);
    const double rest = larger(1.0 - constant - bounds.grid, 0.0);  // rows that are not in the cut
    const double lowest = of_radius - given + of_rows + rest * place.least;
    // On a box, and for sums, [pair] has no right side.
    if (radius.floor == 0.0 || !bounds.is_single) return {lowest, kInfinity, 0.0};
    double worst = constant;
    // The hinge is convex in the score, so it lies below its chord over [-S, S]: rows with the
    // cut's mean score are worst when they sit in the two outermost places.
    if (score > 0.0) {
        const double margins = (constant - linear) / score;
        worst = 0.5 * ((constant - margins) * (1.0 + score) + (constant + margins) * place.least);
    }
    // Rows outside the cut may have any loss up to 1 + S; flips, those of the cut and those at this
    // model, change at most epsilon/kappa of the mass each, and the grid hides up to a step each.
    const double outside = rest + 2.0 * (radius.flips + bounds.grid);
    return {lowest, of_radius + worst + outside * (1.0 + score), 0.0};
}

// Only a hinge cut within agreed limits says which rows it can be made of.
bool knows_rows(const Bounds& bounds) { return bounds.is_hinge && bounds.has_slopes; }

}  // namespace

Place place_of(const Points& points, size_t i, const Bounds& bounds, const Radii& radii) {
    const ConstVector point = points.models[i];
    const double size = dual_norm(point.first(radii.n_features), radii.transport);
    // Without limits no score is known; 0 then switches off every rule that would need one.
    const double score = bounds.has_slopes ? product_of_sizes(bounds.slopes, point) : 0.0;
    if (!bounds.is_hinge)
        return {point, radii.n_features, size, score, points.others[i][0], points.others[i][1]};
    return {
        point, radii.n_features, size, score, bounds.has_slopes ? larger(0.0, 1.0 - score) : 0.0,
        1.0};
}

Value value_at(const Cut& cut, const Place& place) {
    const ConstVector point = place.point;
    const double norm_term = cut.norm_weight * place.size;
    return {cut.constant + norm_term + dot(cut.slope.data(), point.data(), point.size()),
            std::fabs(cut.constant) + norm_term + product_of_sizes(cut.slope, point)};
}

Span span_at(const Cut& cut, const Place& place, const Radius& radius, const Bounds& bounds) {
    const Value cut_value = value_at(cut, place);
    const double slack = kRounding * cut_value.scale + kTiny * (1.0 + place.score);
    // What remains for other losses: a cut lies below the risk.
    if (!knows_rows(bounds)) return {cut_value.value, kInfinity, slack};
    const double linear = cut_value.value - cut.norm_weight * place.size;
    // Jensen over all rows of the cut; with an intercept also over the rows of either label, which
    // is sharper when the two labels lie far apart.
    double of_rows = larger(linear, 0.0);
    if (cut.slope.size() > place.n_features)
        of_rows = larger(of_rows, least_by_label(cut, place, bounds));
    const Span span = hinge_span(cut, linear, of_rows, place, radius, bounds);
    return {span.lowest, span.highest, slack};
}

Span rough_span(const Cut& cut, double linear, const Place& place, const Radius& radius,
                const Bounds& bounds) {
    if (knows_rows(bounds))
        return hinge_span(cut, linear, larger(linear, 0.0), place, radius, bounds);
    return {linear + cut.norm_weight * place.size, kInfinity, 0.0};
}

}  // namespace fdrsvm::screening
