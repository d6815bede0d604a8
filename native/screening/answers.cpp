#include "answers.hpp"

#include <limits>

#include "../core/products.hpp"

namespace fdrsvm::screening {

namespace {

// Without agreed limits nothing bounds the rows, hence nothing bounds what cancelled in a client's
// sums; still, an honest cut has some correct digits where it was made. See [limits].
constexpr double kDigits = 1e-3;

// One client's answer: claimed[i] is its risk at places[i], and scales[i] the number that this is
// a difference of, or the risk itself.
struct Answer {
    std::span<const Place> places;
    ConstVector claimed;
    ConstVector scales;
    Cuts cuts;
    size_t first_cut;
    size_t n_cuts;
    Radius radius;
};

// The first rule that a cut breaks by itself; `rate` is the steepness where it was made.
//
// Every comparison has the form !(x <= limit): a nan is then a broken rule, never a kept one.
Finding judge_cut(const Cut& cut, double floor, double rate, double error, const Bounds& bounds) {
    // sigma is what flips leave of the radius, so it is at most epsilon L.
    if (!(cut.norm_weight <= floor * (1.0 + kRounding)))
        return {Rule::norm_weight, cut.norm_weight, floor};
    // A is the value of the cut at the model 0, where every client's risk is loss(0).
    if (!(cut.constant <= bounds.highest_constant * (1.0 + kRounding)))
        return {Rule::constant_high, cut.constant, bounds.highest_constant};
    // A client rounds constants down, by at most one step of the grid.
    if (!(cut.constant >= bounds.lowest_constant - error - bounds.grid))
        return {Rule::constant_low, cut.constant, bounds.lowest_constant};
    if (bounds.slopes.empty()) return {};
    // [mass]: rows of total mass A cannot add up to a slope of more than R_j A, nor can all rows
    // together exceed R_j. Mass lost to the grid is given back before the comparison.
    const double mass =
        rate * (larger(cut.constant, 0.0) * (1.0 + kRounding) + error + bounds.grid);
    const double most = smaller(1.0 + kRounding, mass);
    for (size_t j = 0; j < cut.slope.size(); ++j) {
        const double limit = bounds.slopes[j] * most, magnitude = std::fabs(cut.slope[j]);
        // No limit on a feature is no limit on its slope, whatever the mass.
        if (bounds.slopes[j] < kInfinity && !(magnitude <= limit))
            return {Rule::slope, magnitude, limit};
    }
    return {};
}

Finding judge_cuts(const Answer& answer, const Bounds& bounds) {
    // The client summed over rows whose scores are at most S; what rounding lost there the server
    // cannot see in the cut's own numbers. A hinge cut's A is a sum of masses, hence more exact.
    double largest_score = 0.0;
    for (size_t i = 0; i < answer.places.size(); ++i)
        largest_score =
            larger(largest_score, answer.places[i].score + std::fabs(answer.scales[i]));
    const double error = (bounds.is_hinge ? kTiny : kRounding) * (1.0 + largest_score);
    for (size_t k = 0; k < answer.n_cuts; ++k) {
        // Where a sum's cuts were made, each client at its own optimum, nobody knows.
        double rate = bounds.is_hinge ? 1.0 : kInfinity;
        if (k < answer.places.size()) rate = answer.places[k].steepness;
        const Cut cut = answer.cuts[answer.first_cut + k];
        const Finding finding = judge_cut(cut, answer.radius.floor, rate, error, bounds);
        if (!finding.is_kept()) return finding;
    }
    return {};
}

// [limits], "Risks": between what the best and the worst rows within the limits would give.
Finding judge_risks(const Answer& answer, const Bounds& bounds) {
    for (size_t i = 0; i < answer.places.size(); ++i) {
        const Place& place = answer.places[i];
        // The adversary may spend its whole radius on features, whatever the rows are.
        const double risk = answer.claimed[i], of_radius = answer.radius.floor * place.size;
        const double lowest = of_radius + place.least;
        const double slack =
            kRounding * (lowest + std::fabs(answer.scales[i])) + kTiny * (1.0 + place.score);
        if (!(risk >= lowest - slack)) return {Rule::risk_low, risk, lowest};
        // One row in the worst corner with the wrong label attains this; risks are rounded up.
        const double highest = bounds.highest_constant + place.score + of_radius + bounds.grid;
        if (bounds.has_slopes && !(risk <= highest + slack))
            return {Rule::risk_high, risk, highest};
    }
    return {};
}

// What a client says of its risk at one place; `scale` is the number that this is a difference of.
struct Claim {
    const Place& place;
    double risk;
    double scale;
    Radius radius;
};

// A cut against a risk; `is_own` says that it was made at that very place.
Finding judge_pair(const Cut& cut, const Claim& claim, bool is_own, const Bounds& bounds) {
    const Span span = span_at(cut, claim.place, claim.radius, bounds);
    const double slack = span.slack + kRounding * std::fabs(claim.scale);
    // The rows that made the cut have at least `lowest` and at most `highest` risk here, [pair].
    if (!(span.lowest <= claim.risk + slack)) return {Rule::above, span.lowest, claim.risk};
    if (!(claim.risk <= span.highest + slack)) return {Rule::over, claim.risk, span.highest};
    // A risk that no cut touches could be anything above the cuts: the objective rests on it.
    if (is_own && bounds.touches) {
        const double value = value_at(cut, claim.place).value;
        // Rounded apart by one step of the grid each; a blur lowers the cut further.
        double below = 2.0 * bounds.grid + bounds.blurred * (1.0 + claim.place.score);
        // Without limits nobody knows what cancelled in the client's sums, but not all digits did.
        if (!bounds.has_slopes) below += kDigits * (1.0 + std::fabs(claim.scale));
        if (!(value >= claim.risk - slack - below)) return {Rule::apart, value, claim.risk};
    }
    return {};
}

Finding judge_pairs(const Answer& answer, const Bounds& bounds) {
    // All pairs, not only each risk with its own cut: two true answers never contradict.
    for (size_t k = 0; k < answer.n_cuts; ++k)
        for (size_t i = 0; i < answer.places.size(); ++i) {
            const Claim claim = {answer.places[i], answer.claimed[i], answer.scales[i],
                                 answer.radius};
            const Finding finding =
                judge_pair(answer.cuts[answer.first_cut + k], claim, k == i, bounds);
            if (!finding.is_kept()) return finding;
        }
    return {};
}

// Cheapest rules first; the pairs rely on a cut that has already passed its own rules.
Finding judge_answer(const Answer& answer, const Bounds& bounds) {
    Finding finding = judge_cuts(answer, bounds);
    if (finding.is_kept()) finding = judge_risks(answer, bounds);
    if (finding.is_kept()) finding = judge_pairs(answer, bounds);
    return finding;
}

// Whether a cut cannot be true where a risk is; a nan is one that was not given.
Finding contradiction(const Cut& cut, const Claim& claim, const Bounds& bounds) {
    if (std::isnan(claim.risk) || std::isnan(cut.constant)) return {};
    // `is_own` is false: a cut of another round was made elsewhere and need not touch.
    Finding finding = judge_pair(cut, claim, false, bounds);
    if (!finding.is_kept()) finding.rule = Rule::contradicting;
    return finding;
}

// A client's new risk against its own old cuts. `slope_products` are their v.w + v_b b. The two
// labels within an old cut are not separated at first: the certificate's own check does that for
// the cuts that prove a bound, and here it would cost a pass over the features for every cut.
Finding judge_past(const Past& past, size_t client, ConstVector slope_products, const Claim& claim,
                   const Bounds& bounds) {
    const size_t n_clients = past.constants.columns;
    for (size_t t = 0; t < past.constants.rows; ++t) {
        const size_t row = t * n_clients + client;
        const Cut cut = {past.constants[t][client], past.slopes[row], past.norm_weights[t][client]};
        const double linear = cut.constant + slope_products[row];
        const Span span = rough_span(cut, linear, claim.place, claim.radius, bounds);
        // Nearly all cuts end here. Only what lies outside the rough span is checked by the exact
        // rule with its slack; a nan (an absent client) also goes there and is recognised.
        if (span.lowest <= claim.risk && claim.risk <= span.highest) continue;
        const Finding finding = contradiction(cut, claim, bounds);
        if (!finding.is_kept()) return finding;
    }
    return {};
}

Buffer<Place> places_of(const Points& points, const Bounds& bounds, const Radii& radii) {
    Buffer<Place> places(points.models.rows);
    for (size_t i = 0; i < places.size(); ++i) places[i] = place_of(points, i, bounds, radii);
    return places;
}

}  // namespace

void judge_answers(const Bounds& bounds, const Radii& radii, const Points& points,
                   const Answers& answers, ConstVector penalties, std::span<Finding> findings) {
    const Buffer<Place> places = places_of(points, bounds, radii);
    Buffer<> squares(places.size()), losses(places.size());
    for (size_t i = 0; i < places.size(); ++i)
        squares[i] = dot(places[i].point.data(), places[i].point.data(), radii.n_features);
    size_t first_cut = 0;
    for (size_t k = 0; k < answers.clients.size(); ++k) {
        const size_t client = answers.clients[k], n_cuts = answers.counts[k];
        const ConstVector risks = answers.risks[k];
        Answer answer = {places, risks, risks, answers.cuts, first_cut, n_cuts, radii[client]};
        // A baseline's objective is a mean loss plus a ridge term that the server can compute: the
        // rules are about the loss. `scales` stays the objective, since its rounding remains.
        if (!penalties.empty()) {
            for (size_t i = 0; i < places.size(); ++i)
                losses[i] = risks[i] - penalties[client] * squares[i];
            answer.claimed = losses;
            answer.radius = Radius{};  // their loss is the plain mean
        }
        findings[k] = judge_answer(answer, bounds);
        first_cut += n_cuts;
    }
}

void find_contradictions(const Bounds& bounds, const Radii& radii, const Points& points,
                         ConstMatrix risks, const OwnedCuts& known, std::span<Finding> findings) {
    for (Finding& each : findings) each = {};
    for (size_t i = 0; i < points.models.rows; ++i) {
        const Place place = place_of(points, i, bounds, radii);
        for (size_t k = 0; k < known.owners.size(); ++k) {
            const size_t g = known.owners[k];
            const double risk = risks[g][i];
            // The first contradiction of a client suffices: it is then left out as a whole.
            if (findings[g].is_kept())
                findings[g] = contradiction(known.cuts[k], {place, risk, risk, radii[g]}, bounds);
        }
    }
}

void judge_round(const Bounds& bounds, const Radii& radii, const Points& points,
                 const Answers& answers, const Past& past, std::span<Finding> findings) {
    Points asked = points;
    asked.models.rows = 1;
    judge_answers(bounds, radii, asked, answers, {}, findings);
    const Place place = place_of(points, 0, bounds, radii);
    const Place best = place_of(points, 1, bounds, radii);
    // All old cuts at the new model in one product, before any rule looks at them.
    Buffer<> slope_products(past.slopes.rows);
    times(past.slopes, place.point, slope_products);
    for (size_t k = 0; k < answers.clients.size(); ++k) {
        if (!findings[k].is_kept()) continue;
        const size_t g = answers.clients[k];
        const double risk = answers.risks[k][0], best_risk = past.best_risks[g];
        // The new cut against the one old risk that the objective rests on, the best model's; and
        // the new risk against every old cut, since any of them may prove the bound.
        findings[k] =
            contradiction(answers.cuts[k], {best, best_risk, best_risk, radii[g]}, bounds);
        if (findings[k].is_kept())
            findings[k] =
                judge_past(past, g, slope_products, {place, risk, risk, radii[g]}, bounds);
    }
}

}  // namespace fdrsvm::screening
