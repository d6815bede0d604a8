#include "start.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rows.hpp"

namespace fdrsvm::master {

namespace {

// In the scaled problem slopes and values are about 1, so constants suit every problem. Room well
// inside the rows keeps the first weights z/slack moderate; a projection starts from a centre that
// is near the answer, hence closer to its norm row.
constexpr double kNormRoom = 10.0, kLevelledNormRoom = 0.1;  // of s above ||w||_*
constexpr double kThetaRoom = 1.0;
constexpr double kLevelRoom = 0.1;
constexpr double kLevelPrice = 100.0;
constexpr double kConePrice = 10.0;  // the cone stands for many rows
constexpr double kLeastSlack = 1e-8;

// At w, with room below s, every a and every theta_g. `values` is room for the rows.
void set_variables(const Problem& problem, ConstVector w, ConstVector offsets, Vector values,
                   Variables& v) {
    const size_t P = problem.n_normed;
    std::copy(w.begin(), w.end(), v.w());
    const double size = dual_norm(w.first(P), problem.transport);
    const double room =
        problem.levelled ? kLevelledNormRoom * (size + kLevelledNormRoom) : kNormRoom;
    // Never more than half way to the reach, which must stay a strict inequality too.
    v.s() = size + std::min(room, 0.5 * std::fabs(problem.reach - size));
    // Half of the room goes to the bounds, in equal parts, the other half stays below s: both
    // |w_p| <= a and sum a <= s (or ||a||_2 < s) are then strict.
    const double bound_room = 0.5 * (v.s() - size) / static_cast<double>(problem.n_bounds());
    for (size_t j = 0; j < problem.n_bounds(); ++j)
        v.bounds()[j] = largest_magnitude(problem.transport.group(w, j)) + bound_room;
    times_rows(problem, v, values);  // theta is still 0
    for (size_t g = 0; g < problem.n_clients(); ++g) {
        // theta above the largest cut, so every cut of the client has some slack.
        double largest = -std::numeric_limits<double>::infinity();
        for (size_t k = problem.starts[g]; k < problem.starts[g + 1]; ++k)
            largest = std::max(largest, values[k] + offsets[k]);
        v.theta()[g] = largest + kThetaRoom;
    }
}

// Multipliers that price theta right, centred client by client; returns their mean product. With
// z_k ~ 1/slack_k all products of a client are equal, and their sum is its price: stationarity in
// theta holds from the start, and Newton's method need not first repair it.
double set_multipliers(const Problem& problem, ConstVector slack, Vector z) {
    const RowPlaces at(problem);
    const double theta_price = problem.levelled ? kLevelPrice : 1.0;
    double mean = 0.0;
    for (size_t g = 0; g < problem.n_clients(); ++g) {
        const size_t start = problem.starts[g], stop = problem.starts[g + 1];
        double total = 0.0;
        for (size_t k = start; k < stop; ++k) total += 1.0 / slack[k];
        for (size_t k = start; k < stop; ++k) {
            z[k] = theta_price * problem.alphas[g] / (slack[k] * total);
            mean += slack[k] * z[k] / static_cast<double>(problem.n_cuts());
        }
    }
    // The other rows get the same product as the cuts have on average: a centred point.
    for (size_t i = problem.n_cuts(); i < at.level; ++i) z[i] = mean / slack[i];
    // Consistent with the price at which the cuts' multipliers were set.
    if (problem.levelled) z[at.level] = kLevelPrice;
    return mean;
}

}  // namespace

Iterate first_iterate(const Problem& problem, ConstVector w, ConstVector offsets) {
    const RowPlaces at(problem);
    Iterate iterate{Variables(problem), Buffer<>(at.count), Buffer<>(at.count),
                    Buffer<>(problem.cone_size(), 0.0)};
    // The slacks' memory first serves as room for the values that theta is chosen by.
    Vector slack = iterate.slack;
    set_variables(problem, w, offsets, slack, iterate.v);
    times_rows(problem, iterate.v, slack);
    // An infeasible start: rows that w exceeds (the level, the reach) get a positive slack anyway,
    // and the residual that this leaves shrinks with every step.
    for (size_t i = 0; i < at.count; ++i)
        slack[i] = std::max(-(slack[i] + offsets[i]), kLeastSlack);
    if (problem.levelled) slack[at.level] = std::max(slack[at.level], kLevelRoom);
    const double mean = set_multipliers(problem, slack, iterate.z);
    // On the cone's axis, so strictly inside it.
    iterate.cone_z[0] = kConePrice * mean / iterate.v.s();
    return iterate;
}

void gather_cone(const Problem& problem, const Variables& v, Vector out) {
    out[0] = v.s();
    std::copy_n(problem.has_bounds() ? v.bounds() : v.w(), out.size() - 1, out.data() + 1);
}

}  // namespace fdrsvm::master
