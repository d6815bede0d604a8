#include "pair.hpp"

#include <limits>

#include "findings.hpp"

namespace fdrsvm::screening {

namespace {

double product_of_sizes(ConstVector x, ConstVector y) {
    return sum_lanes(y.size(), [&](size_t i, size_t count) {
        double sizes[kLanes] = {};
        for (size_t k = 0; k < count; ++k) sizes[k] = std::fabs(x[i + k] * y[i + k]);
        return Lanes::load(sizes);
    });
}

// The least hinge of the rows that a cut with an intercept is made of, each label apart.
//
// Rows of label +1 have the mass (A - v_b)/2, those of -1 the rest, and sums q of z = y x over them
// add up to -v. How large can w.q be for either label, within the limits? A constant that was
// rounded down leaves each mass up to half a step of the grid, and what is in doubt is given.
double least_by_label(const Cut& cut, const Place& place, const Bounds& bounds) {
    const size_t n_features = place.n_features;
    const double b = place.point[n_features], v_b = cut.slope[n_features];
    // A constant that was rounded may be a little less than |v_b|; no label has more than all.
    const double whole = larger(cut.constant, 0.0);
    const double least_up = smaller(larger(0.5 * (cut.constant - v_b), 0.0), whole);
    const double least_down = smaller(larger(0.5 * (cut.constant + v_b), 0.0), whole);
    // Upper ends come from A itself, rounded down by a step at most, and never less than |v_b|.
    const double doubt = larger(bounds.grid, std::fabs(v_b) - cut.constant);
    const double up = larger(0.5 * (cut.constant + doubt - v_b), 0.0);
    const double down = larger(0.5 * (cut.constant + doubt + v_b), 0.0);
    double highest = 0.0, lowest = 0.0, total = 0.0;
    for (size_t j = 0; j < n_features; ++j) {
        const double w = place.point[j], v = cut.slope[j], limit = bounds.slopes[j];
        const double low = larger(-up * limit, -v - down * limit);
        const double high = larger(smaller(up * limit, -v + down * limit), low);
        highest += larger(w * low, w * high);
        lowest += smaller(w * low, w * high);
        total -= w * v;
    }
    const double of_up = (b < 1.0 ? least_up : up) * (1.0 - b) - highest;
    const double of_down = (b > -1.0 ? least_down : down) * (1.0 + b) - (total - lowest);
    return larger(of_up, of_down);
}

// What of the radius's part of the risk may be missing where the cut spends it on flipped labels.
double given_for_flips(double norm_weight, double of_rows, const Place& place, const Radius& radius,
                       const Bounds& bounds) {
    double given = larger(radius.floor - norm_weight, 0.0) * place.size;
    if (!(given > 0.0) || !bounds.is_single) return given;
    if (radius.flips == 0.0) return 0.0;
    const double price = radius.floor * place.size / radius.flips;  // kappa ||w||_*
    const double share = 1.0 - norm_weight / radius.floor;
    given = smaller(given, price * of_rows / larger(1.0 + 0.5 * price, price));
    return smaller(given, share * radius.flips * smaller(2.0 * place.score, 1.0 + place.score));
}

// Between these is every risk at the place, if a hinge cut is true. `linear` is A + v.w + v_b b,
// `of_rows` the least hinge of the rows that it is made of.
Span hinge_span(const Cut& cut, double linear, double of_rows, const Place& place,
                const Radius& radius, const Bounds& bounds) {
    const double constant = cut.constant, score = place.score;
    const double moved = radius.floor * place.size;
    const double given = given_for_flips(cut.norm_weight, of_rows, place, radius, bounds);
    const double rest = larger(1.0 - constant - bounds.grid, 0.0);  // not in the cut: rows too
    const double lowest = moved - given + of_rows + rest * place.least;
    if (radius.floor == 0.0 || !bounds.is_single) return {lowest, kInfinity, 0.0};
    double worst = constant;
    if (score > 0.0) {  // rows with that mean score are worst in the two outermost places
        const double margins = (constant - linear) / score;
        worst = 0.5 * ((constant - margins) * (1.0 + score) + (constant + margins) * place.least);
    }
    const double outside = rest + 2.0 * (radius.flips + bounds.grid);
    return {lowest, moved + worst + outside * (1.0 + score), 0.0};
}

bool knows_rows(const Bounds& bounds) { return bounds.is_hinge && bounds.has_slopes; }

}  // namespace

Place place_of(const Points& points, size_t i, const Bounds& bounds, const Radii& radii) {
    const ConstVector point = points.models[i];
    const double size = dual_norm(point.first(radii.n_features), radii.norm);
    const double score = bounds.has_slopes ? product_of_sizes(bounds.slopes, point) : 0.0;
    if (!bounds.is_hinge)
        return {point, radii.n_features, size, score, points.others[i][0], points.others[i][1]};
    return {
        point, radii.n_features, size, score, bounds.has_slopes ? larger(0.0, 1.0 - score) : 0.0,
        1.0};
}

Value value_at(const Cut& cut, const Place& place) {
    const ConstVector point = place.point;
    const double moved = cut.norm_weight * place.size;
    return {cut.constant + moved + dot(cut.slope.data(), point.data(), point.size()),
            std::fabs(cut.constant) + moved + product_of_sizes(cut.slope, point)};
}

Span span_at(const Cut& cut, const Place& place, const Radius& radius, const Bounds& bounds) {
    const Value found = value_at(cut, place);
    const double slack = kRounding * found.scale + kTiny * (1.0 + place.score);
    if (!knows_rows(bounds)) return {found.value, kInfinity, slack};
    const double linear = found.value - cut.norm_weight * place.size;
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
