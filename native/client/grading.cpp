#include "grading.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fdrsvm::grading {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Norm of x. The negated comparison lets a nan through for linf too: a nan in w must make the
// objective nan, never small.
double length(ConstVector x, Norm norm) {
    double total = 0.0;
    for (double value : x) {
        if (norm == Norm::l1)
            total += std::fabs(value);
        else if (norm == Norm::l2)
            total += value * value;
        else if (!(std::fabs(value) <= total))
            total = std::fabs(value);
    }
    return norm == Norm::l2 ? std::sqrt(total) : total;
}

double dual_length(ConstVector w, Norm norm) {
    if (norm == Norm::l2) return length(w, norm);
    return length(w, norm == Norm::l1 ? Norm::linf : Norm::l1);
}

// A sample whose label is worth flipping while lam is below `price`. Ties are broken by index, so
// that the order does not depend on the standard library.
struct Break {
    double price;
    size_t sample;

    bool operator<(const Break& other) const {
        return price < other.price || (price == other.price && sample > other.sample);
    }
};

// hinge(-m) - hinge(m), where it is positive.
double gain(double margin) { return smaller(1.0 + margin, 2.0 * margin); }

// Mass of the samples that gain more than `price` from a flip. Usually it is within the budget at
// the lowest lam, and then no breakpoint is looked at.
double mass_above(const Grounds& grounds, const double* margins, double price) {
    const Lanes zero = Lanes::all(0.0), one = Lanes::all(1.0), limit = Lanes::all(price);
    Lanes total = zero;
    for (size_t n = 0; n < grounds.rows->count; n += kLanes) {
        const Lanes margin = Lanes::load(margins + n);
        const Choice above = below(limit, smaller(one + margin, margin + margin));
        total += choose(above, Lanes::load(grounds.mass + n), zero);
    }
    return total.sum();
}

// The best lam >= floor, [flips]: the slope in lam is epsilon - kappa (mass that still pays), so go
// down from the largest breakpoint until that mass exceeds the budget.
double worst_lam(const Grounds& grounds, const double* margins, double floor) {
    const size_t count = grounds.rows->count;
    const double kappa = grounds.kappa;
    // The slope at the floor is not negative: the minimum is there.
    if (kappa * mass_above(grounds, margins, kappa * floor) <= grounds.epsilon) return floor;
    std::vector<Break> breaks;
    for (size_t n = 0; n < count; ++n)
        if (gain(margins[n]) > kappa * floor) breaks.push_back({gain(margins[n]) / kappa, n});
    // A heap rather than a sort: the budget is small, so few breakpoints are ever taken from it.
    std::make_heap(breaks.begin(), breaks.end());
    double passed = 0.0;
    while (!breaks.empty()) {
        std::pop_heap(breaks.begin(), breaks.end());
        const Break highest = breaks.back();
        breaks.pop_back();
        passed += grounds.mass[highest.sample];
        if (kappa * passed > grounds.epsilon) return larger(highest.price, floor);
    }
    return floor;
}

double mean_loss(const Grounds& grounds, const double* margins, size_t n_padded, double lam) {
    const bool is_trusted = !(grounds.kappa < kInfinite);
    const Lanes zero = Lanes::all(0.0), one = Lanes::all(1.0);
    const Lanes price = Lanes::all(is_trusted ? kInfinite : grounds.kappa * lam);
    Lanes total = zero;
    for (size_t n = 0; n < n_padded; n += kLanes) {
        const Lanes margin = Lanes::load(margins + n);
        const Lanes kept_loss = larger(one - margin, zero);
        total += Lanes::load(grounds.mass + n) * larger(one + margin - price, kept_loss);
    }
    // Lane maxima drop a nan, but a margin that is not a number has an unknown loss, not the loss
    // 0: nothing is proved then.
    const double all = sum(margins, n_padded);
    return all == all ? total.sum() : all;
}

// Objective at w, and the lam it is attained at.
struct Objective {
    double value;
    double lam;
};

// By its own formulas for margins and lam: the solver's are not used, since a fault in them must
// show here.
Objective grade_objective(const Grounds& grounds, const Centre& centre, const double* w,
                          double* margins, size_t n_padded) {
    const size_t P = grounds.n_features;
    double lam = dual_length({w, P}, grounds.norm);
    if (grounds.kappa < kInfinite) lam = worst_lam(grounds, margins, lam);
    // At epsilon = 0 lam may be infinite, and 0 times infinity is nan.
    double value = grounds.epsilon > 0.0 ? lam * grounds.epsilon : 0.0;
    value += mean_loss(grounds, margins, n_padded, lam);
    for (size_t p = 0; p < P; ++p) {
        const double apart = w[p] - centre.w[p];
        value += 0.5 * grounds.rho * (apart * apart) + grounds.tau * (w[p] * w[p]);
    }
    if (grounds.rows->width > P) {
        const double apart = w[P] - centre.intercept;
        value += 0.5 * grounds.intercept_rho * (apart * apart);
    }
    return {value, lam};
}

// Masses of eight samples, each made feasible on its own. A nan fails every comparison and becomes
// 0, the safe choice: less mass proves less, but what it proves is true.
struct Clipped {
    Lanes kept;
    Lanes flipped;
};

FDRSVM_INLINE Clipped clip(Lanes kept, Lanes flipped, const Lanes& mass) {
    const Lanes zero = Lanes::all(0.0), infinite = Lanes::all(kInfinite);
    kept = larger(kept, zero);
    flipped = larger(flipped, zero);
    const Lanes both = kept + flipped;
    const Lanes share = choose(below(both, infinite), mass / both, zero);
    const Choice too_much = below(mass, both), some = below(zero, share);
    const Lanes less_kept = choose(some, kept * share, zero);
    const Lanes less_flipped = choose(some, flipped * share, zero);
    return {choose(too_much, less_kept, kept), choose(too_much, less_flipped, flipped)};
}

// Makes any numbers feasible, [repair]: then kept, flipped >= 0, kept + flipped <= mass and kappa
// sum flipped <= epsilon; without a price of the intercept also sum y (kept - flipped) = 0, by
// scaling the heavier side down. Sets signed_masses = kept - flipped.
struct Repaired {
    double total;
    double total_flipped;
};

class Repair {
  public:
    Repair(const Grounds& grounds, size_t n_padded)
        : grounds_(grounds), n_(n_padded), kept_(n_padded), flipped_(n_padded) {}

    Repaired run(const Candidate& candidate, bool balance, double* signed_masses) {
        clip_all(candidate);
        if (balance) balance_sides();
        return gather(signed_masses);
    }

  private:
    const Grounds& grounds_;
    size_t n_;
    Buffer<> kept_, flipped_;
    double flip_scale_ = 1.0, up_scale_ = 1.0, down_scale_ = 1.0;

    void clip_all(const Candidate& candidate) {
        // 0 if labels are trusted: all flipped masses are dropped then.
        const double budget = grounds_.epsilon / grounds_.kappa;
        const Lanes zero = Lanes::all(0.0);
        Lanes total = zero;
        for (size_t n = 0; n < n_; n += kLanes) {
            const size_t count = std::min(kLanes, grounds_.rows->count - n);
            const Lanes flipped = budget > 0.0 ? load_up_to(candidate.flipped + n, count) : zero;
            const auto [kept, turned] = clip(load_up_to(candidate.kept + n, count), flipped,
                                             Lanes::load(grounds_.mass + n));
            kept.store(kept_.data() + n);
            turned.store(flipped_.data() + n);
            total += turned;
        }
        const double flipped = total.sum();
        if (flipped > budget) flip_scale_ = budget / flipped;
    }

    // An unpenalised intercept can go anywhere, so v_b must be 0, [gap-dual]. Scaling the heavier
    // side down keeps every other constraint; scaling the lighter one up might not.
    void balance_sides() {
        const Lanes zero = Lanes::all(0.0), flip_scale = Lanes::all(flip_scale_);
        Lanes up = zero, down = zero;
        for (size_t n = 0; n < n_; n += kLanes) {
            const Choice is_up = below(zero, Lanes::load(grounds_.labels + n));
            const Lanes kept = Lanes::load(kept_.data() + n);
            const Lanes flipped = flip_scale * Lanes::load(flipped_.data() + n);
            up += choose(is_up, kept, flipped);
            down += choose(is_up, flipped, kept);
        }
        const double all_up = up.sum(), all_down = down.sum();
        if (all_up > all_down) up_scale_ = all_down / all_up;
        if (all_down > all_up) down_scale_ = all_up / all_down;
    }

    Repaired gather(double* signed_masses) const {
        const Lanes zero = Lanes::all(0.0), flip_scale = Lanes::all(flip_scale_);
        const Lanes up_scale = Lanes::all(up_scale_), down_scale = Lanes::all(down_scale_);
        Lanes total = zero, total_flipped = zero;
        for (size_t n = 0; n < n_; n += kLanes) {
            const Choice is_up = below(zero, Lanes::load(grounds_.labels + n));
            const Lanes kept = Lanes::load(kept_.data() + n) * choose(is_up, up_scale, down_scale);
            const Lanes flipped =
                flip_scale * Lanes::load(flipped_.data() + n) * choose(is_up, down_scale, up_scale);
            (kept - flipped).store(signed_masses + n);
            total += kept + flipped;
            total_flipped += flipped;
        }
        return {total.sum(), total_flipped.sum()};
    }
};

// x becomes the nearest point with transport norm at most `radius`.
void project_ball(std::vector<double>& x, double radius, Norm norm) {
    const double size = length(x, norm);
    if (size <= radius) return;
    if (norm == Norm::linf) {
        for (double& each : x) each = smaller(larger(each, -radius), radius);
        return;
    }
    if (norm == Norm::l2) {
        for (double& each : x) each *= radius / size;
        return;
    }
    std::vector<double> magnitudes;
    for (double each : x) magnitudes.push_back(std::fabs(each));
    const size_t largest =
        std::max_element(magnitudes.begin(), magnitudes.end()) - magnitudes.begin();
    std::sort(magnitudes.begin(), magnitudes.end(), std::greater<>());
    // The l1 ball by sorting, not by the solver's threshold search: an independent way.
    double cut = 0.0, passed = 0.0;
    for (size_t k = 0; k < magnitudes.size(); ++k) {
        passed += magnitudes[k];
        cut = larger((passed - radius) / static_cast<double>(k + 1), cut);
    }
    // |x| - cut cancels where x is large (rho times the centre), and a point outside the ball is
    // not a certificate. The projection lies on the sphere, so scale to it; any point of the ball
    // is valid, the projection is only the best.
    const double largest_sign = x[largest] > 0.0 ? 1.0 : -1.0;
    for (double& each : x) {
        const double held = larger(std::fabs(each) - cut, 0.0);
        each = each > 0.0 ? held : each < 0.0 ? -held : 0.0;
    }
    double held_size = length(x, Norm::l1);
    if (!(held_size > 0.0)) {
        x[largest] = largest_sign;
        held_size = 1.0;
    }
    for (double& each : x) each *= radius / held_size;
}

// Lower bound on the optimum from feasible masses. `w` matters only at epsilon = rho = tau = 0,
// where it says how far the bound must reach.
double grade_bound(const Grounds& grounds, const Centre& centre, const double* w, double total,
                   ConstVector tension, double spent) {
    const size_t P = grounds.n_features;
    const double rho = grounds.rho, epsilon = grounds.epsilon, theta = rho + 2.0 * grounds.tau;
    // Minimising over a penalised intercept, in closed form.
    if (tension.size() > P && grounds.intercept_rho > 0.0) {
        const double pull = tension[P];
        total -= centre.intercept * pull + 0.5 * pull * pull / grounds.intercept_rho;
    }
    if (theta == 0.0) {
        const double size = length(tension.first(P), grounds.norm);
        // No curvature: the minimum over w is finite only if ||v|| <= sigma. Scaling all masses
        // makes it so where epsilon > 0; at epsilon = 0 the bound holds on a ball only, [repair].
        if (epsilon == 0.0)
            return total - 10.0 * larger(dual_length({w, P}, grounds.norm), 1.0) * size;
        return total * smaller(epsilon / larger(size + spent, epsilon), 1.0);
    }
    // With curvature any masses prove something: u is the projection of rho c + v onto the ball of
    // radius sigma, and the bracket is written so that a large centre does not cancel, [gap-dual].
    std::vector<double> held(P);
    for (size_t p = 0; p < P; ++p) held[p] = tension[p] + rho * centre.w[p];
    project_ball(held, larger(epsilon - spent, 0.0), grounds.norm);
    double bound = 0.0;
    for (size_t p = 0; p < P; ++p) {
        const double excess = tension[p] - held[p];
        bound += rho * centre.w[p] * (grounds.tau * centre.w[p] - excess) - 0.5 * excess * excess;
    }
    return total + bound / theta;
}

}  // namespace

double Grade::gap() const {
    const double difference = objective - bound;
    return difference == difference ? difference : kInfinite;
}

Grade grade(const Grounds& grounds, const Centre& centre, const Candidate& candidate,
            Vector tension) {
    const Rows& rows = *grounds.rows;
    const size_t n_padded = padded(rows.count), columns = padded(rows.width);
    Buffer<> samples(n_padded, 0.0), features(columns, 0.0);
    std::copy_n(candidate.w, rows.width, features.data());
    times(rows, features.data(), samples.data());
    const auto [value, lam] =
        grade_objective(grounds, centre, candidate.w, samples.data(), n_padded);
    // The margins' memory is used again for the signed masses.
    const bool balance = rows.width > grounds.n_features && grounds.intercept_rho == 0.0;
    const auto [total, total_flipped] =
        Repair(grounds, n_padded).run(candidate, balance, samples.data());
    transposed_times(rows, samples.data(), features.data());
    std::copy_n(features.data(), rows.width, tension.data());
    // kappa may be infinite, with nothing flipped.
    const double spent = total_flipped > 0.0 ? grounds.kappa * total_flipped : 0.0;
    const double bound = grade_bound(grounds, centre, candidate.w, total, tension, spent);
    return {value, lam, bound, total, larger(grounds.epsilon - spent, 0.0)};
}

}  // namespace fdrsvm::grading
