#include <algorithm>

#include "lane_maths.hpp"
#include "risk.hpp"

namespace fdrsvm::risk {

namespace {

// Gains that are sorted to guess where the threshold is: then only the gains near it are collected,
// and quickselect does not have to copy all of them.
constexpr size_t kSampled = 512;
constexpr size_t kSampleAbove = 8 * kSampled;

double middle_of(double a, double b, double c) {
    return larger(smaller(a, b), smaller(larger(a, b), c));
}

// Gains with their masses, to be reordered; two arrays rather than pairs, so that the collecting
// loop is plain stores.
struct Weighted {
    Buffer<> value, weight;
    size_t size = 0;

    explicit Weighted(size_t capacity) : value(capacity), weight(capacity) {}
    void push(double gain, double mass) {
        value[size] = gain;
        weight[size++] = mass;
    }
    void swap(size_t i, size_t j) {
        std::swap(value[i], value[j]);
        std::swap(weight[i], weight[j]);
    }
};

// Weighted selection from above, O(N) on average, [flips]. With what is already `above`, all masses
// together exceed the budget, so the threshold lies among the candidates. A pivot from three places
// keeps sorted input fast.
Threshold quickselect(Weighted& all, double above, double budget) {
    size_t start = 0, stop = all.size;
    while (true) {
        const double pivot =
            middle_of(all.value[start], all.value[(start + stop) / 2], all.value[stop - 1]);
        // Three-way partition: larger, tied, smaller. Ties are common (margins beyond 1 gain 1 + m,
        // and rows repeat), and with two ways they would make it quadratic.
        size_t i = start, first_tied = start, first_smaller = stop;
        Total heavy;
        double tied = 0.0;
        while (i < first_smaller) {
            if (all.value[i] > pivot) {
                heavy.add(all.weight[i]);
                all.swap(i++, first_tied++);
            } else if (all.value[i] < pivot) {
                all.swap(i, --first_smaller);
            } else {
                tied += all.weight[i++];
            }
        }
        if (above + heavy.sum > budget) {
            stop = first_tied;
        } else if (above + heavy.sum + tied > budget || first_smaller == stop) {
            return {pivot, above + heavy.sum, tied};
        } else {
            // Summed in the order of the comparison above: rounded differently, it might exceed the
            // budget with nothing left to choose from.
            above = above + heavy.sum + tied;
            start = first_smaller;
        }
    }
}

// Mass of the gains above a bound. `Gains` gives eight gains from a place on.
template <class Gains>
double mass_above(const Gains& gains, ConstVector mass, double bound) {
    LaneTotal total;
    const Lanes limit = Lanes::all(bound);
    for (size_t n = 0; n < mass.size(); n += kLanes) {
        const size_t count = std::min(kLanes, mass.size() - n);
        total.add(only(is_above(gains(n, count), limit), load_up_to(mass.data() + n, count)));
    }
    return total.sum();
}

// Where the threshold is likely to be, by a few of the gains: from just above to just below.
struct Guess {
    double low, high;
};

template <class Gains>
Guess guess_threshold(const Gains& gains, ConstVector mass, double budget, double floor) {
    Buffer<> sample(kSampled);
    const size_t stride = mass.size() / kSampled;
    for (size_t i = 0; i < kSampled; ++i) sample[i] = gains.at(i * stride);
    std::sort(sample.data(), sample.data() + kSampled, [](double a, double b) { return a > b; });
    // Three standard deviations of a share, as places in the sorted sample. A wrong guess is found
    // out by the caller and costs only time.
    const double share = std::min(budget, 1.0), spread = 3.0 * std::sqrt(share * (1.0 - share));
    const double places = kSampled, width = spread * std::sqrt(places) + 2.0;
    const double first = share * places - width, last = share * places + width;
    return {last < places - 1.0 ? larger(floor, sample[static_cast<size_t>(last)]) : floor,
            first >= 0.0 ? sample[static_cast<size_t>(first)] : kInfinity};
}

// Gains in (low, high], with their masses. Counted first, so that the memory is as small as it can
// be; both passes are without branches.
template <class Gains>
Weighted collect(const Gains& gains, ConstVector mass, Guess range) {
    size_t count = 0;
    for (size_t n = 0; n < mass.size(); ++n) {
        const double gain = gains.at(n);
        count += (gain > range.low) & (gain <= range.high);
    }
    Weighted candidates(count + 1);  // one place more, for what is written and not kept
    for (size_t n = 0; n < mass.size(); ++n) {
        const double gain = gains.at(n);
        candidates.value[candidates.size] = gain;
        candidates.weight[candidates.size] = mass[n];
        candidates.size += (gain > range.low) & (gain <= range.high);
    }
    return candidates;
}

template <class Gains>
Threshold find_quantile(const Gains& gains, ConstVector mass, double budget, double floor) {
    // If no more mass than the budget gains more than moving features does, nothing is selected.
    const double all = mass_above(gains, mass, floor);
    if (all <= budget) return {floor, all, 0.0};
    Guess range = {floor, kInfinity};
    double above = 0.0;
    if (mass.size() > kSampleAbove) {
        range = guess_threshold(gains, mass, budget, floor);
        above = range.high < kInfinity ? mass_above(gains, mass, range.high) : 0.0;
        // The guess is used only if the threshold provably lies within it: the mass above its upper
        // end is within the budget, the mass above its lower end is not.
        const bool holds = above <= budget && range.low < range.high &&
                           (range.low == floor || mass_above(gains, mass, range.low) > budget);
        if (!holds) range = {floor, kInfinity}, above = 0.0;
    }
    Weighted candidates = collect(gains, mass, range);
    if (candidates.size == 0) return {range.high, above, 0.0};
    return quickselect(candidates, above, budget);
}

struct GivenGains {
    ConstVector values;

    double at(size_t n) const { return values[n]; }
    Lanes operator()(size_t n, size_t count) const { return load_up_to(values.data() + n, count); }
};

// What a flip gains under max(floor, 1 - margin).
struct HingeGains {
    const double* margins;
    double floor;

    double at(size_t n) const {
        return larger(1.0 + margins[n], floor) - larger(1.0 - margins[n], floor);
    }
    Lanes of(const Lanes& margin) const {
        const Lanes one = Lanes::all(1.0), least = Lanes::all(floor);
        return larger(one + margin, least) - larger(one - margin, least);
    }
    Lanes operator()(size_t n, size_t count) const { return of(load_up_to(margins + n, count)); }
};

// The multiplier's part of a worst case by flips.
struct Terms {
    FlipRule rule;
    double multiplier, rest, paid, toll;
};

template <class Gains>
Terms settle_terms(const Gains& gains, ConstVector mass, const Ball& ball, double least) {
    // Trusted labels: no flip, and the whole radius moves features at the least multiplier.
    Terms terms{{kInfinity, 0.0, 0.0}, least, ball.epsilon, ball.epsilon * least, kInfinity};
    if (ball.kappa == kInfinity) return terms;
    const double budget = ball.epsilon / ball.kappa, floor = ball.kappa * least;
    terms.rule = flip_rule(find_quantile(gains, mass, budget, floor), budget, floor);
    // kappa lam* is the threshold. Above the floor, flips spend the whole radius and features do
    // not move; at the floor the rest of the radius moves features, at ||w||_* per unit.
    terms.toll = terms.rule.threshold;
    if (terms.toll > floor) {
        terms.multiplier = terms.toll / ball.kappa;
        terms.rest = 0.0;
        terms.paid = terms.toll * budget;
    } else {
        terms.rest = larger(ball.epsilon - ball.kappa * terms.rule.flipped, 0.0);
    }
    return terms;
}

void store_up_to(const Lanes& lanes, double* to, size_t count) {
    if (count == kLanes) return lanes.store(to);
    double copies[kLanes];
    lanes.store(copies);
    std::copy_n(copies, count, to);
}

}  // namespace

Threshold upper_quantile(ConstVector gains, ConstVector mass, double budget, double floor) {
    return find_quantile(GivenGains{gains}, mass, budget, floor);
}

FlipRule flip_rule(const Threshold& threshold, double budget, double floor) {
    // Tied samples share one fraction, so that the subgradient does not depend on their order.
    double fraction = 0.0;
    if (threshold.at > floor && threshold.tied > 0.0)
        fraction = smaller(larger((budget - threshold.above) / threshold.tied, 0.0), 1.0);
    return {threshold.at, fraction, threshold.above + fraction * threshold.tied};
}

FlipsResult worst_labels(const LabelLosses& losses, const Masses& samples, const Ball& ball,
                        double least, Vector shares, Vector residual) {
    const size_t size = samples.y.size();
    Buffer<> gains(size);
    for (size_t n = 0; n < size; ++n) gains[n] = losses.flipped[n] - losses.kept[n];
    const Terms terms = settle_terms(GivenGains{gains}, samples.mass, ball, least);
    // Value from the dual (the toll), proof from the primal (the shares): two computations of the
    // same number, which `risk` compares.
    Total value, proof, slope_b;
    for (size_t n = 0; n < size; ++n) {
        const double mass = samples.mass[n], kept = losses.kept[n], flipped = losses.flipped[n];
        const double share = terms.rule.share(gains[n]);
        value.add(mass * (kept + larger(gains[n] - terms.toll, 0.0)));
        proof.add(mass * ((1.0 - share) * kept + share * flipped));
        const double slope = (1.0 - share) * losses.kept_slope[n] - share * losses.flipped_slope[n];
        shares[n] = share;
        residual[n] = mass * samples.y[n] * slope;
        slope_b.add(residual[n]);
    }
    return {value.sum + terms.paid,
            proof.sum + terms.rest * least,
            terms.multiplier,
            terms.rest,
            0.0,
            slope_b.sum};
}

FlipsResult worst_hinge_labels(Vector margins, const Masses& samples, const Ball& ball,
                               double least, double floor, Vector shares) {
    const HingeGains gains{margins.data(), floor};
    const Terms terms = settle_terms(gains, samples.mass, ball, least);
    const Lanes one = Lanes::all(1.0), none = Lanes::all(0.0), lowest = Lanes::all(floor);
    const Lanes threshold = Lanes::all(terms.rule.threshold);
    const Lanes fraction = Lanes::all(terms.rule.fraction), toll = Lanes::all(terms.toll);
    LaneTotal value, proof, constant, slope_b;
    for (size_t n = 0; n < margins.size(); n += kLanes) {
        const size_t count = std::min(kLanes, margins.size() - n);
        const Lanes margin = load_up_to(margins.data() + n, count);
        const Lanes mass = load_up_to(samples.mass.data() + n, count);
        const Lanes y = load_up_to(samples.y.data() + n, count);
        const Lanes kept = larger(one - margin, lowest), flipped = larger(one + margin, lowest);
        // The same expression as in HingeGains: a gain must compare equal to the threshold that was
        // chosen among the gains, to the last bit.
        const Lanes gain = flipped - kept;
        const Lanes share =
            choose(is_above(gain, threshold), one, only(is_equal(gain, threshold), fraction));
        value.add(mass * (kept + larger(gain - toll, none)));
        proof.add(mass * ((one - share) * kept + share * flipped));
        // How much of the sample is inside the margin under its own label, and under the other: the
        // constant is summed as this mass, never as risk minus v.w, which would cancel, [slack].
        const Lanes stays = only(is_above(one - margin, lowest), one - share);
        const Lanes turns = only(is_above(one + margin, lowest), share);
        constant.add(mass * (stays + turns));
        const Lanes residual = mass * (y * (turns - stays));
        slope_b.add(residual);
        store_up_to(residual, margins.data() + n, count);
        if (!shares.empty()) store_up_to(share, shares.data() + n, count);
    }
    return {value.sum() + terms.paid, proof.sum() + terms.rest * least,
            terms.multiplier,         terms.rest,
            constant.sum(),           slope_b.sum()};
}

}  // namespace fdrsvm::risk
