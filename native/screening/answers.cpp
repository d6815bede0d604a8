#include "answers.hpp"

#include <limits>

#include "../core/products.hpp"

namespace fdrsvm::screening {

namespace {

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
Finding judge_cut(const Cut& cut, double floor, double rate, double error, const Bounds& bounds) {
    if (!(cut.norm_weight <= floor * (1.0 + kRounding)))
        return {Rule::norm_weight, cut.norm_weight, floor};
    if (!(cut.constant <= bounds.highest_constant * (1.0 + kRounding)))
        return {Rule::constant_high, cut.constant, bounds.highest_constant};
    if (!(cut.constant >= bounds.lowest_constant - error - bounds.grid))
        return {Rule::constant_low, cut.constant, bounds.lowest_constant};
    if (bounds.slopes.empty()) return {};
    const double mass =
        rate * (larger(cut.constant, 0.0) * (1.0 + kRounding) + error + bounds.grid);
    const double most = smaller(1.0 + kRounding, mass);
    for (size_t j = 0; j < cut.slope.size(); ++j) {
        const double limit = bounds.slopes[j] * most, found = std::fabs(cut.slope[j]);
        // No limit on a feature is no limit on its slope, whatever the mass.
        if (bounds.slopes[j] < kInfinity && !(found <= limit)) return {Rule::slope, found, limit};
    }
    return {};
}

Finding judge_cuts(const Answer& answer, const Bounds& bounds) {
    double reach = 0.0;
    for (size_t i = 0; i < answer.places.size(); ++i)
        reach = larger(reach, answer.places[i].score + std::fabs(answer.scales[i]));
    const double error = (bounds.is_hinge ? kTiny : kRounding) * (1.0 + reach);
    for (size_t k = 0; k < answer.n_cuts; ++k) {
        // Where a sum's cuts were made, each client at its own optimum, nobody knows.
        double rate = bounds.is_hinge ? 1.0 : kInfinity;
        if (k < answer.places.size()) rate = answer.places[k].steepness;
        const Cut cut = answer.cuts[answer.first_cut + k];
        const Finding found = judge_cut(cut, answer.radius.floor, rate, error, bounds);
        if (!found.is_kept()) return found;
    }
    return {};
}

Finding judge_risks(const Answer& answer, const Bounds& bounds) {
    for (size_t i = 0; i < answer.places.size(); ++i) {
        const Place& place = answer.places[i];
        const double risk = answer.claimed[i], moved = answer.radius.floor * place.size;
        const double lowest = moved + place.least;
        const double slack =
            kRounding * (lowest + std::fabs(answer.scales[i])) + kTiny * (1.0 + place.score);
        if (!(risk >= lowest - slack)) return {Rule::risk_low, risk, lowest};
        const double highest = bounds.highest_constant + place.score + moved + bounds.grid;
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
    if (!(span.lowest <= claim.risk + slack)) return {Rule::above, span.lowest, claim.risk};
    if (!(claim.risk <= span.highest + slack)) return {Rule::over, claim.risk, span.highest};
    if (is_own && bounds.touches) {
        const double value = value_at(cut, claim.place).value;
        double below = 2.0 * bounds.grid + bounds.blurred * (1.0 + claim.place.score);
        // Without limits nobody knows what cancelled in the client's sums, but not all digits did.
        if (!bounds.has_slopes) below += kDigits * (1.0 + std::fabs(claim.scale));
        if (!(value >= claim.risk - slack - below)) return {Rule::apart, value, claim.risk};
    }
    return {};
}

Finding judge_pairs(const Answer& answer, const Bounds& bounds) {
    for (size_t k = 0; k < answer.n_cuts; ++k)
        for (size_t i = 0; i < answer.places.size(); ++i) {
            const Claim claim = {answer.places[i], answer.claimed[i], answer.scales[i],
                                 answer.radius};
            const Finding found =
                judge_pair(answer.cuts[answer.first_cut + k], claim, k == i, bounds);
            if (!found.is_kept()) return found;
        }
    return {};
}

Finding judge_answer(const Answer& answer, const Bounds& bounds) {
    Finding found = judge_cuts(answer, bounds);
    if (found.is_kept()) found = judge_risks(answer, bounds);
    if (found.is_kept()) found = judge_pairs(answer, bounds);
    return found;
}

// Whether a cut cannot be true where a risk is; a nan is one that was not given.
Finding contradiction(const Cut& cut, const Claim& claim, const Bounds& bounds) {
    if (std::isnan(claim.risk) || std::isnan(cut.constant)) return {};
    Finding found = judge_pair(cut, claim, false, bounds);
    if (!found.is_kept()) found.rule = Rule::contradicting;
    return found;
}

// A client's new risk against its own old cuts. `falls` are their v.w + v_b b. The labels of old
// cuts are not told apart at first: of those that prove a bound the certificate's own check does.
Finding judge_past(const Past& past, size_t client, ConstVector falls, const Claim& claim,
                   const Bounds& bounds) {
    const size_t n_clients = past.constants.columns;
    for (size_t t = 0; t < past.constants.rows; ++t) {
        const size_t row = t * n_clients + client;
        const Cut cut = {past.constants[t][client], past.slopes[row], past.norm_weights[t][client]};
        const double linear = cut.constant + falls[row];
        const Span span = rough_span(cut, linear, claim.place, claim.radius, bounds);
        if (span.lowest <= claim.risk && claim.risk <= span.highest) continue;
        const Finding found = contradiction(cut, claim, bounds);
        if (!found.is_kept()) return found;
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
                   const Answers& answers, ConstVector penalties, std::span<Finding> found) {
    const Buffer<Place> places = places_of(points, bounds, radii);
    Buffer<> squares(places.size()), losses(places.size());
    for (size_t i = 0; i < places.size(); ++i)
        squares[i] = dot(places[i].point.data(), places[i].point.data(), radii.n_features);
    size_t first_cut = 0;
    for (size_t k = 0; k < answers.clients.size(); ++k) {
        const size_t client = answers.clients[k], n_cuts = answers.counts[k];
        const ConstVector risks = answers.risks[k];
        Answer answer = {places, risks, risks, answers.cuts, first_cut, n_cuts, radii[client]};
        if (!penalties.empty()) {
            for (size_t i = 0; i < places.size(); ++i)
                losses[i] = risks[i] - penalties[client] * squares[i];
            answer.claimed = losses;
            answer.radius = Radius{};  // their loss is the plain mean
        }
        found[k] = judge_answer(answer, bounds);
        first_cut += n_cuts;
    }
}

void find_contradictions(const Bounds& bounds, const Radii& radii, const Points& points,
                         ConstMatrix risks, const OwnedCuts& known, std::span<Finding> found) {
    for (Finding& each : found) each = {};
    for (size_t i = 0; i < points.models.rows; ++i) {
        const Place place = place_of(points, i, bounds, radii);
        for (size_t k = 0; k < known.owners.size(); ++k) {
            const size_t g = known.owners[k];
            const double risk = risks[g][i];
            if (found[g].is_kept())
                found[g] = contradiction(known.cuts[k], {place, risk, risk, radii[g]}, bounds);
        }
    }
}

void judge_round(const Bounds& bounds, const Radii& radii, const Points& points,
                 const Answers& answers, const Past& past, std::span<Finding> found) {
    Points asked = points;
    asked.models.rows = 1;
    judge_answers(bounds, radii, asked, answers, {}, found);
    const Place place = place_of(points, 0, bounds, radii);
    const Place best = place_of(points, 1, bounds, radii);
    Buffer<> falls(past.slopes.rows);
    times(past.slopes, place.point, falls);
    for (size_t k = 0; k < answers.clients.size(); ++k) {
        if (!found[k].is_kept()) continue;
        const size_t g = answers.clients[k];
        const double risk = answers.risks[k][0], best_risk = past.best_risks[g];
        found[k] = contradiction(answers.cuts[k], {best, best_risk, best_risk, radii[g]}, bounds);
        if (found[k].is_kept())
            found[k] = judge_past(past, g, falls, {place, risk, risk, radii[g]}, bounds);
    }
}

}  // namespace fdrsvm::screening
